//! The keys of a connection and what may still be done with them. Source: RFC 9001 §4.9, §6.
//!
//! The keys of the 1-RTT space come in generations. At any time the ring holds the generation in use, the next one,
//! derived ahead so that a key update takes little longer than any other packet (RFC 9001 §9.5), and for a while the previous
//! one of the peer, for packets that were reordered across the update. The next one is expanded by the first packet that asks for it,
//! and stays so however many are forged: most connections never update their keys, and it would be a third of their memory.
//!
//! Keys that are not used for a while are dropped, and what they are made of is kept (`sleep`). The next packet of either side makes
//! them again (`wake`).

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
    /// The same while they are not used.
    asleep: Option<Box<SleepingKeys>>,
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
            SpaceId::Application => (self.one_rtt, self.asleep) = (None, None),
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
            SpaceId::Application => {
                self.one_rtt.is_some() || self.asleep.is_some() || self.early.local().is_some()
            }
            long => self.long(long).is_some(),
        }
    }

    /// Drops the 1-RTT keys, if nothing but the next packet needs them, and keeps what they are made of.
    pub(super) fn sleep(&mut self) {
        if let Some(keys) = self.one_rtt.take_if(|keys| keys.previous_peer.is_none()) {
            let OneRttKeys { mut secrets, usage, .. } = *keys;
            secrets.release_memory();
            self.asleep = Some(Box::new(SleepingKeys { secrets, usage }));
        }
    }

    /// Makes the 1-RTT keys again that `sleep` has dropped. To be called before packets are opened or sealed.
    #[inline]
    pub(super) fn wake(&mut self) {
        if let Some(keys) = self.asleep.take() {
            self.one_rtt = Some(keys.wake());
        }
    }
}

/// The generations of 1-RTT keys.
pub(super) struct OneRttKeys {
    pub(super) local_header: HeaderKey,
    pub(super) peer_header: HeaderKey,
    local: PacketKey,
    peer: PacketKey,
    /// The peer's next key, once a packet came that seems to be sealed with it.
    tried_peer: Option<Box<PacketKey>>,
    previous_peer: Option<Box<(PacketKey, Instant)>>,
    usage: Usage,
    secrets: Box<OneRttSecrets>,
}

/// What was done with 1-RTT keys.
#[derive(Clone, Copy, Debug)]
struct Usage {
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

/// 1-RTT keys that are not used for a while.
struct SleepingKeys {
    secrets: Box<OneRttSecrets>,
    usage: Usage,
}

impl SleepingKeys {
    #[cold]
    fn wake(mut self) -> Box<OneRttKeys> {
        self.secrets.derive_ahead();
        Box::new(OneRttKeys::of(self.secrets, self.usage))
    }
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
    pub(super) fn new(secrets: Box<OneRttSecrets>) -> OneRttKeys {
        let usage = Usage {
            phase: KeyPhase::Zero,
            sealed: 0,
            first_sent: None,
            lowest_received: None,
            update_after: None,
            updates: 0,
            forged: 0,
            lane: LaneId::FIRST,
            is_answered: false,
        };
        OneRttKeys::of(secrets, usage)
    }

    fn of(secrets: Box<OneRttSecrets>, usage: Usage) -> OneRttKeys {
        let Keys { local, peer } = secrets.keys();
        OneRttKeys {
            local_header: local.header,
            peer_header: peer.header,
            local: local.packet,
            peer: peer.packet,
            tried_peer: None,
            previous_peer: None,
            usage,
            secrets,
        }
    }

    /// From now on the keys seal and open the packets of another lane. `marks` are those of that lane, and then those of the one that
    /// is left.
    pub(super) fn change_path(&mut self, to: LaneId, marks: &mut PhaseMarks) {
        let from = core::mem::replace(&mut self.usage.lane, to);
        let previous = self.previous_peer.as_mut().map(|previous| &mut previous.0);
        let others = self.tried_peer.as_deref_mut().into_iter().chain(previous);
        for key in [&mut self.local, &mut self.peer].into_iter().chain(others) {
            key.change_path(from.0, to.0);
        }
        self.secrets.set_path(to.0);
        let left = PhaseMarks {
            first_sent: self.usage.first_sent,
            lowest_received: self.usage.lowest_received,
            updates: self.usage.updates,
        };
        // What was noted before the last update says nothing about this phase.
        let found = core::mem::replace(marks, left);
        let found = if found.updates == self.usage.updates { found } else { PhaseMarks::default() };
        (self.usage.first_sent, self.usage.lowest_received) = (found.first_sent, found.lowest_received);
    }

    pub(super) fn updates(&self) -> u64 {
        self.usage.updates
    }

    pub(super) fn phase(&self) -> KeyPhase {
        self.usage.phase
    }

    /// Encrypts a packet in place: `packet` is header, plaintext and room for the tag. The last bytes of the plaintext are those of
    /// `rest`.
    #[inline]
    pub(super) fn seal(&mut self, pn: u64, packet: &mut [u8], header_len: usize, rest: &[u8]) {
        self.usage.sealed += 1;
        if self.usage.first_sent.is_none() {
            self.usage.first_sent = Some(pn);
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
        if phase != self.usage.phase {
            return self.open_across_update(arrived, pn, packet, header_len);
        }
        match self.peer.open(pn, packet, header_len) {
            Ok(len) => {
                if self.usage.lowest_received.is_none_or(|lowest| pn < lowest) {
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
        if let Some((_, until)) = self.previous_peer.as_deref_mut().filter(|_| !self.usage.is_answered) {
            *until = (*until).max(arrived.at + (arrived.keep)());
        }
        self.usage.is_answered = true;
        self.usage.lowest_received = Some(pn);
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
        if self.usage.lowest_received.is_some_and(|lowest| pn < lowest) {
            let opened = match self.previous_peer.as_deref() {
                Some((key, until)) if now < *until => key.open(pn, packet, header_len).ok(),
                _ => None,
            };
            return opened.ok_or_else(|| self.on_forged());
        }
        let is_old = |(_, until): &(PacketKey, Instant)| !self.usage.is_answered || now < *until;
        if self.usage.lowest_received.is_none() && self.previous_peer.as_deref().is_some_and(is_old) {
            // We updated and the peer has not answered yet, or not on this lane: this is still its old phase.
            let opened =
                self.previous_peer.as_deref().and_then(|(key, _)| key.open(pn, packet, header_len).ok());
            return opened.ok_or_else(|| self.on_forged());
        }
        let next = self.tried_peer.get_or_insert_with(|| Box::new(self.secrets.next_peer()));
        let Ok(len) = next.open(pn, packet, header_len) else { return Err(self.on_forged()) };
        //= rfc9001/6.2#2
        if self.usage.sealed == 0 && self.previous_peer.as_deref().is_some_and(|(_, until)| now < *until) {
            // RFC 9001 §6.2: a second update before we could acknowledge the first.
            return Err(OpenFailure::Close(TransportError::new(
                Code::KEY_UPDATE_ERROR,
                "key updates too fast",
            )));
        }
        //= rfc9001/6.2#1
        self.rotate(now + keep());
        self.usage.is_answered = true;
        self.usage.lowest_received = Some(pn);
        Ok(len)
    }

    /// All but this many of the forged packets that the keys endure have come.
    #[cfg(test)]
    pub(super) fn endure_forged(&mut self, count: u64) {
        self.usage.forged = self.peer.integrity_limit() - count;
    }

    fn on_forged(&mut self) -> OpenFailure {
        self.usage.forged += 1;
        // RFC 9001 §6.6: the connection must not outlive the integrity limit.
        //= rfc9001/6.6#2
        if self.usage.forged >= self.peer.integrity_limit() {
            return OpenFailure::Close(TransportError::new(
                Code::AEAD_LIMIT_REACHED,
                "too many forged packets",
            ));
        }
        OpenFailure::Drop
    }

    fn rotate(&mut self, keep_until: Instant) {
        //= rfc9001/6.3#1
        self.secrets.advance();
        let (local, peer) = self.secrets.packet_keys();
        self.local = local;
        self.tried_peer = None;
        self.previous_peer = Some(Box::new((core::mem::replace(&mut self.peer, peer), keep_until)));
        self.usage.phase = self.usage.phase.flipped();
        self.usage.updates += 1;
        self.usage.sealed = 0;
        self.usage.first_sent = None;
        self.usage.lowest_received = None;
        self.usage.is_answered = false;
        self.usage.update_after = None;
    }

    /// Whether an acknowledgement of packet `pn` is the first one of this phase.
    #[inline]
    pub(super) fn confirms_phase(&self, pn: u64) -> bool {
        self.usage.update_after.is_none() && self.usage.first_sent.is_some_and(|first| pn >= first)
    }

    /// The peer has acknowledged a packet of this phase: it has these keys, and needs the last ones for `keep` longer.
    #[cold]
    pub(super) fn on_phase_confirmed(&mut self, now: Instant, keep: Duration) {
        // RFC 9001 §6.5: packets sent under the last keys may still be on their way. The first keys follow none.
        //= rfc9001/6.5#2
        self.usage.update_after = Some(if self.usage.updates == 0 { now } else { now + keep });
    }

    /// Whether RFC 9001 §6.1 and §6.5 allow us to start an update: the last one is acknowledged, and that was a while ago.
    //= rfc9001/6.1#2
    fn may_update(&self, now: Instant) -> bool {
        self.usage.update_after.is_some_and(|at| now >= at)
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
        if self.previous_peer.as_deref().is_some_and(|(_, until)| now >= *until) && self.usage.is_answered {
            self.previous_peer = None;
        }
    }

    /// How many packets the local key may seal before an update should start.
    #[inline]
    pub(super) fn fresh_for(&self, config: &TransportConfig) -> u64 {
        let fresh = config.key_update_after.min(self.local.confidentiality_limit() / 2);
        fresh.saturating_sub(self.usage.sealed)
    }

    /// What the number of packets sealed asks for.
    #[inline]
    pub(super) fn usage(&self, config: &TransportConfig) -> KeyUsage {
        if self.fresh_for(config) > 0 {
            KeyUsage::Fresh
        //= rfc9001/6.6#1
        } else if self.usage.sealed < self.local.confidentiality_limit() {
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
