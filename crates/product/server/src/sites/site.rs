//! The settings of sites.

use super::edit::Edit;
use super::names::{HostName, Names};
use super::prefix::Prefix;
use super::service::{RouteService, ServiceOf, keep_fields};
use super::template::Template;
use crate::access::Access;
use crate::handler::FileOptions;
use bytes::Bytes;
use std::sync::Arc;

/// Sites by their hosts. A host of none of them gets 421 (RFC 9110 §15.5.20).
#[derive(Debug, Default)]
pub struct Sites {
    pub(super) names: Names,
    sites: Vec<Vec<Route>>,
    pub(super) folders: Vec<FileOptions>,
    /// What each site is called in metrics: its first name.
    pub(super) called: Vec<String>,
    /// The number by which each site is counted (slots.rs).
    pub(super) slots: Vec<usize>,
}

/// A host, or several with the same content.
#[derive(Debug)]
pub struct Site {
    /// Its names. The first site of a name has it.
    pub names: Vec<HostName>,
    /// The first one that takes a request's path and method answers it. Where none does, the answer is 404.
    pub routes: Vec<Route>,
}

/// What answers some paths of a site.
#[derive(Debug)]
pub struct Route {
    /// Which paths.
    pub prefix: Prefix,
    /// Which methods; none: all. GET stands for HEAD, too.
    pub methods: Vec<String>,
    /// Whose requests.
    pub access: Option<Access>,
    /// What is asked after that whether a request may go on: a [`Permit`](super::Permit) says so.
    pub asks: Option<Arc<dyn RouteService>>,
    /// How.
    pub action: Action,
    /// What is changed of the response's fields.
    pub edit: Option<Arc<Edit>>,
    /// Content of responses with a status from 400 on.
    pub pages: Pages,
}

/// How requests are answered.
#[derive(Debug)]
pub enum Action {
    /// By files.
    Files(FilesOf),
    /// By another target, to which clients go. RFC 9110 §15.4.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// The target.
        to: Template,
    },
    /// The request goes on to the routes below as if it had asked for this path.
    Rewrite(Template),
    /// Always alike.
    Fixed(Fixed),
    /// By a service.
    Service(ServiceOf),
    /// By 404, or by 405 where a route above takes the path with other methods.
    Nothing,
}

/// A response that is always the same.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The status, 200 to 599.
    pub status: u16,
    /// The media type of the content.
    pub content_type: String,
    /// The content; with none, responses from 400 on say in a line what the status means.
    pub content: Bytes,
}

/// Files of a folder, and which of them a request gets.
#[derive(Clone, Debug)]
pub struct FilesOf {
    /// The folder: [`Sites::folder`].
    pub folder: usize,
    /// Whether the route's prefix is cut off a path before its file is looked for.
    pub is_below_prefix: bool,
    /// Files that are looked for in a folder, in this order, before those that the folder's options name.
    pub index: Vec<String>,
    /// Paths that are tried until there is a file; none: the request's own.
    pub candidates: Vec<Template>,
}

/// Content of responses by their status.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// The folder: [`Sites::folder`].
    pub folder: usize,
    /// A status, and the path of its page in the folder.
    pub paths: Vec<(u16, String)>,
}

impl Sites {
    /// The number of a folder that answers requests, for [`FilesOf`] and [`Pages`]. Each thread keeps what it knows of its files.
    pub fn folder(&mut self, options: FileOptions) -> usize {
        let known = self.folders.iter().position(|known| known.serves_as(&options));
        known.unwrap_or_else(|| {
            self.folders.push(options);
            self.folders.len() - 1
        })
    }

    /// Adds a site.
    pub fn add(&mut self, site: Site) {
        site.names.iter().for_each(|name| self.names.insert(name, self.sites.len()));
        self.called.push(site.names.first().map(ToString::to_string).unwrap_or_default());
        self.sites.push(site.routes);
    }

    /// They are live from now on.
    pub(super) fn begin(&self) {
        let mut rules = self.sites.iter().flatten().filter_map(|route| route.access.as_ref());
        if rules.any(Access::reads_fields) {
            keep_fields();
        }
        for service in self.services() {
            keep_fields();
            service.begin();
        }
    }

    /// Others have taken their place.
    pub(super) fn end(&self) {
        self.services().for_each(|service| service.end());
    }

    /// Those of each route.
    fn services(&self) -> impl Iterator<Item = &Arc<dyn RouteService>> {
        self.sites.iter().flatten().flat_map(|route| {
            let answers = match &route.action {
                Action::Service(of) => Some(&of.service),
                _ => None,
            };
            answers.into_iter().chain(&route.asks)
        })
    }

    /// The number by which a site is counted.
    pub(super) fn slot(&self, site: usize) -> usize {
        self.slots.get(site).copied().unwrap_or_default()
    }

    /// The routes of a site.
    pub(super) fn routes(&self, site: usize) -> &[Route] {
        self.sites.get(site).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Route {
    /// Whether it takes requests with `method`.
    pub(super) fn takes(&self, method: &[u8]) -> bool {
        let is = |name: &String| name.as_bytes() == method || method == b"HEAD" && name == "GET";
        self.methods.is_empty() || self.methods.iter().any(is)
    }
}

impl Pages {
    /// The path of the page for `status`.
    pub fn path(&self, status: u16) -> Option<&str> {
        self.paths.iter().find(|(of, _)| *of == status).map(|(_, path)| path.as_str())
    }
}
