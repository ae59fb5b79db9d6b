//! Worked examples of the loss-based controllers, and thousands of random lives of each controller.

mod closed_loop;
pub(super) mod link;
mod undo;

use super::*;
use crate::testing::{any_later, any_magnitude, any_span};
use base::rng::Rng;
use base::time::Duration;

const MTU: u16 = 1200;
const RTT: Duration = Duration::from_millis(100);

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// What an ACK frame acknowledges of a sender that keeps its window full.
pub(super) fn acked(bytes: u64, largest_sent_at: Instant) -> AckedBytes {
    AckedBytes {
        bytes,
        packets: bytes.div_ceil(u64::from(MTU)),
        largest_sent_at,
        app_limited: false,
        rtt: RTT,
        latest_rtt: Some(RTT),
        ack_delay: Duration::ZERO,
        in_flight: 0,
        ce: 0,
        spurious: 0,
        spurious_from: None,
    }
}

/// One packet, lost or marked.
pub(super) fn sign(sent_at: Instant, cause: CongestionCause) -> CongestionEvent {
    CongestionEvent {
        cause,
        sent_at,
        earliest_sent_at: sent_at,
        packets: 1,
        bytes: u64::from(MTU),
        ranges: 1,
    }
}

/// Marks that a frame reports whose packets were sent from the one instant to the other.
pub(super) fn marks(earliest_sent_at: Instant, sent_at: Instant, packets: u64) -> CongestionEvent {
    let bytes = packets * u64::from(MTU);
    CongestionEvent {
        cause: CongestionCause::EcnCe,
        sent_at,
        earliest_sent_at,
        packets,
        bytes,
        ranges: packets,
    }
}

/// A sender that always fills its window, on a path of one round trip per step.
struct Path {
    controller: Controller,
    now: Instant,
}

impl Path {
    fn new(algorithm: Algorithm) -> Path {
        Path { controller: Controller::new(algorithm, MTU), now: ms(1_000) }
    }

    /// Sends a window and has it acknowledged a round trip later, by `acks` frames. Returns the window then.
    fn round(&mut self, acks: u64) -> u64 {
        let window = self.controller.window();
        let sent_at = self.now;
        self.controller.on_sent(sent_at, window, window);
        self.now = self.now + RTT;
        for part in 0..acks {
            let bytes = window * (part + 1) / acks - window * part / acks;
            self.controller.on_ack(self.now, &acked(bytes, sent_at));
        }
        self.controller.window()
    }

    fn rounds(&mut self, count: u32, acks: u64) {
        for _ in 0..count {
            self.round(acks);
        }
    }

    fn lose(&mut self) -> u64 {
        let sent_at = self.now;
        self.now = self.now + Duration::from_nanos(1);
        self.controller.on_congestion(self.now, &sign(sent_at, CongestionCause::Loss));
        self.now = self.now + Duration::from_nanos(1);
        self.controller.window()
    }
}

#[test]
fn windows_at_the_start() {
    // RFC 9002 §7.2: ten datagrams, at most 14,720 bytes or two datagrams.
    assert_eq!(initial_window(1200), 12_000);
    assert_eq!(initial_window(1472), 14_720);
    assert_eq!(initial_window(9_000), 18_000);
    assert_eq!((minimum_window(1452), minimum_window(0)), (2_904, 2_400));
}

#[test]
fn a_path_begins_with_what_is_set() {
    assert_eq!([9, 33].map(InitialWindow::of_packets), [None, None]);
    let begin = InitialWindow::of_packets(32).expect("a size that is permitted");
    for algorithm in
        [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague, Algorithm::Auto]
    {
        let slow_start = SlowStart { begin, ..SlowStart::default() };
        let mut controller = Controller::new(algorithm, 1_200).with_slow_start(slow_start);
        assert_eq!(controller.window(), 32 * 1_200, "{algorithm:?}");
        controller.on_mtu_change(1_452);
        assert_eq!(controller.window(), 32 * 1_452, "{algorithm:?}");
        let default = Controller::new(algorithm, 1_200).with_slow_start(SlowStart::default());
        assert_eq!(default.window(), 12_000, "{algorithm:?}");
    }
}

/// Deleted, a path of 100 ms would take 1.7 round trips longer to fill, or one of 5 ms would begin with a burst of 32.
#[test]
fn the_first_round_trip_enlarges_the_initial_window() {
    for algorithm in
        [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague, Algorithm::Auto]
    {
        let begun = || {
            let slow_start = SlowStart { begin: InitialWindow::BY_RTT, ..SlowStart::default() };
            let mut controller = Controller::new(algorithm, 1_200).with_slow_start(slow_start);
            assert_eq!(controller.window(), 12_000, "before a round trip is known");
            controller.on_sent(ms(0), 3_600, 3_600);
            controller
        };
        let answered =
            |rtt| AckedBytes { app_limited: true, rtt, latest_rtt: Some(rtt), ..acked(1_200, ms(0)) };
        for (rtt, packets) in [(5, 10), (25, 20), (40, 32), (600, 32)] {
            let rtt = Duration::from_millis(rtt);
            let mut controller = begun();
            controller.on_ack(Instant::ZERO + rtt, &AckedBytes { latest_rtt: None, ..answered(rtt) });
            let before = controller.window();
            assert!(before < 14_400, "no round trip was measured: {algorithm:?}");
            controller.on_ack(Instant::ZERO + rtt, &answered(rtt));
            let grown = (controller.window() - before) / 1_200;
            assert!((packets - 10..=packets - 9).contains(&grown), "{algorithm:?}, {rtt:?}: {grown}");
            controller.on_ack(Instant::ZERO + rtt * 2, &answered(rtt * 8));
            assert!(controller.window() <= before + (packets - 8) * 1_200, "only the first: {algorithm:?}");
        }
        let mut controller = begun();
        controller.on_congestion(ms(50), &sign(ms(0), CongestionCause::Loss));
        controller.on_ack(ms(50), &answered(Duration::from_millis(50)));
        assert!(controller.window() <= 13_200, "not after a loss: {algorithm:?}");
    }
}

#[test]
fn slow_start_doubles_until_loss_and_ends_at_the_threshold() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        let mut path = Path::new(algorithm);
        assert_eq!([path.round(5), path.round(1), path.round(40)], [24_000, 48_000, 96_000]);
        let reduced = path.lose();
        assert_eq!(reduced, if algorithm == Algorithm::NewReno { 48_000 } else { 67_200 });
        assert_eq!(path.controller.ssthresh(), Some(reduced));
        path.controller.on_persistent_congestion();
        assert_eq!(path.controller.window(), 2_400);
        let mut window = 2_400;
        while path.controller.is_in_slow_start() {
            let grown = path.round(3);
            assert!(grown <= window * 2, "{algorithm:?}");
            window = grown;
        }
        assert!((reduced..reduced + 2 * u64::from(MTU)).contains(&window), "{algorithm:?} {window}");
    }
}

#[test]
fn one_reduction_per_round_trip() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        let mut controller = Controller::new(algorithm, MTU);
        controller.on_sent(ms(0), 12_000, 12_000);
        controller.on_congestion(ms(100), &sign(ms(10), CongestionCause::Loss));
        let reduced = controller.window();
        controller.on_congestion(ms(120), &sign(ms(99), CongestionCause::EcnCe));
        controller.on_congestion(ms(120), &sign(ms(100), CongestionCause::Loss));
        assert_eq!(controller.window(), reduced, "sent before the reduction");
        controller.on_ack(ms(130), &acked(1200, ms(100)));
        assert_eq!(controller.window(), reduced, "no growth in recovery");
        controller.on_congestion(ms(220), &marks(ms(99), ms(101), 1));
        assert_eq!(
            controller.window(),
            reduced,
            "the frame also acknowledges what left before: that may be what was marked"
        );
        controller.on_ack(ms(220), &acked(1200, ms(101)));
        controller.on_congestion(ms(221), &sign(ms(102), CongestionCause::EcnCe));
        assert!(controller.window() < reduced, "all of the frame was sent after it");
    }
}

/// Or else a receiver that acknowledges seldom would halve the answers to its queue.
#[test]
fn with_one_frame_for_each_flight_every_marked_flight_is_answered() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        let mut path = Path::new(algorithm);
        path.rounds(6, 1);
        for flight in 0..5 {
            let (before, first) = (path.controller.window(), path.now);
            path.controller.on_sent(first, before, before);
            // The first packet leaves in the instant in which the flight before was acknowledged.
            path.now = first + RTT;
            let last = first + Duration::from_millis(5);
            path.controller.on_congestion(path.now, &marks(first, last, 3));
            assert!(path.controller.window() < before, "{algorithm:?}, flight {flight}");
            path.controller.on_ack(path.now, &AckedBytes { ce: 3, ..acked(before, last) });
        }
    }
}

#[test]
fn a_frame_that_spans_a_reduction_is_not_answered() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        let mut controller = Controller::new(algorithm, MTU);
        controller.on_sent(ms(0), 12_000, 12_000);
        controller.on_congestion(ms(100), &marks(ms(10), ms(20), 1));
        let reduced = controller.window();
        controller.on_congestion(ms(290), &marks(ms(99), ms(190), 1));
        assert_eq!(controller.window(), reduced, "{algorithm:?}: 99 ms is before it");
    }
}

#[test]
fn new_reno_adds_a_datagram_a_round_trip() {
    let mut path = Path::new(Algorithm::NewReno);
    path.rounds(4, 7);
    let mut window = path.lose();
    for acks in [1, 2, 10, 33, 80] {
        let grown = path.round(acks);
        assert_eq!(grown - window, u64::from(MTU), "by {acks} frames");
        window = grown;
    }
}

#[test]
fn cubic_follows_its_curve() {
    // RFC 9438 §4.2: K = cbrt(W_max × 0.3 / C) seconds, W(t) = C (t − K)³ + W_max, in datagrams.
    let mut path = Path::new(Algorithm::Cubic);
    while path.round(10) < 1_000 * u64::from(MTU) {}
    let w_max = path.controller.window() as f64 / f64::from(MTU);
    path.lose();
    let k = (w_max * 0.3 / 0.4_f64).cbrt();
    let began = path.now + RTT;
    let mut plateau = 0;
    while path.now.saturating_since(began).as_secs_f64() < k * 1.8 {
        let window = path.round(50) as f64 / f64::from(MTU);
        let t = path.now.saturating_since(began).as_secs_f64();
        let curve = 0.4 * (t + 0.1 - k).powi(3) + w_max;
        assert!((window - curve).abs() < 0.02 * w_max, "at {t:.1} s: {window:.0}, not {curve:.0}");
        plateau += u32::from((window - w_max).abs() < 0.02 * w_max);
    }
    assert!(plateau > 20, "the curve is flat around the old window");
}

#[test]
fn cubic_is_no_slower_than_new_reno_where_windows_are_small() {
    // RFC 9438 §4.3. With a window of 20 datagrams the cubic alone would take seconds to move.
    let mut path = Path::new(Algorithm::Cubic);
    path.round(5);
    let prior = path.controller.window();
    let mut window = path.lose();
    for _ in 0..8 {
        let grown = path.round(5);
        assert!(grown - window >= u64::from(MTU) / 2, "{}", grown - window); // α is 0.53
        window = grown;
    }
    while window < prior * 3 / 2 {
        window = path.round(5);
    }
    assert!(
        path.round(5) - window >= u64::from(MTU) * 9 / 10,
        "a datagram a round trip, once past the old window"
    );
}

#[test]
fn cubic_makes_room_for_newcomers() {
    // RFC 9438 §4.7: the second of two reductions in a row remembers less than the window.
    let mut path = Path::new(Algorithm::Cubic);
    path.rounds(5, 10);
    path.lose();
    path.round(10);
    let before = path.controller.window() as f64;
    path.lose();
    let Kind::Cubic(cubic) = path.controller.kind else { unreachable!() };
    assert!((cubic.plateau() - before * 0.85).abs() < 1.0);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        let mut path = Path::new(algorithm);
        path.rounds(4, 7);
        path.lose();
        path.round(7);
        let window = path.controller.window();
        // A tenth of the window is in flight; the application says so, or does not.
        for (round, app_limited) in (0..200).map(|round| (round, round % 2 == 0)) {
            let sent_at = path.now;
            path.controller.on_sent(sent_at, window / 10, window / 10);
            path.now = path.now + RTT;
            path.controller.on_ack(path.now, &AckedBytes { app_limited, ..acked(window / 10, sent_at) });
            assert!(round < 2 || path.controller.window() <= window * 102 / 100, "{algorithm:?}");
        }
        // And the twenty seconds do not make the window jump when it is used again.
        let window = path.controller.window();
        path.now = path.now + Duration::from_secs(60);
        path.round(7);
        assert!(path.round(7) < window * 11 / 10, "{algorithm:?} {window} {}", path.controller.window());
    }
}

/// Deleted, what losses at rest have shown could be lost on the way to BBR.
#[test]
fn bbr_hears_that_the_path_loses_by_chance() {
    for is_known in [false, true] {
        let mut path = Path::new(Algorithm::Auto);
        path.round(3);
        if is_known && let Some(judge) = path.controller.chooser.judge() {
            judge.know_chance();
        }
        path.lose();
        path.rounds(2, 3);
        let Kind::Bbr(bbr) = &path.controller.kind else {
            panic!("a loss while nothing waits makes BBR of CUBIC")
        };
        assert_eq!(bbr.knows_chance(), is_known);
    }
}

/// Deleted, each of the idle connections of a server could hold a judge; or one that has seen a loss could forget it.
#[test]
fn an_idle_flow_that_chooses_holds_no_judge_unless_packets_were_lost() {
    let has_judge = |path: &Path| matches!(path.controller.chooser, Chooser::Path(Some(_)));
    let mut path = Path::new(Algorithm::default());
    assert!(!has_judge(&path));
    path.round(3);
    assert!(has_judge(&path));
    path.controller.release_memory();
    assert!(!has_judge(&path));
    assert_eq!(path.controller.algorithm(), Algorithm::Auto);
    assert_eq!(path.controller.choice(), Some(Choice { in_use: Algorithm::Cubic, cause: None }));
    path.round(3);
    path.lose();
    path.controller.release_memory();
    assert!(has_judge(&path));
}

/// Without a sign of congestion the window is the initial one and what has arrived, whenever the size was found.
#[test]
fn a_larger_datagram_enlarges_the_initial_window() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        let mut controller = Controller::new(algorithm, 1200);
        controller.on_mtu_change(1452);
        assert_eq!(controller.window(), 14_520);
        controller.on_sent(ms(1), 14_000, 14_000);
        controller.on_mtu_change(9_000);
        controller.on_ack(ms(21), &acked(14_000, ms(1)));
        assert_eq!(controller.window(), 18_000 + 14_000, "{algorithm:?}");
        controller.on_mtu_change(1200);
        assert_eq!(controller.window(), 12_000 + 14_000, "back again: {algorithm:?}");
        controller.on_congestion(ms(23), &sign(ms(22), CongestionCause::Loss));
        let reduced = controller.window();
        controller.on_mtu_change(9_000);
        assert_eq!(controller.window(), reduced.max(18_000), "but never below two datagrams");
        controller.on_mtu_change(1200);
        assert_eq!(controller.window(), reduced.max(18_000), "and earned is earned");
    }
    let mut bbr = Controller::new(Algorithm::Bbr, 1200);
    bbr.on_sent(ms(1), 1_200, 1_200);
    bbr.on_ack(ms(21), &acked(1_200, ms(1)));
    assert_eq!(bbr.window(), 12_000 + 1_200);
    bbr.on_mtu_change(1_452);
    assert_eq!(bbr.window(), 14_520 + 1_200, "in Startup");
    bbr.on_congestion(ms(23), &sign(ms(22), CongestionCause::Loss));
    let reduced = bbr.window();
    bbr.on_mtu_change(1_472);
    assert_eq!(bbr.window(), reduced.max(4 * 1_472), "not after a loss");
}

#[test]
fn pacing_follows_the_window() {
    let mut rtt = Rtt::default();
    let mut controller = Controller::new(Algorithm::NewReno, MTU);
    assert!(controller.pacing_rate(&rtt).is_unlimited(), "the initial window may leave at once");
    rtt.on_sample(ms(1), RTT, Duration::ZERO);
    assert_eq!(controller.pacing_rate(&rtt).bytes_per_second().round(), 240_000.0);
    controller.on_congestion(ms(2), &sign(ms(1), CongestionCause::Loss));
    // Deleted, a window could leave faster than the path takes it, and overflow a short queue.
    assert_eq!(controller.pacing_rate(&rtt).bytes_per_second().round(), 63_000.0);
    (0..20).for_each(|_| rtt.on_sample(ms(3), RTT + RTT / 8, Duration::ZERO));
    let rate = controller.pacing_rate(&rtt).bytes_per_second().round();
    assert!((59_900.0..=60_100.0).contains(&rate), "{rate}: a window in the shortest round trip");
    (0..20).for_each(|_| rtt.on_sample(ms(4), RTT * 2, Duration::ZERO));
    let rate = controller.pacing_rate(&rtt).bytes_per_second().round();
    assert!((37_400.0..=38_800.0).contains(&rate), "{rate}: nearly what a longer queue lets pass");
    let mut loopback = Rtt::default();
    loopback.on_sample(ms(1), Duration::from_micros(80), Duration::ZERO);
    assert!(controller.pacing_rate(&loopback).is_unlimited());
}

/// One life of a controller under any events in any order, on any clock.
fn live(algorithm: Algorithm, seed: u64) {
    let mut rng = Rng::from_u64(seed);
    let mut mtu = 1200 + rng.below(8_000) as u16;
    let mut controller = Controller::new(algorithm, mtu);
    let mut resumes = seed.is_multiple_of(3);
    if resumes {
        let saved = SavedParameters {
            capacity: any_magnitude(&mut rng),
            rtt: any_span(&mut rng),
            valid_until: any_later(&mut rng, Instant::ZERO),
        };
        controller = controller.with_resume((rng.below(8) > 0).then_some(saved), mtu);
    }
    let mut now = Instant::ZERO;
    // BBR has more states to get into.
    for _ in 0..if matches!(algorithm, Algorithm::Bbr | Algorithm::Auto) { 120 } else { 30 } {
        now = any_later(&mut rng, now);
        let sent_at = now - any_span(&mut rng);
        let window = controller.window();
        match rng.below(10) {
            0..3 => controller.on_sent(now, any_magnitude(&mut rng), any_magnitude(&mut rng)),
            3..7 => {
                controller.on_ack(now, &any_acked(&mut rng, sent_at, window));
                let may_shrink = matches!(algorithm, Algorithm::Bbr | Algorithm::Auto) || resumes;
                assert!(
                    may_shrink || controller.window() >= window,
                    "seed {seed}: an acknowledgement shrank it"
                );
            }
            7 => {
                let cause = if rng.below(2) == 0 { CongestionCause::Loss } else { CongestionCause::EcnCe };
                let earliest_sent_at = sent_at - any_span(&mut rng);
                let (packets, bytes) = (any_magnitude(&mut rng), any_magnitude(&mut rng));
                let ranges = any_magnitude(&mut rng);
                controller.on_congestion(
                    now,
                    &CongestionEvent { cause, sent_at, earliest_sent_at, packets, bytes, ranges },
                );
                assert!(controller.window() <= window, "seed {seed}: congestion enlarged it");
            }
            8 => {
                let before = controller.before_silence(any_span(&mut rng)).filter(|_| rng.below(2) == 0);
                controller.on_persistent_congestion();
                if let Some(before) = before {
                    controller.on_silence(now, before, mtu);
                    resumes = true;
                }
            }
            _ => {
                mtu = rng.below(65_536) as u16;
                controller.on_mtu_change(mtu);
            }
        }
        let bounds = minimum_window(mtu)..=MAX_WINDOW;
        assert!(bounds.contains(&controller.window()), "seed {seed}: {}", controller.window());
        let mut rtt = Rtt::default();
        rtt.on_sample(now, any_span(&mut rng), any_span(&mut rng));
        let rate = controller.pacing_rate(&rtt);
        let per_second = rate.bytes_per_second();
        assert!(
            rate.is_unlimited() || (per_second.is_finite() && per_second >= 9.9),
            "seed {seed}: {per_second}"
        );
    }
}

fn any_acked(rng: &mut Rng, largest_sent_at: Instant, window: u64) -> AckedBytes {
    AckedBytes {
        bytes: if rng.below(4) == 0 { any_magnitude(rng) } else { window / 2 },
        packets: if rng.below(4) == 0 { any_magnitude(rng) } else { rng.below(64) },
        largest_sent_at,
        app_limited: rng.below(8) == 0,
        rtt: any_span(rng),
        latest_rtt: (rng.below(4) > 0).then(|| any_span(rng)),
        ack_delay: any_span(rng),
        in_flight: if rng.below(8) == 0 { any_magnitude(rng) } else { rng.below(window + 1) },
        ce: if rng.below(4) == 0 { any_magnitude(rng) } else { 0 },
        spurious: if rng.below(8) == 0 { any_magnitude(rng) } else { rng.below(2) },
        spurious_from: (rng.below(2) == 0).then(|| largest_sent_at - any_span(rng)),
    }
}

/// What would be lost without it: a window of zero, a wrapped or endless one, a rate that is none, or a panic, on some path
/// or clock. Each controller lives five thousand lives.
#[test]
fn twenty_thousand_lives() {
    for algorithm in
        [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague, Algorithm::Auto]
    {
        (0..5_000).for_each(|seed| live(algorithm, seed));
    }
}

/// The same a million times for each controller, all at once: some minutes.
/// `cargo test --release -p tercel-recovery -- --ignored a_million_lives`.
mod a_million_lives {
    use super::{Algorithm, live};

    fn million(algorithm: Algorithm) {
        (0..1_000_000).for_each(|seed| live(algorithm, seed));
    }

    #[test]
    #[ignore = "takes a while; the ordinary run has the first five thousand"]
    fn of_new_reno() {
        million(Algorithm::NewReno);
    }

    #[test]
    #[ignore = "takes a while; the ordinary run has the first five thousand"]
    fn of_cubic() {
        million(Algorithm::Cubic);
    }

    #[test]
    #[ignore = "takes a while; the ordinary run has the first five thousand"]
    fn of_bbr() {
        million(Algorithm::Bbr);
    }

    #[test]
    #[ignore = "takes a while; the ordinary run has the first five thousand"]
    fn of_auto() {
        million(Algorithm::Auto);
    }

    #[test]
    #[ignore = "takes a while; the ordinary run has the first five thousand"]
    fn of_prague() {
        million(Algorithm::Prague);
    }
}
