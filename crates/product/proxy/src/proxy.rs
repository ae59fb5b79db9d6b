//! A proxied route, as the server knows it.

use crate::exchange::exchange;
use crate::route::Route;
use crate::runtime;
use crate::settings::Settings;
use crate::upstream::Upstream;
use body::Body;
use server::ConnectionInfo;
use server::sites::{RouteFuture, RouteService};
use std::sync::Arc;

/// A route whose requests go on to upstreams.
#[derive(Debug)]
pub struct Proxy(Arc<Route>);

impl Proxy {
    /// A route with these settings. Nothing is connected before a request comes.
    pub fn new(settings: Settings) -> Proxy {
        Proxy(Arc::new(Route::new(settings)))
    }
}

impl RouteService for Proxy {
    fn begin(&self) {
        self.0.upstreams.iter().for_each(|upstream| upstream.begin(&self.0.settings));
    }

    fn end(&self) {
        self.0.upstreams.iter().for_each(Upstream::end);
    }

    fn call(&self, request: http::Request<Body>, client: ConnectionInfo) -> RouteFuture {
        runtime::run(exchange(Arc::clone(&self.0), request, client))
    }
}
