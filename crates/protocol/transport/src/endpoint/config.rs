//! What an embedder may set about an endpoint.

use super::predecessors::Predecessors;
use super::used::UsedTokens;
use crate::cid::CidLayout;
use base::time::Duration;
use std::sync::Arc;

/// How an endpoint treats unknown peers. The defaults suit a server on the open internet.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The number of the worker that owns the endpoint, below `workers`; in every connection ID that it issues, at
    /// [`crate::CID_WORKER_OFFSET`]. Default: 0.
    pub worker: u8,
    /// How many workers share the address, 1 to 255: datagrams whose connection ID names another one are theirs. Such workers
    /// should share `token_key` and `reset_key`. Default: 1.
    pub workers: u8,
    /// The number of the process among those that take each other's place at the address, below [`crate::cid_generations`]; in every
    /// connection ID that it issues. Default: 0.
    pub generation: u8,
    /// Which connections are those of processes whose place this one has taken. Default: none.
    pub predecessors: Arc<Predecessors>,
    /// The server's number for load balancers in the format of QUIC-LB, in plain text; `None` when there are none. Needs a
    /// `token_key`, and usually a `reset_key`, in common with the other servers. Default: none.
    pub server_id: Option<[u8; 2]>,
    /// The config rotation under which balancers know `server_id`, 0 to 6. Source: draft-ietf-quic-load-balancers, first
    /// octet. Default: 0.
    pub config_rotation: u8,
    /// What happens to clients that want to connect. Default: they may.
    pub incoming: IncomingPolicy,
    /// When clients must prove their address by a Retry first. Default: once more than 100 handshakes are under way.
    pub retry: RetryPolicy,
    /// Handshakes that may be under way at a time; more are dropped, and their clients try again. Each takes some tens of
    /// kilobytes. No address and no network has all of them (shares.rs). Default: 4,096.
    pub max_half_open: usize,
    /// Connections of clients at a time; more are refused with CONNECTION_REFUSED. Default: 30,000.
    pub max_connections: usize,
    /// The same for one address: an IPv4 address, or an IPv6 /64. Default: 15,000.
    pub max_connections_per_address: usize,
    /// The same for one network: an IPv4 /24, or an IPv6 /48. Default: 22,500.
    pub max_connections_per_prefix: usize,
    /// Datagrams with 0-RTT packets that are kept for a tenth of a second when they overtake the Initial packet of their client.
    /// Servers that take early data want some. Default: 0.
    pub held_datagrams: usize,
    /// How long the token of a Retry is good for. Source: RFC 9000 §8.1.3. Default: 15 s.
    pub retry_token_lifetime: Duration,
    /// How long the token of a NEW_TOKEN frame is good for. Default: 24 h.
    pub new_token_lifetime: Duration,
    /// Secret under which tokens are sealed. Endpoints that share it know each other's tokens. Default: made from the seed.
    pub token_key: Option<[u8; 32]>,
    /// Which tokens of NEW_TOKEN frames were used. Endpoints with a `token_key` in common should have it in common, as the
    /// clones of one configuration do; else a token counts once for each. Default: none was used.
    pub used_tokens: Arc<UsedTokens>,
    /// Secret from which stateless reset tokens are derived. Must be kept over a restart if old connections are to be reset.
    /// Default: made from the seed.
    pub reset_key: Option<[u8; 32]>,
    /// How long what a connection has found out about a path may be used by the next, if `careful_resume` is on. Longer suits
    /// paths that do not change. Source: RFC 9959, lifetime of CC parameters. Default: 10 min.
    pub path_lifetime: Duration,
    /// What a clock that all sharers of `token_key` have in common shows at the origin of the endpoint's own time.
    /// Default: zero, right as long as the key is not shared.
    pub clock_offset: Duration,
    /// Version Negotiation, Stateless Reset and refusals sent in a second, at most. Default: 1,000.
    pub replies_per_second: u64,
    /// The same for one peer address (one /64 network for IPv6). Default: 10.
    pub replies_per_second_and_peer: u16,
    /// Retry packets sent in a second, at most. Default: 50,000.
    pub retries_per_second: u64,
}

impl EndpointConfig {
    pub(super) fn cid_layout(&self) -> CidLayout {
        let server = self.server_id.map(|id| (self.config_rotation, id));
        CidLayout { worker: self.worker, workers: self.workers, generation: self.generation, server }
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        EndpointConfig {
            worker: 0,
            workers: 1,
            generation: 0,
            predecessors: Arc::default(),
            server_id: None,
            config_rotation: 0,
            incoming: IncomingPolicy::Accept,
            retry: RetryPolicy::Above(100),
            max_half_open: 4_096,
            max_connections: 30_000,
            max_connections_per_address: 15_000,
            max_connections_per_prefix: 22_500,
            held_datagrams: 0,
            retry_token_lifetime: Duration::from_secs(15),
            new_token_lifetime: Duration::from_secs(24 * 3_600),
            token_key: None,
            used_tokens: Arc::default(),
            reset_key: None,
            path_lifetime: Duration::from_secs(600),
            clock_offset: Duration::ZERO,
            replies_per_second: 1_000,
            replies_per_second_and_peer: 10,
            retries_per_second: 50_000,
        }
    }
}

/// What happens to clients that want to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingPolicy {
    /// They may, within the limits.
    Accept,
    /// They are told CONNECTION_REFUSED: for a server that shuts down.
    Refuse,
    /// They hear nothing: for an endpoint that is a client only.
    Ignore,
}

/// When clients must prove their address by a Retry first. A valid token always spares them. Source: RFC 9000 §8.1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Never: the handshake starts at once, under the threefold limit.
    Never,
    /// Always: no state and no signature for an address that is not proved.
    Always,
    /// Only while more than this many handshakes are under way.
    Above(usize),
}

impl RetryPolicy {
    pub(super) fn demands(self, half_open: usize) -> bool {
        match self {
            RetryPolicy::Never => false,
            RetryPolicy::Always => true,
            RetryPolicy::Above(threshold) => half_open >= threshold,
        }
    }
}
