//! What is to be watched: what, by how many, how, and for how long.

use crate::player::Settings;
use base::time::Duration;
use client::target::Target;
use std::net::SocketAddr;
use transport::ClientConfig;

/// What is to be watched.
#[derive(Clone)]
pub struct WatchPlan {
    /// The manifest.
    pub manifest: Target,
    /// Where its server is.
    pub address: SocketAddr,
    /// How many watch it.
    pub players: usize,
    /// How they choose, and how much they buffer.
    pub settings: Settings,
    /// For how long, by the players' clock.
    pub span: Duration,
    /// Within which time, by the players' clock, they come, one after the other.
    pub ramp: Duration,
    /// How many times faster the players' clock runs than the true one.
    pub speed: f64,
    /// TLS and QUIC.
    pub quic: ClientConfig,
    /// How long the worker polls before it sleeps.
    pub spin: Duration,
    /// The server's process, if its CPU time is to be taken.
    pub server: Option<u32>,
}
