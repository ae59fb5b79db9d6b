//! The handshake: TLS messages in and out, keys as they become available, the peer's parameters, Retry.
//! Source: RFC 9000 §7, RFC 9001 §4, RFC 9368, RFC 9369.

use super::Connection;
use super::arrival::LongPacket;
use super::close::close_period;
use super::components::ledger_and_owners;
use super::early::{self, EARLY_PACKETS, EarlyPacket, HELD_PACKETS};
use super::keys::{EarlyKeys, KeyRing, OneRttKeys};
use super::timer_state::Timers;
use super::version_choice::Versions;
use crate::error::TransportError;
use crate::event::Event;
use crate::path::PathId;
use crate::space::{Space, SpaceId, Spaces};
use base::net::Ecn;
use base::time::{Duration, Instant};
use core::ops::Range;
use crypto::{
    EarlyStatus, HandshakeOutcome, KeyChange, Level, RetryIntegrity, TlsError, TlsSession, initial_keys,
};
use recovery::timers::{AddressValidation, Handshake as Confirmation, PROBES};
use std::collections::VecDeque;
use wire::Side;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame::NewToken;
use wire::packet::LongType;
use wire::transport_parameters::TransportParameters;
use wire::version::Version;

/// How far the handshake has come. Source: RFC 9001 §4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    Complete,
    Confirmed,
}

/// How often a connection sends handshake data again before a timeout asks for it. Once would mend a single loss; without a limit two
/// ends could answer each other for ever.
const MAX_EARLY_REPEATS: u8 = 4;

/// Longest token of a Retry that still leaves room for a ClientHello in a packet of 1,200 bytes.
const MAX_TOKEN: usize = 512;

/// What matters only until the handshake is confirmed, and what it settled.
pub(super) struct Handshake {
    pub(super) tls: TlsSession,
    pub(super) version: Version,
    /// How the version was found.
    pub(super) versions: Versions,
    stage: Stage,
    /// The space that TLS writes into.
    write_space: SpaceId,
    /// `None` once no packet of the handshake counts any more.
    cids: Option<Box<HandshakeCids>>,
    token: Vec<u8>,
    /// A packet of the server has been processed: neither Retry nor Version Negotiation count any more.
    pub(super) heard: bool,
    address_validated: bool,
    /// On a client: the server has acknowledged a 1-RTT packet.
    pub(super) server_reads_1rtt: bool,
    early: Vec<EarlyPacket>,
    /// How often handshake data went again before a timeout.
    early_repeats: u8,
    /// 0-RTT packets are not opened yet, whether there are keys or not.
    pub(super) holds_early_data: bool,
    /// On a client that may send early data, what the server said on an earlier connection.
    pub(super) remembered: Option<Box<TransportParameters>>,
    /// A server forgets them when the connection is quiet.
    peer: Option<Box<TransportParameters>>,
    /// What of them counts for as long as the connection lives.
    terms: Option<PeerTerms>,
    /// What TLS said when it failed, for the close reason.
    pub(super) failure: Option<Box<TlsError>>,
}

/// What the peer has said that counts after the handshake and that no component keeps.
#[derive(Clone, Copy, Debug)]
struct PeerTerms {
    ack_delay_exponent: u8,
    reset_stream_at: bool,
    disable_active_migration: bool,
}

/// Connection IDs that the transport parameters must confirm. Source: RFC 9000 §7.3.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HandshakeCids {
    /// Where the client sent its first Initial.
    pub(super) original: Option<ConnectionId>,
    /// Where the client sent the Initial that began this connection: after a Retry not the first one.
    pub(super) initial: Option<ConnectionId>,
    /// The source of the Retry, if there was one.
    pub(super) retry: Option<ConnectionId>,
    /// The peer's first source connection ID.
    pub(super) peer: Option<ConnectionId>,
}

impl Handshake {
    pub(super) fn new(tls: TlsSession, version: Version, cids: HandshakeCids, token: Vec<u8>) -> Handshake {
        Handshake {
            tls,
            version,
            versions: Versions::new(version),
            stage: Stage::Running,
            write_space: SpaceId::Initial,
            cids: Some(Box::new(cids)),
            token,
            heard: false,
            address_validated: false,
            server_reads_1rtt: false,
            early: Vec::new(),
            early_repeats: 0,
            holds_early_data: false,
            remembered: None,
            peer: None,
            terms: None,
            failure: None,
        }
    }

    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.stage >= Stage::Complete
    }

    #[inline]
    pub(super) fn is_confirmed(&self) -> bool {
        self.stage == Stage::Confirmed
    }

    /// A step of the handshake is out, or is to be given away: until it is back there is nothing to say.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        !self.is_complete() && self.tls.is_waiting()
    }

    /// For the loss detection timer.
    #[inline]
    pub(super) fn confirmation(&self) -> Confirmation {
        if self.is_confirmed() { Confirmation::Confirmed } else { Confirmation::Unconfirmed }
    }

    /// The server has proved to know our address: it acknowledged a Handshake packet. Source: RFC 9002 §6.2.2.1.
    pub(super) fn is_address_validated(&self) -> bool {
        self.address_validated
    }

    pub(super) fn on_ack(&mut self, id: SpaceId) {
        self.address_validated |= id == SpaceId::Handshake;
    }

    pub(super) fn token(&self) -> &[u8] {
        &self.token
    }

    /// The peer's ack delay, in the units of its frame, as time. Source: RFC 9000 §19.3.
    pub(super) fn ack_delay(&self, raw: u64) -> Duration {
        let exponent = self.terms.map_or(3, |terms| terms.ack_delay_exponent);
        recovery::rtt::decode_ack_delay(raw, exponent)
    }

    /// Whether a packet that does not go to one of our connection IDs is one of the client's first Initials.
    pub(super) fn is_first_destination(&self, dcid: ConnectionId, ty: LongType) -> bool {
        //= rfc9000/17.2.3#1
        matches!(ty, LongType::Initial | LongType::ZeroRtt) && self.cids().initial == Some(dcid)
    }

    /// Whether a long packet comes from the connection ID that the peer chose first. A server's first packet sets it.
    pub(super) fn accepts_scid(&self, scid: ConnectionId, side: Side) -> bool {
        match self.cids().peer {
            Some(peer) => peer == scid,
            None => side.is_client(),
        }
    }

    /// Whether the keys for a packet that cannot be opened may come soon.
    pub(super) fn may_get_keys(&self, ty: LongType, side: Side) -> bool {
        match ty {
            LongType::ZeroRtt => side.is_server() && (self.tls.awaits_early_data() || self.holds_early_data),
            LongType::Initial | LongType::Handshake => side.is_client(),
        }
    }

    /// Keeps a packet whose keys may come soon; bounded.
    pub(super) fn keep_early(&mut self, arrived: Instant, ecn: Ecn, packet: &[u8]) {
        //= rfc9001/5.7#2
        let most = if self.holds_early_data || self.is_waiting() { HELD_PACKETS } else { EARLY_PACKETS };
        if !self.is_complete() && self.early.len() < most && packet.len() <= 1_500 {
            self.early.push(EarlyPacket { arrived, ecn, bytes: packet.into() });
        }
    }

    pub(super) fn take_early(&mut self) -> Vec<EarlyPacket> {
        core::mem::take(&mut self.early)
    }

    pub(super) fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    /// The connection IDs of the handshake; none once they are forgotten.
    pub(super) fn cids(&self) -> HandshakeCids {
        self.cids.as_deref().copied().unwrap_or_default()
    }

    fn cids_mut(&mut self) -> &mut HandshakeCids {
        self.cids.get_or_insert_default()
    }

    /// Gives back what only a handshake needs; to be called on a server whose handshake is confirmed.
    pub(super) fn release_memory(&mut self) {
        (self.cids, self.peer) = (None, None);
        self.early.shrink_to_fit();
    }

    /// Whether the peer understands RESET_STREAM_AT.
    pub(super) fn can_reset_at(&self) -> bool {
        self.terms.is_some_and(|terms| terms.reset_stream_at)
    }

    /// Whether the peer does not want its connections to move.
    pub(super) fn disables_migration(&self) -> bool {
        self.terms.is_some_and(|terms| terms.disable_active_migration)
    }

    /// What the peer has said, once it is authentic.
    pub(super) fn peer_parameters(&self) -> Option<&TransportParameters> {
        self.peer.as_deref()
    }

    /// As if the peer used no connection IDs.
    #[cfg(test)]
    pub(super) fn forget_peer_cid(&mut self) {
        self.cids_mut().peer = Some(ConnectionId::EMPTY);
    }
}

impl Connection {
    /// A CRYPTO frame arrived. Source: RFC 9001 §4.1.3.
    pub(super) fn on_crypto(
        &mut self,
        now: Instant,
        id: SpaceId,
        offset: u64,
        data: &[u8],
    ) -> Result<(), TransportError> {
        let level = match id {
            SpaceId::Initial => Level::Initial,
            SpaceId::Handshake => Level::Handshake,
            SpaceId::Application => Level::OneRtt,
        };
        let Some(space) = self.spaces.space_mut(id) else { return Ok(()) };
        let is_repeated = space.crypto.has_read(offset, data.len());
        let Handshake { tls, failure, .. } = &mut *self.handshake;
        let mut read = |bytes: &[u8]| tls.read(level, bytes).map_err(|error| failed(failure, error));
        space.crypto.on_data(offset, data, &mut read)?;
        if is_repeated && id != SpaceId::Application {
            self.repeat_handshake(now);
        }
        self.settle_version()?;
        self.advance_handshake_inner()
    }

    /// The peer has said something again, or what cannot be read yet: it lacks something of what is in flight, which goes again now and
    /// not after a timeout; what left less than half a round trip ago cannot have been missed. Source: RFC 9002 §6.2.3.
    pub(super) fn repeat_handshake(&mut self, now: Instant) {
        if self.handshake.early_repeats == MAX_EARLY_REPEATS {
            return;
        }
        let rtt = &self.paths.active().rtt;
        let half = if rtt.has_sample() { rtt.smoothed() / 2 } else { Duration::ZERO };
        let has_arrived = |sent: Instant| now.saturating_since(sent) >= half;
        let is_missing = |space: &Space| {
            let ledger = &space.ledger;
            ledger.ack_eliciting_in_flight() > 0
                && ledger.last_ack_eliciting_at().is_some_and(has_arrived)
                && !space.owes_probe()
        };
        let missing = [SpaceId::Initial, SpaceId::Handshake]
            .map(|id| self.spaces.space(id).is_some_and(is_missing).then_some(id));
        for id in missing.into_iter().flatten() {
            self.owe_probes(id, PROBES);
        }
        self.handshake.early_repeats += u8::from(missing != [None; 2]);
    }

    /// A server whose client has said all that it says first chooses the version. Source: RFC 9368 §2.3.
    fn settle_version(&mut self) -> Result<(), TransportError> {
        let Handshake { tls, versions, failure, .. } = &mut *self.handshake;
        let Some(offered) = tls.offered_parameters() else { return Ok(()) };
        let preferred = versions.preferred(offered);
        let change = preferred.as_ref().map(|(version, parameters)| (*version, &parameters[..]));
        tls.settle_version(change).map_err(|error| failed(failure, error))?;
        if let (Some((version, _)), Some(destination)) = (preferred, self.handshake.cids().initial) {
            //= rfc9369/4#1
            self.handshake.version = version;
            self.keys.move_initial(initial_keys(version, destination.as_slice(), self.side));
        }
        Ok(())
    }

    /// A step of the handshake that was given away has been taken.
    pub(super) fn on_step(&mut self, now: Instant, outcome: HandshakeOutcome) -> Result<(), TransportError> {
        let Handshake { tls, failure, .. } = &mut *self.handshake;
        tls.finish(outcome).map_err(|error| failed(failure, error))?;
        self.advance_handshake(now)
    }

    /// Lets TLS write, installs the keys it brings, and notices the end of the handshake.
    pub(super) fn advance_handshake(&mut self, now: Instant) -> Result<(), TransportError> {
        self.advance_handshake_inner()?;
        if self.handshake.stage == Stage::Running && !self.handshake.tls.is_handshaking() {
            self.on_handshake_complete(now)?;
        }
        Ok(())
    }

    fn advance_handshake_inner(&mut self) -> Result<(), TransportError> {
        loop {
            let mut bytes = Vec::new();
            let change = self.handshake.tls.write(&mut bytes);
            if let Some(space) = self.spaces.space_mut(self.handshake.write_space) {
                space.crypto.push(&bytes);
            }
            match change {
                Some(KeyChange::Handshake(keys)) => {
                    self.keys.install(SpaceId::Handshake, *keys);
                    if self.side.is_server() {
                        self.keys.early = early::opening(&self.handshake.tls);
                    }
                    self.handshake.write_space = SpaceId::Handshake;
                }
                Some(KeyChange::OneRtt(secrets)) => {
                    self.keys.one_rtt = Some(Box::new(OneRttKeys::new(secrets)));
                    self.handshake.write_space = SpaceId::Application;
                }
                None => break,
            }
        }
        if self.handshake.tls.early_status() == EarlyStatus::Rejected && self.side.is_client() {
            self.keys.early = EarlyKeys::None;
        }
        if self.handshake.terms.is_none()
            && let Some(raw) = self.handshake.tls.peer_parameters()
        {
            let parameters = TransportParameters::parse(raw, self.side.other())
                //= rfc9000/7.4#3
                .map_err(|error| TransportError::new(Code::TRANSPORT_PARAMETER_ERROR, error.0))?;
            self.on_peer_parameters(parameters)?;
        }
        Ok(())
    }

    /// Source: RFC 9000 §7.3, §7.4.
    pub(super) fn on_peer_parameters(&mut self, peer: TransportParameters) -> Result<(), TransportError> {
        let cids = self.handshake.cids();
        let bad = |reason| Err(TransportError::new(Code::TRANSPORT_PARAMETER_ERROR, reason));
        //= rfc9000/7.3#1
        if peer.initial_source_connection_id != cids.peer {
            return bad("initial_source_connection_id does not match");
        }
        if self.side.is_client() {
            //= rfc9000/7.3#2
            if peer.original_destination_connection_id != cids.original {
                return bad("original_destination_connection_id does not match");
            }
            //= rfc9000/7.3#3
            if peer.retry_source_connection_id != cids.retry {
                return bad("retry_source_connection_id does not match");
            }
            if let (Some(token), Some(_)) = (peer.stateless_reset_token, cids.peer) {
                self.components.peer_cids.on_initial_reset_token(token);
            }
            if let Some(preferred) = &peer.preferred_address {
                // RFC 9000 §18.2: a server without connection IDs has none for another address either.
                //= rfc9000/18.2#3
                if cids.peer.is_none_or(|cid| cid.is_empty()) {
                    return bad("preferred_address from a server without connection IDs");
                }
                self.components.peer_cids.on_preferred_address(preferred.cid, preferred.reset_token);
            }
        }
        //= multipath/2.1#2
        if peer.initial_max_path_id.is_some()
            && self.config.multipath.is_some()
            && cids.peer.is_none_or(|cid| cid.is_empty())
        {
            let reason = "several paths at once without connection IDs";
            return Err(TransportError::new(Code::PROTOCOL_VIOLATION, reason));
        }
        self.handshake.versions.check(self.side, self.handshake.version, &peer)?;
        self.settle_early_data(&peer)?;
        self.components.streams.on_peer_parameters(&peer);
        self.components.datagrams.on_peer_parameters(&peer);
        self.components.local_cids.on_peer_limit(peer.active_connection_id_limit);
        self.paths.on_peer_parameters(&peer);
        self.components.ack_frequency.on_peer_parameters(&peer);
        self.components.timestamps.iter_mut().for_each(|timestamps| timestamps.on_peer_parameters(&peer));
        self.timers.on_peer_idle_timeout(Duration::from_millis(peer.max_idle_timeout_ms));
        self.handshake.terms = Some(PeerTerms {
            ack_delay_exponent: peer.ack_delay_exponent as u8,
            reset_stream_at: peer.reset_stream_at,
            disable_active_migration: peer.disable_active_migration,
        });
        self.handshake.peer = Some(Box::new(peer));
        Ok(())
    }

    /// The server's answer: it takes early data within the limits that the client remembers, or all begins anew.
    /// Source: RFC 9000 §7.4.1, RFC 9001 §4.6.2.
    fn settle_early_data(&mut self, peer: &TransportParameters) -> Result<(), TransportError> {
        let Some(remembered) = self.handshake.remembered.take() else { return Ok(()) };
        if self.handshake.tls.early_status() != EarlyStatus::Accepted {
            self.begin_early_data_again();
            return Ok(());
        }
        //= rfc9000/7.4.1#2
        if early::limits(&remembered).iter().zip(early::limits(peer)).any(|(then, now)| *then > now) {
            let reason = "early data accepted with limits below those remembered";
            return Err(TransportError::new(Code::PROTOCOL_VIOLATION, reason));
        }
        Ok(())
    }

    /// The server has taken no early data: what was sent goes again, in order, once its limits are known.
    pub(super) fn begin_early_data_again(&mut self) {
        self.keys.early = EarlyKeys::None;
        self.forget_early_packets();
        self.components.streams.rewind();
    }

    /// No 0-RTT packet sent so far will be acknowledged.
    fn forget_early_packets(&mut self) {
        let ledger_and_owners = ledger_and_owners(
            &mut self.components,
            &mut self.spaces,
            SpaceId::Application,
            self.config.without,
        );
        if let Some((ledger, mut owners)) = ledger_and_owners {
            ledger.discard(&mut |_, frames| frames.iter().for_each(|frame| owners.on_lost(frame)));
        }
    }

    pub(super) fn on_handshake_complete(&mut self, now: Instant) -> Result<(), TransportError> {
        //= rfc9001/8.2#1
        if self.handshake.peer.is_none() {
            // RFC 9001 §8.2: the extension is mandatory.
            return Err(TransportError::new(Code::crypto(MISSING_EXTENSION), "no QUIC transport parameters"));
        }
        self.handshake.stage = Stage::Complete;
        self.timers.on_handshake_complete();
        self.keys.early.on_handshake_complete(now + close_period(&self.paths, &self.components));
        self.components.local_cids.issue();
        let told = self.handshake.peer.as_ref().and_then(|peer| peer.initial_max_path_id);
        if let Some(peer_max) =
            told.and_then(|id| u32::try_from(id).ok()).filter(|_| self.config.multipath.is_some())
        {
            self.components.begin_lanes(peer_max);
        }
        self.events.push_back(Event::Connected);
        if self.side.is_server() {
            // RFC 9001 §4.1.2: for a server, complete is confirmed.
            //= rfc9001/4.1.2#1
            self.components.control_frames.announce_handshake_done();
            self.on_handshake_confirmed(now);
        }
        Ok(())
    }

    /// Source: RFC 9001 §4.1.2, §4.9.2.
    pub(super) fn on_handshake_confirmed(&mut self, now: Instant) {
        if self.handshake.stage != Stage::Complete {
            return;
        }
        // What came early is kept: a server confirms the handshake before it has replayed any of it.
        self.handshake.stage = Stage::Confirmed;
        discard_space(SpaceId::Initial, &mut self.spaces, &mut self.keys, &mut self.timers);
        //= rfc9001/4.9.2#1
        discard_space(SpaceId::Handshake, &mut self.spaces, &mut self.keys, &mut self.timers);
        self.paths.on_handshake_confirmed(now);
    }

    /// An Initial or Handshake packet was authentic.
    pub(super) fn on_authentic_long(&mut self, path: PathId, long: &LongPacket) {
        self.handshake.heard = true;
        if self.handshake.cids().peer.is_none() {
            self.handshake.cids_mut().peer = Some(long.scid);
            //= rfc9000/7.2#2
            self.components.peer_cids.on_first_packet(long.scid);
        }
        //= rfc9001/4.9.1#2
        if long.ty == LongType::Handshake && self.side.is_server() {
            // RFC 9000 §8.1, RFC 9001 §4.9.1: the client's address is valid, Initial keys are done with.
            //= rfc9000/8.1#3
            self.paths.on_handshake_packet(path);
            discard_space(SpaceId::Initial, &mut self.spaces, &mut self.keys, &mut self.timers);
        }
    }

    /// Whether a server has nothing more to say before the client's Finished, which may be lost. Some clients wait long before they say it
    /// again; the ACK frame beside a PING tells them what has arrived.
    pub(super) fn awaits_finished(&self) -> bool {
        self.side.is_server() && !self.handshake.is_complete() && self.spaces.is_handshake_acked()
    }

    /// Whether the server may be waiting for us to prove our address. Source: RFC 9002 §6.2.2.1.
    pub(super) fn address_validation(&self) -> AddressValidation {
        if self.side.is_server() || self.handshake.is_confirmed() || self.handshake.is_address_validated() {
            return AddressValidation::Complete;
        }
        let since = self.timers.active_at.max(self.timers.probed_at);
        if self.keys.has(SpaceId::Handshake) {
            AddressValidation::PendingInHandshake { since }
        } else {
            AddressValidation::PendingInInitial { since }
        }
    }

    /// The server wants proof of our address first. Source: RFC 9000 §17.2.5.
    pub(super) fn on_retry(
        &mut self,
        packet: &[u8],
        version: Version,
        scid: ConnectionId,
        token: Range<usize>,
    ) {
        let cids = self.handshake.cids();
        let Some(original) = cids.original else { return };
        let token = packet.get(token).unwrap_or(&[]);
        //= rfc9000/17.2.5.2#1
        let usable = self.side.is_client()
            && !self.handshake.heard
            && cids.retry.is_none()
            && version == self.handshake.version
            // RFC 9000 §17.2.5.1: not the ID that the client has used.
            //= rfc9000/17.2.5.1#2
            && scid != original
            && !token.is_empty()
            && token.len() <= MAX_TOKEN
            //= rfc9000/17.2.5.2#2
            && RetryIntegrity::verify(version, original.as_slice(), packet);
        if !usable {
            self.counters.dropped_malformed += 1;
            return;
        }
        self.handshake.cids_mut().retry = Some(scid);
        //= rfc9000/17.2.5.3#1
        self.handshake.token = token.to_vec();
        self.components.peer_cids.on_retry(scid);
        //= rfc9001/5.2#2
        self.keys.install(SpaceId::Initial, initial_keys(version, scid.as_slice(), self.side));
        if let Some(space) = self.spaces.space_mut(SpaceId::Initial) {
            // The packets before the Retry are forgotten, their numbers are not reused.
            space.ledger.discard(&mut |_, _| {});
            space.crypto.resend_all();
            //= rfc9002/6.3#1
            self.timers.reset_back_off();
        }
        if self.keys.early.local().is_some() {
            // A server that sends a Retry has dropped them.
            self.forget_early_packets();
        }
    }
}

/// What TLS says of its failure is kept for the close reason.
fn failed(failure: &mut Option<Box<TlsError>>, error: TlsError) -> TransportError {
    let code = error.code;
    *failure = Some(Box::new(error));
    TransportError::new(code, "TLS handshake failed")
}

/// A token for later connections. Source: RFC 9000 §8.1.3, §19.7.
pub(super) fn on_new_token(handshake: &Handshake, events: &mut VecDeque<Event>, frame: &NewToken<'_>) {
    if frame.token.len() > MAX_TOKEN {
        return;
    }
    handshake.tls.keep_token(frame.token);
    // One that was not fetched gives way, so that a server cannot make us keep more than one.
    events.retain(|event| !matches!(event, Event::NewToken { .. }));
    events.push_back(Event::NewToken { token: frame.token.to_vec() });
}

/// The keys of a space go, and everything that was sent under them. Source: RFC 9001 §4.9, RFC 9002 §6.4.
pub(super) fn discard_space(id: SpaceId, spaces: &mut Spaces, keys: &mut KeyRing, timers: &mut Timers) {
    //= rfc9002/6.4#1
    if spaces.discard(id).is_some() {
        keys.discard(id);
        //= rfc9002/6.2.2#2
        timers.reset_back_off();
    }
}

/// The TLS alert for a missing extension. Source: RFC 8446 §6.
const MISSING_EXTENSION: u8 = 109;
