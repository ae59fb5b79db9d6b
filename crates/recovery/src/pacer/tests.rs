use super::*;
use crate::testing::{any_later, any_magnitude, any_span};
use base::rng::Rng;

const MTU: u16 = 1452;

fn per_second(bytes: u64) -> Rate {
    Rate::new(bytes, Duration::from_secs(1), 1.0)
}

/// Sends all it may for a second, woken when the pacer says, but `late` after that. Returns bytes and trains.
fn saturate(rate: Rate, late: Duration) -> (u64, u64) {
    let mut now = Instant::ZERO + Duration::from_secs(5);
    let mut pacer = Pacer::new(now, MTU);
    pacer.set_rate(rate, MTU);
    let end = now + Duration::from_secs(1);
    let (mut sent, mut trains) = (0, 0);
    while now < end {
        let packets = pacer.allowance(now) / u64::from(MTU);
        if packets > 0 {
            trains += 1;
            sent += packets * u64::from(MTU);
            pacer.on_sent(now, packets * u64::from(MTU));
        } else {
            let release = pacer.next_release().expect("nothing may leave, so something is waited for");
            assert!(release > now, "waits for what is due");
            now = release + late;
        }
    }
    (sent, trains)
}

#[test]
fn keeps_the_rate_in_trains_even_when_woken_late() {
    // 1 Mbit/s to 80 Gbit/s. Lateness of a tenth of a millisecond is what a timer has.
    for rate in [125_000, 1_250_000, 12_500_000, 125_000_000, 1_250_000_000, 10_000_000_000] {
        for late in [0, 10, 100, 500] {
            let (sent, trains) = saturate(per_second(rate), Duration::from_micros(late));
            let burst = 14_520 + rate / 500 + LARGEST_TRAIN;
            assert!(sent <= rate + burst, "{rate} B/s, late {late} µs: {sent}");
            assert!(sent >= rate * 97 / 100, "{rate} B/s, late {late} µs: {sent}");
            let train = (rate / 1_000).clamp(u64::from(MTU), LARGEST_TRAIN);
            assert!(trains <= rate / train * 11 / 10 + 20, "{rate} B/s: {trains} trains");
        }
    }
}

#[test]
fn ten_packets_leave_at_once_then_a_train_a_millisecond() {
    let now = Instant::ZERO;
    let mut pacer = Pacer::new(now, MTU);
    pacer.set_rate(per_second(10_000_000), MTU); // 10,000 bytes a millisecond
    assert_eq!(pacer.allowance(now) / u64::from(MTU), 16, "ten packets, and a millisecond's worth");
    pacer.on_sent(now, 16 * u64::from(MTU));
    assert_eq!(pacer.allowance(now), 0);
    let next = pacer.next_release().unwrap();
    assert!(next <= now + Duration::from_millis(1));
    assert_eq!(pacer.allowance(next - Duration::from_micros(10)), 0, "not before a whole train is there");
    assert_eq!(pacer.allowance(next) / u64::from(MTU), 6);
    assert_eq!(pacer.next_release(), None);
}

#[test]
fn probes_leave_unasked_and_are_paid_for_later() {
    let mut pacer = Pacer::new(Instant::ZERO, MTU);
    pacer.set_rate(per_second(1_000_000), MTU);
    pacer.on_sent(Instant::ZERO, 1_000_000);
    assert_eq!(pacer.allowance(Instant::ZERO), 0);
    let debt = pacer.next_release().unwrap().saturating_since(Instant::ZERO);
    assert!(debt < Duration::from_millis(30), "a debt has a bottom: {debt:?}");
}

#[test]
fn without_a_limit_nothing_waits() {
    let mut pacer = Pacer::new(Instant::ZERO, MTU);
    pacer.on_sent(Instant::ZERO, u64::MAX);
    assert_eq!((pacer.allowance(Instant::ZERO), pacer.next_release()), (u64::MAX, None));
}

/// What would be lost without it: a sender that waits for ever, or bursts without bound, on some clock or rate.
#[test]
fn never_stalls_and_never_floods() {
    for seed in 0..100_000 {
        let mut rng = Rng::from_u64(seed);
        let mut now = any_later(&mut rng, Instant::ZERO);
        let mut mtu = MTU;
        let mut pacer = Pacer::new(now, mtu);
        for _ in 0..20 {
            now = any_later(&mut rng, now);
            match rng.below(4) {
                0 => {
                    mtu = 1200 + rng.below(64_000) as u16;
                    let gain = [1.25, 2.0, f64::NAN, f64::INFINITY, 0.0, -1.0][rng.below(6) as usize];
                    pacer.set_rate(Rate::new(any_magnitude(&mut rng), any_span(&mut rng), gain), mtu);
                }
                1 => pacer.on_sent(now, any_magnitude(&mut rng)),
                _ => {
                    let allowed = pacer.allowance(now);
                    assert!(allowed == 0 || allowed >= u64::from(mtu), "seed {seed}: {allowed}");
                    let most = u64::from(mtu) * 10 + LARGEST_TRAIN + 100_000_000; // and a millisecond at 800 Gbit/s
                    assert!(allowed <= most || pacer.rate.is_unlimited(), "seed {seed}: {allowed}");
                }
            }
            if let Some(release) = pacer.next_release().filter(|release| *release < Instant::FAR_FUTURE) {
                let mut later = pacer;
                assert!(later.allowance(release.max(now)) > 0, "seed {seed}");
            }
            assert!(
                pacer.tokens.is_finite() && pacer.depth.is_finite() && pacer.train <= pacer.depth,
                "seed {seed}"
            );
        }
    }
}
