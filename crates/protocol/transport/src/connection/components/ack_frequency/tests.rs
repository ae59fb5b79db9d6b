use super::*;
use wire::writer::Writer;

const MS: Duration = Duration::from_millis(1);

fn config() -> TransportConfig {
    TransportConfig::default()
}

/// One whose peer takes requests.
fn negotiated() -> AckFrequency {
    let mut ours = AckFrequency::new(&config());
    let peer = TransportParameters { min_ack_delay_us: Some(1_000), ..TransportParameters::default() };
    ours.on_peer_parameters(&peer);
    ours
}

/// A flow whose window holds nothing back, over a path that loses nothing.
fn steady(window: u64, rtt_ms: u64) -> Flow {
    Flow { window, parts: LEAST_PARTS, is_lossy: false, rtt: MS * rtt_ms }
}

fn window(packets: u64, rtt_ms: u64) -> Terms {
    Terms::of(steady(packets, rtt_ms), [MS, Duration::ZERO])
}

/// Writes what is owed; how many ACK_FREQUENCY frames that were.
fn write(ours: &mut AckFrequency) -> usize {
    let (mut room, mut frames) = ([0; 64], Vec::new());
    let mut packet = PacketBuilder::new(Writer::new(&mut room), &mut frames);
    ours.write(&mut packet);
    frames.len()
}

fn asks(sequence: u64, delay_us: u64) -> frame::AckFrequency {
    frame::AckFrequency {
        sequence,
        ack_eliciting_threshold: 9,
        requested_max_ack_delay_us: delay_us,
        reordering_threshold: 3,
    }
}

/// draft §8.1: too few acknowledgements starve the window, too many are what the extension is to spare us.
#[test]
fn what_is_asked_for_follows_window_and_round_trip_within_bounds() {
    for (packets, parts, is_lossy, rtt_ms, every, delay_ms, reordering) in [
        (100, LEAST_PARTS, false, 20, 25, 5, 3),
        (100, SMALL_WINDOW_PARTS, false, 20, 12, 5, 3),
        (100, MOST_PARTS, false, 32, 6, 8, 3),
        (100_000, LEAST_PARTS, false, 1_000, 64, 25, 3),
        (63, LEAST_PARTS, false, 32, 7, 4, 3),
        (2, LEAST_PARTS, false, 4, 2, 1, 3),
        (0, LEAST_PARTS, false, 0, 2, 1, 1),
        (100, LEAST_PARTS, true, 32, 6, 2, 3),
        (100, LEAST_PARTS, true, 10, 10, 1, 3),
        (100, LEAST_PARTS, true, 2, 25, 1, 3),
        (10_000, LEAST_PARTS, true, 32, 64, 2, 3),
    ] {
        let flow = Flow { parts, is_lossy, ..steady(packets, rtt_ms) };
        let terms = Terms::of(flow, [MS, Duration::ZERO]);
        assert_eq!(
            (terms.every, terms.delay, terms.reordering),
            (every, MS * delay_ms, reordering),
            "{terms:?}"
        );
    }
    let slow_timer = Terms::of(steady(100, 1), [MS * 20, Duration::ZERO]);
    assert_eq!(
        (slow_timer.delay, slow_timer.reordering),
        (MS * 20, 1),
        "a gap does not wait for a slow timer"
    );
}

/// Deleted, each of a thousand slow connections would be acknowledged every 25 ms, which is for each of its packets.
#[test]
fn a_worker_with_many_connections_asks_for_fewer() {
    let few = steady(40, 240);
    let terms = |span_ms| {
        let terms = Terms::of(few, [MS, MS * span_ms]);
        (terms.every, terms.delay, terms.reordering)
    };
    assert_eq!(terms(0), (5, MS * 25, 3));
    assert_eq!(terms(30), (5, MS * 30, 3), "not much longer than anyway");
    assert_eq!(terms(60), (10, MS * 60, 3), "four a window");
    assert_eq!(terms(900), (20, MS * 120, 3), "two at least");
    let lossy = Terms::of(Flow { is_lossy: true, ..few }, [MS, MS * 60]);
    assert_eq!((lossy.every, lossy.delay), (10, MS * 60), "losses or not");
    let in_slow_start = Terms::of(Flow { parts: MOST_PARTS, ..steady(400, 240) }, [MS, MS * 60]);
    assert_eq!(in_slow_start.every, 25, "HyStart++ gets its samples");
    let mut ours = negotiated();
    ours.consider(window(400, 240));
    assert_eq!(write(&mut ours), 1);
    ours.on_acked(0);
    ours.consider(Terms::of(steady(400, 240), [MS, MS * 60]));
    assert!(ours.wants(), "the delay is another, although count and round trip are not");
    assert_eq!(ours.peer_max_ack_delay(), MS * 60, "probe timeouts heed it");
}

/// Deleted, a window that fills a short queue now and then would be an eighth of a round trip short of acknowledgements: CUBIC uses 74 % of 100 Mbit/s at 10 ms
/// with a queue of 21 packets instead of 90.
#[test]
fn packets_that_hardly_wait_are_acknowledged_more_often() {
    let mut rtt = Rtt::default();
    for (sample, hardly) in [(20, true), (21, true), (60, false)] {
        rtt.on_sample(base::time::Instant::ZERO, MS * sample, Duration::ZERO);
        assert_eq!(waits_hardly(&rtt, MS), hardly, "{rtt:?}");
    }
    let mut short = Rtt::default();
    short.on_sample(base::time::Instant::ZERO, MS * 7, Duration::ZERO);
    assert!(!waits_hardly(&short, MS), "the peer's timer is no finer");
}

/// Deleted, one run of lost packets would take all acknowledgements of a window, and the sender would wait for its probes.
#[test]
fn more_acknowledgements_are_asked_for_while_some_are_lost() {
    let mut rtt = Rtt::default();
    let start = Instant::ZERO + MS;
    rtt.on_sample(start, MS * 40, Duration::ZERO);
    let (later, over) = (start + MS * 40 * (LOSSY_ROUNDS - 1), start + MS * 40 * LOSSY_ROUNDS);
    let is_lossy = |ours: &AckFrequency| [later, over].map(|at| ours.is_lossy(at));
    let mut ours = negotiated();
    ours.on_losses(start, &rtt);
    assert_eq!(is_lossy(&ours), [false, false], "nothing was asked for");
    ours.consider(window(100, 40));
    ours.on_acknowledged(start, 50, &rtt);
    assert_eq!(is_lossy(&ours), [false, false], "25 were asked for: two frames may become one");
    ours.on_acknowledged(start, 51, &rtt);
    assert_eq!(is_lossy(&ours), [true, false]);
    ours.on_losses(later, &rtt);
    assert_eq!(is_lossy(&ours), [true, true]);
}

/// Deleted, BBR on a radio link would wait for its probes until a run of sixteen lost acknowledgements has passed.
#[test]
fn bbr_asks_for_32_a_window_while_some_are_lost() {
    for (in_use, is_in_slow_start, window, is_lossy, parts) in [
        (Algorithm::Bbr, false, 127, true, LOSSY_PARTS),
        (Algorithm::Bbr, false, 128, true, LEAST_PARTS),
        (Algorithm::Bbr, false, 127, false, LEAST_PARTS),
        (Algorithm::Bbr, true, 127, true, MOST_PARTS),
        (Algorithm::Cubic, false, 127, true, LEAST_PARTS),
    ] {
        let found = least_parts((in_use, is_in_slow_start), window, is_lossy, || false);
        assert_eq!(found, parts, "{in_use:?} {is_in_slow_start} {window} {is_lossy}");
        let flow = Flow { window, parts, is_lossy, rtt: MS * 10 };
        let of_time = if is_lossy { 10 } else { PARTS };
        assert_eq!(Terms::of(flow, [MS, Duration::ZERO]).every, window / parts.max(of_time));
    }
}

#[test]
fn requests_are_few_and_one_at_a_time() {
    let mut ours = negotiated();
    ours.consider(window(10, 20));
    assert!(!ours.wants(), "two packets for an acknowledgement is what everyone does");
    let mut sent = 0;
    for packets in (10..10_000).chain((10..10_000).rev()) {
        ours.consider(window(packets, 20));
        if ours.wants() {
            sent += write(&mut ours);
            ours.on_acked(ours.requests() as u64 - 1);
        }
    }
    assert!((2..=12).contains(&sent), "{sent} requests for 20,000 windows");
    let before = ours.requests();
    for rtt in [20, 21, 35, 20, 12, 20] {
        ours.consider(window(10, rtt));
    }
    assert_eq!(ours.requests(), before, "jitter is no news");
    ours.consider(window(10, 60));
    assert_eq!(ours.requests(), before + 1);
    ours.on_path_changed();
    write(&mut ours);
    ours.on_acked(before as u64);
    ours.consider(window(10, 60));
    assert!(ours.wants(), "a new path is told what suits it, even if nothing has changed");
}

/// draft §7: a timeout that is too short probes a peer that only does as it was asked.
#[test]
fn the_longer_delay_counts_until_the_peer_has_agreed() {
    let mut ours = negotiated();
    assert_eq!(ours.peer_max_ack_delay(), MS * 25);
    ours.consider(window(100, 20));
    assert_eq!(write(&mut ours), 1);
    assert_eq!(ours.peer_max_ack_delay(), MS * 25, "it may not have the request yet");
    ours.on_lost(0);
    assert_eq!((ours.peer_max_ack_delay(), write(&mut ours)), (MS * 25, 1), "lost: sent again");
    ours.on_acked(0);
    assert_eq!(ours.peer_max_ack_delay(), MS * 5);
    ours.on_lost(0);
    assert!(!ours.wants(), "a late loss of what was acknowledged");
    ours.consider(window(100, 80));
    assert_eq!(ours.peer_max_ack_delay(), MS * 20, "it may have it already");
    ours.on_acked(0);
    assert_eq!(ours.peer_max_ack_delay(), MS * 20, "the acknowledgement of an old request agrees to nothing");
}

#[test]
fn what_cannot_be_is_refused_and_what_is_old_ignored() {
    let mut ours = AckFrequency::new(&config());
    for delay in [0, 999, 16_384_000, (1 << 62) - 1] {
        let refused = ours.on_frame(&asks(0, delay)).map_err(|error| error.code);
        assert_eq!(refused, Err(Code::PROTOCOL_VIOLATION), "{delay}");
    }
    let policy = ours.on_frame(&asks(5, 1_000)).expect("valid").expect("new");
    assert_eq!((policy.eliciting_threshold, policy.max_ack_delay, policy.reordering_threshold), (10, MS, 3));
    assert_eq!(ours.on_frame(&asks(5, 2_000)), Ok(None));
    assert_eq!(ours.on_frame(&asks(4, 2_000)), Ok(None));
    assert!(ours.on_frame(&asks(4, 0)).is_err(), "old and impossible is still impossible");
    let most = (1 << 62) - 1;
    let huge = frame::AckFrequency { ack_eliciting_threshold: most, ..asks(most, 16_383_999) };
    let policy = ours.on_frame(&huge).expect("valid").expect("new");
    assert_eq!(policy.eliciting_threshold, u32::MAX);
    assert_eq!(ours.on_frame(&asks(most, 2_000)), Ok(None));
}

#[test]
fn nothing_is_asked_of_a_peer_that_did_not_offer_or_when_switched_off() {
    let off = TransportConfig { ack_frequency: Switch::Off, ..config() };
    for (config, offer) in [(config(), None), (off, Some(1_000))] {
        let mut ours = AckFrequency::new(&config);
        let peer = TransportParameters { min_ack_delay_us: offer, ..TransportParameters::default() };
        ours.on_peer_parameters(&peer);
        assert_eq!(ours.floor, None);
        let (mut room, mut frames) = ([0; 64], Vec::new());
        let mut packet = PacketBuilder::new(Writer::new(&mut room), &mut frames);
        ours.write_immediate_ack(&mut packet);
        assert!(packet.is_empty());
        let mut told = TransportParameters::default();
        ours.fill_parameters(&mut told);
        assert_eq!(told.min_ack_delay_us.is_some(), config.ack_frequency == Switch::On);
    }
}

/// draft §3: what an earlier connection's peer offered says nothing of this one's.
#[test]
fn an_offer_holds_for_the_parameters_that_it_came_with() {
    let mut ours = negotiated();
    assert_eq!(ours.floor, Some(MS));
    ours.on_peer_parameters(&TransportParameters::default());
    assert_eq!(ours.floor, None);
}

/// draft §3: min_ack_delay above max_ack_delay would end every connection.
#[test]
fn what_we_offer_never_exceeds_our_longest_delay() {
    for micros in [0, 1, 999, 1_000, 1_500, 25_000] {
        let ours =
            AckFrequency::new(&TransportConfig { max_ack_delay: Duration::from_micros(micros), ..config() });
        let mut told =
            TransportParameters { max_ack_delay_ms: micros / 1_000, ..TransportParameters::default() };
        ours.fill_parameters(&mut told);
        assert!(
            told.min_ack_delay_us.is_some_and(|least| least <= told.max_ack_delay_ms * 1_000),
            "{micros}"
        );
    }
}
