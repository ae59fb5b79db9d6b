//! Each controller alone and beside another on a small table of links. Figures are asserted loosely: what would break is
//! the kind of behaviour that each is chosen for.

use super::link::{Figures, LinkOptions, World};
use super::*;

const WARM_UP: Duration = Duration::from_secs(5);
const SPAN: Duration = Duration::from_secs(15);

/// Utilisation, mean queue in ms, loss, after a while.
fn measure(link: LinkOptions, algorithm: Algorithm) -> (f64, f64, f64) {
    measure_for((WARM_UP, SPAN), link, algorithm)
}

fn measure_for(
    (warm_up, span): (Duration, Duration),
    link: LinkOptions,
    algorithm: Algorithm,
) -> (f64, f64, f64) {
    let mut world = World::new(link).with_flow(algorithm);
    world.run(warm_up);
    world.forget();
    world.run(span);
    let figures = world.flows[0].figures;
    let result = (figures.utilisation(&link, span), figures.queue_ms(), figures.loss());
    println!(
        "{:>4} Mbit/s {:>4} ms queue {:>7} loss {:>5} ppm {algorithm:?}: {:5.1} % {:7.2} ms lost {:6.3} %",
        link.bits / 1_000_000,
        link.rtt.as_millis(),
        link.queue,
        link.loss_ppm,
        result.0 * 100.0,
        result.1,
        result.2 * 100.0
    );
    result
}

const ALL: [Algorithm; 4] = [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague];

#[test]
fn a_queue_of_one_product_lets_everyone_fill_the_link() {
    for (megabits, rtt_ms) in [(1, 40), (10, 20), (50, 40), (100, 10)] {
        for algorithm in ALL {
            let (used, _, lost) = measure(LinkOptions::new(megabits, rtt_ms, 100), algorithm);
            assert!(used > 0.85, "{algorithm:?} {megabits} Mbit/s: {used}");
            // At 1 Mbit/s the product is four packets: every packet more is a quarter more.
            let most = if megabits == 1 { 0.06 } else { 0.02 };
            assert!(lost < most, "{algorithm:?} {megabits} Mbit/s: {lost}");
        }
    }
}

#[test]
fn bbr_keeps_a_deep_queue_short() {
    let link = LinkOptions::new(20, 40, 1_000);
    let (used, queue, lost) = measure(link, Algorithm::Bbr);
    assert!(used > 0.9 && queue < 20.0 && lost == 0.0);
    let (_, cubic, _) = measure(link, Algorithm::Cubic);
    assert!(cubic > 3.0 * queue, "CUBIC fills it: {cubic} ms");
}

#[test]
fn bbr_bears_random_loss_that_halves_others() {
    let link = LinkOptions { loss_ppm: 10_000, ..LinkOptions::new(20, 40, 200) };
    let (bbr, ..) = measure(link, Algorithm::Bbr);
    let (reno, ..) = measure(link, Algorithm::NewReno);
    assert!(bbr > 0.8 && bbr > 2.0 * reno, "{bbr} {reno}");
}

#[test]
fn a_shallow_queue_costs_bbr_little() {
    let (used, _, lost) = measure(LinkOptions::new(50, 40, 10), Algorithm::Bbr);
    assert!(used > 0.75 && lost < 0.03, "{used} {lost}");
}

#[test]
fn prague_keeps_a_marking_queue_at_its_threshold() {
    for (megabits, rtt_ms) in [(20, 10), (50, 30), (100, 20)] {
        let mark_above = Some(Duration::from_millis(1));
        let link = LinkOptions { mark_above, ..LinkOptions::new(megabits, rtt_ms, 200) };
        let (used, queue, lost) = measure(link, Algorithm::Prague);
        assert!(used > 0.8 && queue < 2.0 && lost == 0.0, "{used} {queue} {lost}");
    }
}

/// A receiver that acknowledges rarely looks like a path that delivers in bursts.
#[test]
fn rare_acknowledgements_starve_nobody() {
    for ack_every in [10, 40] {
        for (megabits, rtt_ms) in [(5, 20), (50, 20), (50, 100)] {
            let link = LinkOptions { ack_every, ..LinkOptions::new(megabits, rtt_ms, 100) };
            for algorithm in ALL {
                let spans = (Duration::from_secs(4), Duration::from_secs(6));
                let (used, ..) = measure_for(spans, link, algorithm);
                assert!(used > 0.7, "{algorithm:?} every {ack_every}: {used}");
            }
        }
    }
}

/// Round trips too short to be paced: the window alone must do.
#[test]
fn a_local_network_is_filled() {
    for micros in [50, 500] {
        let rtt = Duration::from_micros(micros);
        let link = LinkOptions { rtt, queue: 300_000, ack_every: 10, ..LinkOptions::new(1_000, 1, 100) };
        for algorithm in ALL {
            let spans = (Duration::from_secs(1), Duration::from_secs(1));
            let (used, ..) = measure_for(spans, link, algorithm);
            assert!(used > 0.9, "{algorithm:?} {micros}: {used}");
        }
    }
}

/// A queue that marks from 5 ms on and would drop from 80 ms on: who answers marks never loses. NewReno halves its window
/// for each and pays with the link.
#[test]
fn everyone_answers_marks() {
    let mark_above = Some(Duration::from_millis(5));
    let link = LinkOptions { mark_above, ..LinkOptions::new(20, 40, 200) };
    for algorithm in ALL {
        let mut world = World::new(link).with_flow(algorithm);
        world.flows[0].is_markable = true;
        world.run(WARM_UP);
        world.forget();
        world.run(SPAN);
        let figures = world.flows[0].figures;
        let (used, queue) = (figures.utilisation(&link, SPAN), figures.queue_ms());
        println!("{algorithm:?} {:.1} % {queue:.2} ms, {} marked", used * 100.0, figures.marked);
        assert!(
            used > 0.6 && queue < 8.0 && figures.lost == 0,
            "{algorithm:?} {used} {queue} {}",
            figures.lost
        );
    }
}

/// Shares of the link of two flows.
fn share(link: LinkOptions, first: Algorithm, second: Algorithm) -> (f64, f64) {
    let mut world = World::new(link).with_flow(first);
    world.add(Controller::new(second, link::PACKET), Duration::from_secs(2));
    world.run(Duration::from_secs(20));
    world.forget();
    let span = Duration::from_secs(40);
    world.run(span);
    let of = |figures: &Figures| figures.utilisation(&link, span);
    let shares = (of(&world.flows[0].figures), of(&world.flows[1].figures));
    println!("{first:?} {:.1} % {second:?} {:.1} %", shares.0 * 100.0, shares.1 * 100.0);
    shares
}

#[test]
fn two_flows_of_a_kind_share() {
    for algorithm in ALL {
        let mark_above = (algorithm == Algorithm::Prague).then_some(Duration::from_millis(1));
        let link = LinkOptions { mark_above, ..LinkOptions::new(20, 20, 150) };
        let (first, second) = share(link, algorithm, algorithm);
        let ratio = first.max(second) / first.min(second);
        assert!(first + second > 0.8 && ratio < 3.0, "{algorithm:?}: {first} {second}");
    }
}

#[test]
fn bbr_and_cubic_leave_each_other_something() {
    let (bbr, cubic) = share(LinkOptions::new(20, 40, 200), Algorithm::Bbr, Algorithm::Cubic);
    assert!(bbr > 0.1 && cubic > 0.1, "{bbr} {cubic}");
}

/// Packets lost by the first slow start of CUBIC on a long path, and whether it ended before the first of them.
fn first_slow_start(queue: u64, end: SlowStartEnd) -> (u64, bool) {
    let mut world = World::new(LinkOptions::new(100, 60, queue));
    world.add(
        Controller::new(Algorithm::Cubic, link::PACKET)
            .with_slow_start(SlowStart { end, ..SlowStart::default() }),
        Duration::ZERO,
    );
    world.run_until(Duration::from_secs(15), |world| !world.flows[0].controller.is_in_slow_start());
    let was_early = world.flows[0].figures.lost == 0;
    world.run(world.flows[0].rtt.smoothed());
    (world.flows[0].figures.lost, was_early)
}

#[test]
fn hystart_leaves_slow_start_before_packets_are_lost() {
    // The queue must hold what is sent until its growth is seen, two and a half products in all, and what five rounds of conservative
    // slow start add to that: 1.25 to the fifth. Shallower ones are spared most of the overshoot.
    for (queue, is_spared) in [(300, false), (600, false), (1_500, true)] {
        let (with, was_early) = first_slow_start(queue, SlowStartEnd::HyStart);
        let (without, _) = first_slow_start(queue, SlowStartEnd::Standard);
        println!("queue of {queue} %: lost with HyStart++ {with}, without {without}");
        assert!(without > 1_000 && with < without / 3, "{queue} %: {with} {without}");
        assert!(!is_spared || (was_early && with == 0), "{queue} %: {with}");
    }
}
