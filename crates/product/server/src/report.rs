//! What a server that is bound says of itself.

use crate::versions::Versions;
use std::net::SocketAddr;

/// Where and how a server listens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The first address, with the port that the system chose.
    pub address: SocketAddr,
    /// All addresses, that one included.
    pub addresses: Vec<SocketAddr>,
    /// The same for people, such as `localhost:4433 (127.0.0.1:4433 and [::1]:4433)`.
    pub places: Vec<String>,
    /// The versions of HTTP.
    pub versions: Versions,
    /// The name of the data path, such as `gso`; `None` without HTTP/3.
    pub data_path: Option<&'static str>,
    /// How AF_XDP sockets share packets with the driver: `zero-copy`, `driver`, `generic`; `None` for kernel UDP.
    pub xdp_mode: Option<&'static str>,
    /// The interface that the ports are tied to, if they are.
    pub interface: Option<String>,
    /// The workers of HTTP/3, or the threads of HTTP/1.1 and 2 where there are none.
    pub workers: usize,
    /// How datagrams find their worker; `None` without HTTP/3.
    pub steering: Option<&'static str>,
    /// What was measured, why something better is not in use, and what to type for more: one line each, or a table.
    pub notes: Vec<String>,
}
