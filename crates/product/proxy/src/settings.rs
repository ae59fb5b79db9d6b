//! What an operator says of a proxied route.

use crate::address::Address;
use crate::check::Check;
use crate::edit::RequestEdit;
use crate::tls::Tls;
use http::HeaderValue;
use server::Network;
use std::time::Duration;

/// A proxied route.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where requests go: at least one, at most [`crate::MOST`].
    pub upstreams: Vec<Address>,
    /// Which of them gets a request.
    pub balance: Balance,
    /// How upstreams with TLS are known. They fail without it.
    pub tls: Option<Tls>,
    /// The field Host of requests; `None`: what the client asked for.
    pub host: Option<HeaderValue>,
    /// What is changed of the fields of requests, last of all.
    pub edit: RequestEdit,
    /// Proxies in front of this server, whose word of the client counts.
    pub trusted: Vec<Network>,
    /// How long what may take.
    pub timeouts: Timeouts,
    /// What follows failures.
    pub retries: Retries,
    /// How upstreams are checked, if they are.
    pub check: Option<Check>,
    /// Connections to each upstream at most, on all threads. Requests beyond them get 503.
    pub connections: usize,
    /// Connections to each upstream that wait for the next request at most, on each thread.
    pub idle_connections: usize,
    /// Longer content of a request is answered with 413, in bytes.
    pub max_content: u64,
    /// Whether connections begin with the address of the client whose request they are for, by version 2 of the PROXY protocol. Then each
    /// has one request.
    pub proxy_protocol: bool,
    /// Whether requests to go on by another protocol, such as WebSocket, are passed on.
    pub upgrade: bool,
}

/// By what an upstream is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// The one with the fewest requests under way, in turn among equals.
    #[default]
    LeastConnections,
    /// One after the other.
    RoundRobin,
    /// By the client's address: a client stays with its upstream, and other clients with theirs when one fails.
    HashAddress,
    /// By the path, in the same way.
    HashPath,
}

/// How long what may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To connect.
    pub connect: Duration,
    /// From the last piece of a request that the upstream took to the head of the response.
    pub response: Duration,
    /// Between two pieces of a response's content.
    pub idle: Duration,
    /// How long a connection waits for the next request.
    pub keep_alive: Duration,
    /// How long a connection of another protocol may rest, in both directions.
    pub tunnel: Duration,
}

/// What follows failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// So many further upstreams are tried for a request that may be repeated, or of which nothing was sent.
    pub attempts: usize,
    /// After so many failures in a row an upstream gets no requests for a while, if there are others.
    pub failures: u32,
    /// How long.
    pub cool_down: Duration,
}

impl Settings {
    /// What holds by default.
    pub fn new(upstreams: Vec<Address>) -> Settings {
        Settings {
            upstreams,
            balance: Balance::default(),
            tls: None,
            host: None,
            edit: RequestEdit::default(),
            trusted: Vec::new(),
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            check: None,
            connections: 1_024,
            idle_connections: 64,
            max_content: u64::MAX,
            proxy_protocol: false,
            upgrade: true,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        let seconds = Duration::from_secs;
        Timeouts {
            connect: seconds(5),
            response: seconds(60),
            idle: seconds(60),
            keep_alive: seconds(60),
            tunnel: seconds(3_600),
        }
    }
}

impl Default for Retries {
    fn default() -> Retries {
        Retries { attempts: 2, failures: 3, cool_down: Duration::from_secs(10) }
    }
}
