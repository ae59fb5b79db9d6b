//! Departure times: a data path that holds trains until they depart lets the sender sleep longer, and nothing else changes.

#![expect(
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a helper of a test may panic as the test itself may"
)]

use base::time::Duration;
use sim::transfer::{Workload, build, drive, verify};
use sim::{Node, Scenario};
use transport::{Burst, Counters, Pacing};

const BYTES: u64 = 60_000_000;
/// Bytes of the bottleneck's rate in a millisecond.
const PER_MS: u64 = 200_000_000 / 8 / 1_000;

/// What a download was like for its server.
#[derive(Debug)]
struct Measured {
    seconds: f64,
    turns: u64,
    counters: Counters,
    /// Most bytes that left within five milliseconds once the window had been found.
    densest: u64,
    /// Datagrams to the client that the queue dropped.
    dropped: u64,
}

/// Both directions have this bottleneck, and take so long.
fn limit(scenario: &mut Scenario, bits_per_second: u64, queue_bytes: u64, one_way: Duration) {
    let nodes = || vec![Node::Rate { bits_per_second, queue_bytes }, Node::Delay(one_way)];
    (scenario.to_server, scenario.to_client) = (nodes(), nodes());
}

/// A download over 200 Mbit/s and 50 ms, from a server whose port holds trains, or sends at once what it gets.
fn download(departure_times: bool) -> Result<Measured, String> {
    let mut scenario = Scenario::interop(11);
    limit(&mut scenario, PER_MS * 8_000, PER_MS * 50, Duration::from_millis(25));
    scenario.port.departure_times = departure_times;
    // Acknowledgements wake the sender too: here they are few, so that the pacer is what it sleeps by.
    scenario.client.ack_every = 1_000;
    let plan = Workload::downloads([BYTES]);
    let mut lab = build(&scenario, &plan)?;
    lab.network().borrow_mut().start_tap();
    let time = drive(&mut lab, &scenario, &plan)?;
    verify(&mut lab, &plan)?;
    let server = lab.network().borrow().address(lab.hosts().0);
    let sent: Vec<(Duration, u64)> = lab
        .network()
        .borrow_mut()
        .take_sightings()
        .iter()
        .filter(|seen| seen.source == server && seen.at > Duration::from_secs(1))
        .map(|seen| (seen.at, seen.bytes.len() as u64))
        .collect();
    let window = Duration::from_millis(5);
    let within = |index: usize| {
        let (begin, _) = sent[index];
        sent[index..].iter().take_while(|(at, _)| *at < begin + window).map(|(_, bytes)| bytes).sum::<u64>()
    };
    let densest = (0..sent.len()).map(within).max().unwrap_or(0);
    let port = lab.server().counters();
    let counters = lab.server().app_mut().counters;
    let (server, client) = lab.hosts();
    let dropped = lab.network().borrow().link_counters(server, client).overflowed;
    Ok(Measured { seconds: time.as_secs_f64(), turns: port.rx.calls, counters, densest, dropped })
}

#[test]
fn a_path_that_holds_trains_lets_the_sender_sleep_longer() {
    let [plain, held] = [false, true].map(|held| download(held).expect("a download"));
    println!("at once: {plain:?}\nheld:    {held:?}");
    assert!(held.turns * 10 < plain.turns * 7, "{} turns instead of {}", held.turns, plain.turns);
    assert!(held.seconds < plain.seconds * 1.03, "{} s instead of {}", held.seconds, plain.seconds);
    assert!(held.densest <= plain.densest * 11 / 10, "{} bytes instead of {}", held.densest, plain.densest);
    assert_eq!(held.counters.probe_timeouts, plain.counters.probe_timeouts);
    // Counted from hand-over instead of departure, round trips would seem longer, and losses would be found where none are.
    for one in [&plain, &held] {
        assert!(one.dropped > 0 && one.counters.lost_packets <= one.dropped, "{one:?}");
    }
}

/// Deleted, each timer could wake its worker twice, each acknowledgement leave a short train behind, or a full window be waited for.
#[test]
fn a_slow_flow_wakes_its_server_for_acknowledgements_and_little_else() {
    let mut scenario = Scenario::interop(11);
    limit(&mut scenario, 30_000_000, 300_000, Duration::from_millis(20));
    let plan = Workload::downloads([20_000_000]);
    let mut lab = build(&scenario, &plan).expect("a lab");
    drive(&mut lab, &scenario, &plan).expect("a download");
    let rx = lab.server().counters().rx;
    println!("{} turns, {} datagrams of the client", rx.calls, rx.datagrams);
    // The second of two turns lets the server write what there is room for.
    assert!(
        rx.calls * 10 < rx.datagrams * 19,
        "{} turns for {} datagrams of the client",
        rx.calls,
        rx.datagrams
    );
}

/// What a download over 100 Mbit/s and 20 ms with this pacing was like.
#[derive(Debug)]
struct Bursts {
    seconds: f64,
    /// Most datagrams that left at one moment once the window had been found.
    largest: usize,
    /// The server's smoothed round trip at the end.
    rtt: Duration,
}

fn paced(pacing: Pacing) -> Bursts {
    let mut scenario = Scenario::interop(11);
    // Room for a round trip's worth: the round trip is 20 ms without a queue and 40 ms with the longest.
    limit(&mut scenario, 100_000_000, 250_000, Duration::from_millis(10));
    scenario.server.pacing = pacing;
    let plan = Workload::downloads([30_000_000]);
    let mut lab = build(&scenario, &plan).expect("a lab");
    lab.network().borrow_mut().start_tap();
    let time = drive(&mut lab, &scenario, &plan).expect("a download");
    verify(&mut lab, &plan).expect("what was sent");
    let server = lab.network().borrow().address(lab.hosts().0);
    let sightings = lab.network().borrow_mut().take_sightings();
    let sent: Vec<Duration> = sightings
        .iter()
        .filter(|seen| seen.source == server && seen.at > Duration::from_secs(1))
        .map(|seen| seen.at)
        .collect();
    let largest = sent.chunk_by(|a, b| a == b).map(<[Duration]>::len).max().unwrap_or(0);
    let app = lab.server().app_mut();
    Bursts { seconds: time.as_secs_f64(), largest, rtt: app.rtt }
}

/// A limit of bursts that cost throughput would idle links; one that delayed packets after they were dated would make round
/// trips seem longer.
#[test]
fn bursts_keep_to_their_limit_and_cost_neither_rate_nor_round_trip() {
    let by = |packets, span| Pacing::On(Burst { packets, span });
    let free = paced(Pacing::default());
    println!("default: {free:?}");
    for (pacing, most) in
        [(by(Some(4), None), 4), (by(Some(16), None), 16), (by(None, Some(Duration::from_micros(500))), 10)]
    {
        let limited = paced(pacing);
        println!("{pacing:?}: {limited:?}");
        assert!((2..=most).contains(&limited.largest), "{pacing:?}: {limited:?}");
        assert!(limited.seconds < free.seconds * 1.03, "{limited:?} beside {free:?}");
        assert!(limited.rtt < free.rtt + Duration::from_millis(2), "{limited:?} beside {free:?}");
    }
    let off = paced(Pacing::Off);
    println!("off: {off:?}");
    assert!(off.largest > 16, "the limits above limit nothing: {off:?}");
    assert!(off.seconds < free.seconds * 1.1, "{off:?}");
}
