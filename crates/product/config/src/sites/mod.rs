//! Sites: from the keys of a file to the sites of the server.

mod access;
mod acme;
mod actions;
mod compress;
mod edits;
mod folders;
mod keys;
mod proxies;
mod uploads;

pub use keys::{ACME, SITE};

use crate::fault::{Fault, Span};
use crate::read::Table;
use ::acme::Order;
use access::{Shared, access, asks};
use acme::OfFile;
use actions::action;
use edits::{edits, pages};
use folders::{Folder, folder};
use server::compress::Compression;
use server::sites::{Action, HostName, Prefix, Route, Site, Sites};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What a rewrite leads past.
const BELOW_REWRITES: [&str; 7] =
    ["headers", "hsts", "cache-control", "error-pages", "auth", "client-cert", "rate-limit"];

/// What a file says of sites.
#[derive(Debug, Default)]
pub struct Settings {
    /// For [`server::Bound::serve_sites`].
    pub sites: Sites,
    /// The files of certificates.
    pub certificates: Vec<Certificate>,
    /// The certificates that are ordered.
    pub orders: Vec<Ordered>,
    /// The places of rules that clients' certificates are needed for.
    pub client_certificates: Vec<Span>,
}

/// The files of a certificate.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The names for which clients get it; `None`: those without a certificate of their own, and none.
    pub names: Vec<Option<String>>,
    /// The chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// Its place in the file.
    pub span: Span,
}

/// A certificate that is ordered.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// As of [`Certificate`].
    pub names: Vec<Option<String>>,
    /// What is ordered, and where.
    pub order: Order,
    /// The place that says so.
    pub span: Span,
}

/// The sites in `table`, which [`crate::read::read`] has made. Paths are relative to `place`. What is wrong is noted.
pub fn sites(table: &Table, place: &Path) -> (Settings, Vec<Fault>) {
    let mut builder = Builder {
        place,
        settings: Settings::default(),
        names: HashMap::new(),
        compressions: HashMap::new(),
        shared: Shared::default(),
        acme: OfFile::of(table),
        faults: Vec::new(),
    };
    table.tables("site").for_each(|site| builder.site(site));
    if let Some(span) = table.place("acme").filter(|_| builder.faults.is_empty())
        && builder.settings.orders.is_empty()
    {
        builder.note(span, "no certificate is ordered: acme is for sites whose names are hosts, [[site]], without a certificate in files");
    }
    (builder.settings, builder.faults)
}

struct Builder<'a> {
    place: &'a Path,
    settings: Settings,
    /// The names of all sites.
    names: HashMap<HostName, Span>,
    /// Of each key "compress", by its place: the routes that take it over share its cache.
    compressions: HashMap<usize, Compression>,
    shared: Shared,
    acme: OfFile,
    faults: Vec<Fault>,
}

/// What routes take over from their site.
struct OfSite<'a> {
    table: &'a Table,
    /// The folder of its root.
    folder: Option<Folder>,
}

impl Builder<'_> {
    fn note(&mut self, span: Span, what: impl Into<String>) {
        self.faults.push(Fault::new(span, what));
    }

    fn site(&mut self, table: &Table) {
        let names = self.names(table);
        self.certificates(table, &names);
        acme::order(self, table, &names);
        let folder = folder(self, table, None);
        let of_site = OfSite { table, folder };
        let mut routes = Vec::new();
        for route in table.tables("route") {
            routes.extend(self.route(route, &of_site).map(|made| (made, route)));
        }
        self.reachable(&routes);
        self.endless(&routes);
        if let Some((Route { action: Action::Rewrite(_), .. }, last)) = routes.last()
            && table.get("root").is_none()
            && let Some(span) = last.place("rewrite")
        {
            self.note(
                span,
                "nothing answers what is rewritten: give the site a root, or a route below this one",
            );
        }
        if of_site.folder.is_none() && table.get("route").is_none() && table.get("root").is_none() {
            self.note(
                table.span.clone(),
                "this site answers nothing: give it a root, or routes: [[site.route]]",
            );
        }
        let mut routes: Vec<Route> = routes.into_iter().map(|(route, _)| route).collect();
        routes.push(self.last(&of_site));
        self.settings.sites.add(Site { names, routes });
    }

    fn names(&mut self, table: &Table) -> Vec<HostName> {
        let mut names = Vec::new();
        for (text, span) in table.list("names") {
            match HostName::parse(text) {
                Ok(name) => {
                    if self.names.insert(name.clone(), span.clone()).is_some() {
                        self.note(span, format!("there is \"{text}\" already: a host has one site"));
                    }
                    names.push(name);
                }
                Err(error) => self.note(span, format!("\"{text}\": {error}")),
            }
        }
        if names.is_empty()
            && let Some(item) = table.get("names").filter(|_| table.list("names").next().is_none())
        {
            self.note(
                item.span.clone(),
                "a site has a name: write \"*\" for all hosts that no other site names",
            );
        }
        names
    }

    fn certificates(&mut self, table: &Table, names: &[HostName]) {
        for entry in table.tables("certificate") {
            let (Some((certificate, _)), Some((key, _))) = (entry.text("cert"), entry.text("key")) else {
                continue;
            };
            self.settings.certificates.push(Certificate {
                names: names.iter().map(HostName::server_name).collect(),
                certificate: self.place.join(certificate),
                key: self.place.join(key),
                span: entry.span.clone(),
            });
        }
    }

    fn route(&mut self, table: &Table, of_site: &OfSite<'_>) -> Option<Route> {
        let path = table.text("path").and_then(|(text, span)| match Prefix::parse(text) {
            Ok(prefix) => Some(prefix),
            Err(error) => {
                self.note(span, format!("\"{text}\": {error}"));
                None
            }
        });
        let mut methods = self.methods(table);
        if table.get("upload").is_some() && methods.is_empty() {
            methods.push("PUT".to_owned());
        }
        let action = action(self, table, of_site);
        let access = access(self, &[table, of_site.table]);
        let asks = asks(self, &[table, of_site.table]);
        let edit = edits(self, &[of_site.table, table]);
        let pages = pages(self, &[table, of_site.table], of_site.folder.as_ref());
        let action = action?;
        if matches!(action, Action::Rewrite(_)) {
            for name in BELOW_REWRITES {
                if let Some(span) = table.place(name) {
                    self.note(
                        span,
                        format!("a rewrite sends no response, so \"{name}\" belongs to a route below it"),
                    );
                }
            }
        }
        let prefix = if table.switch("exact", false) { path?.whole() } else { path? };
        Some(Route { prefix, methods, access, asks, action, edit, pages })
    }

    fn methods(&mut self, table: &Table) -> Vec<String> {
        let mut methods = Vec::new();
        if let Some(item) = table.get("methods").filter(|_| table.list("methods").next().is_none()) {
            self.note(
                item.span.clone(),
                "no method is none to answer: name one, such as \"GET\", or leave it out for all",
            );
        }
        for (text, span) in table.list("methods") {
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
                self.note(span, format!("\"{text}\" is no method: write it in capitals, such as \"GET\""));
            } else {
                methods.push(text.to_owned());
            }
        }
        methods
    }

    /// Notes routes that no request reaches.
    fn reachable(&mut self, routes: &[(Route, &Table)]) {
        let takes_all = |one: &Route, other: &Route| {
            let takes_methods = one.methods.is_empty()
                || !other.methods.is_empty() && other.methods.iter().all(|name| one.methods.contains(name));
            takes_methods && one.prefix.covers(&other.prefix)
        };
        for (at, (route, table)) in routes.iter().enumerate() {
            // A rewrite in between can lead here.
            let before = routes
                .iter()
                .take(at)
                .rev()
                .take_while(|(before, _)| !matches!(before.action, Action::Rewrite(_)));
            let mut before = before.map(|(before, _)| before);
            if before.any(|before| takes_all(before, route)) {
                let span = table.text("path").map_or(table.span.clone(), |(_, span)| span);
                self.note(
                    span,
                    "no request gets here: a route above takes all of them, so move this one above it",
                );
            }
        }
    }

    /// Notes redirects that lead back to themselves.
    fn endless(&mut self, routes: &[(Route, &Table)]) {
        for (at, (route, table)) in routes.iter().enumerate() {
            let to = table.table("redirect").and_then(|redirect| redirect.text("to"));
            let (Some((to, span)), true) = (to, route.methods.is_empty()) else { continue };
            // Up to the first brace it is what each request gets.
            let (known, rest) = to.split_at(to.find('{').unwrap_or(to.len()));
            let Ok(known) = Prefix::parse(known.split(['?', '#']).next().unwrap_or_default()) else {
                continue;
            };
            let known = if rest.is_empty() || rest == "{query}" { known.whole() } else { known };
            let mut before = routes.iter().take(at).map(|(before, _)| before);
            if route.prefix.covers(&known) && !before.any(|before| before.prefix.covers(&known)) {
                self.note(span, "this leads back to the same route, without end: name another path, or a host with https://");
            }
        }
    }

    /// What answers where no route does.
    fn last(&mut self, of_site: &OfSite<'_>) -> Route {
        let action = match &of_site.folder {
            Some(folder) => Action::Files(folder.files.clone()),
            None => Action::Nothing,
        };
        // Faults of the site's own edits and pages are noted here, once.
        let access = access(self, &[of_site.table]);
        let asks = asks(self, &[of_site.table]);
        let edit = edits(self, &[of_site.table]);
        let pages = pages(self, &[of_site.table], of_site.folder.as_ref());
        Route { prefix: Prefix::default(), methods: Vec::new(), access, asks, action, edit, pages }
    }
}
