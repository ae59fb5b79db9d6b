use super::*;
use base::rng::Rng;

const START: Instant = Instant::from_nanos(1_000_000_000);
const RTT: Duration = Duration::from_millis(20);
/// Loss shows an eighth of a round trip later than arrival: something else is always under way.
const LOSS: Duration = Duration::from_micros(22_500);
/// The connection looks for something to send so often.
const STEP: Duration = Duration::from_micros(2_500);

/// A path, and the probes on it.
struct Net {
    search: MtuSearch,
    now: Instant,
    /// When what became of a probe shows, and what did.
    flight: Vec<(Instant, u16, bool)>,
    most_at_once: usize,
}

impl Net {
    fn new(config: MtuConfig, headers: Headers, cap: u16) -> Net {
        let mut search = MtuSearch::new(config, headers, (1_200, cap));
        search.start(START);
        Net { search, now: START, flight: Vec::new(), most_at_once: 0 }
    }

    /// A step of time on a path that carries what `passes`.
    fn step(&mut self, passes: &mut impl FnMut(u16) -> bool) {
        while let Some(size) = self.search.next_probe(self.now, u16::MAX) {
            assert!(size > self.search.size(), "a probe promises something");
            self.search.on_probe_sent(self.now, size);
            let arrives = passes(size);
            self.flight.push((self.now + if arrives { RTT } else { LOSS }, size, arrives));
            self.most_at_once = self.most_at_once.max(self.flight.len());
            assert!(self.flight.len() <= 16, "in flight: {:?}", self.flight);
        }
        self.now = self.now + STEP;
        let now = self.now;
        for (_, size, arrived) in self.flight.extract_if(.., |(at, ..)| *at <= now) {
            match arrived {
                true => self.search.on_probe_acked(now, size),
                false => self.search.on_probe_lost(now, size),
            }
        }
    }

    /// Until the search rests. Returns what it says, and how many round trips it took.
    fn settle(&mut self, mut passes: impl FnMut(u16) -> bool) -> (MtuReport, f64) {
        if !matches!(self.search.phase, Phase::Resting { until } if self.now < until) {
            self.search.report.took = None;
        }
        for _ in 0..1_000_000 {
            self.step(&mut passes);
            if let Some(took) = self.search.report.took {
                return (self.search.report(), took.as_secs_f64() / RTT.as_secs_f64());
            }
        }
        panic!("the search does not end: {:?}", self.search);
    }
}

fn config(mode: Mode, ceiling: Option<u16>) -> MtuConfig {
    MtuConfig { mode, floor: None, ceiling }
}

/// The table of the report: what passes, the cap, and for both modes the size found, the round trips and the probes.
#[test]
fn the_fast_search_is_faster_on_every_path_and_done_within_three_round_trips_on_a_clean_one() {
    println!("passes    cap | classic: size  rtts sent lost | fast: size  rtts sent lost");
    for (limit, cap) in [
        (u16::MAX, 1_472),
        (u16::MAX, 4_096),
        (u16::MAX, 9_000),
        (u16::MAX, 65_507),
        (1_200, 1_472),
        (1_300, 1_472),
        (1_400, 1_472),
        (1_400, 65_507),
        (1_472, 65_507),
        (9_000, 65_507),
    ] {
        let run = |mode| Net::new(config(mode, Some(cap)), Headers::Ipv4, cap).settle(|size| size <= limit);
        let ((classic, slow), (fast, quick)) = (run(Mode::Classic), run(Mode::Fast));
        let line = |report: MtuReport, rtts: f64| {
            format!("{:5} {rtts:6.1} {:4} {:4}", report.size, report.probes_sent, report.probes_lost)
        };
        println!("{limit:6} {cap:6} | {} | {}", line(classic, slow), line(fast, quick));
        let best = u32::from(limit.min(cap));
        for report in [classic, fast] {
            let size = u32::from(report.size);
            assert!(size <= best && size * 101 >= best * 100, "{limit} {cap}: {report:?}");
        }
        assert!(quick < slow, "{limit} {cap}: {quick} round trips instead of {slow}");
        assert!(limit < cap || quick <= 3.0, "{cap}: {quick} round trips on a clean path");
        assert!(quick < 6.0, "{limit} {cap}: {quick} round trips");
    }
}

/// Deleted, a server could begin with small packets although it knows better, or probe before a handshake without end.
#[test]
fn one_early_probe_leaves_and_what_it_finds_counts() {
    for (mode, cap, early) in [
        (Mode::Fast, 65_507, Some(1_472)),
        (Mode::Fast, 1_400, Some(1_400)),
        (Mode::Fast, 1_205, None),
        (Mode::Classic, 65_507, None),
        (Mode::Off, 65_507, None),
    ] {
        let mut search = MtuSearch::new(config(mode, None), Headers::Ipv4, (1_200, cap));
        assert_eq!(search.early_probe(u16::MAX), early, "{mode:?} {cap}");
        let Some(size) = early else { continue };
        assert_eq!(search.early_probe(size - 1), None, "no room for it");
        search.on_probe_sent(START, size);
        assert_eq!(search.early_probe(u16::MAX), None, "one");
        search.on_probe_acked(START + RTT, size);
        assert_eq!(search.size(), size);
        search.start(START + RTT);
        let next = search.next_probe(START + RTT, u16::MAX);
        assert_eq!(next.is_some(), cap > size, "{next:?} with {cap}");
    }
}

/// Deleted, smaller sizes could take their share of the first flight while the early probe is about to arrive, or never leave.
#[test]
fn other_sizes_leave_when_the_early_probe_is_overdue() {
    let mut search = MtuSearch::new(config(Mode::Fast, None), Headers::Ipv4, (1_200, 1_472));
    search.on_probe_sent(START, 1_472);
    search.start(START + RTT);
    let overdue = START + RTT + RTT / 16;
    assert_eq!(search.next_probe(overdue - Duration::from_micros(1), u16::MAX), None);
    assert_eq!(search.next_probe(overdue, u16::MAX), Some(1_400));
    search.on_probe_acked(overdue, 1_472);
    assert_eq!(search.next_probe(overdue, u16::MAX), None, "it has arrived");
}

/// Deleted, the loss of an early probe could end the search, or leave out the sizes below it.
#[test]
fn an_early_probe_that_is_lost_counts_as_any_other() {
    for (limit, cap) in [(1_200, 1_472), (1_300, 1_472), (1_400, 65_507), (1_471, 65_507)] {
        for starts in [RTT, RTT + STEP * 2] {
            let search = MtuSearch::new(config(Mode::Fast, None), Headers::Ipv4, (1_200, cap));
            let mut net = Net { search, now: START, flight: Vec::new(), most_at_once: 0 };
            net.search.on_probe_sent(START, net.search.early_probe(u16::MAX).unwrap());
            net.flight.push((START + LOSS, 1_472, false));
            while net.now < START + starts {
                net.step(&mut |_| unreachable!("the search has not begun"));
            }
            net.search.start(net.now);
            let (report, rtts) = net.settle(|size| size <= limit);
            let (size, most) = (u32::from(report.size), u32::from(limit));
            assert!(size <= most && size * 101 >= most * 100, "{limit} {cap}: {report:?}");
            assert!(rtts < 6.0, "{limit} {cap}: {rtts} round trips");
        }
    }
}

/// As published: without a ceiling the Ethernet maximum first, done when it arrives; else three probes a second apart.
#[test]
fn the_classic_search_is_the_published_one() {
    for (headers, ethernet) in [(Headers::Ipv4, 1_472), (Headers::Ipv6, 1_452)] {
        let mut net = Net::new(config(Mode::Classic, None), headers, 65_507);
        let (report, rtts) = net.settle(|_| true);
        assert_eq!((report.size, report.probes_sent), (ethernet, 1));
        assert!(rtts <= 1.0 && net.most_at_once == 1);
    }
    let mut sent = Vec::new();
    let mut net = Net::new(config(Mode::Classic, None), Headers::Ipv4, 65_507);
    for _ in 0..4_000 {
        let now = net.now;
        net.step(&mut |size| {
            sent.push((size, now.saturating_since(START).as_millis()));
            size <= 1_400
        });
    }
    assert_eq!(net.most_at_once, 1);
    assert_eq!(sent[..3], [(1_472, 0), (1_472, 1_000), (1_472, 2_000)]);
    assert_eq!(sent[3].0, 1_336, "half-way");
    let mut given = Net::new(config(Mode::Classic, Some(4_096)), Headers::Ipv4, 65_507);
    given.step(&mut |_| true);
    assert_eq!(given.flight[0].1, 2_648, "binary search at once");
}

#[test]
fn off_means_off() {
    let mut search = MtuSearch::new(
        MtuConfig { floor: Some(1_252), ..config(Mode::Off, None) },
        Headers::Ipv4,
        (1_200, 9_000),
    );
    search.start(START);
    assert_eq!(search.next_probe(START + RAISE + RAISE, u16::MAX), None);
    search.on_silence(START);
    assert_eq!(search.next_probe(START + RAISE + RAISE, u16::MAX), None);
    assert_eq!(search.size(), 1_252);
}

/// A lost datagram or a burst that takes a whole flight is not taken for a limit.
#[test]
fn a_burst_of_loss_is_no_limit() {
    let mut probes = 0;
    let (report, rtts) = Net::new(config(Mode::Fast, None), Headers::Ipv4, 9_000).settle(|_| {
        probes += 1;
        probes > 12
    });
    assert_eq!(report.size, 9_000);
    assert!(rtts < 12.0, "{rtts}");
}

/// What does not fit the window waits without keeping the smaller ones waiting.
#[test]
fn large_probes_wait_for_the_window() {
    let mut search = MtuSearch::new(config(Mode::Fast, None), Headers::Ipv4, (1_200, 65_507));
    search.start(START);
    let mut sizes = Vec::new();
    while let Some(size) = search.next_probe(START, 6_000) {
        search.on_probe_sent(START, size);
        sizes.push(size);
    }
    assert_eq!(sizes, [4_096, 1_472, 1_400, 1_280]);
    search.on_probe_acked(START + RTT, 4_096);
    assert_eq!((search.size(), search.next_probe(START + RTT, 6_000)), (4_096, None));
    assert_eq!(search.next_probe(START + RTT, u16::MAX), Some(65_507));
}

#[test]
fn the_peer_limits_the_search() {
    let mut search = MtuSearch::new(config(Mode::Fast, None), Headers::Ipv4, (1_200, 65_507));
    search.on_limit(1_452);
    search.start(START);
    let mut net = Net { search, now: START, flight: Vec::new(), most_at_once: 0 };
    let (report, _) = net.settle(|size| size <= 1_452);
    assert_eq!((report.size, report.probes_lost), (1_452, 0));
}

/// A path that is thought to be the same carries on with the search, although no acknowledgement tells what became of the probes.
#[test]
fn probes_that_nobody_tells_of_leave_again() {
    let mut search = MtuSearch::new(config(Mode::Fast, None), Headers::Ipv4, (1_200, 1_280));
    search.start(START);
    search.on_probe_sent(START, 1_280);
    assert_eq!(search.next_probe(START + RAISE, u16::MAX), None);
    search.on_path_change();
    assert_eq!(search.next_probe(START, u16::MAX), Some(1_280));
}

/// RFC 8899 §5.1.1: a path that has become better is found out in the end.
#[test]
fn larger_sizes_are_tried_again_after_ten_minutes() {
    let mut net = Net::new(config(Mode::Fast, None), Headers::Ipv4, 1_472);
    assert_eq!(net.settle(|size| size <= 1_400).0.size, 1_400);
    let rested = net.now;
    assert_eq!(net.search.next_probe(rested + RAISE - RTT, u16::MAX), None);
    net.now = rested + RAISE;
    assert_eq!(net.settle(|_| true).0.size, 1_472);
    assert_eq!(net.search.next_probe(net.now + RAISE + RAISE, u16::MAX), None, "nothing larger to find");
}

/// The path begins to eat full packets while smaller ones arrive. The size falls to what is confirmed, and is searched soon.
#[test]
fn a_black_hole_is_noticed_and_the_search_begins_anew() {
    for (small, fallback) in [(1_200, 1_200), (1_300, 1_300)] {
        let mut net = Net::new(config(Mode::Fast, None), Headers::Ipv4, 1_472);
        assert_eq!(net.settle(|_| true).0.size, 1_472);
        for pn in (10..100).step_by(10) {
            net.search.on_large_acked(pn + 5, 1_472);
            assert_eq!(
                net.search.on_full_lost(net.now, pn, pn + 9),
                FullLoss::Ordinary,
                "later ones arrived"
            );
        }
        assert_eq!(net.search.on_full_lost(net.now, 200, 201), FullLoss::Suspicious);
        if net.search.is_large(small) {
            net.search.on_large_acked(201, small);
        }
        assert_eq!(net.search.on_full_lost(net.now, 202, 203), FullLoss::Ordinary);
        assert_eq!(net.search.on_full_lost(net.now, 204, 205), FullLoss::BlackHole);
        assert_eq!(net.search.size(), fallback);
        assert_eq!(net.search.report().black_holes, 1);
        assert_eq!(net.search.next_probe(net.now + Duration::from_millis(124), u16::MAX), None);
        net.now = net.now + Duration::from_millis(125);
        assert_eq!(net.settle(|size| size <= 1_400).0.size, 1_400);
    }
}

/// A whole flight lost at once may be declared lost over several acknowledgements: that is one round, not three.
#[test]
fn losses_of_one_flight_are_one_round() {
    let mut net = Net::new(config(Mode::Fast, None), Headers::Ipv4, 1_472);
    net.settle(|_| true);
    assert_eq!(net.search.on_full_lost(net.now, 100, 120), FullLoss::Suspicious);
    for pn in 101..=120 {
        assert_eq!(net.search.on_full_lost(net.now, pn, 130), FullLoss::Ordinary, "{pn}");
    }
    assert_eq!(net.search.on_full_lost(net.now, 121, 140), FullLoss::Ordinary, "the second round");
    assert_eq!(net.search.on_full_lost(net.now, 140, 150), FullLoss::Ordinary);
    assert_eq!(net.search.size(), 1_472);
    assert_eq!(net.search.on_full_lost(net.now, 141, 150), FullLoss::BlackHole);
}

/// When our own interface has given up a size, losses of that size say nothing of the sizes found after.
#[test]
fn a_refusal_ends_the_watch() {
    let mut net = Net::new(config(Mode::Fast, None), Headers::Ipv4, 1_472);
    net.settle(|_| true);
    assert_eq!(net.search.on_full_lost(net.now, 100, 120), FullLoss::Suspicious);
    assert_eq!(net.search.on_full_lost(net.now, 121, 140), FullLoss::Ordinary);
    net.search.on_refused(net.now, 1_472);
    assert_eq!(net.settle(|size| size <= 1_400).0.size, 1_400);
    assert_eq!(net.search.on_full_lost(net.now, 141, 150), FullLoss::Suspicious, "a new series");
}

/// A path that goes on losing large packets is left alone for longer and longer, until it has behaved for a while.
#[test]
fn the_rest_after_a_black_hole_doubles() {
    let mut net = Net::new(config(Mode::Fast, None), Headers::Ipv4, 1_472);
    net.settle(|_| true);
    let doubling = (0..13).map(|power| Duration::from_millis(125 << power));
    for rest in doubling.chain([RAISE, RAISE]) {
        net.search.on_silence(net.now);
        assert_eq!(net.search.size(), 1_200);
        assert_eq!(net.search.next_probe(net.now + rest - RTT, u16::MAX), None, "{rest:?}");
        net.now = net.now + rest;
        assert_eq!(net.settle(|_| true).0.size, 1_472);
    }
    net.now = net.now + RAISE + RAISE;
    net.search.on_silence(net.now);
    assert!(net.search.next_probe(net.now + Duration::from_millis(125), u16::MAX).is_some());
}

/// Whatever a path carries: never above it, within a percent below it, with few probes, in either mode.
#[test]
fn whatever_passes_is_found_to_a_percent() {
    for seed in 0..20_000 {
        let mut rng = Rng::from_u64(seed);
        let headers = if rng.below(2) == 0 { Headers::Ipv4 } else { Headers::Ipv6 };
        let mode = if rng.below(2) == 0 { Mode::Classic } else { Mode::Fast };
        let size = |rng: &mut Rng| {
            let bits = 4 + rng.below(13);
            1_200 + rng.below(1 << bits).min(64_307) as u16
        };
        let (cap, limit, ceiling) = (size(&mut rng), size(&mut rng), size(&mut rng));
        let mut net = Net::new(config(mode, Some(ceiling).filter(|_| rng.below(2) == 0)), headers, cap);
        let best = u32::from(limit.min(net.search.ceiling));
        let (report, _) = net.settle(|size| size <= limit);
        let found = u32::from(report.size);
        let what = format!("seed {seed} {mode:?}: {report:?} for {limit} of {}", net.search.ceiling);
        assert!(found <= best && found * 101 >= best * 100, "{what}");
        assert!(report.probes_sent <= u32::from(MOST_PROBES) / 5 * 4, "{what}");
    }
}

/// Whatever is reported, in whatever order: the sizes keep their order, probes are bounded, and nothing panics. (That
/// nothing grows is plain from the types: no part of a search allocates.)
#[test]
fn no_sequence_of_events_breaks_the_search() {
    for seed in 0..20_000 {
        let mut rng = Rng::from_u64(seed);
        let mode = [Mode::Off, Mode::Classic, Mode::Fast, Mode::Fast][rng.below(4) as usize];
        let mut search =
            MtuSearch::new(config(mode, None), Headers::Ipv6, (1_200, 1_200 + rng.below(64_308) as u16));
        let mut now = START;
        for _ in 0..rng.below(200) {
            let size = rng.below(1 << 16) as u16;
            match rng.below(13) {
                0 => search.start(now),
                1 => search.on_limit(size.max(1_200)),
                2 => search.on_silence(now),
                3 => search.on_large_acked(rng.below(50), size),
                4 => _ = search.on_full_lost(now, rng.below(100), 50 + rng.below(100)),
                5 => search.on_probe_lost(now, size),
                6 => search.on_path_change(),
                8 => search.on_refused(now, size),
                7 => now = crate::testing::any_later(&mut rng, now),
                _ => {
                    if let Some(size) = search.next_probe(now, u16::MAX) {
                        search.on_probe_sent(now, size);
                        match rng.below(3) {
                            0 => search.on_probe_acked(now, size),
                            1 => search.on_probe_lost(now, size),
                            _ => {}
                        }
                    }
                }
            }
            assert!(
                search.floor <= search.works && search.works <= search.ceiling,
                "seed {seed}: {search:?}"
            );
            assert!(search.works < search.fails && search.probes <= MOST_PROBES, "seed {seed}: {search:?}");
        }
    }
}

/// Without a search nothing is known of the path but what IPv6 demands of every link; a caller who says more knows better.
#[test]
fn without_a_search_packets_have_the_size_that_every_ipv6_path_carries() {
    for (headers, size) in [(Headers::Ipv4, 1_252), (Headers::Ipv6, 1_232)] {
        let mut search = MtuSearch::new(config(Mode::Off, None), headers, (1_200, 65_507));
        search.start(START);
        assert_eq!((search.size(), search.next_probe(START, u16::MAX)), (size, None));
    }
    let given = MtuConfig { floor: Some(1_350), ..config(Mode::Off, None) };
    assert_eq!(MtuSearch::new(given, Headers::Ipv4, (1_200, 65_507)).size(), 1_350);
    assert_eq!(MtuSearch::new(given, Headers::Ipv4, (1_200, 1_220)).size(), 1_220, "our memory is smaller");
}

/// A tunnel may carry less than every IPv6 path should. What a timeout sends must arrive there, and packets become that small.
#[test]
fn without_a_search_a_path_that_carries_less_is_noticed() {
    let gives_up: [fn(&mut MtuSearch); 3] = [
        |search| search.on_silence(START),
        |search| search.on_refused(START, 1_252),
        |search| {
            for pn in [1, 2, 3] {
                _ = search.on_full_lost(START, pn, pn);
            }
        },
    ];
    for give_up in gives_up {
        let mut search = MtuSearch::new(config(Mode::Off, None), Headers::Ipv4, (1_200, 65_507));
        search.on_limit(1_472);
        search.start(START);
        assert_eq!((search.size(), search.floor()), (1_252, 1_200));
        assert!(search.is_full(1_252) && !search.is_large(1_200));
        give_up(&mut search);
        assert_eq!((search.size(), search.report().black_holes), (1_200, 1));
        search.on_silence(START);
        for at in [START, START + RAISE + RAISE, Instant::FAR_FUTURE] {
            assert_eq!(search.next_probe(at, u16::MAX), None, "off means off");
        }
        assert_eq!((search.size(), search.report().black_holes), (1_200, 1));
    }
}

/// What the interface turns down at once costs no time at all, whatever its MTU; what it stops to take is given up at once.
#[test]
fn an_interface_that_refuses_tells_its_mtu_in_no_time() {
    for mode in [Mode::Fast, Mode::Classic] {
        for mtu in [1_472, 1_450, 8_972] {
            let mut net = Net::new(config(mode, Some(65_507)), Headers::Ipv4, 65_507);
            let mut refused = 0;
            let report = loop {
                while let Some(size) = net.search.next_probe(net.now, u16::MAX).filter(|size| *size > mtu) {
                    net.search.on_probe_sent(net.now, size);
                    net.search.on_refused(net.now, size);
                    refused += 1;
                }
                net.step(&mut |_| true);
                if net.search.report().took.is_some() {
                    break net.search.report();
                }
            };
            assert!(report.size <= mtu && u32::from(report.size) * 101 >= u32::from(mtu) * 100, "{report:?}");
            let (took, rtts) = (report.took.unwrap(), if mode == Mode::Fast { 4 } else { 12 });
            assert!(took <= RTT * rtts, "{mode:?} {mtu}: {report:?}, {refused} refused");
            assert_eq!(report.black_holes, 0);
            net.search.on_refused(net.now, 1_300);
            assert_eq!(net.search.size(), 1_200, "its MTU is another now");
            let (report, _) = net.settle(|size| size < 1_300);
            assert!((1_287..1_300).contains(&report.size) && report.black_holes == 1, "{report:?}");
        }
    }
}
