//! Careful resume in the whole stack: a second connection of the same client, over the path as it was or as it has become.

#![expect(clippy::expect_used, reason = "a helper of a test may panic as the test itself may")]

use base::rng::Rng;
use base::time::Duration;
use sim::transfer::{Transfer, TransferPlan, TransferSimulation, Workload, build};
use sim::{Burst, EventRate, Node, ReadBehaviour, Scenario, StopReason};
use transport::{Algorithm, ResumeCounters, Switch};

const LARGE: u64 = 30_000_000;
const SMALL: u64 = 3_000_000;
/// A product of the path's rate and round trip: 50 Mbit/s and 80 ms.
const PRODUCT: u64 = 500_000;

/// A link of this many Mbit/s and a delay of this many ms, with a queue of this many bytes.
fn nodes(megabits: u64, delay_ms: u64, queue_bytes: u64) -> Vec<Node> {
    let rate = Node::Rate { bits_per_second: megabits * 1_000_000, queue_bytes };
    vec![rate, Node::Delay(Duration::from_millis(delay_ms))]
}

/// A client that comes again and again.
struct Visits {
    lab: TransferSimulation,
    done: u64,
}

impl Visits {
    fn new(careful_resume: Switch) -> Visits {
        Visits::over(nodes(50, 40, PRODUCT), careful_resume, Algorithm::Cubic)
    }

    /// Over a path that is the same both ways.
    fn over(path: Vec<Node>, careful_resume: Switch, algorithm: Algorithm) -> Visits {
        Visits::seeded(5, path, careful_resume, algorithm)
    }

    fn seeded(seed: u64, path: Vec<Node>, careful_resume: Switch, algorithm: Algorithm) -> Visits {
        let mut scenario = Scenario::interop(seed);
        (scenario.to_server, scenario.to_client) = (path.clone(), path);
        scenario.server.careful_resume = careful_resume;
        scenario.server.congestion = algorithm;
        // What the client takes at once is not what limits the sender here.
        scenario.client.streams.max_connection_window = 64 << 20;
        let lab = build(&scenario, &Workload::downloads([LARGE])).expect("a lab");
        Visits { lab, done: 0 }
    }

    /// A download on a connection of its own: seconds, and what its server lost.
    fn download(&mut self, bytes: u64) -> (f64, u64) {
        let client_plan =
            TransferPlan::new(ReadBehaviour::new(Rng::from_u64(1), 0), [Transfer::download(bytes)], 1);
        self.lab.connect(client_plan).expect("a connection");
        self.done += 1;
        let (done, before) = (self.done, self.lab.age());
        let limit = Duration::from_secs(120);
        let halt = self.lab.run(limit, |lab| lab.client().app_mut().done == done);
        assert_eq!(halt, StopReason::Done);
        let seconds = self.lab.age().saturating_sub(before).as_secs_f64();
        // Both ends forget each other.
        let halt = self.lab.run(limit, |lab| lab.client().connections() + lab.server().connections() == 0);
        assert_eq!(halt, StopReason::Done);
        (seconds, self.lab.server().app_mut().counters.lost_packets)
    }

    fn change(&mut self, megabits: u64, delay_ms: u64, queue_bytes: u64) {
        self.become_like(&nodes(megabits, delay_ms, queue_bytes));
    }

    fn become_like(&mut self, path: &[Node]) {
        let (server, client) = self.lab.hosts();
        let mut network = self.lab.network().borrow_mut();
        for (from, to) in [(server, client), (client, server)] {
            network.change_link(from, to, path.to_vec());
        }
    }

    fn wait(&mut self, span: Duration) {
        let mut network = self.lab.network().borrow_mut();
        let then = network.now() + span;
        network.advance(then);
    }

    fn counters(&mut self) -> ResumeCounters {
        self.lab.server().endpoint().counters().resumes
    }
}

#[test]
fn a_client_that_comes_again_is_served_faster() {
    let (mut with, mut without) = (Visits::new(Switch::On), Visits::new(Switch::Off));
    with.download(LARGE);
    without.download(LARGE);
    let ((warm, lost), (cold, _)) = (with.download(SMALL), without.download(SMALL));
    println!("warm {warm:.3} s, lost {lost}; cold {cold:.3} s; {:?}", with.counters());
    // Slow start from 32 packets doubles twice and a half to come to half of the product.
    assert!(warm + 0.08 < cold, "{warm} s instead of {cold} s: a round trip less at least");
    assert_eq!(lost, 0);
    let counters = with.counters();
    assert_eq!((counters.offered, counters.jumped, counters.validated), (1, 1, 1), "{counters:?}");
    let half = PRODUCT / 2;
    assert!((half * 8 / 10..=half * 11 / 10).contains(&counters.largest_jump), "{counters:?}");
    assert_eq!(without.counters(), ResumeCounters::default());
}

/// The jump is a guess. What it costs where it is wrong must be bounded by its size, and no connection may guess the same again.
#[test]
fn on_a_path_that_has_become_slower_the_loss_is_bounded_and_the_memory_corrected() {
    let slow = (5, 40, 50_000); // a product of 50,000 bytes and as long a queue
    let mut cold = Visits::new(Switch::Off);
    cold.change(slow.0, slow.1, slow.2);
    let (cold_seconds, cold_lost) = cold.download(SMALL);
    let mut visits = Visits::new(Switch::On);
    visits.download(LARGE);
    visits.change(slow.0, slow.1, slow.2);
    let (seconds, lost) = visits.download(SMALL);
    let counters = visits.counters();
    println!("{seconds:.2} s, lost {lost}; cold {cold_seconds:.2} s, lost {cold_lost}; {counters:?}");
    assert_eq!((counters.jumped, counters.retreated), (1, 1), "{counters:?}");
    // What was tried and did not fit into path and queue, what a slow start loses in any case, and an allowance of an initial window for what
    // that has under way when the jump begins.
    let allowed = counters.largest_jump.saturating_sub(100_000) / 1_200 + 32 + cold_lost;
    assert!(lost <= allowed, "{lost} packets, {allowed} allowed");
    assert!(seconds < cold_seconds * 1.5, "{seconds} s instead of {cold_seconds} s");
    // The next one knows the path as it is now, or nothing.
    visits.download(SMALL);
    let next = visits.counters();
    assert!(next.retreated == 1 && next.jumped <= 2, "{next:?}");
}

/// Megabits a second, milliseconds of round trip, and the queue in products of both.
type Path = (u64, u64, f64);

fn path((megabits, rtt_ms, queue): Path) -> Vec<Node> {
    nodes(megabits, rtt_ms / 2, ((megabits * rtt_ms * 125) as f64 * queue) as u64)
}

/// The time of a second visit over the time it takes without memory, after a first one over `before`.
fn second_over_first_time(before: Path, now: Path, algorithm: Algorithm, bytes: u64) -> f64 {
    let [with, without] = [Switch::On, Switch::Off].map(|switch| {
        let mut visits = Visits::over(path(before), switch, algorithm);
        visits.download(FIRST);
        visits.become_like(&path(now));
        visits.download(bytes).0
    });
    with / without
}

/// What is downloaded by the first visit, in bytes.
const FIRST: u64 = 8_000_000;
/// What is downloaded by the second visit, in bytes: less than 32 packets, a page, and more.
const SECOND: [u64; 3] = [30_000, 600_000, SMALL];

/// Paths, what they have become by the second visit, and how much of the time without memory that takes at most.
const SECOND_VISITS: [(Path, Path, [f64; 3]); 10] = [
    ((100, 40, 1.0), (100, 40, 1.0), [1.0, 0.85, 0.9]),
    ((100, 150, 1.0), (100, 150, 1.0), [1.0, 0.67, 0.76]),
    ((20, 600, 1.0), (20, 600, 1.0), [1.0, 0.69, 0.76]),
    ((10, 150, 1.0), (10, 150, 1.0), [1.0, 1.02, 1.02]),
    ((100, 40, 0.1), (100, 40, 0.1), [1.0, 0.9, 0.94]),
    ((100, 40, 10.0), (100, 40, 10.0), [1.0, 0.85, 0.96]),
    ((100, 40, 1.0), (50, 40, 1.0), [1.0, 0.9, 1.0]),
    ((100, 40, 1.0), (20, 40, 1.0), [1.0, 1.02, 1.08]),
    ((100, 40, 1.0), (5, 40, 1.0), [1.0, 1.05, 1.05]),
    ((100, 40, 1.0), (100, 40, 0.1), [1.0, 0.85, 0.92]),
];

/// Memory is the default because of this.
#[test]
fn a_second_visit_gains_much_and_costs_little() {
    for (before, now, most) in SECOND_VISITS {
        for algorithm in [Algorithm::Cubic, Algorithm::Prague] {
            let ratios = SECOND.map(|bytes| second_over_first_time(before, now, algorithm, bytes));
            println!("{before:?} {now:?} {algorithm:?}: {ratios:.2?}");
            let is_good = ratios.iter().zip(most).all(|(ratio, most)| *ratio <= most);
            assert!(is_good, "{before:?}, then {now:?}, {algorithm:?}: {ratios:.2?}, at most {most:?}");
        }
    }
}

#[test]
fn another_round_trip_is_another_path() {
    let mut visits = Visits::new(Switch::On);
    visits.download(LARGE);
    visits.change(50, 10, PRODUCT);
    visits.download(SMALL);
    let counters = visits.counters();
    assert_eq!((counters.offered, counters.jumped, counters.other_path), (1, 0, 1), "{counters:?}");
}

#[test]
fn what_is_too_old_is_not_used() {
    let mut visits = Visits::new(Switch::On);
    visits.download(LARGE);
    visits.wait(Duration::from_secs(601));
    visits.download(SMALL);
    assert_eq!(visits.counters().offered, 0);
    visits.wait(Duration::from_secs(300));
    visits.download(SMALL);
    assert_eq!(visits.counters().offered, 1, "but that was learned anew");
}

/// A path that also loses datagrams, each way.
fn lossy((link, losses): Lossy) -> Vec<Node> {
    path(link).into_iter().chain([Node::Loss(losses)]).collect()
}

/// So many datagrams of a million, each for itself.
const fn single(ppm: u32) -> EventRate {
    EventRate { ppm, burst: Burst::None }
}

/// So many datagrams of a million, in runs of so many on average.
const fn in_runs(ppm: u32, mean: u32) -> EventRate {
    EventRate { ppm, burst: Burst::Mean(mean) }
}

/// The time of a second page over the time it takes without memory, after a first one over `before`: the geometric mean over seeds.
fn second_page(before: Lossy, now: Lossy, bytes: u64) -> f64 {
    let of_seed = |seed: u64| {
        let [with, without] = [Switch::On, Switch::Off].map(|switch| {
            let mut visits = Visits::seeded(seed, lossy(before), switch, Algorithm::Auto);
            visits.download(PAGE);
            visits.become_like(&lossy(now));
            visits.download(bytes).0
        });
        (with / without).ln()
    };
    let logs: Vec<f64> = SEEDS.map(of_seed).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// A path, and what it loses.
type Lossy = (Path, EventRate);

/// Content of a page in bytes.
const PAGE: u64 = 600_000;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

/// Links and their losses, and what they have become by the second visit.
const PAGE_VISITS: [(Lossy, Lossy); 8] = [
    (((100, 40, 1.0), single(0)), ((100, 40, 1.0), single(0))),
    (((100, 150, 1.0), single(0)), ((100, 150, 1.0), single(0))),
    (((100, 40, 1.0), single(30_000)), ((100, 40, 1.0), single(30_000))),
    (((10, 150, 1.0), single(30_000)), ((10, 150, 1.0), single(30_000))),
    (((100, 40, 1.0), single(30_000)), ((100, 40, 1.0), single(0))),
    (((100, 40, 1.0), single(30_000)), ((100, 40, 0.1), single(0))),
    (((100, 40, 1.0), single(30_000)), ((5, 40, 1.0), single(0))),
    (((100, 40, 1.0), in_runs(30_000, 4)), ((100, 40, 1.0), in_runs(30_000, 4))),
];

/// Deleted, a jump could cost more than it gains where packets are lost, where none are any more, or where a page has shown little.
#[test]
fn memory_costs_little_after_a_page() {
    let mut bad = Vec::new();
    for (before, now) in PAGE_VISITS {
        let ratios = [30_000, PAGE, SMALL].map(|bytes| second_page(before, now, bytes));
        println!("{before:?} {now:?}: {ratios:.3?}");
        if ratios.iter().any(|ratio| *ratio > 1.02) {
            bad.push((before, now, ratios));
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}
