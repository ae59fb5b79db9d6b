//! What the draft states of each state, on the link model of the congestion tests, and the arithmetic of its parts.

use super::bounds::{inflight_at_loss, is_too_high};
use super::filters::{MaxBandwidth, MaxByRound, MinRtt, Rounds};
use super::startup::DRAIN_ROUNDS;
use super::*;
use crate::congestion::delivery::{Limit, RateSample};
use crate::congestion::events::{CongestionCause, CongestionEvent};
use crate::congestion::tests::acked;
use crate::congestion::tests::link::{LinkOptions, PACKET, World};
use crate::congestion::{Algorithm, Kind};
use base::time::Duration;

fn bbr(world: &World) -> &Bbr {
    let Kind::Bbr(bbr) = &world.flows[0].controller.kind else { unreachable!() };
    bbr
}

fn world(link: LinkOptions) -> World {
    World::new(link).with_flow(Algorithm::Bbr)
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Until the flow is in that state.
fn reach(world: &mut World, state: State, within: Duration) {
    let reached = world.run_until(within, |world| bbr(world).state == state);
    assert!(reached, "{state:?} not reached but {:?}", bbr(world).state);
}
const LINK: fn() -> LinkOptions = || LinkOptions::new(20, 40, 400);

#[test]
fn startup_doubles_each_round() {
    let mut world = world(LinkOptions::new(1_000, 50, 400));
    let mut rates = Vec::new();
    for round in 2..8 {
        assert!(world.run_until(seconds(2), |world| bbr(world).model.round == round));
        rates.push(bbr(&world).pacing as f64);
    }
    for pair in rates.windows(2).skip(2) {
        assert!((1.7..2.3).contains(&(pair[1] / pair[0])), "{rates:?}");
    }
}

#[test]
fn startup_ends_on_a_plateau_and_knows_the_bandwidth() {
    let mut world = world(LINK());
    reach(&mut world, State::Drain, seconds(3));
    let measured = bbr(&world).model.max_bandwidth() as f64 / 2_500_000.0;
    assert!((0.98..1.02).contains(&measured), "{measured}");
    assert!(bbr(&world).full_pipe.is_ever_full() && bbr(&world).undo_left().is_none());
    reach(&mut world, State::Cruise, seconds(1));
    assert!(world.queue() < Duration::from_millis(10), "drained: {:?}", world.queue());
}

#[test]
fn startup_ends_on_loss_though_the_application_is_the_limit() {
    let link = LinkOptions { loss_ppm: 200_000, ..LINK() };
    let mut world = world(link);
    world.flows[0].data = Some(0);
    for _ in 0..400 {
        world.give(0, 40 * u64::from(PACKET));
        world.run(Duration::from_millis(50));
        if bbr(&world).full_pipe.is_ever_full() {
            break;
        }
    }
    assert!(bbr(&world).full_pipe.is_ever_full() && bbr(&world).state != State::Startup);
}

#[test]
fn startup_goes_on_while_the_application_is_the_limit() {
    let mut world = world(LINK());
    world.flows[0].data = Some(0);
    for _ in 0..100 {
        world.give(0, 3 * u64::from(PACKET));
        world.run(Duration::from_millis(50));
    }
    assert_eq!(bbr(&world).state, State::Startup);
}

/// Deleted, an outage in Startup would end it: a download of 10 MB with one of a second took 4 s, and takes 2.1.
#[test]
fn rounds_before_an_outage_do_not_end_startup_after_it() {
    let mut world = world(LINK());
    assert!(world.run_until(seconds(3), |world| bbr(world).full_pipe.rounds == 2));
    let Kind::Bbr(bbr) = &mut world.flows[0].controller.kind else { unreachable!() };
    bbr.on_persistent_congestion();
    assert_eq!((bbr.full_pipe.rounds, bbr.full_pipe.baseline), (0, 0));
    bbr.full_pipe.is_ever_full = true;
    bbr.on_persistent_congestion();
    assert!(bbr.full_pipe.is_ever_full(), "what ended Startup before stays");
}

#[test]
fn the_cycle_goes_round() {
    let mut world = world(LINK());
    // Drain ends with an empty queue, so that the first phase is over as it begins.
    let states = [State::Drain, State::Cruise, State::Refill, State::Up, State::Down, State::Cruise];
    for state in states {
        reach(&mut world, state, seconds(8));
        let (pacing, bandwidth) = (bbr(&world).pacing, bbr(&world).model.bandwidth());
        let expected = bandwidth as f64 * state.pacing_gain() as f64 / 100.0 * 0.99;
        assert!((pacing as f64 / expected - 1.0).abs() < 0.01, "{state:?}");
    }
}

#[test]
fn probe_rtt_comes_after_five_seconds_with_half_a_product_and_lasts_200_ms() {
    // A queue that never empties, because another flow fills it, hides the round trip.
    let mut world = world(LinkOptions::new(20, 40, 100));
    reach(&mut world, State::Cruise, seconds(3));
    world.link.rtt = Duration::from_millis(45);
    let start = world.now;
    reach(&mut world, State::ProbeRtt, seconds(8));
    assert!(world.now.saturating_since(start) > seconds(3));
    let entered = world.now;
    world.run(Duration::from_millis(150));
    assert_eq!(bbr(&world).state, State::ProbeRtt);
    let product = bbr(&world).bdp(bbr(&world).model.bandwidth(), 100);
    assert!(bbr(&world).window() <= product / 2, "{} of {product}", bbr(&world).window());
    reach(&mut world, State::Cruise, seconds(1));
    let lasted = world.now.saturating_since(entered);
    assert!((200..500).contains(&lasted.as_millis()), "{lasted:?}");
    assert!(bbr(&world).window() > product, "the window is back");
}

#[test]
fn an_idle_flow_needs_no_probe_rtt_and_restarts_at_the_bandwidth() {
    let mut world = world(LINK());
    world.flows[0].data = Some(0);
    world.give(0, 5_000_000);
    world.run(seconds(4));
    assert_ne!(bbr(&world).state, State::Startup);
    let bandwidth = bbr(&world).model.bandwidth();
    world.run(seconds(9));
    world.give(0, 10 * u64::from(PACKET));
    assert!(bbr(&world).is_restarting);
    assert_eq!(bbr(&world).pacing, bandwidth * 99 / 100);
    world.run(Duration::from_millis(200));
    assert!(bbr(&world).state.is_probe_bw(), "{:?}", bbr(&world).state);
}

#[test]
fn probe_rtt_in_startup_returns_to_startup() {
    let mut world = world(LINK());
    world.flows[0].data = Some(0);
    // The application trickles, and the path grows longer: nothing as short as the first round trip comes any more.
    for tick in 0..140 {
        world.give(0, 3 * u64::from(PACKET));
        world.run(Duration::from_millis(50));
        if tick == 20 {
            world.link.rtt = Duration::from_millis(60);
        }
        if bbr(&world).state == State::ProbeRtt {
            break;
        }
    }
    assert_eq!(bbr(&world).state, State::ProbeRtt);
    for _ in 0..10 {
        world.give(0, 3 * u64::from(PACKET));
        world.run(Duration::from_millis(50));
    }
    assert_eq!(bbr(&world).state, State::Startup);
}

#[test]
fn drain_and_down_end_by_time_where_the_queue_does_not_drain() {
    let mut world = world(LINK());
    reach(&mut world, State::Drain, seconds(3));
    let (mut bbr, now) = (bbr(&world).clone(), world.now);
    let in_flight = 2 * bbr.inflight(bbr.model.max_bandwidth(), 100);
    for _ in 0..DRAIN_ROUNDS {
        bbr.model.round += 1;
        bbr.check_drain_done(now, in_flight);
        assert_eq!(bbr.state, State::Drain);
    }
    bbr.model.round += 1;
    bbr.check_drain_done(now, in_flight);
    assert_eq!(bbr.state, State::Down);
    let sample = RateSample {
        newly_acked: 1_200,
        rate: 0,
        delivered: 1_200,
        prior_delivered: 0,
        tx_in_flight: in_flight,
        lost: 0,
        rtt: Duration::from_millis(80),
        limit: Limit::Path,
    };
    bbr.model.is_round_start = false;
    bbr.update_cycle(now + seconds(2), &sample, in_flight);
    assert_eq!(bbr.state, State::Down);
    bbr.update_cycle(now + seconds(3), &sample, in_flight);
    assert_eq!(bbr.state, State::Refill, "straight on, without a cruise");
}

#[test]
fn a_refill_without_data_does_not_lower_the_bandwidth() {
    let mut world = world(LINK());
    reach(&mut world, State::Refill, seconds(12));
    let before = bbr(&world).model.max_bandwidth();
    world.flows[0].data = Some(0);
    for _ in 0..40 {
        world.give(0, 2 * u64::from(PACKET));
        world.run(Duration::from_millis(50));
    }
    assert_eq!(bbr(&world).model.max_bandwidth(), before);
    // With data again the cycle goes on.
    world.give(0, 50_000_000);
    reach(&mut world, State::Down, seconds(4));
    reach(&mut world, State::Cruise, seconds(4));
    let after = bbr(&world).model.max_bandwidth() as f64;
    assert!((after / before as f64 - 1.0).abs() < 0.05, "{before} {after}");
}

#[test]
fn a_probe_that_loses_too_much_sets_the_long_term_bound() {
    // A tenth of the product waits at most: 1.25 times the rate overflows it.
    let mut world = world(LinkOptions::new(50, 40, 10));
    let bounded = world.run_until(seconds(20), |world| bbr(world).bounds.inflight_long() != INFINITE);
    assert!(bounded);
    world.run(seconds(10));
    let (bound, product) = (bbr(&world).bounds.inflight_long() as f64, 250_000.0);
    assert!((0.6..1.6).contains(&(bound / product)), "{bound}");
    // And cruising leaves room below it.
    reach(&mut world, State::Cruise, seconds(10));
    world.run(Duration::from_millis(100));
    if bbr(&world).state == State::Cruise {
        let headroom = bbr(&world).inflight_with_headroom();
        assert!(bbr(&world).window() <= headroom && headroom < bbr(&world).bounds.inflight_long());
    }
}

#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut world = world(LinkOptions::new(10, 40, 200));
    reach(&mut world, State::Cruise, seconds(3));
    world.link.bits *= 10;
    world.link.queue *= 10;
    let found = world.run_until(seconds(25), |world| bbr(world).model.max_bandwidth() > 11_000_000);
    assert!(found, "{}", bbr(&world).model.max_bandwidth());
}

#[test]
fn a_tenth_of_the_bandwidth_is_adapted_to() {
    let mut world = world(LinkOptions::new(100, 40, 100));
    reach(&mut world, State::Cruise, seconds(3));
    world.link.bits /= 10;
    world.link.queue /= 10;
    let adapted = world.run_until(seconds(5), |world| bbr(world).model.bandwidth() < 3_000_000);
    assert!(adapted, "the short-term bound: {}", bbr(&world).model.bandwidth());
    let adapted = world.run_until(seconds(25), |world| bbr(world).model.max_bandwidth() < 1_500_000);
    assert!(adapted, "two cycles later: {}", bbr(&world).model.max_bandwidth());
}

#[test]
fn less_than_a_packet_in_the_pipe_still_keeps_four_in_flight() {
    let mut link = LinkOptions::new(1, 1, 100);
    (link.bits, link.queue) = (64_000, 40_000);
    let mut world = world(link);
    world.run(seconds(30));
    assert!(bbr(&world).window() >= 4 * u64::from(PACKET));
    world.forget();
    world.run(seconds(30));
    let used = world.flows[0].figures.utilisation(&link, seconds(30));
    assert!(used > 0.8, "{used}");
}

#[test]
fn spurious_losses_are_taken_back() {
    let mut world = world(LINK());
    reach(&mut world, State::Cruise, seconds(3));
    let mut bbr = bbr(&world).clone();
    let now = world.now;
    let before = (bbr.window, bbr.bounds.inflight_short(), bbr.bounds.bandwidth_short());
    let sent_at = now - Duration::from_millis(40);
    let sign = super::super::CongestionEvent {
        cause: super::super::CongestionCause::Loss,
        sent_at,
        earliest_sent_at: sent_at,
        packets: 3,
        bytes: 3_600,
        ranges: 1,
    };
    bbr.on_congestion(now, &sign);
    bbr.on_persistent_congestion();
    assert!(bbr.window < before.0);
    bbr.on_spurious(2);
    assert!(bbr.window < before.0, "one of the three is still lost");
    bbr.on_spurious(1);
    assert_eq!((bbr.window, bbr.bounds.inflight_short(), bbr.bounds.bandwidth_short()), before);
    assert!(bbr.recovery_start.is_none());
}

#[test]
fn two_percent_is_the_threshold() {
    assert!(
        !is_too_high(2, 100, 0) && is_too_high(3, 100, 0) && is_too_high(1, 0, 9) && !is_too_high(0, 0, 0)
    );
    assert!(!is_too_high(12, 100, 10) && is_too_high(13, 100, 10));
    // 100 in flight, the last 10 lost: of the first 90, so many more might be lost that it is 2 % of all.
    assert_eq!(inflight_at_loss(10_000, (1_000, 1_000), 0), 9_000 + 183);
    // Lost before already: nothing of the last is bearable.
    assert_eq!(inflight_at_loss(10_000, (2_000, 1_000), 0), 9_000);
    assert_eq!(inflight_at_loss(0, (u64::MAX, u64::MAX), u64::MAX / 4), 0);
}

/// BBR in the place of a controller that has filled a queue, or met losses, on a path that is known to lose by chance, or not.
fn taken_over([is_full, is_chance]: [bool; 2]) -> Bbr {
    let left = TakeOver {
        window: 40 * 1_200,
        rate: 1_000_000,
        min_rtt: Duration::from_millis(40),
        is_full,
        is_chance,
    };
    Bbr::take_over(Instant::ZERO, 1_200, left)
}

/// Deleted, one loss would end a small flow's probe where chance is known, and a large flow's probe would go on.
#[test]
fn where_chance_is_known_a_deviation_more_is_borne() {
    for is_chance in [false, true] {
        let bbr = taken_over([false, is_chance]);
        let datagram = bbr.datagram();
        let is_too_high =
            |lost, in_flight| bbr.random_loss.is_too_high(lost * datagram, in_flight * datagram, datagram);
        assert_eq!(is_too_high(1, 40), !is_chance);
        assert!(is_too_high(2, 40) && !is_too_high(0, 0));
        // 200 of 10,000, whose deviation is 14.
        assert_eq!(is_too_high(214, 10_000), !is_chance);
        assert!(is_too_high(215, 10_000));
    }
}

/// Deleted, a flow that has filled a deep queue would bear what it loses there; or one that chance has taken to BBR would answer each run.
#[test]
fn a_flow_that_has_chosen_bbr_by_losses_bears_runs() {
    for is_full in [false, true] {
        let mut bbr = taken_over([is_full, false]);
        let uncovered = bbr.random_loss.budget.cover(1_000, 1_000_000, 1_200);
        assert_eq!(uncovered, if is_full { 1_000 } else { 0 });
        // Two in three wait, as no queue makes them.
        for frame in 0..40 {
            let rtt = Duration::from_millis(40 + frame % 3 * 9);
            let frame = AckedBytes { latest_rtt: Some(rtt), rtt, ..acked(1_200, Instant::ZERO) };
            bbr.random_loss.jitter.on_sample(&frame, Duration::from_millis(40));
        }
        bbr.on_congestion(
            Instant::ZERO,
            &CongestionEvent {
                cause: CongestionCause::Loss,
                sent_at: Instant::ZERO,
                earliest_sent_at: Instant::ZERO,
                packets: 8,
                bytes: 9_600,
                ranges: 1,
            },
        );
        assert_eq!(bbr.bounds.is_loss_in_round, is_full, "answered or not");
    }
}

#[test]
fn filters_forget() {
    let mut bandwidth = MaxBandwidth::new();
    bandwidth.update(9);
    bandwidth.advance();
    bandwidth.update(4);
    assert_eq!(bandwidth.value(), 9);
    bandwidth.advance();
    assert_eq!(bandwidth.value(), 4);
    bandwidth.advance();
    bandwidth.advance();
    assert_eq!(bandwidth.value(), 4, "a cycle without a sample pushes nothing out");
    let mut volume = MaxByRound::new();
    volume.update(3, 50);
    volume.update(4, 20);
    assert_eq!((volume.value(4, Rounds::Ten), volume.value(4, Rounds::One)), (50, 20));
    assert_eq!((volume.value(13, Rounds::Ten), volume.value(14, Rounds::Ten)), (20, 0));
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut rtt = MinRtt::new();
    rtt.on_sample(at(0), Duration::from_millis(10));
    rtt.on_sample(at(4_000), Duration::from_millis(12));
    assert!(!rtt.is_expired());
    rtt.on_sample(at(5_001), Duration::from_millis(12));
    assert!(rtt.is_expired() && rtt.value() == Some(Duration::from_millis(10)));
    rtt.on_sample(at(10_001), Duration::from_millis(13));
    assert_eq!(rtt.value(), Some(Duration::from_millis(12)));
}
