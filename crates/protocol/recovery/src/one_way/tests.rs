use super::*;

const MS: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A packet that leaves at `sent` ms and takes `there`, is acknowledged after `held`, on the way back for `back`, all in ms. The
/// peer's clock is `ahead` ms ahead of ours.
fn sample(sent: u64, there: u64, held: u64, back: u64, ahead: u64) -> Sample {
    Sample {
        acked_at: at(sent + there + held + back),
        took: MS * (there + held + back),
        ack_delay: MS * held,
        peer_clock: MS * (sent + there + held + ahead),
    }
}

/// Deleted, a queue towards the peer would look like one on the way back, and the peer's wait like a queue.
#[test]
fn a_queue_is_seen_on_the_way_on_which_it_stands() {
    for ahead in [0, 5, 1_000_000] {
        let mut delays = OneWay::default();
        delays.on_sample(&sample(100, 10, 0, 10, ahead));
        for (there, held, back) in [(10, 0, 10), (50, 0, 10), (10, 25, 10), (10, 0, 70), (30, 20, 40)] {
            delays.on_sample(&sample(200, there, held, back, ahead));
            let seen = OneWayDelays { to_peer: MS * there, from_peer: MS * back };
            assert_eq!(delays.delays(), Some(seen), "{ahead} ms ahead");
        }
    }
}

/// Deleted, a peer whose clock runs fast would seem ever further away.
#[test]
fn clocks_may_drift() {
    let mut delays = OneWay::default();
    let mut see = |second: u64, there: u64| {
        // 6 ms a minute: 100 ppm, which is much for quartz.
        delays.on_sample(&sample(second * 1_000, there, 0, 10, second / 10));
        delays
            .delays()
            .map(|delays| (delays.to_peer.as_millis(), (delays.to_peer + delays.from_peer).as_millis()))
    };
    for second in 0..600 {
        // The path is empty once in 20 s.
        let there = if second % 20 == 0 { 10 } else { 12 };
        let (to_peer, sum) = see(second, there).unwrap_or_default();
        assert!((10..=17).contains(&to_peer), "{second} s: {to_peer} ms");
        assert_eq!(sum, there + 10);
    }
    assert!(see(601, 60).is_some_and(|(to_peer, _)| (58..=66).contains(&to_peer)));
}

/// Deleted, a peer's clock could make arithmetic overflow or a delay longer than the round trip.
#[test]
fn claims_that_cannot_be_are_harmless() {
    let mut delays = OneWay::default();
    let honest = sample(100, 10, 5, 10, 0);
    delays.on_sample(&Sample { ack_delay: MS * 26, ..honest });
    delays.on_sample(&Sample { peer_clock: MS, ..honest });
    assert_eq!(delays.delays(), None);
    for peer_clock in [u64::MAX, 0, u64::MAX / 2, 1_000_000_000] {
        delays
            .on_sample(&Sample { peer_clock: Duration::from_nanos(peer_clock), ..sample(100, 10, 0, 10, 0) });
        let sum = delays.delays().map(|delays| delays.to_peer + delays.from_peer);
        assert_eq!(sum, Some(MS * 20), "{peer_clock}");
    }
}
