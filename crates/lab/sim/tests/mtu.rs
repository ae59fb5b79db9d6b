//! Transfers over paths that eat large packets: from the beginning, and from the middle of the transfer on. Every one
//! completes, none stands still for long, and what the search costs is printed.

#![expect(clippy::panic, reason = "a helper of a test may panic as the test itself may")]

use base::time::Duration;
use sim::transfer::{Transfer, TransferPlan, Workload, build, verify};
use sim::{Interface, Node, ReadBehaviour, Scenario, StopReason};
use transport::{Counters, MtuConfig, MtuMode, MtuReport};

const RTT: Duration = Duration::from_millis(20);
/// The client's delay of acknowledgements.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
const BYTES: u64 = 40_000_000;

/// What a download was like.
#[derive(Debug)]
struct Measured {
    seconds: f64,
    /// The longest time without a new byte at the client.
    gap: Duration,
    /// The same in probe timeouts of the server when it began; counted without the variation of round trips, so rather too
    /// many.
    gap_ptos: f64,
    mtu: MtuReport,
    counters: Counters,
}

/// A download over 100 Mbit/s and 20 ms with `node` at both edges, by a server that may send `cap` bytes.
fn download(mode: MtuMode, cap: u16, node: &Node) -> Measured {
    download_by(Interface::Any, mode, cap, node)
}

/// The same by interfaces of this kind.
fn download_by(interface: Interface, mode: MtuMode, cap: u16, node: &Node) -> Measured {
    let mut scenario = Scenario::interop(3);
    scenario.port.interface = interface;
    let nodes = || {
        vec![
            node.clone(),
            Node::Rate { bits_per_second: 100_000_000, queue_bytes: 250_000 },
            Node::Delay(RTT / 2),
        ]
    };
    (scenario.to_server, scenario.to_client) = (nodes(), nodes());
    for transport in [&mut scenario.server, &mut scenario.client] {
        transport.max_packet_size = cap;
        // Without a ceiling the classic search ends at the Ethernet maximum.
        let ceiling = (cap > 1_472).then_some(cap);
        transport.mtu = MtuConfig { mode, ceiling, ..MtuConfig::default() };
    }
    measure(&scenario).unwrap_or_else(|error| panic!("{mode:?} {cap} {node:?}: {error}"))
}

fn measure(scenario: &Scenario) -> Result<Measured, String> {
    let plan = Workload::downloads([BYTES]);
    let mut lab = build(scenario, &plan)?;
    let read_behaviour = ReadBehaviour::new(scenario.app_rng(), 0);
    lab.connect(TransferPlan::new(read_behaviour, [Transfer::download(BYTES)], 1))?;
    let (mut received, mut gap, mut gap_ptos) = (0, Duration::ZERO, 0.0_f64);
    let mut progress: Option<(Duration, Duration)> = None;
    let halt = lab.run(Duration::from_secs(60), |lab| {
        let age = lab.age();
        let now = lab.client().app_mut().received;
        if now > received {
            if let Some((at, pto)) = progress {
                let silence = age.saturating_sub(at);
                gap = gap.max(silence);
                gap_ptos = gap_ptos.max(silence.as_secs_f64() / pto.as_secs_f64());
            }
            (received, progress) = (now, Some((age, lab.server().app_mut().rtt + MAX_ACK_DELAY)));
        }
        lab.client().app_mut().done == 1
    });
    let seconds = lab.age().as_secs_f64();
    let failures = &lab.client().app_mut().failures;
    if halt != StopReason::Done || !failures.is_empty() {
        return Err(format!("{halt:?} after {seconds} s with {received} bytes: {failures:?}"));
    }
    lab.run(Duration::from_secs(60), |lab| lab.server().connections() == 0);
    verify(&mut lab, &plan)?;
    let server = lab.server().app_mut();
    Ok(Measured { seconds, gap, gap_ptos, mtu: server.mtu, counters: server.counters })
}

fn report(what: &str, measured: &Measured) {
    let MtuReport { size, took, probes_sent, probes_lost, black_holes } = measured.mtu;
    let rtts = took.map_or(f64::NAN, |took| took.as_secs_f64() / RTT.as_secs_f64());
    println!(
        "{what:28} {:6.2} s, longest gap {:5.1} ms, {:.1} PTO; size {size}, search {rtts:.1} round trips, {probes_sent} probes, \
         {probes_lost} lost, {black_holes} black holes; {} timeouts",
        measured.seconds,
        measured.gap.as_secs_f64() * 1e3,
        measured.gap_ptos,
        measured.counters.probe_timeouts,
    );
}

/// What the server's side may send, what passes, and within how many round trips of 20 ms the fast search is to know it: three
/// where all passes, and elsewhere three losses of the size that does not, each noticed an eighth of a round trip late, after
/// those that lead there. (At 100 Mbit/s the bytes of 65,507 take some of it, too.)
const PATHS: [(u16, u16, f64); 8] = [
    (1_472, u16::MAX, 1.1),
    (9_000, u16::MAX, 2.2),
    (65_507, u16::MAX, 3.6),
    (1_472, 1_400, 4.5),
    (1_472, 1_300, 4.5),
    (16_336, 9_000, 7.5),
    (65_507, 9_000, 11.0),
    (65_507, 1_472, 6.0),
];

#[test]
fn every_path_is_used_to_a_percent_and_the_fast_search_is_done_soon() {
    for (cap, limit, rounds) in PATHS {
        let node = Node::Mtu(limit.into());
        let fast = download(MtuMode::Fast, cap, &node);
        report(&format!("fast {cap} of {limit}"), &fast);
        let classic = download(MtuMode::Classic, cap, &node);
        report(&format!("classic {cap} of {limit}"), &classic);
        let best = u32::from(cap.min(limit));
        let found = u32::from(fast.mtu.size);
        assert!(found <= best && found * 101 >= best * 100, "{cap} {limit}: {fast:?}");
        assert!(fast.mtu.took.is_some() && fast.mtu.black_holes == 0, "{cap} {limit}: {fast:?}");
        let took = fast.mtu.took.unwrap_or(Duration::MAX).as_secs_f64() / RTT.as_secs_f64();
        assert!(took <= rounds, "{cap} {limit}: {took:.1} round trips, {fast:?}");
        for measured in [&fast, &classic] {
            assert!(measured.gap_ptos <= 3.0, "{cap} {limit}: {measured:?}");
        }
    }
}

/// The path begins to eat large packets while the window is full of them.
#[test]
fn a_transfer_goes_on_when_its_path_shrinks() {
    for (cap, limit) in [(1_472, 1_400), (1_472, 1_300), (9_000, 1_472), (9_000, 1_200)] {
        for mode in [MtuMode::Fast, MtuMode::Classic] {
            let shrunk =
                download(mode, cap, &Node::MtuFrom { at: Duration::from_secs(1), limit: limit.into() });
            report(&format!("{mode:?} {cap}, then {limit}"), &shrunk);
            assert!(shrunk.mtu.black_holes >= 1 && shrunk.mtu.size <= limit, "{cap} {limit}: {shrunk:?}");
            assert!(shrunk.gap_ptos <= 3.0, "{cap} {limit}: {shrunk:?}");
            let rtts = shrunk.mtu.took.unwrap_or(Duration::MAX).as_secs_f64() / RTT.as_secs_f64();
            assert!(
                mode == MtuMode::Classic || rtts <= 7.0,
                "the search after it: {cap} {limit}: {shrunk:?}"
            );
        }
    }
}

/// What our own interface does not take is not searched for on the path: where its MTU is known nothing is lost, and where
/// not, each refusal tells at once.
#[test]
fn the_interfaces_mtu_is_no_secret() {
    for mode in [MtuMode::Fast, MtuMode::Classic] {
        let node = Node::Mtu(u16::MAX.into());
        let known = download_by(Interface::Known(1_472), mode, 65_507, &node);
        report(&format!("{mode:?}, interface 1472 known"), &known);
        assert!(known.mtu.size >= 1_458 && known.mtu.probes_lost == 0, "{known:?}");
        let unknown = download_by(Interface::Unknown(1_472), mode, 65_507, &node);
        report(&format!("{mode:?}, interface 1472 unknown"), &unknown);
        let (found, took) = (unknown.mtu.size, unknown.mtu.took.unwrap());
        assert!((1_458..=1_472).contains(&found) && unknown.mtu.black_holes == 0, "{unknown:?}");
        let limit = if mode == MtuMode::Fast { RTT * 10 } else { Duration::from_secs(1) };
        assert!(took < limit, "refusals are no losses to wait for: {unknown:?}");
    }
}

/// Without a search the first packets are larger than a narrow tunnel carries: the download goes on with small ones.
#[test]
fn without_a_search_a_narrow_tunnel_is_no_end() {
    let tunnel = download(MtuMode::Off, 1_472, &Node::Mtu(1_212));
    report("off 1472 of 1212", &tunnel);
    assert_eq!(
        (tunnel.mtu.size, tunnel.mtu.black_holes, tunnel.mtu.probes_sent),
        (1_200, 1, 0),
        "{tunnel:?}"
    );
    let usual = download(MtuMode::Off, 1_472, &Node::Mtu(1_252));
    report("off 1472 of 1252", &usual);
    assert_eq!((usual.mtu.size, usual.mtu.black_holes), (1_252, 0), "{usual:?}");
}
