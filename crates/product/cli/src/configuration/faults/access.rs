//! Faults of rules about clients, in the same folder as those of sites.

use super::By::{Meaning, Schema};
use super::Fault;

pub(super) const OF_ACCESS: &[Fault] = &[
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nclient-cert = 'require'\n",
        Schema,
        "4:15",
        "\"client-cert\" takes no \"require\": did you mean \"required\"?",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nclient-cert = 1\n",
        Schema,
        "4:15",
        "\"client-cert\" takes \"required\", or true, false, or a table: { … }, not the number 1",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nauth = true\n",
        Meaning,
        "4:8",
        "whom? Write auth = { users = { NAME = \"HASH\" } } with what tercel hash-password prints",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nauth = {}\n",
        Meaning,
        "4:8",
        "there is no user: give users, or users-file",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nauth = { users = { a = 'secret' } }\n",
        Meaning,
        "4:24",
        "this is no hash of a password: write what tercel hash-password prints",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nauth = { users = { a = '$argon2id$v=19$m=2000000,t=1,p=1$BwcHBwcHBwc$AAAAAAAAAAAAAAAAAAAAAA' } }\n",
        Meaning,
        "4:24",
        "this hash takes more than 1 GiB",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nauth = { users = { 'a:b' = '$argon2id$v=19$m=16,t=1,p=1$BwcHBwcHBwc$AAAAAAAAAAAAAAAAAAAAAA' } }\n",
        Meaning,
        "4:8",
        "\"a:b\" is no user's name",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nauth = { realm = 'é', users = { a = '$argon2id$v=19$m=16,t=1,p=1$BwcHBwcHBwc$AAAAAAAAAAAAAAAAAAAAAA' } }\n",
        Meaning,
        "4:18",
        "a realm has printable ASCII characters",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nauth = { users-file = 'nowhere' }\n",
        Meaning,
        "4:23",
        "cannot read the users in",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nauth = { users-file = 'one.crt' }\n",
        Meaning,
        "4:23",
        "one.crt:1: write NAME:HASH in each line",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nauth = { usrs = { a = 'b' } }\n",
        Schema,
        "4:10",
        "did you mean \"users\"?",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nclient-cert = true\n",
        Meaning,
        "4:15",
        "clients are asked for certificates where the key \"client-ca\" says whose are accepted: add it above [[site]]",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nclient-cert = {}\n",
        Meaning,
        "4:15",
        "which certificates? Name names or fingerprints",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nclient-cert = { fingerprints = 'abc' }\n",
        Meaning,
        "4:32",
        "\"abc\" is no SHA-256 digest: write the 64 digits",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nrate-limit = true\n",
        Meaning,
        "4:14",
        "how many? Write rate-limit = { requests = 10, per = \"second\" }",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nrate-limit = { per = 'second' }\n",
        Schema,
        "4:14",
        "\"requests\" is missing: So many requests",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nrate-limit = { requests = 0 }\n",
        Schema,
        "4:27",
        "\"requests\" takes a whole number from 1 to",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nrate-limit = { requests = 1, per = 'day' }\n",
        Schema,
        "4:36",
        "give \"second\", \"minute\" or \"hour\"",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\n[[site.route]]\npath = '/a'\nrewrite = '/'\nauth = false\n",
        Meaning,
        "7:1",
        "a rewrite sends no response, so \"auth\" belongs to a route below it",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nrate-limit = { requests = 1, by = 'ip' }\n",
        Meaning,
        "4:35",
        "\"by\" takes no \"ip\": give \"address\", \"authorization\" or \"field:NAME\"",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nrate-limit = { requests = 1, by = 'field:x key' }\n",
        Meaning,
        "4:35",
        "\"x key\" is no name of a header field: letters, digits and - make one",
    ),
    (
        "[[site]]\nnames = 'a.org'\nroot = 'site'\nrate-limit = { requests = 1, by = 'field:Host' }\n",
        Meaning,
        "4:35",
        "a request is of its site's host: limit each site, or name another field",
    ),
];
