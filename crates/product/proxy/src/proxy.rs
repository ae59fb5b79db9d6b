//! A proxied route, as the server knows it.

use crate::balance::{Balance, Chooser, hash};
use crate::exchange::exchange;
use crate::runtime;
use crate::settings::Settings;
use crate::upstream::Upstream;
use body::Body;
use http::Uri;
use server::ConnectionInfo;
use server::sites::{RouteError, RouteFuture, RouteService};
use std::net::IpAddr;
use std::sync::Arc;

/// A route whose requests go on to upstreams.
#[derive(Debug)]
pub struct Proxy(Arc<Route>);

/// What the exchanges of a route share.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) settings: Settings,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) chooser: Chooser,
}

impl Proxy {
    /// A route with these settings. Nothing is connected before a request comes.
    pub fn new(settings: Settings) -> Proxy {
        let (upstreams, chooser) = (Upstream::all(&settings), Chooser::new(settings.balance));
        Proxy(Arc::new(Route { settings, upstreams, chooser }))
    }
}

impl RouteService for Proxy {
    fn call(&self, request: http::Request<Body>) -> RouteFuture {
        let answered = runtime::run(exchange(Arc::clone(&self.0), request));
        Box::pin(async move {
            // The system has no threads left.
            answered.await.unwrap_or(Err(RouteError { status: 503, what: "" }))
        })
    }
}

impl Route {
    /// What is hashed of a request, if anything is.
    pub(crate) fn key(&self, info: &ConnectionInfo, uri: &Uri) -> u64 {
        match (self.chooser.balance(), info.peer.ip().to_canonical()) {
            (Balance::HashAddress, IpAddr::V4(address)) => hash(&address.octets()),
            (Balance::HashAddress, IpAddr::V6(address)) => hash(&address.octets()),
            (Balance::HashPath, _) => hash(uri.path().as_bytes()),
            (Balance::LeastConnections | Balance::RoundRobin, _) => 0,
        }
    }
}
