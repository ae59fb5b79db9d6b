//! Prague: a window that follows the share of packets marked CE, for paths whose queues mark early and by the packet (L4S).
//!
//! It asks for ECT(1). `alpha` is the moving average of the share of marked packets; a mark takes half of `alpha` off the
//! window, at most once in a *virtual round trip*: the real one, but never less than 25 ms once a flow is 500 rounds old, so
//! that long flows of short paths do not crowd out those of long ones. Between marks the window grows by a datagram a round
//! trip, scaled down on shorter paths for the same reason, and growth does not pause after a reduction. Where no mark comes for
//! longer than the marks of a full link are apart, it grows by a millisecond of the rate, but never by more than a 25th a round
//! trip: half a gigabit at a datagram a round trip takes minutes to find.
//! A loss is answered as NewReno does, less what a mark has taken in the same round; from then on to the next mark
//! growth is NewReno's too (*classic*), because what limits the flow then is a queue that does not mark.
//! Where the marks are a classic queue's ([`monitor`]), they are answered as losses are.
//! Not done: windows below two datagrams.
//!
//! draft-briscoe-iccrg-prague-congestion-control (-04); RFC 9331 §4; RFC 9332.

mod monitor;

use super::events::{AckedBytes, CongestionCause, CongestionEvent};
use super::window::{Growth, LossWindow, is_marked_before};
use base::time::{Duration, Instant};
use monitor::Monitor;

/// Weight of the latest virtual round trip in alpha. Source: the draft, moving average of ECN feedback.
const GAIN: f64 = 1.0 / 16.0;
/// The shortest virtual round trip. Source: the draft, reduced RTT-dependence.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// Rounds in which a flow is not held to it. Source: the draft, reduced RTT-dependence (and its implementation for Linux).
const YOUNG_ROUNDS: u32 = 500;
/// Rounds without a mark after which growth is faster: this many, and one more for each this many bytes a second. Source: the
/// authors' implementation over UDP.
const PATIENCE: u64 = 7;
const PATIENCE_RATE: u64 = 1_920_000;
/// The growth a round then, as a part of the rate. Source: likewise.
const FAST_GROWTH: Duration = Duration::from_millis(1);
/// And as a part of the window, at most: what that is at the shortest virtual round trip. On a path of 100 us a millisecond of
/// the rate is ten windows, far more than slow start adds. The bound is our own.
const MOST_FAST_GROWTH: f64 = 0.04;
/// alpha where a classic queue marks: half the window. Source: RFC 3168 §6.1.2.
const CLASSIC_ALPHA: f64 = 1.0;
/// What a loss leaves of the window. Source: RFC 9002 §7.3.2.
const LOSS_BETA: f64 = 0.5;

/// What limits the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A queue that marks.
    Scalable,
    /// A queue that drops, or marks late.
    Classic,
}

/// A window and the average of its marks.
#[derive(Clone, Debug)]
pub(super) struct Prague {
    window: LossWindow,
    mode: Mode,
    /// What it was before the last loss.
    mode_before: Mode,
    /// Share of marked packets, from 0 to 1; `None` before the first mark.
    alpha: Option<f64>,
    /// Packets acknowledged and marks reported since the average was brought up to date.
    packets: u64,
    marks: u64,
    averaged_at: Instant,
    /// Rounds since the first mark.
    rounds: u32,
    /// Rounds without a mark to go before growth is faster.
    patience: u64,
    monitor: Monitor,
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
            mode_before: Mode::Classic,
            alpha: None,
            packets: 0,
            marks: 0,
            averaged_at: Instant::ZERO,
            rounds: 0,
            patience: PATIENCE,
            monitor: Monitor::new(),
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
        if let Some(sample) = acked.latest_rtt {
            self.monitor.on_sample(now, sample);
        }
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
        let grown = size + self.fraction + self.step(size) * bytes.min(size) / size;
        let whole = grown.floor();
        self.window.set(whole as u64);
        self.fraction = grown - whole;
    }

    /// Bytes by which a window of that size grows in a round trip.
    fn step(&self, size: f64) -> f64 {
        let datagram = f64::from(self.window.step());
        if self.mode == Mode::Classic {
            return datagram;
        }
        let ratio = self.rtt.as_secs_f64() / self.virtual_rtt().as_secs_f64();
        let scale = ratio * ratio;
        if self.patience > 0 {
            return datagram * scale;
        }
        let fast = self.rate() * FAST_GROWTH.as_secs_f64() * scale;
        (datagram * scale).max(fast.min(size * MOST_FAST_GROWTH))
    }

    /// Bytes a second.
    fn rate(&self) -> f64 {
        self.window.size() as f64 / self.rtt.as_secs_f64()
    }

    fn virtual_rtt(&self) -> Duration {
        if self.is_held() { VIRTUAL_RTT } else { self.rtt }
    }

    /// Whether a virtual round trip is longer than a real one. Real ones need no clock: what a frame acknowledges left before the
    /// last reduction or after it. By the clock, a flight that comes back a little sooner than the smoothed round trip says
    /// would go unanswered, and where a flight has one frame, its marks with it.
    fn is_held(&self) -> bool {
        self.rounds >= YOUNG_ROUNDS && self.rtt < VIRTUAL_RTT
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
        self.rounds = self.rounds.saturating_add(u32::from(self.alpha.is_some()));
        if self.marks > 0 {
            self.monitor.on_marked_round(self.rtt);
        } else {
            self.patience = self.patience.saturating_sub(1);
        }
        (self.packets, self.marks, self.averaged_at) = (0, 0, now);
    }

    pub(super) fn on_congestion(&mut self, now: Instant, sign: &CongestionEvent) {
        match sign.cause {
            CongestionCause::EcnCe => self.on_marks(now, sign),
            CongestionCause::Loss => self.on_loss(now, sign),
        }
    }

    fn on_marks(&mut self, now: Instant, sign: &CongestionEvent) {
        self.window.confirm();
        self.mode = if self.monitor.is_classic() { Mode::Classic } else { Mode::Scalable };
        // The first mark says that the queue is full for the first time: as good as a loss.
        let average = *self.alpha.get_or_insert(1.0);
        let alpha = if self.monitor.is_classic() { CLASSIC_ALPHA } else { average };
        self.patience = PATIENCE.saturating_add(self.rate() as u64 / PATIENCE_RATE);
        let is_answered = self.reduced.is_some_and(|(at, _)| {
            let since = now.saturating_since(at);
            at <= now && (is_marked_before(sign, at) || (self.is_held() && since < VIRTUAL_RTT))
        });
        if is_answered || self.window.is_answered(sign) {
            return;
        }
        let before = self.window.size();
        self.reduced = Some((now, before));
        self.fraction = 0.0;
        self.window.shrink((before as f64 * (1.0 - alpha / 2.0)) as u64);
    }

    fn on_loss(&mut self, now: Instant, sign: &CongestionEvent) {
        if !self.window.start_recovery(now, sign) {
            return;
        }
        self.mode_before = core::mem::replace(&mut self.mode, Mode::Classic);
        self.fraction = 0.0;
        // RFC 9331 §4.3: the response to loss is the classic one, from the window in which the loss happened.
        let size = self.window.size();
        let before = match self.reduced {
            Some((at, before)) if sign.sent_at <= at => before.max(size),
            _ => size,
        };
        self.window.shrink(((before as f64 * LOSS_BETA) as u64).min(size));
    }

    /// Losses proved to be none.
    pub(super) fn on_spurious(&mut self, acked: &AckedBytes) {
        if self.window.take_back(acked) {
            self.mode = self.mode_before;
        }
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

        /// A flow that is to take others into account.
        fn old(rtt_ms: u64) -> Path {
            let mut path = Path::new(rtt_ms);
            path.prague.rounds = YOUNG_ROUNDS;
            path
        }

        /// A window leaves; `percent` of it comes back marked.
        fn round(&mut self, percent: u64) -> u64 {
            let (window, sent_at) = (self.prague.window().size(), self.now);
            self.prague.on_sent(sent_at, window, window);
            self.now = self.now + self.rtt;
            let packets = window / MTU;
            let ce = packets * percent / 100;
            if ce > 0 {
                let sign = super::super::tests::marks(sent_at, sent_at, ce);
                self.prague.on_congestion(self.now, &sign);
            }
            let (rtt, latest_rtt) = (self.rtt, Some(self.rtt));
            let acked =
                AckedBytes { packets, rtt, latest_rtt, ce, ..super::super::tests::acked(window, sent_at) };
            self.prague.on_ack(self.now, &acked);
            self.now = self.now + Duration::from_nanos(1);
            self.prague.window().size()
        }

        fn lose(&mut self, sent_at: Instant) {
            let sign = super::super::tests::sign(sent_at, CongestionCause::Loss);
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
            let mut path = Path::old(rtt_ms);
            path.grow_to(100_000);
            path.round(10);
            path.round(0);
            let before = path.prague.window().size();
            for _ in 0..5 {
                path.round(0);
            }
            let grown = (path.prague.window().size() - before) as f64 / 5.0;
            assert!((grown / expected - 1.0).abs() < 0.1, "{rtt_ms} ms: {grown}, not {expected}");
        }
    }

    #[test]
    fn an_old_flow_of_a_short_path_is_reduced_once_in_25_ms() {
        for (mut path, expected) in [(Path::old(5), 8..=10), (Path::new(5), 15..=25)] {
            path.grow_to(1_000_000);
            let reductions = (0..50).filter(|_| {
                let before = path.prague.window().size();
                path.round(50) < before
            });
            let count = reductions.count(); // in 250 ms
            assert!(expected.contains(&count), "{count}, not {expected:?}");
        }
    }

    /// Or else a receiver that acknowledges once a round would halve the answers to its queue wherever round trips vary.
    #[test]
    fn a_flight_that_comes_back_early_is_answered() {
        let mut path = Path::new(40);
        path.grow_to(1_000_000);
        path.round(10);
        for flight in 0..20 {
            path.prague.window.set(1_000_000);
            let sent_at = path.now;
            path.prague.rtt = path.rtt;
            path.now = path.now + path.rtt - Duration::from_millis(1 + flight % 3);
            path.prague.on_congestion(path.now, &super::super::tests::marks(sent_at, sent_at, 3));
            assert!(path.prague.window().size() < 1_000_000, "flight {flight}");
        }
    }

    /// Or else a link that others have left would stay half empty for minutes.
    #[test]
    fn where_no_mark_comes_for_long_growth_is_a_millisecond_of_the_rate() {
        let mut path = Path::new(50);
        path.grow_to(4_000_000);
        path.round(10);
        let step = |path: &mut Path| {
            let before = path.prague.window().size();
            (path.round(0) - before) as f64 / before as f64
        };
        path.round(0);
        assert!(step(&mut path) < 0.001, "a datagram at first");
        for _ in 0..200 {
            path.round(0);
        }
        let late = step(&mut path);
        assert!((0.019..0.021).contains(&late), "{late}");
        path.round(10);
        assert!(step(&mut path) < 0.001, "a mark ends it");
    }

    /// Or else a flow of a data centre would multiply its window by ten each round.
    #[test]
    fn fast_growth_is_a_25th_of_the_window_a_round_on_short_paths() {
        for micros in [10, 100, 1_000, 10_000] {
            let mut path = Path::new(1);
            path.rtt = Duration::from_micros(micros);
            path.grow_to(1_000_000);
            path.round(10);
            path.prague.patience = 0;
            path.round(0);
            for _ in 0..20 {
                let before = path.prague.window().size();
                let grown = (path.round(0) - before) as f64 / before as f64;
                assert!((0.039..0.041).contains(&grown), "{micros} us: {grown}");
            }
        }
    }

    /// Or else flows of other controllers would starve beside this one.
    #[test]
    fn marks_of_a_classic_queue_halve_the_window() {
        let mut path = Path::new(20);
        path.grow_to(1_000_000);
        // It has seen the path empty; now a queue of 15 ms stands there.
        path.rtt = Duration::from_millis(35);
        for _ in 0..100 {
            path.prague.window.set(1_000_000);
            path.round(1);
        }
        path.prague.window.set(1_000_000);
        let left = path.round(1) as f64 / 1e6;
        assert!((0.5..0.51).contains(&left), "{left}");
        // The same marks at a queue of a millisecond take little.
        path.rtt = Duration::from_millis(21);
        for _ in 0..100 {
            path.prague.window.set(1_000_000);
            path.round(1);
        }
        path.prague.window.set(1_000_000);
        let left = path.round(1) as f64 / 1e6;
        assert!(left > 0.98, "{left}");
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
        path.round(0);
        path.prague.window.set(400_000);
        let sent_at = path.now;
        path.round(10);
        assert!(path.prague.window().size() < 399_000, "the mark was answered");
        assert!(path.prague.window().size() > 350_000);
        path.lose(sent_at);
        assert_eq!(path.prague.window().size(), 200_000);
    }
}
