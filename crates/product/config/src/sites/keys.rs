//! The keys of a site.

use crate::shape::{Key, Kind};

/// The key that a file has beside those that are flags.
pub static SITE: &[Key] = &[
    Key::new("names", Kind::List(&Kind::Text), "The hosts: example.org, *.example.org for all names with one label more, an address, or * for all that no site names.").required(),
    Key::new("certificate", Kind::Tables(CERTIFICATE), "The certificates that clients of these names get; with several, the first one whose kind of key a client takes. Without any, that of the key \"cert\"."),
    Key::new("root", Kind::Text, "The folder whose files answer what no route does. Without it that is 404."),
    Key::with_default("listing", Kind::Switch, "Whether folders without an index are listed.", "false"),
    Key::with_default("dot-files", Kind::Switch, "Whether files whose names begin with a dot are served.", "false"),
    Key::with_default("index", Kind::List(&Kind::Text), "Files that answer for their folder, in this order.", "[\"index.html\"]"),
    Key::new("try-files", Kind::List(&Kind::Text), "Paths that are tried until there is a file: [\"{path}\", \"/index.html\"] for an application of a single page."),
    Key::new("headers", Kind::Table(HEADERS), "Changes of the fields of responses."),
    Key::new("hsts", Kind::SwitchOrTable(HSTS), "Whether browsers come back by HTTPS alone (RFC 6797)."),
    Key::new("cache-control", Kind::Text, "The field cache-control of responses with a status below 400."),
    Key::new("error-pages", Kind::Map(&Kind::Text), "Files below root that are sent with a status from 400 on, by the status."),
    Key::new("route", Kind::Tables(ROUTE), "What answers some paths. The first route that takes a request answers it."),
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
    Key::new("headers", Kind::Table(HEADERS), "Changes of the fields of responses, after those of the site."),
    Key::new("hsts", Kind::SwitchOrTable(HSTS), "As for the site."),
    Key::new("cache-control", Kind::Text, "As for the site."),
    Key::new("error-pages", Kind::Map(&Kind::Text), "As for the site, whose pages hold for other statuses."),
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
        "Whether folders without an index are listed. Without it as for the site, as the next three.",
    ),
    Key::new("dot-files", Kind::Switch, "Whether files whose names begin with a dot are served."),
    Key::new("index", Kind::List(&Kind::Text), "Files that answer for their folder, in this order."),
    Key::new("try-files", Kind::List(&Kind::Text), "Paths that are tried until there is a file."),
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
