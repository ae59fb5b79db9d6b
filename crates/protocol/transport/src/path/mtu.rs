//! What a path has to do with the search for the largest packet that it carries; the search itself is `recovery::mtu`.
//! Source: RFC 9000 §14.3, §14.4; RFC 8899.
//!
//! A probe is a plan like any other, under congestion control (it never exceeds the window) and pacing (room for one packet lets
//! it go; what it takes beyond that, others wait for). What little an application has to say goes before it (plan.rs). Much data
//! leaves it room for a moment, because a sender that always has some would never have so much room at once. It carries no
//! data: on a path that eats it that would come late.
//!
//! So 65,507 bytes take three round trips, whether there is data or not. With a window of 12,000 bytes the first carries 4,096,
//! the second 21,836, a third of the largest: thereafter the window, two such packets (RFC 9002 §7.2) and what has arrived, holds
//! the largest. Rejected: padding that merely fills the window; larger probes at first, which would leave data nothing; data in
//! probes.
//!
//! A datagram that our own interface refuses as too long tells the search at once; its packet stays in flight until it is found
//! lost, as if it had left.

use super::path::Path;
use super::probe::{Blocked, MtuProbe, ProbeWait};
use base::time::{Duration, Instant};
use recovery::congestion::Algorithm;
use recovery::mtu::{FullLoss, MtuReport};

/// Probe timeouts after which a state of congestion control is too old to go back to. A path that carries no full packets any
/// more shows it in three rounds, of which each may need a timeout and the round trip of its probe.
const OLD_PTOS: u64 = 6;

/// A probe of more than this part of the window ...
const LIGHT: u64 = 4;
/// ... is at most this many times as large as what is known to pass: in the first round trip data shares the window, and more
/// bytes of padding than this are worth their room only when smaller ones have arrived.
const LARGEST_STEP: u64 = 6;
/// Data leaves a probe the room that it waits for no longer than this part of a round trip, and not again before the window
/// has doubled: in slow start a window leaves within half a round trip, and so its acknowledgements come.
const LONGEST_WAIT: u64 = 2;

impl Path {
    /// The handshake is confirmed: the search may begin.
    pub(super) fn start_mtu_search(&mut self, now: Instant) {
        self.mtu.start(now);
    }

    /// The peer, or our own interface, takes nothing larger.
    pub(super) fn on_size_limit(&mut self, limit: u16) {
        self.mtu.on_limit(limit);
        self.adopt_size();
    }

    /// Our own interface has turned down a datagram of this many bytes.
    pub(crate) fn on_size_refused(&mut self, now: Instant, size: u16) {
        self.mtu.on_refused(now, size);
        self.adopt_size();
    }

    /// The padded probe that may leave before the handshake is confirmed, where `in_flight` bytes are.
    pub(crate) fn early_mtu_probe(&self, in_flight: u64) -> Option<u16> {
        let most = self.amplification().min(self.congestion.available(in_flight));
        self.mtu.early_probe(u16::try_from(most).unwrap_or(u16::MAX))
    }

    /// Which padded probe may leave now. Source: RFC 9000 §14.4, RFC 8899 §3.
    ///
    /// The size that is aimed at is the largest that is due, that the window holds, or will hold when what is in flight has
    /// arrived, and that does not skip too much. Smaller ones do not take its place as long as it is waited for.
    #[inline]
    pub(crate) fn next_mtu_probe(&self, now: Instant, in_flight: u64) -> MtuProbe {
        match self.mtu.next_probe(now, u16::MAX) {
            Some(_) if self.is_validated() => self.choose_probe(now, in_flight),
            _ => MtuProbe::None,
        }
    }

    #[cold]
    fn choose_probe(&self, now: Instant, in_flight: u64) -> MtuProbe {
        let window = self.congestion.window();
        let soon = if self.congestion.is_in_slow_start() { window + in_flight } else { window };
        let most = if self.mtu.has_suspect() {
            // What is left of the window carries data, and shows what is lost.
            (window / 2).saturating_sub(self.mtu.under_way())
        } else {
            soon.min((window / LIGHT).max(u64::from(self.max_packet_size) * LARGEST_STEP))
        };
        let due = |most: u64| self.mtu.next_probe(now, u16::try_from(most).unwrap_or(u16::MAX));
        let Some(aim) = due(most) else { return MtuProbe::None };
        let room = window.saturating_sub(in_flight);
        if u64::from(aim) <= room {
            return MtuProbe::Go(aim);
        }
        let is_over = match self.probe_wait {
            // The timer may come a moment later.
            ProbeWait::Until(at) => now >= at,
            ProbeWait::Over { window: then } => window < 2 * then,
            ProbeWait::No => false,
        } || self.mtu.is_under_way(aim);
        match due(most.min(room)) {
            _ if !is_over => MtuProbe::Wait,
            Some(size) => MtuProbe::Go(size),
            None => MtuProbe::None,
        }
    }

    /// All has left that may. Whether it is the window that keeps the search from going on, and until when data leaves a probe
    /// the room that it waits for.
    #[inline]
    pub(crate) fn note_mtu_probe(&mut self, now: Instant, in_flight: u64) -> Blocked {
        if self.mtu.next_probe(now, u16::MAX).is_none() {
            self.probe_wait = ProbeWait::No;
            return Blocked::No;
        }
        self.on_probe_wait_timeout(now);
        let waits = self.next_mtu_probe(now, in_flight) == MtuProbe::Wait;
        if waits && !matches!(self.probe_wait, ProbeWait::Until(_)) {
            self.probe_wait = ProbeWait::Until(now + self.rtt.smoothed() / LONGEST_WAIT);
        }
        let is_by_window = self.is_validated() && self.congestion.is_in_slow_start();
        if is_by_window { Blocked::ByWindow } else { Blocked::No }
    }

    /// When data will no longer wait for a probe to fit.
    pub(crate) fn probe_wait_ends(&self) -> Option<Instant> {
        match self.probe_wait {
            ProbeWait::Until(at) => Some(at),
            ProbeWait::No | ProbeWait::Over { .. } => None,
        }
    }

    /// Time has passed.
    pub(crate) fn on_probe_wait_timeout(&mut self, now: Instant) {
        if matches!(self.probe_wait, ProbeWait::Until(at) if now >= at) {
            self.probe_wait = ProbeWait::Over { window: self.congestion.window() };
        }
    }

    pub(crate) fn on_mtu_probe_sent(&mut self, now: Instant, size: u16) {
        self.mtu.on_probe_sent(now, size);
        if !matches!(self.probe_wait, ProbeWait::Over { .. }) {
            self.probe_wait = ProbeWait::No;
        }
    }

    /// A probe of this many bytes arrived.
    pub(crate) fn on_mtu_probe_acked(&mut self, now: Instant, size: u16) {
        self.mtu.on_probe_acked(now, size);
        self.adopt_size();
    }

    /// A probe of this many bytes was lost.
    pub(crate) fn on_mtu_probe_lost(&mut self, now: Instant, size: u16) {
        self.mtu.on_probe_lost(now, size);
    }

    /// The size that every path is assumed to carry, in bytes: what must arrive is no larger.
    pub(crate) fn safe_packet_size(&self) -> u16 {
        self.mtu.floor()
    }

    /// Whether a packet is larger than every path is assumed to carry.
    #[inline]
    pub(crate) fn is_large(&self, size: u16) -> bool {
        self.mtu.is_large(size)
    }

    /// Whether a packet's fate speaks for the size in use.
    #[inline]
    pub(crate) fn is_full(&self, size: u16) -> bool {
        self.mtu.is_full(size)
    }

    /// A packet larger than every path is assumed to carry arrived.
    #[inline]
    pub(crate) fn on_large_acked(&mut self, pn: u64, size: u16) {
        self.mtu.on_large_acked(pn, size);
    }

    /// Full packets that were no probes were lost, the latest of them `pn`, when packets up to the number `sent` had left; to be
    /// told before congestion control hears of it. When it turns out that their size was the reason, congestion control goes
    /// back to where it was before the first of them, unless there were signs of congestion since then
    /// (`on_true_congestion`) or it is long ago. The loss at hand counts, in case it was congestion after all.
    pub(crate) fn on_full_lost(&mut self, now: Instant, pn: u64, sent: u64, max_ack_delay: Duration) {
        match self.mtu.on_full_lost(now, pn, sent) {
            FullLoss::Ordinary => {}
            // BBR's model goes on with what it has counted; it does not shrink much by these losses either.
            FullLoss::Suspicious if self.congestion.in_use() == Algorithm::Bbr => self.before_hole = None,
            FullLoss::Suspicious => {
                let until = now + self.rtt.pto(max_ack_delay) * OLD_PTOS;
                self.before_hole = Some(Box::new((until, self.congestion.clone())));
            }
            FullLoss::BlackHole => {
                if let Some(before) = self.before_hole.take().filter(|before| now <= before.0) {
                    self.congestion = before.1;
                }
                self.adopt_size();
            }
        }
    }

    /// There is congestion that the size of packets does not explain: a mark, a lost packet that was not full, persistent
    /// congestion. What congestion control makes of it stays.
    #[inline]
    pub(crate) fn on_true_congestion(&mut self) {
        self.before_hole = None;
    }

    /// Nothing of the present size arrives any more: one probe timeout after another.
    pub(crate) fn on_black_hole(&mut self, now: Instant) {
        // Whatever the reason was, a window that was right before the silence is not known to be right after it.
        self.before_hole = None;
        self.mtu.on_silence(now);
        self.adopt_size();
    }

    /// What the search has found.
    pub(crate) fn mtu_report(&self) -> MtuReport {
        self.mtu.report()
    }

    fn adopt_size(&mut self) {
        if self.max_packet_size != self.mtu.size() {
            self.max_packet_size = self.mtu.size();
            self.congestion.on_mtu_change(self.max_packet_size);
            self.repace();
        }
    }
}
