//! The keys of a connection and what may still be done with them. Source: RFC 9001 §4.9, §6.
//!
//! The keys of the 1-RTT space come in generations. At any time the ring holds the generation in use, the next one,
//! derived ahead so that a key update takes no longer than any other packet (RFC 9001 §9.5), and for a while the previous
//! one of the peer, for packets that were reordered across the update.

use crate::config::TransportConfig;
use crate::error::TransportError;
use crate::lane_id::LaneId;
use crate::space::SpaceId;
use base::time::{Duration, Instant};
use crypto::{DirectionalKeys, HeaderKey, Keys, OneRttSecrets, PacketKey};
use wire::error::Code;
use wire::packet::KeyPhase;

/// All keys, by space.
#[derive(Default)]
pub(super) struct KeyRing {
    initial: Option<Box<Keys>>,
    handshake: Option<Box<Keys>>,
    pub(super) one_rtt: Option<Box<OneRttKeys>>,
    pub(super) early: EarlyKeys,
    /// On a server that has moved to another version, what opens Initial packets of a client that has not heard of it.
    first_version: Option<Box<Keys>>,
}

/// The keys of 0-RTT packets: a client seals with them, a server opens.
#[derive(Default)]
pub(super) enum EarlyKeys {
    /// There are none, yet or any more.
    #[default]
    None,
    /// A client's, until it has 1-RTT keys.
    Local(Box<DirectionalKeys>),
    /// A server's.
    Peer {
        keys: Box<DirectionalKeys>,
        /// When they go; `None` before the handshake is complete.
        until: Option<Instant>,
    },
}

impl EarlyKeys {
    pub(super) fn local(&self) -> Option<&DirectionalKeys> {
        match self {
            EarlyKeys::Local(keys) => Some(keys),
            EarlyKeys::None | EarlyKeys::Peer { .. } => None,
        }
    }

    pub(super) fn peer(&self, now: Instant) -> Option<&DirectionalKeys> {
        match self {
            EarlyKeys::Peer { keys, until } if until.is_none_or(|until| now < until) => Some(keys),
            EarlyKeys::None | EarlyKeys::Local(_) | EarlyKeys::Peer { .. } => None,
        }
    }

    /// The handshake is complete: packets that were sent before its end may still come for a while.
    pub(super) fn on_handshake_complete(&mut self, keep_until: Instant) {
        match self {
            //= rfc9001/4.9.3#1
            EarlyKeys::Local(_) => *self = EarlyKeys::None,
            EarlyKeys::Peer { until, .. } => *until = Some(keep_until),
            EarlyKeys::None => {}
        }
    }

    fn on_time(&mut self, now: Instant) {
        //= rfc9001/4.9.3#2
        if matches!(self, EarlyKeys::Peer { until: Some(until), .. } if now >= *until) {
            *self = EarlyKeys::None;
        }
    }
}

impl KeyRing {
    pub(super) fn long(&self, space: SpaceId) -> Option<&Keys> {
        match space {
            SpaceId::Initial => self.initial.as_deref(),
            SpaceId::Handshake => self.handshake.as_deref(),
            SpaceId::Application => None,
        }
    }

    pub(super) fn install(&mut self, space: SpaceId, keys: Keys) {
        match space {
            SpaceId::Initial => self.initial = Some(Box::new(keys)),
            SpaceId::Handshake => self.handshake = Some(Box::new(keys)),
            SpaceId::Application => {}
        }
    }

    /// A server moves to another version: these are the keys of its Initial packets from now on. Those of the first version stay, to
    /// open packets, as long as there are Initial keys. Source: RFC 9369 §4.1.
    pub(super) fn move_initial(&mut self, keys: Keys) {
        //= rfc9369/4.1#6
        self.first_version = self.initial.replace(Box::new(keys));
    }

    /// What opens Initial packets of the first version.
    pub(super) fn initial_of_first_version(&self) -> Option<&DirectionalKeys> {
        self.first_version.as_ref().map(|keys| &keys.peer)
    }

    pub(super) fn discard(&mut self, space: SpaceId) {
        match space {
            SpaceId::Initial => (self.initial, self.first_version) = (None, None),
            SpaceId::Handshake => self.handshake = None,
            SpaceId::Application => self.one_rtt = None,
        }
    }

    pub(super) fn on_time(&mut self, now: Instant) {
        if let Some(keys) = &mut self.one_rtt {
            keys.on_time(now);
        }
        self.early.on_time(now);
    }

    pub(super) fn has(&self, space: SpaceId) -> bool {
        match space {
            SpaceId::Application => self.one_rtt.is_some() || self.early.local().is_some(),
            long => self.long(long).is_some(),
        }
    }
}

/// The generations of 1-RTT keys.
pub(super) struct OneRttKeys {
    pub(super) local_header: HeaderKey,
    pub(super) peer_header: HeaderKey,
    local: PacketKey,
    peer: PacketKey,
    next_local: PacketKey,
    next_peer: PacketKey,
    previous_peer: Option<(PacketKey, Instant)>,
    secrets: OneRttSecrets,
    phase: KeyPhase,
    /// Packets sealed with the local key in use.
    sealed: u64,
    /// The first packet number sent in this phase; `None` until one was sent.
    first_sent: Option<u64>,
    /// The lowest packet number received in this phase.
    lowest_received: Option<u64>,
    /// When we may update the keys again. `None` until the peer has acknowledged a packet of this phase.
    update_after: Option<Instant>,
    /// Key updates so far, of either side.
    updates: u64,
    /// Packets that failed authentication, over all generations.
    forged: u64,
    /// The lane whose packets these keys seal and open now; of its packets are the numbers above.
    lane: LaneId,
    /// A packet of this phase was received, on whichever lane.
    is_answered: bool,
}

/// What the keys remember of the packet numbers of a lane while they serve another one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PhaseMarks {
    first_sent: Option<u64>,
    lowest_received: Option<u64>,
    /// The generation that they are of.
    updates: u64,
}

/// When a packet arrived.
pub(super) struct Arrived<F: FnOnce() -> Duration> {
    pub(super) at: Instant,
    /// How long keys are kept that an update replaces. Few packets ask.
    pub(super) keep: F,
}

/// Why a packet was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenFailure {
    /// It is not authentic, or from keys that are gone: dropped and counted.
    Drop,
    /// The connection must close.
    Close(TransportError),
}

impl OneRttKeys {
    pub(super) fn new(keys: Keys, mut secrets: OneRttSecrets) -> OneRttKeys {
        let (next_local, next_peer) = secrets.next();
        OneRttKeys {
            local_header: keys.local.header,
            peer_header: keys.peer.header,
            local: keys.local.packet,
            peer: keys.peer.packet,
            next_local,
            next_peer,
            previous_peer: None,
            secrets,
            phase: KeyPhase::Zero,
            sealed: 0,
            first_sent: None,
            lowest_received: None,
            update_after: None,
            updates: 0,
            forged: 0,
            lane: LaneId::FIRST,
            is_answered: false,
        }
    }

    /// From now on the keys seal and open the packets of another lane. `marks` are those of that lane, and then those of the one that
    /// is left.
    pub(super) fn change_path(&mut self, to: LaneId, marks: &mut PhaseMarks) {
        let from = core::mem::replace(&mut self.lane, to);
        let keys = [&mut self.local, &mut self.peer, &mut self.next_local, &mut self.next_peer];
        for key in keys.into_iter().chain(self.previous_peer.as_mut().map(|(key, _)| key)) {
            key.change_path(from.0, to.0);
        }
        let left = PhaseMarks {
            first_sent: self.first_sent,
            lowest_received: self.lowest_received,
            updates: self.updates,
        };
        // What was noted before the last update says nothing about this phase.
        let found = core::mem::replace(marks, left);
        let found = if found.updates == self.updates { found } else { PhaseMarks::default() };
        (self.first_sent, self.lowest_received) = (found.first_sent, found.lowest_received);
    }

    pub(super) fn updates(&self) -> u64 {
        self.updates
    }

    pub(super) fn phase(&self) -> KeyPhase {
        self.phase
    }

    /// Encrypts a packet in place: `packet` is header, plaintext and room for the tag. The last bytes of the plaintext are those of
    /// `rest`.
    #[inline]
    pub(super) fn seal(&mut self, pn: u64, packet: &mut [u8], header_len: usize, rest: &[u8]) {
        self.sealed += 1;
        if self.first_sent.is_none() {
            self.first_sent = Some(pn);
        }
        self.local.seal_with(pn, packet, header_len, rest);
    }

    /// Decrypts a packet in place and follows the peer's key update. Returns the length of the plaintext.
    #[inline]
    pub(super) fn open(
        &mut self,
        arrived: Arrived<impl FnOnce() -> Duration>,
        pn: u64,
        phase: KeyPhase,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<usize, OpenFailure> {
        if phase != self.phase {
            return self.open_across_update(arrived, pn, packet, header_len);
        }
        match self.peer.open(pn, packet, header_len) {
            Ok(len) => {
                if self.lowest_received.is_none_or(|lowest| pn < lowest) {
                    self.on_lowest(arrived, pn);
                }
                Ok(len)
            }
            Err(_) => Err(self.on_forged()),
        }
    }

    /// A packet of this phase with the lowest number so far. After the first one, packets of the phase before it may still come
    /// for a while.
    #[cold]
    fn on_lowest(&mut self, arrived: Arrived<impl FnOnce() -> Duration>, pn: u64) {
        //= rfc9001/6.5#1
        if let Some((_, until)) = self.previous_peer.as_mut().filter(|_| !self.is_answered) {
            *until = (*until).max(arrived.at + (arrived.keep)());
        }
        self.is_answered = true;
        self.lowest_received = Some(pn);
    }

    /// The phase bit differs: an old packet that was reordered, or the peer's update.
    #[cold]
    fn open_across_update(
        &mut self,
        Arrived { at: now, keep }: Arrived<impl FnOnce() -> Duration>,
        pn: u64,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<usize, OpenFailure> {
        //= rfc9001/6.4#1
        if self.lowest_received.is_some_and(|lowest| pn < lowest) {
            let opened = match &self.previous_peer {
                Some((key, until)) if now < *until => key.open(pn, packet, header_len).ok(),
                _ => None,
            };
            return opened.ok_or_else(|| self.on_forged());
        }
        let is_old = |(_, until): &(PacketKey, Instant)| !self.is_answered || now < *until;
        if self.lowest_received.is_none() && self.previous_peer.as_ref().is_some_and(is_old) {
            // We updated and the peer has not answered yet, or not on this lane: this is still its old phase.
            let opened =
                self.previous_peer.as_ref().and_then(|(key, _)| key.open(pn, packet, header_len).ok());
            return opened.ok_or_else(|| self.on_forged());
        }
        let Ok(len) = self.next_peer.open(pn, packet, header_len) else { return Err(self.on_forged()) };
        //= rfc9001/6.2#2
        if self.sealed == 0 && self.previous_peer.as_ref().is_some_and(|(_, until)| now < *until) {
            // RFC 9001 §6.2: a second update before we could acknowledge the first.
            return Err(OpenFailure::Close(TransportError::new(
                Code::KEY_UPDATE_ERROR,
                "key updates too fast",
            )));
        }
        //= rfc9001/6.2#1
        self.rotate(now + keep());
        self.is_answered = true;
        self.lowest_received = Some(pn);
        Ok(len)
    }

    /// All but this many of the forged packets that the keys endure have come.
    #[cfg(test)]
    pub(super) fn endure_forged(&mut self, count: u64) {
        self.forged = self.peer.integrity_limit() - count;
    }

    fn on_forged(&mut self) -> OpenFailure {
        self.forged += 1;
        // RFC 9001 §6.6: the connection must not outlive the integrity limit.
        //= rfc9001/6.6#2
        if self.forged >= self.peer.integrity_limit() {
            return OpenFailure::Close(TransportError::new(
                Code::AEAD_LIMIT_REACHED,
                "too many forged packets",
            ));
        }
        OpenFailure::Drop
    }

    fn rotate(&mut self, keep_until: Instant) {
        //= rfc9001/6.3#1
        let (mut next_local, mut next_peer) = self.secrets.next();
        for key in [&mut next_local, &mut next_peer] {
            key.change_path(0, self.lane.0);
        }
        self.local = core::mem::replace(&mut self.next_local, next_local);
        let peer = core::mem::replace(&mut self.next_peer, next_peer);
        self.previous_peer = Some((core::mem::replace(&mut self.peer, peer), keep_until));
        self.phase = self.phase.flipped();
        self.updates += 1;
        self.sealed = 0;
        self.first_sent = None;
        self.lowest_received = None;
        self.is_answered = false;
        self.update_after = None;
    }

    /// Whether an acknowledgement of packet `pn` is the first one of this phase.
    #[inline]
    pub(super) fn confirms_phase(&self, pn: u64) -> bool {
        self.update_after.is_none() && self.first_sent.is_some_and(|first| pn >= first)
    }

    /// The peer has acknowledged a packet of this phase: it has these keys, and needs the last ones for `keep` longer.
    #[cold]
    pub(super) fn on_phase_confirmed(&mut self, now: Instant, keep: Duration) {
        // RFC 9001 §6.5: packets sent under the last keys may still be on their way. The first keys follow none.
        //= rfc9001/6.5#2
        self.update_after = Some(if self.updates == 0 { now } else { now + keep });
    }

    /// Whether RFC 9001 §6.1 and §6.5 allow us to start an update: the last one is acknowledged, and that was a while ago.
    //= rfc9001/6.1#2
    fn may_update(&self, now: Instant) -> bool {
        self.update_after.is_some_and(|at| now >= at)
    }

    /// Starts a key update if that is allowed, and keeps the keys that it replaces for `keep`; says whether it has.
    pub(super) fn try_update(&mut self, now: Instant, keep: Duration) -> bool {
        let may = self.may_update(now);
        if may {
            self.update(now + keep);
        }
        may
    }

    /// Starts a key update; the next packet sent tells the peer.
    pub(super) fn update(&mut self, keep_until: Instant) {
        self.rotate(keep_until);
    }

    /// Forgets the previous generation when its time is over.
    pub(super) fn on_time(&mut self, now: Instant) {
        if self.previous_peer.as_ref().is_some_and(|(_, until)| now >= *until) && self.is_answered {
            self.previous_peer = None;
        }
    }

    /// What the number of packets sealed asks for.
    #[inline]
    pub(super) fn usage(&self, config: &TransportConfig) -> KeyUsage {
        if self.sealed < config.key_update_after.min(self.local.confidentiality_limit() / 2) {
            KeyUsage::Fresh
        //= rfc9001/6.6#1
        } else if self.sealed < self.local.confidentiality_limit() {
            KeyUsage::UpdateDue
        } else {
            KeyUsage::Exhausted
        }
    }
}

/// How much the local key has been used. Source: RFC 9001 §6.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyUsage {
    /// Far from any limit.
    Fresh,
    /// An update should start as soon as it may.
    UpdateDue,
    /// No packet may be sealed any more.
    Exhausted,
}
