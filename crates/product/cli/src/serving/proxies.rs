//! Proxies in front of the server that say by the PROXY protocol whose a connection is.

use clap::Args;
use server::{Builder, Network, Versions};

/// Flags about proxies in front of the server.
#[derive(Args)]
pub(crate) struct ProxyArgs {
    /// The proxies, such as balancers of TCP, whose connections begin with a header of the PROXY protocol, version 1 or 2: addresses and
    /// networks. The client's address in it is that of limits, logs and upstreams.
    ///
    /// A connection from there without a header is closed, and what others send as one is not believed. HTTP/3 has no such header: its
    /// clients reach the server directly, or not at all.
    #[arg(long, value_name = "NETWORK", hide_short_help = true)]
    proxy_protocol_from: Vec<Network>,
}

impl ProxyArgs {
    /// # Errors
    /// One line: no connection could begin with a header.
    pub(crate) fn check(&self, versions: Versions) -> Result<(), String> {
        if !self.proxy_protocol_from.is_empty() && !versions.over_tcp() {
            return Err("--proxy-protocol-from goes with --http 1 or 2: HTTP/3 has no such header".to_owned());
        }
        Ok(())
    }

    pub(crate) fn add_to(&self, builder: Builder) -> Builder {
        builder.proxy_protocol_from(self.proxy_protocol_from.iter().copied())
    }
}
