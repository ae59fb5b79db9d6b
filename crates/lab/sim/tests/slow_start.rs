//! How the first slow start ends, with HyStart++ and without it.

#![expect(clippy::panic, reason = "a helper of a test may panic as the test itself may")]

use base::time::Duration;
use recovery::congestion::{Algorithm, InitialWindow, SlowStart, SlowStartEnd};
use sim::Node;
use sim::contest::{LinkProfile, Startup, startup};

/// With HyStart++ and without it.
fn both(link_profile: LinkProfile, on_return: &[Node]) -> [Startup; 2] {
    let of = |end| {
        let slow_start = SlowStart { end, ..SlowStart::default() };
        startup(link_profile, Algorithm::Cubic, slow_start, on_return)
    };
    [SlowStartEnd::HyStart, SlowStartEnd::Standard]
        .map(|kind| of(kind).unwrap_or_else(|problem| panic!("{problem}")))
}

/// The longest wait, packets lost, round trips until the link is full, share of the link in thirty round trips.
fn cell(startup: &Startup) -> String {
    let full = startup.full_after.map_or("never".to_owned(), |rounds| format!("{rounds:.1}"));
    format!("{:.2}; {}; {full}; {:.0} %", startup.peak, startup.lost, startup.used * 100.0)
}

/// Acknowledgements that come up to this many milliseconds late, each for itself.
fn jitter(by_ms: u64) -> [Node; 1] {
    [Node::Reorder { ppm: 1_000_000, by: Duration::from_millis(by_ms) }]
}

/// A sender that notices the queue only a round after it begins to fill loses at a queue of one product what one without
/// HyStart++ loses: 22 to 88 % of it before the latest samples were looked at, 6 to 31 % since.
#[test]
fn a_queue_of_a_product_is_seen_before_it_is_overrun() {
    for (megabits, rtt_ms, most) in [(10, 100, 0.4), (100, 20, 0.3), (100, 100, 0.3), (1_000, 20, 0.4)] {
        let [with, without] = both(LinkProfile::new(megabits, rtt_ms, 1.0), &[]);
        println!("{megabits} Mbit/s, {rtt_ms} ms: {} | {}", cell(&with), cell(&without));
        assert!((with.lost as f64) < without.lost as f64 * most, "{} {}", with.lost, without.lost);
        assert!(with.full_after <= without.full_after, "and the link is full as soon");
        assert!(with.used > without.used - 0.06, "{} {}", with.used, without.used);
    }
}

#[test]
fn a_deep_queue_is_spared_most_of_the_overshoot() {
    for (megabits, rtt_ms) in [(10, 20), (100, 20), (100, 100)] {
        let [with, without] = both(LinkProfile::new(megabits, rtt_ms, 4.0), &[]);
        println!("{megabits} Mbit/s, {rtt_ms} ms: {} | {}", cell(&with), cell(&without));
        assert!(with.lost * 4 < without.lost, "{} {}", with.lost, without.lost);
    }
}

/// Or else a wireless path would leave slow start with a part of its bandwidth.
#[test]
fn jitter_of_half_a_round_trip_delays_nothing() {
    for by_ms in [5, 20] {
        let [with, without] = both(LinkProfile::new(100, 40, 1.0), &jitter(by_ms));
        println!("jitter of {by_ms} ms: {} | {}", cell(&with), cell(&without));
        let late = with.full_after.unwrap_or(f64::INFINITY) - without.full_after.unwrap_or(0.0);
        assert!(late <= 1.0, "{late} round trips later");
        assert!(with.used > without.used - 0.05, "{} {}", with.used, without.used);
    }
}

/// The whole table: `cargo test --release -p tercel-sim --test slow_start -- --ignored --nocapture`.
#[test]
#[ignore = "ten seconds of computing; the ordinary run has a few rows"]
fn all_rows() {
    let row = |name: String, [with, without]: [Startup; 2]| {
        println!("| {name} | {} | {} |", cell(&with), cell(&without));
    };
    for megabits in [10, 100, 1_000] {
        for rtt_ms in [20, 100] {
            for queue in [0.25, 0.5, 1.0, 2.0, 4.0] {
                let name = format!("{megabits} Mbit/s, {rtt_ms} ms, queue {queue}");
                row(name, both(LinkProfile::new(megabits, rtt_ms, queue), &[]));
            }
        }
    }
    for megabits in [10, 100, 1_000] {
        for by_ms in [0, 2, 5, 10, 20, 40] {
            let name = format!("{megabits} Mbit/s, 40 ms, queue 1, jitter {by_ms} ms");
            row(name, both(LinkProfile::new(megabits, 40, 1.0), &jitter(by_ms)));
        }
    }
}

/// Deleted, the setting could change nothing: log2(32/10) are 1.7 round trips of a path that carries it. Nor could the default, or it could
/// change short paths.
#[test]
fn a_larger_initial_window_fills_a_long_path_sooner() {
    let full_after = |rtt_ms, algorithm, begin| {
        let slow_start = SlowStart { begin, ..SlowStart::default() };
        let startup = startup(LinkProfile::new(100, rtt_ms, 1.0), algorithm, slow_start, &[]);
        let startup = startup.unwrap_or_else(|problem| panic!("{problem}"));
        println!("{rtt_ms} ms, {algorithm:?}, {begin:?}: {}", cell(&startup));
        startup.full_after.unwrap_or(f64::INFINITY)
    };
    let [ten, many] =
        [10, 32].map(|packets| InitialWindow::of_packets(packets).unwrap_or_else(|| panic!("{packets}")));
    for algorithm in [Algorithm::Cubic, Algorithm::Auto, Algorithm::Bbr] {
        let least = full_after(100, algorithm, ten);
        for begin in [many, InitialWindow::BY_RTT] {
            let saved = least - full_after(100, algorithm, begin);
            assert!((1.0..2.5).contains(&saved), "{algorithm:?}, {begin:?}: {saved}");
        }
        let short = [ten, InitialWindow::BY_RTT].map(|begin| full_after(10, algorithm, begin));
        assert_eq!(short[0].to_bits(), short[1].to_bits(), "{algorithm:?}: {short:?}");
    }
}
