use super::*;
use crate::testing::{any_later, any_span};
use base::rng::Rng;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn before_any_sample() {
    let rtt = Rtt::default();
    assert_eq!((rtt.smoothed(), rtt.min(), rtt.latest()), (INITIAL_RTT, Duration::ZERO, Duration::ZERO));
    assert_eq!(rtt.pto(Duration::ZERO), ms(999), "RFC 9002 §6.2.2: about a second");
    assert!(!rtt.is_persistent_congestion(Duration::MAX, Duration::ZERO), "§7.6.2: not before a sample");
}

#[test]
fn samples_by_the_book() {
    let mut rtt = Rtt::default();
    let now = Instant::ZERO;
    rtt.on_sample(now, ms(100), ms(50));
    assert_eq!(
        (rtt.smoothed(), rtt.variation(), rtt.min()),
        (ms(100), ms(50), ms(100)),
        "the first is taken as is"
    );
    rtt.on_sample(now, ms(180), ms(40));
    // 7/8 × 100 + 1/8 × 140; 3/4 × 50 + 1/4 × |100 − 140|, the variation by the old average as in RFC 9002 A.7.
    assert_eq!((rtt.smoothed(), rtt.variation()), (ms(105), Duration::from_micros(47_500)));
    rtt.on_sample(now, ms(105), ms(40));
    assert_eq!(
        rtt.smoothed(),
        ms(105),
        "the delay is not subtracted where less than the minimum would remain"
    );
    assert_eq!((rtt.latest(), rtt.min()), (ms(105), ms(100)));
    assert_eq!(rtt.loss_delay(), Duration::from_micros(118_125));
}

#[test]
fn the_minimum_is_taken_anew_after_persistent_congestion() {
    let mut rtt = Rtt::default();
    rtt.on_sample(Instant::ZERO, ms(10), Duration::ZERO);
    rtt.on_persistent_congestion();
    rtt.on_sample(Instant::ZERO, ms(80), Duration::ZERO);
    assert_eq!(rtt.min(), ms(80));
    rtt.on_sample(Instant::ZERO, ms(90), Duration::ZERO);
    assert_eq!(rtt.min(), ms(80));
}

/// Deleted, a handshake whose acknowledgements were lost for seconds would delay loss detection for dozens of round trips.
#[test]
fn the_first_sample_after_the_handshake_replaces_an_estimate_of_twice_as_much() {
    let (mut late, mut plain) = (Rtt::default(), Rtt::default());
    late.on_sample(Instant::ZERO, ms(12_000), Duration::ZERO);
    plain.on_sample(Instant::ZERO, ms(30), Duration::ZERO);
    let mut unchanged = plain;
    [&mut late, &mut plain].into_iter().for_each(Rtt::on_handshake_confirmed);
    for rtt in [&mut late, &mut plain, &mut unchanged] {
        rtt.on_sample(Instant::ZERO, ms(20), Duration::ZERO);
    }
    assert_eq!((late.smoothed(), late.variation(), late.min()), (ms(20), ms(10), ms(20)));
    assert_eq!((plain.smoothed(), plain.variation()), (unchanged.smoothed(), unchanged.variation()));
    late.on_sample(Instant::ZERO, ms(2), Duration::ZERO);
    assert!(late.smoothed() > ms(17), "only once: {:?}", late.smoothed());
    // The datagram that ended the handshake had the first sample behind that.
    let mut first = Rtt::default();
    first.on_handshake_confirmed();
    [1_019, 20].into_iter().for_each(|sample| first.on_sample(Instant::ZERO, ms(sample), Duration::ZERO));
    assert_eq!((first.smoothed(), first.min()), (ms(20), ms(20)));
}

#[test]
fn spans_have_the_granularity_as_floor() {
    let mut rtt = Rtt::default();
    for _ in 0..100 {
        rtt.on_sample(Instant::ZERO, Duration::from_micros(40), Duration::ZERO);
    }
    assert_eq!(rtt.loss_delay(), GRANULARITY);
    assert_eq!(rtt.pto(ms(25)), GRANULARITY + Duration::from_micros(40) + ms(25));
    assert!(rtt.is_persistent_congestion(ms(79), ms(25)) && !rtt.is_persistent_congestion(ms(78), ms(25)));
}

#[test]
fn ack_delay_on_the_wire() {
    assert_eq!(decode_ack_delay(125, 3), ms(1));
    assert_eq!(encode_ack_delay(ms(1), 3), 125);
    assert_eq!(decode_ack_delay(u64::MAX, 20), Duration::MAX);
    assert_eq!(encode_ack_delay(Duration::MAX, 255), 0);
}

/// What would be lost without it: an estimate outside its own samples, or sums that wrap.
#[test]
fn stays_within_its_samples() {
    for seed in 0..100_000 {
        let mut rng = Rng::from_u64(seed);
        let mut rtt = Rtt::new(any_span(&mut rng));
        let mut now = Instant::ZERO;
        let (mut least, mut most) = (LONGEST, Duration::ZERO);
        for _ in 0..20 {
            now = any_later(&mut rng, now);
            let sample = any_span(&mut rng);
            rtt.on_sample(now, sample, any_span(&mut rng));
            let sample = sample.min(LONGEST).max(Duration::from_nanos(1));
            (least, most) = (least.min(sample), most.max(sample));
            assert_eq!(rtt.min(), least, "seed {seed}");
            assert!(rtt.smoothed() <= most && rtt.variation() <= most, "seed {seed}");
            // Rounding down may lose a nanosecond a sample.
            assert!(rtt.smoothed() + Duration::from_nanos(20) >= least, "seed {seed}");
            assert!(rtt.loss_delay() >= GRANULARITY && rtt.pto(Duration::ZERO) > GRANULARITY, "seed {seed}");
            assert!(rtt.pto(Duration::MAX) == Duration::MAX, "seed {seed}");
        }
    }
}
