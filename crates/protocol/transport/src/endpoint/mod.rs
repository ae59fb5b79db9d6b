//! The endpoint: finds the connection that a datagram belongs to, and answers unknown peers without keeping state for them.
//!
//! | file | holds |
//! |---|---|
//! | routes.rs, hash.rs | the routing tables |
//! | incoming.rs | what becomes of a datagram |
//! | reply.rs | packets sent without a connection: Version Negotiation, Retry, stateless reset, refusal |
//! | limits.rs | rates of replies, ports that get none |
//! | shares.rs | what clients of one address have: connections, handshakes under way |
//! | used.rs | tokens that were used |
//! | held.rs | 0-RTT packets that come before their client's Initial |
//! | path_cache.rs | saved parameters of paths |
//! | predecessors.rs | connections of processes whose place this one has taken |
//! | config.rs, counters.rs | settings, counts |
//! | run.rs | splitting trains that belong to several connections |
//!
//! A datagram from an unknown peer costs at most one look-up, one token check, one reply smaller than the datagram
//! and within a rate, or one handshake within a limit. Memory grows with connections only. A connection's failure never
//! reaches the endpoint. Source: RFC 9000 §5.2, §6, §8.1, §10.3, §14.1.

mod config;
mod counters;
mod hash;
mod held;
mod incoming;
mod limits;
mod path_cache;
mod predecessors;
mod reply;
mod routes;
mod run;
mod shares;
#[cfg(test)]
mod tests;
mod used;

pub use config::{EndpointConfig, IncomingPolicy, RetryPolicy};
pub use counters::{DropReason, EndpointCounters, ResumeCounters};
pub use incoming::{Incoming, Route};
pub use predecessors::{Predecessor, Predecessors};
pub use run::split_run;
pub use used::UsedTokens;

use crate::cid::{
    CidChange, CidGenerator, LOCAL_CID_LEN, LocalCids, MAX_EXCHANGES, Registration, ResetToken,
};
use crate::config::MIN_PACKET_SIZE;
use crate::connection::PathSummary;
use crate::path::AddressState;
use base::net::{Addresses, Ecn, Train};
use base::rng::{Rng, SparseRng};
use base::slab::Handle;
use base::time::{Duration, Instant};
use crypto::token::{NONCE_LEN, RETRY_TOKEN_LEN, ReceivedToken};
use crypto::{AddressToken, StatelessResetKey, TokenCheck, TokenKey};
use held::HeldDatagrams;
use limits::Limits;
use path_cache::PathCache;
use recovery::congestion::{SavedParameters, SavedParametersUpdate};
use reply::{Reply, ReplyHeader};
use routes::{Destination, Routes};
use shares::{LimitExceeded, Owner};
use std::sync::Arc;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::packet::{LongType, Packet, is_long};
use wire::version::Version;

/// An Initial packet's destination connection ID has at least this many bytes, unless we chose it. Source: RFC 9000 §7.2.
const MIN_INITIAL_CID: usize = 8;

/// Routes datagrams to connections, answers unknown peers, and issues connection IDs and tokens. Each worker has one.
pub struct Endpoint {
    config: EndpointConfig,
    routes: Routes,
    cids: CidGenerator,
    tokens: TokenKey,
    limits: Limits,
    path_cache: PathCache,
    held: HeldDatagrams,
    reply: Reply,
    counters: EndpointCounters,
    rng: Rng,
    /// All workers read one socket: which of them a datagram comes to is chance.
    is_shared: bool,
}

/// An Initial packet of a client that no connection knows.
struct FirstInitial<'a> {
    asked: ReplyHeader,
    token: &'a [u8],
    addresses: Addresses,
}

impl Endpoint {
    /// An endpoint without connections. All its randomness comes from `seed`, which must be secret.
    pub fn new(config: EndpointConfig, seed: [u8; 32]) -> Endpoint {
        let mut rng = Rng::from_seed(seed);
        let token_key = config.token_key.unwrap_or_else(|| rng.bytes());
        let reset_key = config.reset_key.unwrap_or_else(|| rng.bytes());
        let tokens =
            TokenKey::new(token_key).with_lifetimes(config.retry_token_lifetime, config.new_token_lifetime);
        Endpoint {
            routes: Routes::new(&mut rng),
            cids: CidGenerator::new(
                config.cid_layout(),
                rng.fork(),
                Arc::new(StatelessResetKey::new(reset_key)),
            ),
            tokens,
            limits: Limits::new(&config, &mut rng),
            path_cache: PathCache::new(config.path_lifetime),
            held: HeldDatagrams::new(config.held_datagrams),
            reply: Reply::new(),
            counters: EndpointCounters::default(),
            config,
            rng,
            is_shared: false,
        }
    }

    /// Whether all workers read one socket, so that the datagrams of one client come to any of them. Then a client's first packets go
    /// to the worker that their connection ID names: the two datagrams of a ClientHello meet.
    #[inline]
    pub fn set_shared(&mut self, is_shared: bool) {
        self.is_shared = is_shared;
    }

    /// Where the first datagram of a train belongs; the others follow it if the train is one run (see [`split_run`]).
    /// Packets that stand behind the first one in a datagram go where that goes. Source: RFC 9000 §5.2, §12.2.
    #[inline]
    pub fn route(&mut self, now: Instant, train: &Train<'_>) -> Route {
        let datagram = train.bytes.get(..train.segment_size).unwrap_or(train.bytes);
        let destination = Destination::of(datagram);
        match destination.and_then(|destination| self.routes.find(destination)) {
            Some(handle) => Route::Connection(handle),
            //= rfc9000/5.2#1
            None => self.route_stranger(now, datagram, (train.addresses, train.ecn)),
        }
    }

    /// The same for a train that was handed over, be it by another process, or that its process does not take any more: it is never
    /// [`Route::Predecessor`].
    pub fn route_handed_over(&mut self, now: Instant, train: &Train<'_>) -> Route {
        let datagram = train.bytes.get(..train.segment_size).unwrap_or(train.bytes);
        let destination = Destination::of(datagram);
        match destination.and_then(|destination| self.routes.find(destination)) {
            Some(handle) => Route::Connection(handle),
            None => self.judge_stranger(now, datagram, (train.addresses, train.ecn)),
        }
    }

    #[cold]
    fn route_stranger(&mut self, now: Instant, datagram: &[u8], from: (Addresses, Ecn)) -> Route {
        let predecessors = &self.config.predecessors;
        if !predecessors.is_empty()
            && let Some(predecessor) = predecessors.of(datagram, self.cids.layout())
        {
            self.counters.elsewhere += 1;
            return Route::Predecessor(predecessor);
        }
        self.judge_stranger(now, datagram, from)
    }

    #[cold]
    fn judge_stranger(&mut self, now: Instant, datagram: &[u8], from: (Addresses, Ecn)) -> Route {
        let route = match self.hear_stranger(now, datagram, from) {
            Ok(route) => route,
            Err(reason) => Route::Drop(reason),
        };
        match route {
            Route::Drop(reason) => self.counters.on_drop(reason),
            Route::Elsewhere(_) => self.counters.elsewhere += 1,
            Route::Connection(_) | Route::Predecessor(_) | Route::Incoming(_) | Route::Reply => {}
        }
        route
    }

    /// The worker that has issued the destination of a packet, if that is another one. Before a client has heard of us it addresses its
    /// packets as it likes: those stay where they came in, unless that says nothing ([`Endpoint::set_shared`]).
    fn other_worker(&self, datagram: &[u8]) -> Option<u8> {
        if self.config.workers <= 1 {
            return None;
        }
        let layout = self.cids.layout();
        let (cid, is_first) = match Packet::parse(datagram, LOCAL_CID_LEN).ok()? {
            Packet::Short(header) => (header.dcid, false),
            Packet::Long { ty: LongType::Handshake, dcid, .. } => (dcid, false),
            Packet::Long { ty: LongType::Initial | LongType::ZeroRtt, dcid, .. } => (dcid, true),
            _ => return None,
        };
        if is_first && self.is_shared {
            // Steering programs look at the same byte of an ID of any length.
            return layout.elsewhere(*cid.as_slice().first_chunk()?);
        }
        let cid = cid.as_slice().try_into().ok()?;
        if is_first { layout.issued_elsewhere(cid) } else { layout.elsewhere(cid) }
    }

    fn hear_stranger(
        &mut self,
        now: Instant,
        datagram: &[u8],
        (addresses, ecn): (Addresses, Ecn),
    ) -> Result<Route, DropReason> {
        let first = *datagram.first().ok_or(DropReason::Empty)?;
        // This check comes first: the limits for unknown peers do not apply to another worker's connections.
        if let Some(worker) = self.other_worker(datagram) {
            return Ok(Route::Elsewhere(worker));
        }
        if !self.limits.hears(now, addresses.peer) {
            return Err(DropReason::SourcePort);
        }
        if !is_long(first) {
            //= rfc9000/10.3.1#1
            if let Some(handle) = self.routes.find_reset(datagram) {
                return Ok(Route::Connection(handle));
            }
            return self.reset(now, datagram, addresses);
        }
        match Packet::parse(datagram, LOCAL_CID_LEN).map_err(|_| DropReason::Malformed)? {
            Packet::Long { ty: LongType::Initial, version, dcid, scid, token, .. } => {
                // First of all, before any token is looked at or any reply is made (CVE-2026-94450).
                //= rfc9000/7.2#4
                if dcid.len() < MIN_INITIAL_CID {
                    return Err(DropReason::ShortInitialCid);
                }
                self.check_size(datagram)?;
                let token = datagram.get(token).unwrap_or(&[]);
                let initial = FirstInitial { asked: ReplyHeader { version, dcid, scid }, token, addresses };
                self.hear_initial(now, &initial)
            }
            //= rfc9000/5.2.2#1
            Packet::UnknownVersion { dcid, scid, .. } => {
                self.check_size(datagram)?;
                self.negotiate(now, addresses, [dcid, scid].map(|range| datagram.get(range).unwrap_or(&[])))
            }
            Packet::Long { ty: LongType::ZeroRtt, dcid, .. }
                if self.may_come_early() && self.held.hold(now, dcid, (addresses, ecn), datagram) =>
            {
                Err(DropReason::Held)
            }
            // Version Negotiation is never answered (RFC 9000 §6.1), nor is what cannot begin a connection.
            //= rfc9000/6.1#1
            _ => Err(DropReason::Unexpected),
        }
    }

    /// Whether a client whose address is not proved may begin a connection now: behind a Retry there is no early data.
    fn may_come_early(&self) -> bool {
        self.config.incoming == IncomingPolicy::Accept && !self.config.retry.demands(self.half_open())
    }

    /// Source: RFC 9000 §14.1, §6.1.
    fn check_size(&self, datagram: &[u8]) -> Result<(), DropReason> {
        if self.config.incoming == IncomingPolicy::Ignore {
            return Err(DropReason::NotServing);
        }
        if datagram.len() < usize::from(MIN_PACKET_SIZE) {
            return Err(DropReason::SmallDatagram);
        }
        Ok(())
    }

    /// Source: RFC 9000 §6.1.
    fn negotiate(
        &mut self,
        now: Instant,
        addresses: Addresses,
        [dcid, scid]: [&[u8]; 2],
    ) -> Result<Route, DropReason> {
        self.take_reply(now, addresses)?;
        self.reply.version_negotiation(&mut self.rng, dcid, scid);
        self.counters.version_negotiations += 1;
        Ok(Route::Reply)
    }

    /// A short header to a connection ID that leads nowhere: its sender may be one whose connection we have lost.
    /// Source: RFC 9000 §10.3.
    fn reset(&mut self, now: Instant, datagram: &[u8], addresses: Addresses) -> Result<Route, DropReason> {
        let cid = datagram.get(1..).and_then(|rest| rest.first_chunk::<LOCAL_CID_LEN>());
        let cid = *cid.filter(|_| datagram.len() > reply::MIN_RESET).ok_or(DropReason::UnknownConnection)?;
        //= rfc9000/21.11#1
        if !self.cids.layout().names_this_server(cid) {
            // RFC 9000 §21.11: only who would know the connection may say that it does not exist.
            return Err(DropReason::OtherServer);
        }
        self.take_reply(now, addresses)?;
        let cid = ConnectionId::new(&cid).unwrap_or(ConnectionId::EMPTY);
        if !self.reply.stateless_reset(&mut self.rng, datagram.len(), self.cids.reset_token(&cid)) {
            return Err(DropReason::UnknownConnection);
        }
        self.counters.stateless_resets += 1;
        Ok(Route::Reply)
    }

    /// A client wants to connect. Source: RFC 9000 §8.1.
    fn hear_initial(&mut self, now: Instant, initial: &FirstInitial<'_>) -> Result<Route, DropReason> {
        let FirstInitial { asked, token, addresses } = *initial;
        if self.config.incoming == IncomingPolicy::Refuse {
            //= rfc9000/5.2.2#3
            return self.refuse(now, initial, Code::CONNECTION_REFUSED);
        }
        match self.routes.shares.check(now, &Owner::new(addresses.peer.ip()), &self.config) {
            Ok(()) => {}
            Err(LimitExceeded::HalfOpen) => return Err(DropReason::HalfOpenLimit),
            Err(LimitExceeded::Share) => return Err(DropReason::HandshakeShare),
            Err(LimitExceeded::Connections) => {
                let refused = self.refuse(now, initial, Code::CONNECTION_REFUSED);
                self.counters.refused_connections += u64::from(refused.is_ok());
                return refused;
            }
        }
        let presented =
            ReceivedToken { token, peer: addresses.peer, dcid: asked.dcid, now_ms: self.clock_ms(now) };
        let (original_dcid, retry_scid, address) = match self.tokens.check(&presented) {
            TokenCheck::Retry { original_dcid, retry_scid } => {
                (original_dcid, Some(retry_scid), AddressState::Validated)
            }
            //= rfc9000/8.1.3#4
            TokenCheck::NewToken { nonce, issued_ms } if self.is_first_use(now, &nonce, issued_ms) => {
                (asked.dcid, None, AddressState::Validated)
            }
            // A second Retry would not be heeded. RFC 9000 §8.1.2.
            //= rfc9000/8.1.2#1
            TokenCheck::Invalid => return self.refuse(now, initial, Code::INVALID_TOKEN),
            // What is not authentic proves nothing (CVE-2026-44894): as without a token.
            //= rfc9000/8.1.3#2
            TokenCheck::None | TokenCheck::Foreign | TokenCheck::NewToken { .. } => {
                (asked.dcid, None, AddressState::Unvalidated)
            }
        };
        if address == AddressState::Unvalidated && self.config.retry.demands(self.half_open()) {
            return self.retry(now, initial);
        }
        self.counters.incoming += 1;
        self.counters.incoming_validated += u64::from(address == AddressState::Validated);
        let ReplyHeader { version, dcid, scid } = asked;
        self.counters.incoming_v2 += u64::from(version == Version::V2);
        Ok(Route::Incoming(Incoming { version, dcid, scid, original_dcid, retry_scid, address, addresses }))
    }

    /// Whether a token from NEW_TOKEN was not presented before.
    fn is_first_use(&self, now: Instant, nonce: &[u8; NONCE_LEN], issued_ms: u64) -> bool {
        let lifetime_ms = self.config.new_token_lifetime.as_millis().max(1);
        // A machine whose clock is ahead may have made it; it counts from now.
        let period = issued_ms.min(self.clock_ms(now)) / lifetime_ms;
        self.config.used_tokens.is_first_use(nonce, period)
    }

    /// Asks the client to prove its address; nothing is kept. Source: RFC 9000 §8.1.2.
    fn retry(&mut self, now: Instant, initial: &FirstInitial<'_>) -> Result<Route, DropReason> {
        if !self.limits.may_retry(now) {
            return Err(DropReason::RateLimit);
        }
        //= rfc9000/17.2.5.1#1
        let retry_scid = self.fresh_cid();
        let statement = AddressToken::Retry {
            peer: initial.addresses.peer,
            original_dcid: initial.asked.dcid,
            retry_scid,
            issued_ms: self.clock_ms(now),
        };
        let mut token = [0; RETRY_TOKEN_LEN];
        let len = self.tokens.seal(&statement, &mut self.rng, &mut token);
        let token = token.get(..len).unwrap_or(&[]);
        self.reply.retry(&mut self.rng, &initial.asked, &retry_scid, token);
        self.counters.retries += 1;
        Ok(Route::Reply)
    }

    fn refuse(&mut self, now: Instant, initial: &FirstInitial<'_>, code: Code) -> Result<Route, DropReason> {
        self.take_reply(now, initial.addresses)?;
        self.reply.close(&initial.asked, code);
        self.counters.refusals += 1;
        Ok(Route::Reply)
    }

    //= rfc9000/5.2.2#2
    fn take_reply(&mut self, now: Instant, addresses: Addresses) -> Result<(), DropReason> {
        if self.limits.may_reply(now, addresses.peer) { Ok(()) } else { Err(DropReason::RateLimit) }
    }

    /// Milliseconds of the clock that tokens are dated by.
    fn clock_ms(&self, now: Instant) -> u64 {
        (now.saturating_since(Instant::ZERO) + self.config.clock_offset).as_millis()
    }
}

/// Connections, as the endpoint sees them.
impl Endpoint {
    /// The datagram to be sent after `route` said [`Route::Reply`], to where the datagram came from, on the way it came.
    pub fn reply(&self) -> &[u8] {
        self.reply.bytes()
    }

    /// Changes what happens to clients that want to connect from now on.
    pub fn set_incoming(&mut self, policy: IncomingPolicy) {
        self.config.incoming = policy;
    }

    /// A token for a client at this address, to be used for its next connection. Source: RFC 9000 §8.1.3.
    pub fn new_token(&mut self, now: Instant, addresses: Addresses) -> Box<[u8]> {
        let issued_ms = self.clock_ms(now);
        let statement = AddressToken::NewToken { peer: addresses.peer.ip(), issued_ms };
        let mut token = [0; RETRY_TOKEN_LEN];
        let len = self.tokens.seal(&statement, &mut self.rng, &mut token);
        token.get(..len).unwrap_or(&[]).into()
    }

    /// The 0-RTT packets that came before the Initial packet of this client.
    pub(crate) fn take_held(&mut self, now: Instant, incoming: &Incoming) -> Vec<(Ecn, Box<[u8]>)> {
        self.held.take(now, incoming.dcid, incoming.addresses)
    }

    /// Counts so far.
    pub fn counters(&self) -> &EndpointCounters {
        &self.counters
    }

    /// The saved parameters of the path. One connection uses them at a time.
    pub(crate) fn recall(&mut self, now: Instant, addresses: &Addresses) -> Option<SavedParameters> {
        let saved = self.path_cache.recall(now, addresses)?;
        self.counters.resumes.offered += 1;
        Some(saved)
    }

    /// A connection that knew of others, or was to find out for them, is over.
    pub(crate) fn learn(&mut self, path_summary: &PathSummary) {
        if let Some(recalled) = &path_summary.recalled {
            self.path_cache.give_back(recalled);
        }
        if let Some(saved_parameters) = path_summary.saved_parameters {
            self.counters.resumes.on_end(&path_summary.report);
            self.counters.resumes.learned +=
                u64::from(matches!(saved_parameters, SavedParametersUpdate::Learned(_)));
            self.path_cache.learn(path_summary.seen_at, &path_summary.addresses, saved_parameters);
        }
    }

    /// The destinations of packets of handshakes that are under way: what a process that takes this one's place must know, see
    /// [`Predecessors`].
    pub fn handshakes(&self) -> Vec<ConnectionId> {
        self.routes.handshakes().collect()
    }

    /// Handshakes of clients that are under way.
    pub fn half_open(&self) -> usize {
        self.routes.shares.half_open()
    }

    /// A turn of the worker begins; the one before took so long, if it was followed by this one at once. Where handshakes make
    /// turns long, none of the addresses that begin them gets more than a few until that is over.
    pub fn on_turn(&mut self, now: Instant, last_took: Duration) {
        self.routes.shares.on_turn(now, last_took);
    }

    /// So many handshakes wait for each other that this is as if they made turns long.
    pub fn on_delayed_handshakes(&mut self, now: Instant) {
        self.routes.shares.on_delay(now);
    }

    /// The connection IDs of a new connection. Its changes, the first ID among them, are to be registered.
    pub(crate) fn local_cids(&mut self) -> LocalCids {
        // The first ID is in the transport parameters, so that it cannot be exchanged later.
        let mut cids = LocalCids::new(self.cids.fork());
        for _ in 0..MAX_EXCHANGES {
            if !self.routes.leads(&cids.first()) {
                break;
            }
            cids = LocalCids::new(self.cids.fork());
        }
        cids
    }

    /// A connection ID that leads nowhere yet.
    fn fresh_cid(&mut self) -> ConnectionId {
        let mut cid = self.cids.next_cid();
        for _ in 0..MAX_EXCHANGES {
            if !self.routes.leads(&cid) {
                break;
            }
            cid = self.cids.next_cid();
        }
        cid
    }

    /// Randomness for a new connection.
    pub(crate) fn fork_rng(&mut self) -> SparseRng {
        SparseRng::of(&mut self.rng)
    }

    /// The connection `handle` is the one of this client: copies of its Initial packets go there from now on, and its
    /// handshake counts as under way.
    pub(crate) fn admit(&mut self, now: Instant, handle: Handle, incoming: &Incoming) {
        let owner = Owner::new(incoming.addresses.peer.ip());
        self.routes.admit(now, handle, incoming.dcid, owner);
    }

    /// The connection's own connection IDs have changed.
    pub(crate) fn register(&mut self, handle: Handle, change: CidChange) -> Registration {
        self.routes.register(handle, change)
    }

    /// The stateless reset tokens by which the connection's peer may end it now.
    pub(crate) fn register_resets(&mut self, handle: Handle, tokens: [Option<ResetToken>; 2]) {
        self.routes.register_resets(handle, tokens);
    }

    /// The same of the other paths that it uses at once.
    pub(crate) fn register_lane_resets(&mut self, handle: Handle, tokens: Vec<ResetToken>) {
        self.routes.register_lane_resets(handle, tokens);
    }

    /// The connection's handshake is complete, begun by its client in version `first`.
    pub fn on_established(&mut self, handle: Handle, first: Version, chosen: Version) {
        if self.routes.on_established(handle) {
            self.counters.on_version(first, chosen);
        }
    }

    /// The connection is gone: nothing leads to it any more.
    pub fn forget(&mut self, handle: Handle) {
        self.routes.forget(handle);
    }
}
