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

/// A pacer of this rate that has spent its first burst, and when its next train leaves.
fn saving(savings: Savings, rate: u64) -> (Pacer, Instant) {
    let mut pacer = Pacer::new(Instant::ZERO, MTU);
    pacer.set_savings(savings);
    pacer.set_rate(per_second(rate), MTU);
    let burst = pacer.allowance(Instant::ZERO);
    pacer.on_sent(Instant::ZERO, burst);
    assert_eq!(pacer.allowance(Instant::ZERO), 0);
    let next = pacer.next_release().unwrap();
    (pacer, next)
}

/// The wait in a queue that takes trains of any length.
const STANDS: Duration = Duration::from_millis(40);

/// Deleted, a slow flow could wake both ends for each packet; or the end of an answer, and what is sent again, wait for bytes that are not there.
#[test]
fn a_long_train_is_no_longer_than_what_waits() {
    let ample = 1_000_000;
    let cases = [
        (1_250_000, ample, 4),
        (125_000, ample, 1),
        (3_630_000, ample, 10),
        (12_500_000, ample, 21),
        (25_000_000, ample, 32),
        (120_000_000, ample, 44),
        (1_250_000, 2 * u64::from(MTU), 2),
        (1_250_000, 0, 1),
    ];
    for (rate, waiting, packets) in cases {
        assert_eq!(long_train(rate, waiting, STANDS), packets, "{rate} B/s, {waiting}");
    }
}

/// Deleted, CUBIC could overflow a queue of 4 ms by two trains in a row, while the path has room.
#[test]
fn a_train_of_more_than_ten_packets_is_no_longer_than_a_quarter_of_the_queue() {
    for (micros, packets) in [(0, 10), (4_000, 10), (6_000, 12), (10_000, 21), (40_000, 21)] {
        assert_eq!(long_train(12_500_000, 1_000_000, Duration::from_micros(micros)), packets, "{micros} us");
    }
}

/// Packets of a train for which that much waits at that rate, on a path of 40 ms in whose queue packets have waited for `waits`.
fn long_train(rate: u64, waiting: u64, waits: Duration) -> u64 {
    let mut pacer = Pacer::new(Instant::ZERO, MTU);
    pacer.set_long_trains(Duration::from_millis(40), waits);
    pacer.set_long_trains(Duration::from_millis(40), Duration::ZERO);
    pacer.set_rate(per_second(rate), MTU);
    let burst = pacer.allowance(Instant::ZERO);
    pacer.on_sent(Instant::ZERO, burst);
    pacer.expect(waiting, u64::MAX);
    assert_eq!(pacer.allowance(Instant::ZERO), 0);
    let next = pacer.next_release().unwrap();
    assert_eq!(pacer.allowance(next - Duration::from_micros(10)), 0, "{rate} B/s, {waiting}");
    pacer.allowance(next) / u64::from(MTU)
}

#[test]
fn long_trains_keep_the_rate_and_no_pause_adds_to_them() {
    let rate = 12_500_000;
    let mut now = Instant::ZERO;
    let mut pacer = Pacer::new(now, MTU);
    pacer.set_long_trains(Duration::from_millis(40), STANDS);
    pacer.set_rate(per_second(rate), MTU);
    let (mut sent, mut trains) = (0, 0);
    while now < Instant::ZERO + Duration::from_secs(1) {
        pacer.expect(u64::MAX, u64::MAX);
        match pacer.allowance(now) / u64::from(MTU) {
            0 => now = pacer.next_release().unwrap() + Duration::from_micros(500),
            packets => {
                (sent, trains) = (sent + packets * u64::from(MTU), trains + 1);
                pacer.on_sent(now, packets * u64::from(MTU));
            }
        }
    }
    assert!((rate * 97 / 100..=rate + 150_000).contains(&sent), "{sent}");
    assert!(trains < 420, "{trains}");
    let last = pacer.allowance(now);
    pacer.on_sent(now, last);
    let burst = pacer.allowance(now + Duration::from_secs(1));
    assert_eq!(burst, 10 * u64::from(MTU) + rate / 1_000 + ROUNDING as u64, "after a pause it is as ever");
}

/// Deleted, three packets of sixteen for which the window has room could cost a wake-up, or a train be much longer than the pacer has tokens for.
#[test]
fn a_remainder_leaves_with_a_long_train() {
    let (rate, mtu) = (3_630_000, u64::from(MTU));
    let tokens = 10 * mtu + rate / 1_000 + ROUNDING as u64;
    let most = tokens * 3 / 2;
    for (waiting, room, leaves) in [
        (u64::MAX, 16 * mtu, 16 * mtu),
        (16 * mtu, u64::MAX, 16 * mtu),
        (u64::MAX, most, most),
        (u64::MAX, most + 1, tokens),
        (u64::MAX, 3 * mtu, tokens),
        (0, u64::MAX, tokens),
    ] {
        let mut pacer = Pacer::new(Instant::ZERO, MTU);
        pacer.set_long_trains(Duration::from_millis(40), STANDS);
        pacer.set_rate(per_second(rate), MTU);
        pacer.expect(waiting, room);
        let now = Instant::ZERO;
        assert_eq!(pacer.allowance(now), leaves, "{waiting} bytes wait, there is room for {room}");
        pacer.on_sent(now, leaves);
        let owed = leaves + rate / 1_000 - tokens;
        let paid = Duration::from_nanos(owed * 1_000_000_000 / rate);
        pacer.expect(0, u64::MAX);
        assert_eq!(pacer.allowance(now), 0);
        let next = pacer.next_release().unwrap().saturating_since(now);
        assert!(next.abs_diff(paid) < Duration::from_micros(10), "what left early is paid for: {next:?}");
    }
    let burst = Burst { packets: Some(4), span: None };
    let mut pacer = Pacer::new(Instant::ZERO, MTU).with_pacing(Pacing::On(burst));
    pacer.set_long_trains(Duration::from_millis(40), STANDS);
    pacer.set_rate(per_second(rate), MTU);
    pacer.expect(u64::MAX, 5 * mtu);
    assert_eq!(pacer.allowance(Instant::ZERO), 4 * mtu, "bursts of a set size stay as they are");
}

/// Deleted, the sender could be woken for a train for which the window has no room, or such a train could pile up, or hold up what comes after.
#[test]
fn a_full_window_waits_for_no_train() {
    let (rate, mtu) = (3_630_000, u64::from(MTU));
    let now = Instant::ZERO;
    let mut pacer = Pacer::new(now, MTU);
    pacer.hold();
    pacer.set_rate(per_second(rate), MTU);
    let burst = pacer.allowance(now);
    assert!(burst >= 10 * mtu, "nothing was saved up for");
    pacer.on_sent(now, burst);
    assert_eq!(pacer.allowance(now), 0);
    let due = pacer.next_release().unwrap();
    pacer.hold();
    assert_eq!(pacer.next_release(), None);
    assert_eq!(pacer.allowance(due - Duration::from_micros(10)), 0, "an acknowledgement makes room before");
    assert!(pacer.next_release().unwrap().saturating_since(due) < Duration::from_micros(1));
    pacer.hold();
    let much_later = now + Duration::from_secs(1);
    assert_eq!(pacer.allowance(much_later), burst, "no more than after a pause");
    assert_eq!(pacer.next_release(), None);

    // Of 100 Mbit/s a long train is 21 packets, and 18 pile up.
    let mut pacer = Pacer::new(now, MTU);
    pacer.set_long_trains(Duration::from_millis(40), STANDS);
    pacer.set_rate(per_second(12_500_000), MTU);
    let burst = pacer.allowance(now);
    pacer.on_sent(now, burst);
    pacer.expect(u64::MAX, u64::MAX);
    assert_eq!(pacer.allowance(now), 0);
    pacer.hold();
    pacer.expect(u64::MAX, u64::MAX);
    assert_eq!(
        pacer.allowance(much_later) / mtu,
        18,
        "an acknowledgement waits for no more than could pile up"
    );
}

/// Deleted, a thousand slow connections could wake their worker for each packet, or leave in bursts that RFC 9002 §7.7 rules out.
#[test]
fn a_span_makes_trains_of_up_to_ten_packets() {
    let span = Duration::from_millis(20);
    for (rate, packets) in [(100_000, 1), (290_400, 4), (2_000_000, 10), (12_500_000, 10), (20_000_000, 13)] {
        let (mut pacer, next) = saving(Savings { span, absorbed: 0 }, rate);
        assert_eq!(pacer.allowance(next) / u64::from(MTU), packets, "{rate} B/s");
    }
}

/// Deleted, trains could stay short where the path has shown that it takes long ones, or be longer than it has shown.
#[test]
fn trains_are_as_long_as_a_path_absorbs() {
    let span = Duration::from_millis(20);
    for (rate, absorbed, packets) in
        [(2_000_000, 15, 15), (2_000_000, 100, 27), (12_500_000, 1_000, 44), (2_000_000, 5, 10)]
    {
        let (mut pacer, next) = saving(Savings { span, absorbed: absorbed * u64::from(MTU) }, rate);
        assert_eq!(pacer.allowance(next) / u64::from(MTU), packets, "{rate} B/s");
        // What a path has absorbed it may absorb no more after a pause: then it is ten packets and a millisecond of the rate.
        let after = pacer.allowance(next + Duration::from_secs(1));
        assert_eq!(after, 10 * u64::from(MTU) + rate / 1_000 + ROUNDING as u64, "{rate} B/s");
    }
}

/// Deleted, a path without a queue could be sent bursts that its first queue drops.
#[test]
fn half_of_a_long_queue_is_what_a_path_absorbs() {
    let (span, at) = (Duration::from_millis(900), |ms| Instant::ZERO + Duration::from_millis(ms));
    let mut rtt = Rtt::new(Duration::from_millis(333));
    let savings = |window: u64, rtt: &Rtt| Savings::of(span, window, MTU, rtt);
    assert_eq!(savings(100_000, &rtt).absorbed, 0, "nothing is known");
    rtt.on_sample(at(1), Duration::from_millis(40), Duration::ZERO);
    let quick = savings(100_000, &rtt);
    assert_eq!(quick, Savings { span: Duration::from_millis(10), absorbed: 0 });
    for sample in 0..200 {
        rtt.on_sample(at(2 + sample), Duration::from_millis(200), Duration::ZERO);
    }
    let queued = savings(100_000, &rtt);
    assert!((39_800..=40_000).contains(&queued.absorbed), "four fifths of the window wait: {queued:?}");
    assert_eq!(queued.span.as_millis(), 99);
    assert_eq!(savings(30_000, &rtt).span.as_millis(), 49, "half of that queue is less than ten packets");
    assert_eq!(Savings::of(Duration::ZERO, 100_000, MTU, &rtt).span, Duration::ZERO);
}

/// Deleted, a sender without a rate would be asked how much of it a train may hold.
#[test]
fn a_span_of_a_train_means_nothing_without_a_rate() {
    let mut pacer = Pacer::new(Instant::ZERO, MTU);
    pacer.set_savings(Savings { span: Duration::from_millis(100), absorbed: 100_000 });
    pacer.set_rate(Rate::UNLIMITED, MTU);
    let mut fine = Pacer::new(Instant::ZERO, MTU);
    fine.set_rate(Rate::UNLIMITED, MTU);
    assert_eq!(pacer.allowance(Instant::ZERO), fine.allowance(Instant::ZERO));
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

fn any_pacing(rng: &mut Rng) -> Pacing {
    let packets = [None, Some(0), Some(1), Some(4), Some(16), Some(u16::MAX)][rng.below(6) as usize];
    let span = [None, Some(Duration::ZERO), Some(Duration::from_micros(50)), Some(any_span(rng))];
    Pacing::On(Burst { packets, span: span[rng.below(4) as usize] })
}

/// What would be lost without it: a sender that waits for ever, or bursts without bound, on some clock or rate.
#[test]
fn never_stalls_and_never_floods() {
    for seed in 0..100_000 {
        let mut rng = Rng::from_u64(seed);
        let mut now = any_later(&mut rng, Instant::ZERO);
        let mut mtu = MTU;
        let mut pacer = Pacer::new(now, mtu);
        if seed.is_multiple_of(3) {
            pacer = pacer.with_pacing(any_pacing(&mut rng));
        }
        if seed % 2 == 1 {
            pacer.set_release(Release::Early);
        }
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

/// As `saturate`, to a data path that holds trains until they depart. Returns the trains, as they depart, and wake-ups.
fn saturate_early(rate: Rate, late: Duration) -> (Vec<(Instant, u64)>, u64) {
    let mut now = Instant::ZERO + Duration::from_secs(5);
    let mut pacer = Pacer::new(now, MTU);
    pacer.set_release(Release::Early);
    pacer.set_rate(rate, MTU);
    let end = now + Duration::from_secs(1);
    let (mut trains, mut wake_ups) = (Vec::new(), 0);
    while now < end {
        let packets = pacer.allowance(now) / u64::from(MTU);
        if packets > 0 {
            let departs = pacer.departure(now).unwrap_or(now);
            assert!(departs <= now + HORIZON, "{departs:?} is too far from {now:?}");
            assert!(trains.last().is_none_or(|(last, _)| *last <= departs), "a train overtakes");
            trains.push((departs, packets * u64::from(MTU)));
            pacer.on_sent(now, packets * u64::from(MTU));
        } else {
            let release = pacer.next_release().expect("nothing may leave, so something is waited for");
            assert!(release > now, "waits for what is due");
            now = release + late;
            wake_ups += 1;
        }
    }
    (trains, wake_ups)
}

#[test]
fn trains_that_are_held_keep_the_rate_and_wake_the_sender_a_third_as_often() {
    for rate in [1_250_000, 12_500_000, 125_000_000, 1_250_000_000] {
        for late in [0, 10, 100, 150] {
            let late = Duration::from_micros(late);
            let (trains, wake_ups) = saturate_early(per_second(rate), late);
            let sent: u64 = trains.iter().map(|(_, bytes)| bytes).sum();
            let burst = 14_520 + rate / 500 + LARGEST_TRAIN + rate * 3 / 1_000;
            assert!(sent <= rate + burst, "{rate} B/s: {sent}");
            assert!(sent >= rate * 97 / 100, "{rate} B/s: {sent}");
            let (_, on_time) = saturate(per_second(rate), late);
            // A packet takes longer than the horizon's part of it at the lowest of these rates.
            let share = if rate < 10_000_000 { 0.7 } else { 0.4 };
            assert!(wake_ups as f64 <= on_time as f64 * share, "{rate} B/s: {wake_ups} of {on_time}");
            // And the pace is that of the clock: after the first burst no ten milliseconds hold more than theirs.
            let begin = trains[0].0 + Duration::from_millis(20);
            let after = trains.partition_point(|(departs, _)| *departs < begin);
            for (index, (departs, _)) in trains.iter().enumerate().skip(after) {
                let window =
                    trains[index..].iter().take_while(|(at, _)| *at < *departs + Duration::from_millis(10));
                let bytes: u64 = window.map(|(_, bytes)| bytes).sum();
                let train = (rate / 1_000).max(u64::from(MTU)).min(LARGEST_TRAIN);
                assert!(bytes <= rate / 100 + 2 * train, "{rate} B/s: {bytes} in 10 ms");
            }
        }
    }
}

#[test]
fn nothing_overtakes_what_was_released_early() {
    let now = Instant::ZERO + Duration::from_secs(5);
    let mut pacer = Pacer::new(now, MTU);
    pacer.set_release(Release::Early);
    pacer.set_rate(per_second(10_000_000), MTU);
    let mut last = None;
    loop {
        let bytes = pacer.allowance(now);
        if bytes == 0 {
            break;
        }
        last = pacer.departure(now);
        pacer.on_sent(now, bytes);
    }
    let last = last.expect("the last train is held");
    assert!(last > now + Duration::from_millis(1));
    // An acknowledgement does not wait for the pacer, but it has a higher packet number.
    assert_eq!(pacer.departure(now), Some(last));
    // The rate rises: the debt is soon paid, the order stays.
    pacer.set_rate(per_second(1_000_000_000), MTU);
    let soon = now + Duration::from_micros(100);
    assert!(pacer.allowance(soon) > 0);
    assert_eq!(pacer.departure(soon), Some(last));
    pacer.set_rate(Rate::UNLIMITED, MTU);
    assert_eq!((pacer.allowance(soon), pacer.departure(soon)), (u64::MAX, Some(last)));
    assert_eq!(pacer.departure(last), None, "and then it is over");
}

#[test]
fn without_a_path_that_holds_trains_nothing_has_a_departure_time() {
    let mut now = Instant::ZERO + Duration::from_secs(5);
    let mut pacer = Pacer::new(now, MTU);
    pacer.set_rate(per_second(1_000_000), MTU);
    for _ in 0..1_000 {
        let bytes = pacer.allowance(now);
        assert_eq!(pacer.departure(now), None);
        pacer.on_sent(now, bytes);
        now = pacer.next_release().unwrap_or(now);
    }
}

fn limited(packets: Option<u16>, span_us: Option<u64>) -> Pacer {
    let burst = Burst { packets, span: span_us.map(Duration::from_micros) };
    Pacer::new(Instant::ZERO, MTU).with_pacing(Pacing::On(burst))
}

/// Sends all it may for a second, `late` after it should have been woken. Returns bytes and the largest release, in packets.
fn saturate_limited(mut pacer: Pacer, rate: Rate, late: Duration) -> (u64, u64) {
    let mut now = Instant::ZERO + Duration::from_secs(5);
    pacer.set_rate(rate, MTU);
    let end = now + Duration::from_secs(1);
    let (mut sent, mut largest) = (0, 0);
    while now < end {
        match pacer.allowance(now) / u64::from(MTU) {
            0 => now = pacer.next_release().expect("something is waited for") + late,
            packets => {
                largest = largest.max(packets);
                sent += packets * u64::from(MTU);
                pacer.on_sent(now, packets * u64::from(MTU));
            }
        }
    }
    (sent, largest)
}

#[test]
fn a_limited_burst_is_never_exceeded_and_costs_no_rate() {
    for (packets, span, rate, most) in [
        (Some(4), None, 125_000_000, 4),
        (Some(16), None, 125_000_000, 16),
        (Some(16), None, 1_250_000_000, 16),
        (Some(16), None, 145_200, 1), // 1 Mbit/s: ten milliseconds hold one packet
        (None, Some(100), 125_000_000, 8),
        (None, Some(5_000), 12_500_000, 43),
        (Some(4), Some(5_000), 12_500_000, 4),
        (Some(40), Some(100), 12_500_000, 1),
    ] {
        for late in [0, 20, 100] {
            let pacer = limited(packets, span);
            let (sent, largest) = saturate_limited(pacer, per_second(rate), Duration::from_micros(late));
            let case = format!("{packets:?} {span:?} {rate} B/s, {late} µs late: {sent}, {largest}");
            assert_eq!(largest, most, "{case}");
            assert!(sent >= rate * 97 / 100 && sent <= rate * 103 / 100 + 100_000, "{case}");
        }
    }
}

#[test]
fn no_more_than_a_burst_piles_up_in_a_pause() {
    let mut pacer = limited(Some(4), None);
    pacer.set_rate(per_second(10_000_000), MTU);
    let mut now = Instant::ZERO;
    pacer.allowance(now);
    pacer.on_sent(now, u64::from(MTU));
    now = now + Duration::from_secs(1);
    let mut at_once = 0;
    while let packets @ 1.. = pacer.allowance(now) / u64::from(MTU) {
        at_once += packets;
        pacer.on_sent(now, packets * u64::from(MTU));
    }
    assert_eq!(at_once, 4);
}

#[test]
fn a_path_without_limit_is_never_waited_for_but_its_trains_are_limited() {
    let mut pacer = limited(Some(4), None);
    for _ in 0..1_000 {
        assert_eq!(pacer.allowance(Instant::ZERO), 4 * u64::from(MTU));
        pacer.on_sent(Instant::ZERO, 4 * u64::from(MTU));
    }
    assert_eq!(pacer.next_release(), None);
    let mut off = Pacer::new(Instant::ZERO, MTU).with_pacing(Pacing::Off);
    off.set_rate(per_second(1_000), MTU);
    off.on_sent(Instant::ZERO, 1_000_000);
    assert_eq!((off.allowance(Instant::ZERO), off.next_release()), (u64::MAX, None));
}
