//! How long small responses take beside a bulk download of the same connection (docs/networks/reading.md).

#![expect(clippy::panic, reason = "a helper of a test may panic as the test itself may")]

use base::time::Duration;
use recovery::congestion::Algorithm::{self, Auto, Bbr, Cubic};
use sim::networks::{Beside, NetworkProfile, beside_bulk};

/// The median and one in a hundred over three seeds, of 100 responses each.
fn latency(profile: &NetworkProfile, beside: Beside, algorithm: Algorithm) -> [Duration; 2] {
    let of_seed = |seed| {
        beside_bulk(profile, beside, algorithm, seed)
            .unwrap_or_else(|problem| panic!("seed {seed}: {problem}"))
    };
    let mut times: Vec<Duration> = (1..=3).flat_map(of_seed).collect();
    times.sort();
    [50, 99].map(|percent| times[times.len() * percent / 100])
}

/// Deleted, a small response could wait for all of a large one that was asked for before.
#[test]
fn a_small_response_waits_no_longer_than_a_round_trip_for_bulk() {
    // The queue of the link itself is short, so that what waits waits in the sender.
    let link = NetworkProfile::new(10, 40).with_queue(0.5);
    for algorithm in [Auto, Cubic, Bbr] {
        let [_, alone] = latency(&link, Beside::Nothing, algorithm);
        let [half, late] = latency(&link, Beside::Bulk(20_000_000), algorithm);
        println!("{algorithm:?}: alone {alone:?}, beside bulk {half:?} and {late:?}");
        let (round_trip, queue) = (Duration::from_millis(40), Duration::from_millis(20));
        assert!(half < alone + round_trip + queue, "{algorithm:?}: {half:?} instead of {alone:?}");
    }
}
