//! Faults of proxied routes, in the same folder as those of sites.

use super::By::{Meaning, Schema};
use super::Fault;

pub(super) const OF_PROXIES: &[Fault] = &[
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = 'http://localhost'\n",
        Schema,
        "5:9",
        "\"proxy\" takes a table: { … }, not a string",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { balance = 'round-robin' }\n",
        Schema,
        "5:9",
        "\"to\" is missing: The upstreams: http://HOST:PORT",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = [] }\n",
        Meaning,
        "5:16",
        "a proxy has an upstream: write http://HOST:PORT or unix:PATH",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = '127.0.0.1:80' }\n",
        Meaning,
        "5:16",
        "\"127.0.0.1:80\": write http://HOST:PORT such as http://127.0.0.1:8080",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'http://a/b' }\n",
        Meaning,
        "5:16",
        "an upstream has no path here: \"strip-prefix\"",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = ['unix:a', 'http://u@a'] }\n",
        Meaning,
        "5:27",
        "an upstream has no user here: leave it out",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'http://a:0' }\n",
        Meaning,
        "5:16",
        "a port is from 1 to 65535",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = ['unix:a', 'unix:a'] }\n",
        Meaning,
        "5:27",
        "there is \"unix:a\" already: name each once",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', balance = 'random' }\n",
        Schema,
        "5:36",
        "give \"least-connections\", \"round-robin\", \"hash-address\" or \"hash-path\"",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', host = 'a/b' }\n",
        Meaning,
        "5:33",
        "\"a/b\" is no host: write one such as app.internal",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', trusted-proxies = '10.1.0.0/8' }\n",
        Meaning,
        "5:44",
        "write an address such as 192.0.2.7, or a network such as 10.0.0.0/8",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', max-content = 'much' }\n",
        Meaning,
        "5:40",
        "\"much\": give a size such as 256KB or 1MiB",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', response-timeout = 0 }\n",
        Schema,
        "5:45",
        "\"response-timeout\" takes a whole number from 1 to 86400",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', retrys = 1 }\n",
        Schema,
        "5:26",
        "did you mean \"retries\"?",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', tls-ca = 'one.crt' }\n",
        Meaning,
        "5:26",
        "\"tls-ca\" is for upstreams at https:// and h3://, and there are none",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'quic://a' }\n",
        Meaning,
        "5:16",
        "h2c://, https:// or h3:// in the same way",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'h3://a', tls-ca = 'nothing.crt' }\n",
        Meaning,
        "5:35",
        "nothing.crt: No such file or directory (os error 2): give \"tls-ca\" a PEM file that this user may read",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'https://a', tls-ca = 'nothing.crt' }\n",
        Meaning,
        "5:38",
        "nothing.crt: No such file or directory (os error 2): give \"tls-ca\" a PEM file that this user may read",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'https://a', tls-ca = 'site/index.html' }\n",
        Meaning,
        "5:38",
        "certificate",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'https://a', tls-ca = 'one.crt', tls-name = 'a b' }\n",
        Meaning,
        "5:60",
        "\"a b\" is no name that a certificate can have",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', health = { path = 'a' } }\n",
        Meaning,
        "5:44",
        "\"a\" is no path: write one such as /health",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', health = { path = '/a', status = '2xx' } }\n",
        Meaning,
        "5:59",
        "\"2xx\" is no status: write one such as \"204\", or several as \"200-299\"",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', request-headers = { set = { host = 'b' } } }\n",
        Meaning,
        "5:54",
        "the key \"host\" of the proxy sets this field",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', request-headers = { remove = 'content-length' } }\n",
        Meaning,
        "5:55",
        "\"content-length\" is the proxy's own: leave it out",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'h3://a', proxy-protocol = true }\n",
        Meaning,
        "5:26",
        "HTTP/3 has no PROXY protocol: ask the upstreams at h3:// by https://, or leave it out",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nproxy = { to = 'unix:a', proxy-protocol = 'v2' }\n",
        Schema,
        "5:43",
        "\"proxy-protocol\" takes true or false, not a string",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nrespond = { status = 204 }\nforward-auth = true\n",
        Meaning,
        "6:16",
        "whom? Write forward-auth = { to = \"http://HOST:PORT\", path = \"/PATH\" }",
    ),
    (
        "[[site]]\nnames = 'a.org'\n[[site.route]]\npath = '/a'\nrespond = { status = 204 }\nforward-auth = { to = 'unix:a', path = '/', copy = 'te' }\n",
        Meaning,
        "6:52",
        "\"te\" is the proxy's own: leave it out",
    ),
];
