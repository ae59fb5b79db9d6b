//! What the loss-based controllers share: the window and its bounds, slow start, the recovery period, and the rule that
//! a window which is not used does not grow. The first slow start is HyStart++'s unless that is switched off.
//!
//! Use is judged twice. The caller says when it had nothing to send (`app_limited`); and whatever the caller says, the
//! window does not grow beyond twice the bytes that were in flight at most in this round trip and the one before, so
//! that a sender held back by anything else (flow control, its own CPU) does not save up a burst.
//!
//! RFC 9002 §7.2 to §7.3, §7.8, B.1 to B.8.

use super::events::{AckedBytes, CongestionCause, CongestionEvent};
use super::hystart::{HyStart, Pace, SlowStartEnd};
use base::time::{Duration, Instant};

/// No window is larger: 1 TiB, more than any path holds, and far from where arithmetic ends.
pub const MAX_WINDOW: u64 = 1 << 40;
/// Smallest max_datagram_size; a smaller one is taken for this. Source: RFC 9000 §14.
const SMALLEST_MTU: u16 = 1200;

/// CongestionEvent avoidance grows in packets of at most this size, in bytes: where one packet has 65,507 (loopback), a round trip
/// would else add a third of a receive buffer of the default size.
const LARGEST_STEP: u16 = 9_000;

/// On a path of so long a round trip ten packets leave as fast as any path of which nothing is known may begin: at 9.4 Mbit/s.
const SHORT_RTT: Duration = Duration::from_micros(12_500);

/// The window that a path of which nothing is known starts with, in packets of at most 1,472 bytes; larger ones have as many tenths of what
/// RFC 9002 §7.2 recommends. More than the ten packets that it recommends spare a path that carries them up to two round trips, and may
/// overflow one that does not.
///
/// docs/decisions/031-initial-window.md
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialWindow {
    packets: u8,
    /// The first round trip that is measured may enlarge it.
    follows_rtt: bool,
}

impl InitialWindow {
    /// As RFC 9002 §7.2 recommends.
    pub const LEAST: u8 = 10;
    /// As many as a path that is known begins with.
    pub const MOST: u8 = 32;
    /// Ten packets until a round trip is known; then ten for each 12.5 ms of it, 32 at most. So a long path begins no faster than a
    /// short one does with ten.
    pub const BY_RTT: InitialWindow = InitialWindow { packets: InitialWindow::LEAST, follows_rtt: true };

    /// `None` outside [`InitialWindow::LEAST`] to [`InitialWindow::MOST`].
    pub fn of_packets(packets: u8) -> Option<InitialWindow> {
        let is_permitted = (InitialWindow::LEAST..=InitialWindow::MOST).contains(&packets);
        is_permitted.then_some(InitialWindow { packets, follows_rtt: false })
    }

    /// In bytes, where max_datagram_size is `mtu`.
    pub(super) fn bytes(self, mtu: u16) -> u64 {
        initial_window(mtu) * u64::from(self.packets) / u64::from(InitialWindow::LEAST)
    }

    /// By how many bytes it is larger from now on, since that round trip was measured.
    #[inline]
    pub(super) fn follow(&mut self, rtt: Option<Duration>, mtu: u16) -> u64 {
        match rtt {
            Some(rtt) if self.follows_rtt => self.settle(rtt, mtu),
            _ => 0,
        }
    }

    #[cold]
    fn settle(&mut self, rtt: Duration, mtu: u16) -> u64 {
        let before = self.bytes(mtu);
        let (least, most) = (u128::from(InitialWindow::LEAST), u128::from(InitialWindow::MOST));
        let packets = least * u128::from(rtt.as_nanos()) / u128::from(SHORT_RTT.as_nanos());
        let packets = u8::try_from(packets.clamp(least, most)).unwrap_or(InitialWindow::MOST);
        *self = InitialWindow { packets, follows_rtt: false };
        self.bytes(mtu) - before
    }
}

impl Default for InitialWindow {
    /// As RFC 9002 §7.2 recommends.
    fn default() -> Self {
        InitialWindow { packets: InitialWindow::LEAST, follows_rtt: false }
    }
}

/// How slow start begins and ends. BBR has its own end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowStart {
    /// What it begins with.
    pub begin: InitialWindow,
    /// What ends it.
    pub end: SlowStartEnd,
}

/// The window that RFC 9002 §7.2 recommends to start with, in bytes.
pub fn initial_window(mtu: u16) -> u64 {
    let mtu = u64::from(mtu.max(SMALLEST_MTU));
    //= rfc9002/7.2#1
    (10 * mtu).min((2 * mtu).max(14_720))
}

/// The window that is never gone below, in bytes. Source: RFC 9002 §7.2.
pub fn minimum_window(mtu: u16) -> u64 {
    2 * u64::from(mtu.max(SMALLEST_MTU))
}

/// How the window may grow by an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// Not: in recovery, or not used.
    Barred,
    /// In congestion avoidance, by this many acknowledged bytes; 0 if slow start took all.
    Avoidance(u64),
}

/// Whether marks may be on packets sent before a reduction. A frame says how many marks came, not which packets had them: any
/// that it acknowledges for the first time. Where one of those left before the reduction and one after it, to take the mark
/// for the latter's would answer one queue twice (RFC 9002 B.7 does). What leaves in the very instant of the reduction leaves
/// because of the acknowledgement that caused it: after it.
pub(super) fn is_marked_before(sign: &CongestionEvent, reduction: Instant) -> bool {
    sign.earliest_sent_at < reduction
}

/// What a reduction has changed, as long as it may prove to have been for nothing.
#[derive(Clone, Copy, Debug)]
struct Undo {
    size: u64,
    ssthresh: u64,
    recovery_start: Option<Instant>,
    /// Packets declared lost in this recovery that have not arrived since.
    lost: u64,
}

/// A congestion window that shrinks by loss.
#[derive(Clone, Debug)]
pub(super) struct LossWindow {
    size: u64,
    ssthresh: u64,
    mtu: u16,
    /// Signs of congestion from packets sent until then were already answered.
    recovery_start: Option<Instant>,
    /// The same before the last persistent congestion: late arrivals from then say nothing of later reductions.
    collapsed_from: Option<Instant>,
    /// Boxed, as the next is, because most windows have none.
    undo: Option<Box<Undo>>,
    round_start: Instant,
    peak: u64,
    peak_before: u64,
    slow_start: SlowStart,
    /// What the first slow start has seen since the connection was idle.
    hystart: Option<Box<HyStart>>,
}

impl LossWindow {
    pub(super) fn new(mtu: u16) -> LossWindow {
        let mtu = mtu.max(SMALLEST_MTU);
        LossWindow {
            size: initial_window(mtu),
            ssthresh: u64::MAX,
            mtu,
            recovery_start: None,
            collapsed_from: None,
            undo: None,
            round_start: Instant::ZERO,
            peak: 0,
            peak_before: 0,
            slow_start: SlowStart::default(),
            hystart: None,
        }
    }

    /// A window of that size in congestion avoidance, which another controller has found.
    pub(super) fn take_over(mtu: u16, size: u64) -> LossWindow {
        let mut window = LossWindow::new(mtu);
        window.shrink(size);
        window
    }

    /// max_datagram_size in bytes.
    pub(super) const fn mtu(&self) -> u16 {
        self.mtu
    }

    /// To be called before anything was sent.
    pub(super) fn set_slow_start(&mut self, slow_start: SlowStart) {
        self.size = slow_start.begin.bytes(self.mtu);
        (self.slow_start, self.hystart) = (slow_start, None);
    }

    pub(super) const fn initial(&self) -> InitialWindow {
        self.slow_start.begin
    }

    /// Gives back what only acknowledgements to come need. A slow start that nothing has slowed down looks at its rounds anew.
    pub(super) fn release_memory(&mut self) {
        let is_over = self.ssthresh != u64::MAX;
        self.hystart.take_if(|hystart| is_over || hystart.is_at_full_pace());
    }

    #[inline]
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// The packet by which congestion avoidance counts, in bytes.
    pub(super) fn step(&self) -> u16 {
        self.mtu.min(LARGEST_STEP)
    }

    pub(super) fn ssthresh(&self) -> Option<u64> {
        (self.ssthresh != u64::MAX).then_some(self.ssthresh)
    }

    pub(super) const fn is_in_slow_start(&self) -> bool {
        self.size < self.ssthresh
    }

    #[inline]
    pub(super) fn on_sent(&mut self, in_flight: u64) {
        self.peak = self.peak.max(in_flight);
    }

    /// Takes the part of an acknowledgement that slow start uses, and says what is left for congestion avoidance.
    pub(super) fn on_ack(&mut self, now: Instant, acked: &AckedBytes) -> Growth {
        let more = self.slow_start.begin.follow(acked.latest_rtt, self.mtu);
        if more > 0 && self.has_seen_no_congestion() {
            self.set(self.size.saturating_add(more));
        }
        let used = self.peak.max(self.peak_before);
        if acked.largest_sent_at >= self.round_start {
            self.round_start = now;
            self.peak_before = core::mem::take(&mut self.peak);
        }
        // RFC 9406 §4.3: only the first slow start is watched; later ones have a threshold.
        let pace = if self.ssthresh == u64::MAX {
            let end = self.slow_start.end;
            self.hystart.get_or_insert_with(|| Box::new(HyStart::new(end))).on_ack(now, acked)
        } else {
            Pace::Grow(acked.bytes)
        };
        let is_in_recovery = self.is_in_recovery(acked.largest_sent_at);
        // RFC 9002 §7.8: a window that is not used does not grow.
        //= rfc9002/7.8#1
        if acked.app_limited || self.size >= used.saturating_mul(2) {
            return Growth::Barred;
        }
        // RFC 9002 §7.3.2: nor does it in recovery.
        if is_in_recovery {
            return Growth::Barred;
        }
        let Pace::Grow(allowed) = pace else {
            self.ssthresh = self.size;
            return Growth::Avoidance(acked.bytes);
        };
        if !self.is_in_slow_start() {
            return Growth::Avoidance(acked.bytes);
        }
        // RFC 9002 §7.3.1: by the bytes acknowledged, up to the threshold.
        let room = self.ssthresh - self.size;
        //= rfc9002/7.3.1#1
        self.set(self.size.saturating_add(allowed.min(room)));
        Growth::Avoidance(acked.bytes.saturating_sub(room))
    }

    const fn has_seen_no_congestion(&self) -> bool {
        self.recovery_start.is_none() && self.ssthresh == u64::MAX
    }

    /// Whether a packet sent at that time left before the last reduction.
    pub(super) fn is_in_recovery(&self, sent_at: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent_at <= start)
    }

    /// Whether a sign of congestion may be from before the last reduction.
    pub(super) fn is_answered(&self, sign: &CongestionEvent) -> bool {
        match sign.cause {
            //= rfc9002/7.3.2#1
            CongestionCause::Loss => self.is_in_recovery(sign.sent_at),
            CongestionCause::EcnCe => self.recovery_start.is_some_and(|start| is_marked_before(sign, start)),
        }
    }

    /// Whether a sign of congestion is news; if so, recovery starts. Source: RFC 9002 B.6.
    pub(super) fn start_recovery(&mut self, now: Instant, sign: &CongestionEvent) -> bool {
        if self.is_answered(sign) {
            match (sign.cause, &mut self.undo) {
                (CongestionCause::Loss, Some(undo)) => undo.lost = undo.lost.saturating_add(sign.packets),
                // A queue that marks is no illusion.
                (CongestionCause::EcnCe, undo) => *undo = None,
                (CongestionCause::Loss, None) => {}
            }
            return false;
        }
        let LossWindow { size, ssthresh, recovery_start, .. } = *self;
        let undo = Undo { size, ssthresh, recovery_start, lost: sign.packets };
        self.undo = (sign.cause == CongestionCause::Loss).then(|| Box::new(undo));
        self.recovery_start = Some(now);
        true
    }

    /// The last reduction was right, whatever arrives.
    pub(super) fn confirm(&mut self) {
        self.undo = None;
    }

    /// Packets that were declared lost have arrived. Once all of a recovery have, it is as if it had not been: window, threshold
    /// and recovery period are what they were. Not so if the window has grown beyond that since. Returns whether it was undone.
    /// Source: RFC 9438 §4.9.2, and the same for NewReno.
    pub(super) fn take_back(&mut self, acked: &AckedBytes) -> bool {
        let (Some(undo), Some(from)) = (&mut self.undo, acked.spurious_from) else { return false };
        // Packets of an earlier recovery say nothing about this one.
        if undo.recovery_start.max(self.collapsed_from).is_some_and(|start| from <= start) {
            return false;
        }
        undo.lost = undo.lost.saturating_sub(acked.spurious);
        if undo.lost > 0 {
            return false;
        }
        let undo = **undo;
        self.undo = None;
        if self.size >= undo.size {
            return false;
        }
        self.set(undo.size);
        (self.ssthresh, self.recovery_start) = (undo.ssthresh, undo.recovery_start);
        true
    }

    /// Shrinks to `target`, the new threshold, or to the minimum.
    pub(super) fn shrink(&mut self, target: u64) {
        self.set(target);
        self.ssthresh = self.size;
    }

    pub(super) fn set(&mut self, size: u64) {
        //= rfc9002/7.2#2
        self.size = size.clamp(minimum_window(self.mtu), MAX_WINDOW);
    }

    /// Source: RFC 9002 §7.6.2.
    pub(super) fn collapse(&mut self) {
        //= rfc9002/7.6.2#2
        self.size = minimum_window(self.mtu);
        self.collapsed_from = self.collapsed_from.max(self.recovery_start);
        (self.recovery_start, self.undo) = (None, None);
    }

    /// Slow start ends at this window, or has ended if it is as large.
    pub(super) fn set_threshold(&mut self, threshold: u64) {
        self.ssthresh = threshold.max(minimum_window(self.mtu));
    }

    /// Shrinks to `target`; what was sent before is no sign of congestion any more. Source: RFC 9959, safe retreat.
    pub(super) fn retreat(&mut self, now: Instant, target: u64) {
        (self.recovery_start, self.undo) = (Some(now), None);
        self.shrink(target);
    }

    /// The initial window is recalculated. Until there was a sign of congestion the window is that and what has arrived
    /// since, so it follows in both directions; and what was in flight counts as if it had followed too. Later only the
    /// minimum follows. Source: RFC 9002 §7.2.
    pub(super) fn on_mtu_change(&mut self, mtu: u16) {
        // A window in packets of another size is nothing to return to.
        self.undo = None;
        let before = self.slow_start.begin.bytes(self.mtu);
        self.mtu = mtu.max(SMALLEST_MTU);
        let after = self.slow_start.begin.bytes(self.mtu);
        if self.has_seen_no_congestion() {
            //= rfc9002/7.2#3
            for bytes in [&mut self.size, &mut self.peak, &mut self.peak_before] {
                *bytes = bytes.saturating_add(after).saturating_sub(before);
            }
        }
        self.set(self.size);
    }
}
