//! What the admin address asks a server for.

use crate::reload::Reload;
use server::metrics::{Classes, Histogram, Metrics};
use std::path::PathBuf;

/// What tells of a server, and has it read its files again. All of it is asked on a thread that may wait.
pub trait Source: Send + Sync + 'static {
    /// How far the server is.
    fn stage(&self) -> Stage;

    /// How many threads of the server have given no sign of life within a second.
    fn silent(&self) -> usize;

    /// Everything there is to tell, with counters that are as old as this call.
    fn snapshot(&self) -> Snapshot;

    /// Has the server read its files again. Returns when it has, or when it is known to stay as it is.
    fn reload(&self) -> Reload;
}

/// How far a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It reads its files and opens its ports.
    #[default]
    Starting,
    /// It serves.
    Ready,
    /// It answers what was asked, and takes no more.
    Draining,
}

impl Stage {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Starting => "starting",
            Stage::Ready => "ready",
            Stage::Draining => "draining",
        }
    }
}

/// A server at a moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// How far it is.
    pub stage: Stage,
    /// The program's version.
    pub version: &'static str,
    /// The versions of HTTP that it serves, for people.
    pub http: String,
    /// Where it listens, for people.
    pub addresses: Vec<String>,
    /// The name of the data path, if it serves HTTP/3.
    pub data_path: Option<&'static str>,
    /// Threads that serve, and those of them that have not answered in time.
    pub threads: usize,
    /// Of the threads, those that have not answered in time. What they have told before counts.
    pub silent: usize,
    /// What its threads count.
    pub metrics: Metrics,
    /// What its sites are called, by their numbers in the metrics. The first is none.
    pub sites: Vec<String>,
    /// Bytes that connections hold.
    pub memory_held: u64,
    /// Bytes that they may hold, if that is limited.
    pub memory_limit: Option<u64>,
    /// Traces of connections, if some are written.
    pub traces: Option<traces::Report>,
    /// The certificates that clients are shown.
    pub certificates: Vec<Expiry>,
    /// The certificates that it orders.
    pub orders: Orders,
    /// How often it has read its files again.
    pub reloads: Reloads,
    /// Lines of the access log that could not be written.
    pub lost_log_lines: u64,
    /// The upstreams of its reverse proxy.
    pub upstreams: Vec<Upstream>,
}

/// An upstream of the reverse proxy.
#[derive(Clone, Debug, Default)]
pub struct Upstream {
    /// Its address.
    pub name: String,
    /// Whether it gets requests; `None` if no route has it now.
    pub is_healthy: Option<bool>,
    /// Requests that it has.
    pub active: u64,
    /// Responses by the classes of their status.
    pub classes: Classes,
    /// From the choice of the upstream to the head of its response.
    pub durations: Histogram,
    /// Requests without a response, by its fault.
    pub failures: u64,
    /// Checks that failed.
    pub failed_checks: u64,
    /// Connections that were opened.
    pub connections: u64,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Its file.
    pub file: PathBuf,
    /// Until when clients take it, in seconds since 1970.
    pub expires_s: u64,
}

/// The certificates that a server orders by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Those that were issued since the start.
    pub issued: u64,
    /// Attempts since the start that have failed.
    pub failed: u64,
    /// All.
    pub all: Vec<Order>,
}

/// A certificate that a server orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Its names, for people.
    pub names: String,
    /// The host of the authority.
    pub authority: String,
    /// Whether there is one, be it an old one.
    pub is_there: bool,
    /// When the next attempt begins, in seconds since 1970.
    pub next_s: u64,
    /// Attempts in a row that have failed.
    pub failures: u32,
    /// Why the last one has failed, if it has.
    pub error: Option<String>,
}

/// How often a server has read its files again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloads {
    /// With success.
    pub succeeded: u64,
    /// Of no avail: something was wrong with them.
    pub failed: u64,
    /// The last time with success, in seconds since 1970.
    pub last_s: Option<u64>,
}
