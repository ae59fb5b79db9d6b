//! The machine step by step, and beside real controllers on a modelled link.

use super::*;
use crate::congestion::tests::link::{LinkOptions, World};
use crate::congestion::{Algorithm, Controller};

const MTU: u16 = 1_200;
const RTT: Duration = Duration::from_millis(50);
const SAVED: SavedParameters =
    SavedParameters { capacity: 400_000, rtt: RTT, valid_until: Instant::FAR_FUTURE };

/// A machine, and the window that a slow start under its orders would have.
struct Sender {
    now: Instant,
    window: u64,
    resume: Resume,
}

impl Sender {
    fn new(saved: Option<SavedParameters>) -> Sender {
        let now = Instant::ZERO + Duration::from_secs(1);
        Sender { now, window: initial_window(MTU), resume: Resume::new(saved, InitialWindow::default(), MTU) }
    }

    fn obey(&mut self, orders: Orders, grown: u64) -> Orders {
        self.window += if orders.hold { 0 } else { grown };
        self.window = orders.window.unwrap_or(self.window);
        orders
    }

    fn send(&mut self, in_flight: u64) -> Orders {
        let orders = self.resume.on_sent(self.now, in_flight, in_flight, self.window);
        self.obey(orders, 0)
    }

    fn acked(&self, bytes: u64, sent_at: Instant, in_flight: u64) -> AckedBytes {
        AckedBytes {
            rtt: RTT,
            latest_rtt: Some(self.now.saturating_since(sent_at)),
            in_flight,
            ..crate::congestion::tests::acked(bytes, sent_at)
        }
    }

    fn ack(&mut self, bytes: u64, sent_at: Instant, in_flight: u64) -> Orders {
        let orders = self.resume.on_ack(self.now, &self.acked(bytes, sent_at, in_flight), self.window);
        self.obey(orders, bytes)
    }

    /// Sends the initial window, and has it acknowledged after `rtt`.
    fn arrive(&mut self, rtt: Duration) -> Orders {
        let (window, sent_at) = (self.window, self.now);
        self.send(window);
        self.now = self.now + rtt;
        self.ack(window, sent_at, 0)
    }

    fn phase(&self) -> Phase {
        self.resume.phase()
    }

    fn outcome(&self) -> Outcome {
        self.resume.report().outcome
    }
}

#[test]
fn a_known_path_is_tried_with_half_and_validated() {
    let mut sender = Sender::new(Some(SAVED));
    assert_eq!(sender.phase(), Phase::Reconnaissance);
    sender.arrive(RTT);
    assert_eq!((sender.phase(), sender.window), (Phase::Unvalidated, 200_000));
    let first = sender.now + Duration::from_millis(1);
    sender.now = first;
    sender.send(100_000);
    assert_eq!(
        sender.ack(0, first - RTT - Duration::from_millis(1), 100_000).window,
        None,
        "an older packet says nothing"
    );
    sender.now = sender.now + Duration::from_millis(20);
    sender.send(199_500);
    assert_eq!(
        (sender.phase(), sender.window),
        (Phase::Validating, 199_500),
        "what is under way is the window"
    );
    let last = sender.now;
    sender.now = first + RTT;
    sender.ack(100_000, first, 150_000);
    assert_eq!((sender.phase(), sender.window), (Phase::Validating, 299_500), "slow start goes on");
    sender.now = last + RTT;
    let orders = sender.ack(99_500, last, 150_000);
    assert_eq!(orders.threshold, Some(299_500), "and ends where it has come to");
    assert_eq!((sender.phase(), sender.outcome()), (Phase::Normal, Outcome::Validated));
    assert_eq!(sender.resume.report().jump, 200_000);
}

#[test]
fn a_round_trip_of_another_path_prevents_the_jump() {
    for (rtt_ms, jumps) in [(25, false), (26, true), (50, true), (500, true), (501, false)] {
        let mut sender = Sender::new(Some(SAVED));
        sender.arrive(Duration::from_millis(rtt_ms));
        assert_eq!(sender.phase() == Phase::Unvalidated, jumps, "{rtt_ms} ms");
        assert_eq!(sender.outcome(), if jumps { Outcome::Open } else { Outcome::OtherPath }, "{rtt_ms} ms");
        assert_eq!(
            sender.resume.saved_parameters() == Some(SavedParametersUpdate::Forget),
            !jumps,
            "{rtt_ms} ms"
        );
    }
}

#[test]
fn nothing_jumps_before_the_initial_window_has_arrived_or_without_more_to_send() {
    let mut sender = Sender::new(Some(SAVED));
    let sent_at = sender.now;
    sender.send(12_000);
    sender.now = sender.now + RTT;
    sender.ack(11_999, sent_at, 1);
    assert_eq!(sender.phase(), Phase::Reconnaissance);
    let last = AckedBytes { app_limited: true, ..sender.acked(1, sent_at, 0) };
    sender.resume.on_ack(sender.now, &last, sender.window);
    assert_eq!(sender.phase(), Phase::Reconnaissance, "no data waits");
    assert_eq!(
        sender.resume.saved_parameters(),
        Some(SavedParametersUpdate::Unused),
        "another connection may try"
    );
    sender.now = sender.now + Duration::from_secs(5);
    let sent_at = sender.now;
    sender.send(1_200);
    sender.now = sender.now + RTT;
    sender.ack(1_200, sent_at, 0);
    assert_eq!(sender.phase(), Phase::Unvalidated);
}

/// The first round trip allows more than RFC 9002 does for a path of which nothing is known, and no more than was carried.
#[test]
fn a_known_path_begins_with_up_to_32_packets() {
    let after_first = |saved: SavedParameters, rtt: Duration| {
        let mut sender = Sender::new(Some(saved));
        let sent_at = sender.now;
        sender.send(2_400);
        sender.now = sender.now + rtt;
        sender.resume.on_ack(sender.now, &sender.acked(2_400, sent_at, 0), sender.window).window
    };
    let carried = |capacity| SavedParameters { capacity, ..SAVED };
    assert_eq!(after_first(SAVED, RTT), Some(32 * 1_200));
    assert_eq!(after_first(carried(100_000), RTT), Some(25_000), "a quarter of what was carried");
    assert_eq!(after_first(carried(48_000), RTT), None, "no more than any path has");
    assert_eq!(after_first(SAVED, RTT / 2), None, "another path");
    assert_eq!(after_first(SavedParameters { valid_until: Instant::ZERO, ..SAVED }, RTT), None, "too old");
    let short = Duration::from_micros(900);
    assert_eq!(after_first(SavedParameters { rtt: short, ..SAVED }, short), None, "nothing would be paced");
}

/// Deleted, a path could be taken for confirmed by a part of what a connection begins with.
#[test]
fn the_jump_waits_for_all_that_the_connection_begins_with() {
    for (packets, jumps_after) in [(10, 12_000), (32, 38_400)] {
        let initial = InitialWindow::of_packets(packets).expect("a size that is permitted");
        let mut sender = Sender::new(None);
        sender.resume = Resume::new(Some(SAVED), initial, MTU);
        sender.window = initial.bytes(MTU);
        let (sent_at, mut arrived) = (sender.now, 0);
        sender.send(64_000);
        sender.now = sender.now + RTT;
        while sender.phase() == Phase::Reconnaissance && arrived < 64_000 {
            arrived += 1_200;
            let acked = sender.acked(1_200, sent_at, 64_000 - arrived);
            sender.resume.on_ack(sender.now, &acked, sender.window);
        }
        assert_eq!((arrived, sender.phase()), (jumps_after, Phase::Unvalidated), "{packets} packets");
    }
}

/// Nothing that could be learned would be used.
#[test]
fn nothing_is_observed_where_round_trips_are_short() {
    for (rtt_us, is_over) in [(999, true), (1_000, false)] {
        let mut sender = Sender::new(None);
        sender.arrive(Duration::from_micros(rtt_us));
        assert_eq!(sender.resume.is_over(), is_over, "{rtt_us} us");
    }
    let mut controller = resumed(Algorithm::Cubic, None);
    let (sent_at, rtt) = (Instant::ZERO + Duration::from_secs(1), Duration::from_micros(999));
    controller.on_sent(sent_at, 12_000, 12_000);
    let now = sent_at + rtt;
    let acked = AckedBytes { rtt, ..Sender { now, ..Sender::new(None) }.acked(12_000, sent_at, 0) };
    controller.on_ack(now, &acked);
    assert!(controller.resume.is_none(), "later acknowledgements cost nothing more");
}

#[test]
fn congestion_before_the_jump_ends_it() {
    let mut sender = Sender::new(Some(SAVED));
    sender.resume.on_congestion(sender.window);
    assert_eq!((sender.phase(), sender.outcome()), (Phase::Normal, Outcome::Congested));
    sender.arrive(RTT);
    assert_eq!(sender.resume.report().jump, 0);
}

#[test]
fn no_jump_is_larger_than_allowed_and_none_is_made_for_nothing() {
    let mut sender = Sender::new(Some(SavedParameters { capacity: u64::MAX, ..SAVED }));
    sender.arrive(RTT);
    assert_eq!(sender.window, MAX_JUMP);
    let mut sender = Sender::new(Some(SavedParameters { capacity: 24_000, ..SAVED }));
    sender.arrive(RTT);
    assert_eq!(sender.outcome(), Outcome::NoGain);
    let close = Duration::from_micros(100);
    let mut sender = Sender::new(Some(SavedParameters { rtt: close, ..SAVED }));
    sender.arrive(close);
    assert_eq!(sender.outcome(), Outcome::NoGain, "nothing would be paced");
}

#[test]
fn a_retreat_halves_what_had_arrived_and_waits_for_the_rest_to_leave_the_path() {
    let mut sender = Sender::new(Some(SAVED));
    sender.arrive(RTT);
    let first = sender.now + Duration::from_millis(1);
    sender.now = first;
    sender.send(199_500);
    sender.now = first + RTT;
    sender.ack(30_000, first - Duration::from_nanos(1), 170_000);
    let orders = sender.resume.on_congestion(sender.window);
    sender.obey(orders, 0);
    assert_eq!((sender.phase(), sender.window), (Phase::SafeRetreat, 15_000));
    sender.ack(20_000, first - Duration::from_nanos(1), 100_000);
    assert_eq!(sender.window, 15_000, "it must not grow");
    let orders = sender.ack(30_000, first, 0);
    assert_eq!(orders.threshold, Some(40_000), "half of what had arrived by the end");
    assert_eq!((sender.phase(), sender.window), (Phase::Normal, 15_000));
    assert_eq!(
        sender.resume.saved_parameters(),
        Some(SavedParametersUpdate::Forget),
        "no later connection tries that again"
    );
}

#[test]
fn a_jump_that_is_not_used_is_taken_back() {
    let mut sender = Sender::new(Some(SAVED));
    sender.arrive(RTT);
    let sent_at = sender.now + Duration::from_millis(1);
    sender.now = sent_at;
    sender.send(13_000);
    sender.now = sent_at + RTT;
    sender.ack(5_000, sent_at, 8_000);
    assert_eq!((sender.outcome(), sender.window), (Outcome::RateLimited, initial_window(MTU)));
}

/// Blocked by the peer's flow control for long, it would otherwise leave on a path that was not used since.
#[test]
fn a_jump_is_not_used_more_than_a_round_trip_later() {
    for (waited, expected) in [
        (RTT, (Phase::Unvalidated, Outcome::Open, 200_000)),
        (RTT + Duration::from_nanos(1), (Phase::Normal, Outcome::RateLimited, initial_window(MTU))),
    ] {
        let mut sender = Sender::new(Some(SAVED));
        sender.arrive(RTT);
        sender.now = sender.now + waited;
        sender.send(64_000);
        assert_eq!((sender.phase(), sender.outcome(), sender.window), expected, "after {waited:?}");
    }
    // One that is under way is not taken back because the round trip is over.
    let mut sender = Sender::new(Some(SAVED));
    sender.arrive(RTT);
    sender.now = sender.now + RTT;
    sender.send(150_000);
    let orders = sender.resume.on_sent(sender.now + Duration::from_millis(1), 12_000, 162_000, sender.window);
    assert_eq!((sender.phase(), orders.window), (Phase::Validating, Some(162_000)));
}

/// RFC 9959: the lifetime ends whether or not the connection has begun before.
#[test]
fn nothing_jumps_to_what_has_become_too_old() {
    let arrives = Instant::ZERO + Duration::from_secs(1) + RTT;
    for (valid_until, phase, outcome) in [
        (arrives, Phase::Unvalidated, Outcome::Open),
        (arrives - Duration::from_nanos(1), Phase::Normal, Outcome::Expired),
    ] {
        let mut sender = Sender::new(Some(SavedParameters { valid_until, ..SAVED }));
        sender.arrive(RTT);
        assert_eq!((sender.phase(), sender.outcome()), (phase, outcome));
        assert_eq!(sender.resume.report().jump > 0, outcome == Outcome::Open);
    }
}

#[test]
fn persistent_congestion_ends_it() {
    let mut sender = Sender::new(Some(SAVED));
    sender.arrive(RTT);
    sender.resume.on_persistent_congestion();
    assert_eq!((sender.phase(), sender.outcome()), (Phase::Normal, Outcome::Retreated));
    assert_eq!(sender.resume.saved_parameters(), Some(SavedParametersUpdate::Forget));
}

/// RFC 9959 §4.3.2: not in half of it, as slow start would.
#[test]
fn a_jump_is_paced_over_the_whole_round_trip() {
    let mut controller = resumed(Algorithm::Cubic, Some(SAVED));
    let (sent_at, window) = (Instant::ZERO + Duration::from_secs(1), controller.window());
    controller.on_sent(sent_at, window, window);
    let now = sent_at + RTT;
    let mut rtt = crate::rtt::Rtt::default();
    rtt.on_sample(now, RTT, Duration::ZERO);
    let acked = AckedBytes { bytes: window, ..Sender { now, ..Sender::new(None) }.acked(window, sent_at, 0) };
    controller.on_ack(now, &acked);
    assert_eq!(controller.window(), 200_000);
    assert_eq!(controller.pacing_rate(&rtt).bytes_per_second().round(), 4_000_000.0);
    // A round trip later slow start goes on, at its own pace.
    let then = now + RTT + RTT;
    controller.on_sent(now + Duration::from_millis(1), 150_000, 150_000);
    controller.on_ack(
        then,
        &AckedBytes { in_flight: 149_000, largest_sent_at: now + Duration::from_millis(1), ..acked },
    );
    assert_eq!(controller.resume_report().phase, Phase::Validating);
    assert_eq!(
        controller.pacing_rate(&rtt).bytes_per_second().round(),
        controller.window() as f64 / 0.05 * 2.0
    );
}

/// The time in which a flow of this controller delivers `bytes`, its losses, and the controller.
fn deliver(link: LinkOptions, controller: Controller, bytes: u64) -> (Duration, u64, Controller) {
    let mut world = World::new(link);
    let start = world.now;
    world.add(controller, Duration::ZERO);
    let packets = bytes / 1_200;
    assert!(world.run_until(Duration::from_secs(60), |world| world.flows[0].figures.delivered >= packets));
    (world.now.saturating_since(start), world.flows[0].figures.lost, world.flows[0].controller.clone())
}

fn resumed(algorithm: Algorithm, saved: Option<SavedParameters>) -> Controller {
    Controller::new(algorithm, MTU).with_resume(saved, MTU)
}

/// What one connection has learned helps the next on the same path, and does no harm on one that has become slower.
#[test]
fn a_second_connection_is_faster_on_the_same_path_and_harmless_on_a_slower_one() {
    // 50 Mbit/s and 100 ms hold 625,000 bytes.
    let (path, bytes) = (LinkOptions::new(50, 100, 100), 3_000_000);
    for algorithm in [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Prague] {
        let (cold, _, first) = deliver(path, resumed(algorithm, None), 12_000_000);
        let Some(SavedParametersUpdate::Learned(saved)) = first.saved_parameters() else {
            panic!("{algorithm:?} has learned nothing")
        };
        println!("{algorithm:?}: {saved:?} {cold:?}");
        assert!((500_000..=700_000).contains(&saved.capacity), "{saved:?}");
        assert!(
            saved.rtt >= Duration::from_millis(100) && saved.rtt < Duration::from_millis(110),
            "{saved:?}"
        );

        let (cold, _, _) = deliver(path, resumed(algorithm, None), bytes);
        let (warm, lost, second) = deliver(path, resumed(algorithm, Some(saved)), bytes);
        println!("cold {cold:?}, warm {warm:?}, lost {lost}, {:?}", second.resume_report());
        assert_eq!(second.resume_report().outcome, Outcome::Validated);
        assert!(warm + Duration::from_millis(150) < cold, "{warm:?} instead of {cold:?}");
        assert_eq!(lost, 0);

        // A fifth of the rate, with a queue of one product.
        let slower = LinkOptions::new(10, 100, 100);
        let (cold, lost_cold, _) = deliver(slower, resumed(algorithm, None), bytes);
        let (warm, lost, second) = deliver(slower, resumed(algorithm, Some(saved)), bytes);
        println!(
            "slower: cold {cold:?} lost {lost_cold}, warm {warm:?} lost {lost}, {:?}",
            second.resume_report()
        );
        assert_eq!(second.resume_report().outcome, Outcome::Retreated);
        // No more than what the jump was larger than path and queue together hold, and what slow start loses in any case.
        let jump = second.resume_report().jump;
        assert!(lost * 1_200 <= jump + lost_cold * 1_200, "{lost} packets of a jump of {jump}");
        assert!(warm < cold * 13 / 10, "{warm:?} instead of {cold:?}");
    }
}

/// A window of a hundred packets, of which nothing arrives; then the initial window does, after `rtt`.
fn after_silence(algorithm: Algorithm, rtt: Duration) -> Controller {
    let mut controller = Controller::new(algorithm, MTU);
    let mut now = Instant::ZERO + Duration::from_secs(1);
    let round = |controller: &mut Controller, now: &mut Instant, rtt: Duration| {
        let (window, sent_at) = (controller.window(), *now);
        controller.on_sent(sent_at, window, window);
        *now = *now + rtt;
        let acked = Sender { now: *now, ..Sender::new(None) }.acked(window, sent_at, 0);
        controller.on_ack(*now, &AckedBytes { rtt, ..acked });
        *now = *now + Duration::from_millis(1);
    };
    while controller.window() < 120_000 {
        round(&mut controller, &mut now, RTT);
    }
    let sent_at = now;
    controller.on_sent(sent_at, controller.window(), controller.window());
    now = now + Duration::from_secs(1);
    let before = controller.before_silence(RTT).expect("a window");
    let lost = crate::congestion::tests::sign(sent_at, crate::congestion::CongestionCause::Loss);
    controller.on_congestion(now, &lost);
    controller.on_persistent_congestion();
    controller.on_silence(now, before, MTU);
    assert_eq!(controller.window(), minimum_window(MTU), "RFC 9002 §7.6.2");
    let again = controller.before_silence(RTT);
    assert_eq!(again, Some(before), "what was is not what is meanwhile");
    now = now + Duration::from_millis(1);
    while controller.resume_report().phase == Phase::Reconnaissance {
        assert!(controller.window() <= 4 * initial_window(MTU), "it has not jumped yet");
        round(&mut controller, &mut now, rtt);
    }
    controller
}

/// Deleted, a radio link that was silent for a moment could take seconds to be as fast as before.
#[test]
fn after_silence_half_of_the_window_is_tried_and_slow_start_goes_on() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        let controller = after_silence(algorithm, RTT);
        assert_eq!(controller.resume_report().phase, Phase::Unvalidated, "{algorithm:?}");
        assert!(controller.window() >= 60_000, "{algorithm:?}: {}", controller.window());
        assert_eq!(controller.saved_parameters(), None, "it observes nothing");
    }
}

/// Deleted, the acknowledgement of a probe that left in the silence could take back the jump that the one before it has begun.
#[test]
fn what_left_in_a_silence_says_nothing_of_the_jump() {
    let mut sender = Sender { resume: Resume::for_silence(MTU), ..Sender::new(None) };
    let (oldest, probe) = (sender.now, sender.now + RTT * 9);
    sender.now = oldest + RTT * 10;
    sender.resume.on_silence(sender.now, BeforeSilence { window: 200_000, threshold: u64::MAX, rtt: RTT });
    sender.ack(20_000, probe, MTU.into());
    assert_eq!((sender.phase(), sender.window), (Phase::Unvalidated, 100_000));
    sender.send(14_000);
    assert_eq!(sender.ack(1_200, probe, 14_000).window, None, "no packet of the jump");
    assert_eq!((sender.phase(), sender.window), (Phase::Unvalidated, 100_000));
}

/// A queue says that others send: nothing is tried, and nothing is left of the machine.
#[test]
fn after_silence_a_queue_is_heeded() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Prague] {
        let controller = after_silence(algorithm, RTT * 2);
        assert!(controller.window() < 60_000, "{algorithm:?}: {}", controller.window());
        assert!(controller.ssthresh().is_some(), "{algorithm:?}: slow start would go on");
        assert_eq!(controller.resume_report(), Report::default());
    }
    assert_eq!(Controller::new(Algorithm::Bbr, MTU).before_silence(RTT), None, "its model stays");
}
