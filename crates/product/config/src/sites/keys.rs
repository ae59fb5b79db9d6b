//! The keys of a site.

use crate::shape::{Key, Kind};

/// The key that a file has beside those that are flags.
pub static SITE: &[Key] = &[
    Key::new("names", Kind::List(&Kind::Text), "The hosts: example.org, *.example.org for all names with one label more, an address, or * for all that no site names.").required(),
    Key::new("certificate", Kind::Tables(CERTIFICATE), "The certificates that clients of these names get; with several, the first one whose kind of key a client takes. Without any, that of the key \"cert\"."),
    Key::new("acme", Kind::SwitchOrTable(ACME_OF_SITE), "Whether the certificate of these names is ordered from an authority and renewed (ACME), by the table \"acme\" of the file, or by this one, whose keys go before. Where the file has that table, true for sites without a certificate."),
    Key::new("root", Kind::Text, "The folder whose files answer what no route does. Without it that is 404."),
    Key::with_default("listing", Kind::Switch, "Whether folders without an index are listed.", "false"),
    Key::with_default("dot-files", Kind::Switch, "Whether files whose names begin with a dot are served.", "false"),
    Key::with_default("index", Kind::List(&Kind::Text), "Files that answer for their folder, in this order.", "[\"index.html\"]"),
    Key::new("try-files", Kind::List(&Kind::Text), "Paths that are tried until there is a file: [\"{path}\", \"/index.html\"] for an application of a single page."),
    Key::new("compress", Kind::SwitchOrTable(COMPRESS), "Whether files are sent compressed to clients that accept it: as file.css.zst, .br or .gz beside them, or compressed on demand. With true what stands in the table by default."),
    Key::new("headers", Kind::Table(HEADERS), "Changes of the fields of responses."),
    Key::new("hsts", Kind::SwitchOrTable(HSTS), "Whether browsers come back by HTTPS alone (RFC 6797)."),
    Key::new("cache-control", CACHE_CONTROL, "The field cache-control of responses with a status below 400: a value for all, or rules by name, of which the first that is for a name holds."),
    Key::new("error-pages", Kind::Map(&Kind::Text), "Files below root that are sent with a status from 400 on, by the status."),
    Key::new("auth", Kind::SwitchOrTable(AUTH), "Users who are answered, with a name and a password (RFC 7617)."),
    Key::new("client-cert", CLIENT_CERT, "Whether clients are answered that have shown a certificate alone: any of the authorities in \"client-ca\" with true or \"required\", or those of the table."),
    Key::new("forward-auth", Kind::SwitchOrTable(FORWARD_AUTH), "Another server is asked whether a request may go on: it does if that answers 2xx."),
    Key::new("rate-limit", Kind::SwitchOrTable(RATE_LIMIT), "How many requests of a client are answered."),
    Key::new("route", Kind::Tables(ROUTE), "What answers some paths. The first route that takes a request answers it."),
];

/// The keys of the table "acme" of a file.
pub static ACME: &[Key] = &[
    Key::with_default(
        "terms-agreed",
        Kind::Switch,
        "Whether you agree to the authority's terms of service. Nothing is ordered without.",
        "false",
    ),
    Key::new(
        "contact",
        Kind::List(&Kind::Text),
        "Addresses for email, at which the authority may tell of certificates.",
    ),
    Key::with_default(
        "directory",
        Kind::Text,
        "The URL of the authority's directory (RFC 8555 §7.1.1).",
        "\"https://acme-v02.api.letsencrypt.org/directory\"",
    ),
    Key::with_default(
        "challenge",
        CHALLENGE,
        "How names are proven: by a handshake at port 443 (tls-alpn-01), or by a request in plain HTTP at port 80 (http-01).",
        "\"tls-alpn-01\"",
    ),
    Key::with_default("key", KEY_KIND, "The kind of the certificates' keys.", "\"ecdsa-p256\""),
    Key::new(
        "profile",
        Kind::Text,
        "The authority's profile for certificates, if it has several, such as shortlived.",
    ),
    Key::new(
        "tls-ca",
        Kind::Text,
        "The authorities of the directory's own certificate, PEM. Without it those of the system.",
    ),
    Key::new(
        "external-account",
        Kind::Table(EXTERNAL_ACCOUNT),
        "The account elsewhere that the authority wants to be named (RFC 8555 §7.3.4).",
    ),
];

/// As [`ACME`], without defaults: what a site does not say, the file does.
static ACME_OF_SITE: &[Key] = &[
    Key::new("terms-agreed", Kind::Switch, "As in the table of the file, as all keys here."),
    Key::new("contact", Kind::List(&Kind::Text), "Addresses for email."),
    Key::new("directory", Kind::Text, "The URL of the authority's directory."),
    Key::new("challenge", CHALLENGE, "How names are proven."),
    Key::new("key", KEY_KIND, "The kind of the certificate's key."),
    Key::new("profile", Kind::Text, "The authority's profile."),
    Key::new("tls-ca", Kind::Text, "The authorities of the directory's own certificate, PEM."),
    Key::new("external-account", Kind::Table(EXTERNAL_ACCOUNT), "The account elsewhere."),
];

const CHALLENGE: Kind = Kind::Choice(&["tls-alpn-01", "http-01"]);
const KEY_KIND: Kind = Kind::Choice(&["ecdsa-p256", "ecdsa-p384", "rsa-2048"]);

static EXTERNAL_ACCOUNT: &[Key] = &[
    Key::new("id", Kind::Text, "The key identifier that the authority has given.").required(),
    Key::new("key-file", Kind::Text, "A file with the key that it has given, base64url.").required(),
];

static CERTIFICATE: &[Key] = &[
    Key::new("cert", Kind::Text, "The certificate chain, PEM.").required(),
    Key::new("key", Kind::Text, "Its private key, PEM.").required(),
];

static ROUTE: &[Key] = &[
    Key::new(
        "path",
        Kind::Text,
        "The beginning of the paths: /api is that of /api and /api/a, and not of /apis.",
    )
    .required(),
    Key::with_default(
        "exact",
        Kind::Switch,
        "Whether the path alone is meant, and not those that begin with it.",
        "false",
    ),
    Key::new("methods", Kind::List(&Kind::Text), "The methods; without it all. GET stands for HEAD, too."),
    Key::new(
        "files",
        Kind::SwitchOrTable(FILES),
        "Action: files, of the site's root unless it says another one.",
    ),
    Key::new("redirect", Kind::Table(REDIRECT), "Action: the client goes elsewhere."),
    Key::new(
        "rewrite",
        Kind::Text,
        "Action: the routes below answer as if this path had been asked for. It may have {path}, {rest}, {query} and {host} in it.",
    ),
    Key::new("respond", Kind::Table(RESPOND), "Action: always the same response."),
    Key::new("proxy", Kind::Table(PROXY), "Action: requests go on to other servers."),
    Key::new(
        "upload",
        Kind::SwitchOrTable(UPLOAD),
        "Action: what clients send by PUT becomes a file, of the site's root unless it says another one. Without \"methods\" the route is for PUT alone.",
    ),
    Key::new("headers", Kind::Table(HEADERS), "Changes of the fields of responses, after those of the site."),
    Key::new("hsts", Kind::SwitchOrTable(HSTS), "As for the site."),
    Key::new("cache-control", CACHE_CONTROL, "As for the site, whose rules hold for other names."),
    Key::new("error-pages", Kind::Map(&Kind::Text), "As for the site, whose pages hold for other statuses."),
    Key::new(
        "auth",
        Kind::SwitchOrTable(AUTH),
        "As for the site, in place of its users; false: all are answered.",
    ),
    Key::new(
        "forward-auth",
        Kind::SwitchOrTable(FORWARD_AUTH),
        "As for the site, in place of its server; false: none is asked.",
    ),
    Key::new("client-cert", CLIENT_CERT, "As for the site, in place of its rule; false: none is needed."),
    Key::new(
        "rate-limit",
        Kind::SwitchOrTable(RATE_LIMIT),
        "As for the site, in place of its limit; false: there is none.",
    ),
];

static AUTH: &[Key] = &[
    Key::with_default(
        "realm",
        Kind::Text,
        "What browsers call the place when they ask for the password.",
        "\"restricted\"",
    ),
    Key::new(
        "users",
        Kind::Map(&Kind::Text),
        "Names of users, each with the hash of the password, as tercel hash-password prints it.",
    ),
    Key::new("users-file", Kind::Text, "A file with a line NAME:HASH for each user, beside \"users\"."),
];

static FORWARD_AUTH: &[Key] = &[
    Key::new("to", Kind::List(&Kind::Text), "The servers that are asked, as upstreams of a proxy.")
        .required(),
    Key::new("path", Kind::Text, "What is asked for, by GET.").required(),
    Key::new(
        "copy",
        Kind::List(&Kind::Text),
        "Fields of the answer that the request has from there on, in place of what the client sends by these names.",
    ),
    Key::new("host", Kind::Text, "The field Host. Without it the host that the client asked for."),
    Key::new("tls-ca", Kind::Text, "As for a proxy."),
    Key::new("tls-name", Kind::Text, "As for a proxy."),
    Key::new("trusted-proxies", Kind::List(&Kind::Text), "As for a proxy."),
    Key::with_default(
        "timeout",
        Kind::Integer(1..=3_600),
        "How long an answer may take, in seconds. Without one the client gets 504.",
        "10",
    ),
];

const CACHE_CONTROL: Kind = Kind::Either(&Kind::Text, &Kind::Tables(CACHE_RULE));

static CACHE_RULE: &[Key] = &[
    Key::new(
        "match",
        Kind::List(&Kind::Text),
        "The names of files, with * for any characters: \"*.css\". What answers for a folder is called index.html.",
    )
    .required(),
    Key::new("value", Kind::Text, "The value of the field.").required(),
];

const CLIENT_CERT: Kind = Kind::Either(&Kind::Choice(&["required"]), &Kind::SwitchOrTable(CLIENT_CERT_TABLE));

static CLIENT_CERT_TABLE: &[Key] = &[
    Key::new(
        "names",
        Kind::List(&Kind::Text),
        "The common name of the certificate's subject, or a DNS name or email address in it.",
    ),
    Key::new(
        "fingerprints",
        Kind::List(&Kind::Text),
        "The SHA-256 digests of certificates, in hexadecimal digits.",
    ),
];

static RATE_LIMIT: &[Key] = &[
    Key::new(
        "requests",
        Kind::Integer(1..=1_000_000_000),
        "So many requests of a client are answered in each period, on average.",
    )
    .required(),
    Key::with_default("per", Kind::Choice(&["second", "minute", "hour"]), "The period.", "\"second\""),
    Key::new(
        "burst",
        Kind::Integer(1..=1_000_000_000),
        "So many are answered at once. Without it as many as \"requests\".",
    ),
    Key::with_default(
        "by",
        Kind::Text,
        "By what clients are told apart: \"address\" (the first 64 bits of one of IPv6); \"authorization\", what they send as that; or \"field:NAME\", what they send in that field. Without the field by their address.",
        "\"address\"",
    ),
];

static FILES: &[Key] = &[
    Key::new("root", Kind::Text, "The folder. Without it the site's."),
    Key::with_default(
        "strip-prefix",
        Kind::Switch,
        "Whether the route's path is cut off before the file is looked for.",
        "false",
    ),
    Key::new(
        "listing",
        Kind::Switch,
        "Whether folders without an index are listed. Without it as for the site, as the next four.",
    ),
    Key::new("dot-files", Kind::Switch, "Whether files whose names begin with a dot are served."),
    Key::new("index", Kind::List(&Kind::Text), "Files that answer for their folder, in this order."),
    Key::new("try-files", Kind::List(&Kind::Text), "Paths that are tried until there is a file."),
    Key::new("compress", Kind::SwitchOrTable(COMPRESS), "Whether files are sent compressed."),
];

static COMPRESS: &[Key] = &[
    Key::with_default(
        "codings",
        Kind::List(&Kind::Choice(&["zstd", "br", "gzip"])),
        "The codings, the preferred one first.",
        "[\"zstd\", \"br\", \"gzip\"]",
    ),
    Key::new(
        "types",
        Kind::List(&Kind::Text),
        "The media types that are compressed on demand, such as text/* or application/*+json. Without it texts, and types like them. A file that lies compressed beside another is sent whatever its type.",
    ),
    Key::with_default(
        "min-size",
        Kind::Integer(0..=1_073_741_824),
        "Smaller files are not compressed on demand, in bytes.",
        "1024",
    ),
    Key::with_default(
        "cache",
        Kind::Text,
        "The memory for files that were compressed. Larger ones than an eighth of it are not. \"0B\": none is compressed on demand.",
        "\"64MiB\"",
    ),
];

static REDIRECT: &[Key] = &[
    Key::new("to", Kind::Text, "Where to: a path or a URL. {host}, {path}, {query} are those of the request, {rest} is what of the path follows that of the route.").required(),
    Key::with_default("status", Kind::Integer(300..=399), "301, 302, 303, 307 or 308.", "307"),
];

static RESPOND: &[Key] = &[
    Key::with_default("status", Kind::Integer(200..=599), "The status.", "200"),
    Key::with_default("body", Kind::Text, "The content.", "\"\""),
    Key::with_default(
        "content-type",
        Kind::Text,
        "The media type of the content.",
        "\"text/plain; charset=utf-8\"",
    ),
];

static UPLOAD: &[Key] = &[
    Key::new("root", Kind::Text, "The folder. Without it the site's."),
    Key::with_default(
        "strip-prefix",
        Kind::Switch,
        "Whether the route's path is cut off what the file is called.",
        "false",
    ),
    Key::with_default(
        "dot-files",
        Kind::Switch,
        "Whether names that begin with a dot may be stored and replaced.",
        "false",
    ),
    Key::with_default("max-size", Kind::Text, "The largest file that is taken.", "\"1GiB\""),
];

static PROXY: &[Key] = &[
    Key::new(
        "to",
        Kind::List(&Kind::Text),
        "The upstreams: http://HOST:PORT and unix:PATH are asked by HTTP/1.1, h2c://HOST:PORT by HTTP/2, https://HOST:PORT by what both ends speak of the two, h3://HOST:PORT by HTTP/3.",
    )
    .required(),
    Key::with_default(
        "balance",
        Kind::Choice(&["least-connections", "round-robin", "hash-address", "hash-path"]),
        "Which upstream gets a request: the one with the fewest under way, one after the other, or always the same one for a client's address or a path.",
        "\"least-connections\"",
    ),
    Key::with_default(
        "strip-prefix",
        Kind::Switch,
        "Whether the route's path is cut off the path of requests.",
        "false",
    ),
    Key::new(
        "tls-ca",
        Kind::Text,
        "The authorities that certificates of upstreams at https:// and h3:// are from, PEM; or such a certificate itself. Without it those of the system.",
    ),
    Key::new("tls-name", Kind::Text, "The name in these certificates. Without it the host of the upstream."),
    Key::new(
        "host",
        Kind::Text,
        "The field Host of requests. Without it the host that the client asked for.",
    ),
    Key::new(
        "request-headers",
        Kind::Table(REQUEST_HEADERS),
        "Changes of the fields of requests, after all that the proxy says itself.",
    ),
    Key::new(
        "trusted-proxies",
        Kind::List(&Kind::Text),
        "Addresses and networks of proxies in front of this server. What they say in X-Forwarded-* and Forwarded goes on; what others say does not.",
    ),
    Key::with_default("connect-timeout", Kind::Integer(1..=86_400), "To connect, in seconds.", "5"),
    Key::with_default(
        "response-timeout",
        Kind::Integer(1..=86_400),
        "From the last piece of a request that the upstream took to the head of its response, in seconds.",
        "60",
    ),
    Key::with_default(
        "idle-timeout",
        Kind::Integer(1..=86_400),
        "Between two pieces of a response's content, in seconds.",
        "60",
    ),
    Key::with_default(
        "keep-alive-timeout",
        Kind::Integer(1..=86_400),
        "How long a connection to an upstream waits for the next request, in seconds.",
        "60",
    ),
    Key::with_default(
        "proxy-protocol",
        Kind::Switch,
        "Whether connections to upstreams begin with the client's address, by version 2 of the PROXY protocol. Then each has one request.",
        "false",
    ),
    Key::with_default(
        "upgrade",
        Kind::Switch,
        "Whether clients and upstreams may go on by other protocols than HTTP on their connections, such as WebSocket.",
        "true",
    ),
    Key::with_default(
        "tunnel-timeout",
        Kind::Integer(1..=31_536_000),
        "How long such a connection may rest in both directions, in seconds.",
        "3600",
    ),
    Key::with_default(
        "keep-alive",
        Kind::Integer(0..=65_535),
        "Connections to each upstream that wait for the next request at most, on each thread.",
        "64",
    ),
    Key::with_default(
        "max-connections",
        Kind::Integer(1..=65_535),
        "Requests that each upstream has at a time at most, each on a connection. Others get 503.",
        "1024",
    ),
    Key::with_default(
        "retries",
        Kind::Integer(0..=63),
        "So many further upstreams are tried when one fails: for GET, HEAD, OPTIONS and TRACE without content, and where nothing of the request was sent.",
        "2",
    ),
    Key::with_default(
        "max-failures",
        Kind::Integer(1..=1_000_000),
        "After so many failures in a row an upstream gets no requests for a while, if there are others.",
        "3",
    ),
    Key::with_default("cool-down", Kind::Integer(1..=86_400), "How long, in seconds.", "10"),
    Key::new(
        "health",
        Kind::Table(HEALTH),
        "Upstreams are checked by requests for this path. Without it only their answers to requests tell.",
    ),
    Key::new(
        "max-content",
        Kind::Text,
        "The longest content of a request, such as 100MB; longer content is answered with 413. Without it there is no limit.",
    ),
];

static REQUEST_HEADERS: &[Key] = &[
    Key::new("set", Kind::Map(&Kind::Text), "Fields that have this value, in place of any other."),
    Key::new("add", Kind::Map(&Kind::List(&Kind::Text)), "Fields that are added to those of the request."),
    Key::new("remove", Kind::List(&Kind::Text), "Fields that do not go on."),
];

static HEALTH: &[Key] = &[
    Key::new("path", Kind::Text, "What is asked for, by GET.").required(),
    Key::new("host", Kind::Text, "The field Host. Without it that of the proxy, or the upstream's own."),
    Key::with_default("interval", Kind::Integer(1..=86_400), "From one check to the next, in seconds.", "10"),
    Key::with_default(
        "timeout",
        Kind::Integer(1..=3_600),
        "How long a check may take, connection and all, in seconds.",
        "5",
    ),
    Key::with_default(
        "status",
        Kind::List(&Kind::Text),
        "The statuses of an upstream that is well: such as 204, or 200-299.",
        "\"200-399\"",
    ),
    Key::with_default(
        "rises",
        Kind::Integer(1..=1_000),
        "After so many checks that succeed in a row an upstream gets requests again.",
        "2",
    ),
    Key::with_default(
        "falls",
        Kind::Integer(1..=1_000),
        "After so many checks that fail in a row an upstream gets no requests, if there are others.",
        "3",
    ),
];

static HEADERS: &[Key] = &[
    Key::new("set", Kind::Map(&Kind::Text), "Fields that have this value, in place of any other."),
    Key::new("add", Kind::Map(&Kind::List(&Kind::Text)), "Fields that are added to those of the response."),
    Key::new("remove", Kind::List(&Kind::Text), "Fields that are not sent."),
];

static HSTS: &[Key] = &[
    Key::with_default("max-age", Kind::Integer(0..=100_000_000_000), "For how many seconds.", "31536000"),
    Key::with_default("include-subdomains", Kind::Switch, "Whether for names below this one, too.", "false"),
    Key::with_default(
        "preload",
        Kind::Switch,
        "Whether browsers may know of it before the first visit.",
        "false",
    ),
];
