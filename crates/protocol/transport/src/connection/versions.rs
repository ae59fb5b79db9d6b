//! Which version of QUIC a connection uses: the client's first choice, another one in which the server answers, or another one
//! that the server asks for by a Version Negotiation packet.
//!
//! Version Negotiation is not authentic. A client follows it once, with a first flight of its own, and afterwards holds the
//! server's authentic list against its choice, so that an attacker on the path cannot force a version that the client likes less.
//! Source: RFC 9000 §6, RFC 9368, RFC 9369.

use super::Connection;
use super::arrival::LongPacket;
use super::handshake::{Handshake, HandshakeCids};
use super::keys::EarlyKeys;
use super::open::client_parameters;
use super::version_choice::choose;
use crate::cid::PeerCids;
use crate::event::CloseReason;
use crate::space::{Space, SpaceId};
use base::time::Instant;
use crypto::{DirectionalKeys, Keys, initial_keys};
use recovery::ack::{AckPolicy, AckTracker};
use wire::Side;
use wire::cid::ConnectionId;
use wire::packet::{LongType, versions};
use wire::version::Version;

/// What opens a packet of another version than that of the connection.
pub(super) enum OtherVersion<'a> {
    /// A server has moved to another version, and its client has not heard of it yet.
    First(Option<&'a DirectionalKeys>),
    /// A server has chosen a version that the client offered; `None` for what is not an Initial packet, which may wait.
    Servers(Option<Box<Keys>>),
}

impl OtherVersion<'_> {
    pub(super) fn keys(&self) -> Option<&DirectionalKeys> {
        match self {
            OtherVersion::First(keys) => *keys,
            OtherVersion::Servers(keys) => keys.as_ref().map(|keys| &keys.peer),
        }
    }

    /// The keys that a client changes to once they have opened a packet.
    pub(super) fn into_adopted(self) -> Option<Keys> {
        match self {
            OtherVersion::First(_) => None,
            OtherVersion::Servers(keys) => keys.map(|keys| *keys),
        }
    }
}

impl Connection {
    /// How a packet of another version than that of the connection may be opened; `None`: it is dropped.
    pub(super) fn opening_in(&self, long: &LongPacket, now: Instant) -> Option<OtherVersion<'_>> {
        let first = self.handshake.versions.first();
        if self.side.is_server() {
            // Until a Handshake packet proves that the client has changed. Source: RFC 9369 §4.1.
            let keys = match long.ty {
                LongType::Initial => self.keys.initial_of_first_version(),
                //= rfc9369/4.1#5
                LongType::ZeroRtt if !self.handshake.holds_early_data => self.keys.early.peer(now),
                LongType::ZeroRtt | LongType::Handshake => None,
            };
            return Some(OtherVersion::First(keys)).filter(|_| long.version == first);
        }
        //= rfc9369/4.1#1
        let may = !self.handshake.versions.has_changed
            && self.keys.long(SpaceId::Handshake).is_none()
            && self.keys.long(SpaceId::Initial).is_some()
            && long.version.is_supported();
        let destination = self.handshake.cids().retry.or(self.handshake.cids().original).filter(|_| may)?;
        let is_initial = long.ty == LongType::Initial;
        let keys =
            is_initial.then(|| Box::new(initial_keys(long.version, destination.as_slice(), self.side)));
        Some(OtherVersion::Servers(keys))
    }

    /// An authentic packet says that the server has chosen the other version that the client offered. `keys` are those of its Initial
    /// packets. Source: RFC 9368 §2.3, RFC 9369 §4.1.
    pub(super) fn adopt_version(&mut self, version: Version, keys: Keys) {
        //= rfc9369/4.1#4
        self.handshake.versions.has_changed = true;
        self.handshake.version = version;
        self.handshake.tls.set_version(version);
        // Early data goes in the first version only, with its keys. Source: RFC 9369 §4.1.
        self.keys.early = EarlyKeys::None;
        self.keys.install(SpaceId::Initial, keys);
    }

    /// The server does not speak the version of our first flight: it is sent again in one that the server lists.
    /// Source: RFC 9000 §6.2, RFC 9368 §2.1.
    pub(super) fn on_version_negotiation(&mut self, now: Instant, scid: ConnectionId, list: &[u8]) {
        let Handshake { version, heard, versions: found, .. } = &*self.handshake;
        let cids = self.handshake.cids();
        let is_listed = versions(list).any(|offered| offered == *version);
        let is_ours = Some(scid) == cids.original;
        // RFC 9000 §6.2: nothing else was heard of the server, not even a Retry or another such packet.
        //= rfc9000/6.2#1
        let is_first = !heard && cids.retry.is_none() && found.refused.is_none();
        if self.side.is_server() || !is_ours || is_listed || !is_first {
            return;
        }
        let begun = choose(*version, versions(list)).and_then(|version| self.begin_again(version));
        if begun.is_none() {
            self.finish(CloseReason::VersionNegotiation);
        } else if let Err(error) = self.advance_handshake(now) {
            self.fail(now, error);
        }
    }

    /// A first flight in another version, as of a new connection. `None` where TLS refuses.
    fn begin_again(&mut self, version: Version) -> Option<()> {
        let random: [u8; 8] = self.rng.bytes();
        let original = ConnectionId::new(&random)?;
        let parameters = client_parameters(&self.config, version, self.components.local_cids.first());
        let new_session = self.handshake.versions.new_session.take()?;
        let session = new_session(version, &parameters)?;
        let refused = Some(self.handshake.version);
        if self.handshake.remembered.is_some() {
            self.begin_early_data_again();
        }
        let cids = HandshakeCids { original: Some(original), ..HandshakeCids::default() };
        // RFC 9369 §5: a token of one version does not serve another.
        *self.handshake = Handshake::new(session, version, cids, Vec::new());
        self.handshake.versions.refused = refused;
        self.components.peer_cids = PeerCids::new(original);
        self.keys.install(SpaceId::Initial, initial_keys(version, original.as_slice(), Side::Client));
        let space = Space::new(AckTracker::new(AckPolicy::IMMEDIATE), &mut self.rng);
        *self.spaces.space_mut(SpaceId::Initial)? = space;
        self.timers.reset_back_off();
        Some(())
    }
}
