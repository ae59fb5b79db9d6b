//! Prague: a window that follows the share of packets marked CE, for paths whose queues mark early and by the packet (L4S).
//!
//! It asks for ECT(1). `alpha` is the moving average of the share of marked packets; a mark takes half of `alpha` off the
//! window, at most once in a *virtual round trip*: the real one, but never less than 25 ms, so that flows of short paths do
//! not crowd out those of long ones. Between marks the window grows by a datagram a round trip, scaled down on
//! shorter paths for the same reason, and growth does not pause after a reduction.
//! A loss is answered as NewReno does, less what a mark has taken in the same round; from then on to the next mark
//! growth is NewReno's too (*classic*), because what limits the flow then is a queue that does not mark.
//! Not done: telling a classic ECN queue from an L4S one by its delay (RFC 9331 §4.3 asks to be able to fall back), and
//! windows below two datagrams.
//!
//! draft-briscoe-iccrg-prague-congestion-control (-04); RFC 9331 §4; RFC 9332.

use super::events::{AckedBytes, Cause, Congestion};
use super::window::{Growth, LossWindow};
use base::time::{Duration, Instant};

/// Weight of the latest virtual round trip in alpha. Source: the draft, moving average of ECN feedback.
const GAIN: f64 = 1.0 / 16.0;
/// The shortest virtual round trip. Source: the draft, reduced RTT-dependence.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// What a loss leaves of the window. Source: RFC 9002 §7.3.2.
const LOSS_BETA: f64 = 0.5;

/// What limits the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A queue that marks.
    Scalable,
    /// A queue that drops.
    Classic,
}

/// A window and the average of its marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prague {
    window: LossWindow,
    mode: Mode,
    /// Share of marked packets, from 0 to 1; `None` before the first mark.
    alpha: Option<f64>,
    /// Packets acknowledged and marks reported since the average was brought up to date.
    packets: u64,
    marks: u64,
    averaged_at: Instant,
    /// The last reduction by a mark, and the window before it.
    reduced: Option<(Instant, u64)>,
    rtt: Duration,
    /// Part of a byte by which the window is larger than its size says.
    fraction: f64,
}

impl Prague {
    pub(super) fn new(mtu: u16) -> Prague {
        Prague {
            window: LossWindow::new(mtu),
            mode: Mode::Classic,
            alpha: None,
            packets: 0,
            marks: 0,
            averaged_at: Instant::ZERO,
            reduced: None,
            rtt: VIRTUAL_RTT,
            fraction: 0.0,
        }
    }

    pub(super) const fn window(&self) -> &LossWindow {
        &self.window
    }

    pub(super) const fn window_mut(&mut self) -> &mut LossWindow {
        &mut self.window
    }

    #[inline]
    pub(super) fn on_sent(&mut self, _now: Instant, _bytes: u64, in_flight: u64) {
        self.window.on_sent(in_flight);
    }

    pub(super) fn on_ack(&mut self, now: Instant, acked: &AckedBytes) {
        self.rtt = acked.rtt.max(Duration::from_nanos(1));
        self.average(now, acked);
        // What was marked does not let the window grow.
        let unmarked = acked.packets.saturating_sub(acked.ce);
        let share = if acked.packets == 0 { 1.0 } else { unmarked as f64 / acked.packets as f64 };
        if let Growth::Avoidance(bytes) = self.window.on_ack(now, acked) {
            self.grow(bytes as f64 * share);
        }
    }

    /// Additive increase. Source: the draft, with its reduced RTT-dependence.
    fn grow(&mut self, bytes: f64) {
        let size = self.window.size() as f64;
        let scale = match self.mode {
            Mode::Classic => 1.0,
            Mode::Scalable => {
                let ratio = self.rtt.as_secs_f64() / self.virtual_rtt().as_secs_f64();
                ratio * ratio
            }
        };
        let grown = size + self.fraction + f64::from(self.window.mtu()) * scale * bytes.min(size) / size;
        let whole = grown.floor();
        self.window.set(whole as u64);
        self.fraction = grown - whole;
    }

    fn virtual_rtt(&self) -> Duration {
        self.rtt.max(VIRTUAL_RTT)
    }

    /// Once in a virtual round trip. Source: the draft, moving average of ECN feedback.
    fn average(&mut self, now: Instant, acked: &AckedBytes) {
        self.packets = self.packets.saturating_add(acked.packets);
        self.marks = self.marks.saturating_add(acked.ce);
        // A clock that stepped back starts the span anew.
        self.averaged_at = self.averaged_at.min(now);
        if now.saturating_since(self.averaged_at) < self.virtual_rtt() || self.packets == 0 {
            return;
        }
        let share = (self.marks as f64 / self.packets as f64).min(1.0);
        self.alpha = self.alpha.map(|alpha| alpha + GAIN * (share - alpha));
        (self.packets, self.marks, self.averaged_at) = (0, 0, now);
    }

    pub(super) fn on_congestion(&mut self, now: Instant, sign: &Congestion) {
        match sign.cause {
            Cause::EcnCe => self.on_marks(now, sign),
            Cause::Loss => self.on_loss(now, sign),
        }
    }

    fn on_marks(&mut self, now: Instant, sign: &Congestion) {
        self.mode = Mode::Scalable;
        // The first mark says that the queue is full for the first time: as good as a loss.
        let alpha = *self.alpha.get_or_insert(1.0);
        let is_answered = self.reduced.is_some_and(|(at, _)| {
            let since = now.saturating_since(at);
            at <= now && (sign.sent_at <= at || since < self.virtual_rtt())
        });
        if is_answered || self.window.is_in_recovery(sign.sent_at) {
            return;
        }
        let before = self.window.size();
        self.reduced = Some((now, before));
        self.fraction = 0.0;
        self.window.shrink((before as f64 * (1.0 - alpha / 2.0)) as u64);
    }

    fn on_loss(&mut self, now: Instant, sign: &Congestion) {
        if !self.window.start_recovery(now, sign.sent_at) {
            return;
        }
        self.mode = Mode::Classic;
        self.fraction = 0.0;
        // RFC 9331 §4.3: the response to loss is the classic one, from the window in which the loss happened.
        let size = self.window.size();
        let before = match self.reduced {
            Some((at, before)) if sign.sent_at <= at => before.max(size),
            _ => size,
        };
        self.window.shrink(((before as f64 * LOSS_BETA) as u64).min(size));
    }

    pub(super) fn on_persistent_congestion(&mut self) {
        self.mode = Mode::Classic;
        self.fraction = 0.0;
        self.window.collapse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1_200;

    /// A path of some round trip, on which a share of the packets is marked.
    struct Path {
        prague: Prague,
        now: Instant,
        rtt: Duration,
    }

    impl Path {
        fn new(rtt_ms: u64) -> Path {
            let now = Instant::from_nanos(1_000_000_000);
            Path { prague: Prague::new(MTU as u16), now, rtt: Duration::from_millis(rtt_ms) }
        }

        /// A window leaves; `percent` of it comes back marked.
        fn round(&mut self, percent: u64) -> u64 {
            let (window, sent_at) = (self.prague.window().size(), self.now);
            self.prague.on_sent(sent_at, window, window);
            self.now = self.now + self.rtt;
            let packets = window / MTU;
            let ce = packets * percent / 100;
            if ce > 0 {
                self.prague.on_congestion(self.now, &Congestion::of_marks(sent_at, ce, MTU as u16));
            }
            let acked = AckedBytes {
                bytes: window,
                packets,
                largest_sent_at: sent_at,
                app_limited: false,
                rtt: self.rtt,
                latest_rtt: Some(self.rtt),
                in_flight: 0,
                ce,
                spurious: 0,
            };
            self.prague.on_ack(self.now, &acked);
            self.now = self.now + Duration::from_nanos(1);
            self.prague.window().size()
        }

        fn lose(&mut self, sent_at: Instant) {
            let sign = Congestion { cause: Cause::Loss, sent_at, packets: 1, bytes: MTU, ranges: 1 };
            self.prague.on_congestion(self.now, &sign);
        }

        fn grow_to(&mut self, bytes: u64) {
            while self.round(0) < bytes {}
        }
    }

    #[test]
    fn the_first_mark_halves_the_window_and_ends_slow_start() {
        let mut path = Path::new(40);
        path.grow_to(400_000);
        let before = path.prague.window().size();
        let after = path.round(10);
        assert!((0.5..0.51).contains(&(after as f64 / before as f64)), "{before} {after}");
        assert!(!path.prague.window().is_in_slow_start());
    }

    #[test]
    fn alpha_follows_the_share_of_marks_with_a_weight_of_a_sixteenth() {
        let mut path = Path::new(40);
        path.grow_to(10_000_000);
        let mut expected = 1.0;
        for round in 0..100 {
            path.prague.window.set(10_000_000);
            path.round(20);
            expected += (0.2 - expected) / 16.0;
            let alpha = path.prague.alpha.unwrap();
            assert!((alpha - expected).abs() < 0.01, "round {round}: {alpha}, not {expected}");
        }
        assert!((expected - 0.2).abs() < 0.01);
        // And a mark now takes a tenth, not a half.
        path.prague.window.set(10_000_000);
        let left = path.round(20) as f64 / 10_000_000.0;
        assert!((0.89..0.91).contains(&left), "{left}");
    }

    #[test]
    fn growth_is_a_datagram_a_round_and_less_on_short_paths() {
        for (rtt_ms, expected) in [(50, MTU as f64), (25, MTU as f64), (5, MTU as f64 / 25.0)] {
            let mut path = Path::new(rtt_ms);
            path.grow_to(100_000);
            path.round(10);
            path.round(0);
            let before = path.prague.window().size();
            for _ in 0..10 {
                path.round(0);
            }
            let grown = (path.prague.window().size() - before) as f64 / 10.0;
            assert!((grown / expected - 1.0).abs() < 0.1, "{rtt_ms} ms: {grown}, not {expected}");
        }
    }

    #[test]
    fn a_short_path_is_reduced_once_in_25_ms() {
        let mut path = Path::new(5);
        path.grow_to(1_000_000);
        let reductions = (0..50).filter(|_| {
            let before = path.prague.window().size();
            path.round(50) < before
        });
        let count = reductions.count(); // in 250 ms
        assert!((8..=10).contains(&count), "{count}");
    }

    #[test]
    fn a_loss_is_answered_as_new_reno_does() {
        let mut path = Path::new(5);
        path.grow_to(1_000_000);
        let (before, sent_at) = (path.prague.window().size(), path.now);
        path.now = path.now + path.rtt;
        path.lose(sent_at);
        assert_eq!(path.prague.window().size(), before / 2);
        path.now = path.now + Duration::from_millis(1);
        path.round(0);
        let reduced = path.prague.window().size();
        assert!((path.round(0) - reduced).abs_diff(MTU) < 10, "and grows as fast, on a short path too");
    }

    #[test]
    fn a_mark_and_a_loss_of_one_round_halve_once() {
        let mut path = Path::new(40);
        path.grow_to(400_000);
        path.round(10);
        for _ in 0..60 {
            path.prague.window.set(400_000);
            path.round(10);
        }
        path.prague.window.set(400_000);
        let sent_at = path.now;
        path.round(10);
        assert!(path.prague.window().size() > 350_000);
        path.lose(sent_at);
        assert_eq!(path.prague.window().size(), 200_000);
    }
}
