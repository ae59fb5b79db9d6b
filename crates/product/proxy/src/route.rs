//! What the exchanges of a proxied route share.

use crate::balance::{Chooser, hash};
use crate::settings::{Balance, Settings};
use crate::upstream::Upstream;
use http::Uri;
use server::ConnectionInfo;
use std::net::IpAddr;

/// What the exchanges of a route share.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) settings: Settings,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) chooser: Chooser,
}

impl Route {
    pub(crate) fn new(settings: Settings) -> Route {
        let (upstreams, chooser) = (Upstream::all(&settings), Chooser::new(settings.balance));
        Route { settings, upstreams, chooser }
    }

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
