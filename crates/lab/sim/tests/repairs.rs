//! How much forward error correction could win (docs/decisions/029): pages of 30 resources over links of 150 ms that lose, bare, with codes, with
//! copies, and where nothing is lost.

#![expect(clippy::panic, reason = "a helper of a test may panic as the test itself may")]

use base::time::Duration;
use recovery::congestion::Algorithm;
use sim::networks::{LIMIT, NetworkProfile, Work, run};
use sim::{Code, Measure, Protection};

const NONE: Measure = Measure::None;

/// One repair after so many datagrams and one at the end of a flight, each of which covers `width`. What comes after a gap waits so long.
const fn code(every: u64, width: u64, hold_ms: u64) -> Measure {
    let (pause, hold) = (Duration::from_millis(20), Duration::from_millis(hold_ms));
    Measure::Code(Code { every, count: 1, width, at_end: 1, pause, hold })
}

const fn both(measure: Measure) -> Protection {
    Protection { handshake: measure, data: measure }
}

const SOON: Measure = Measure::Copy(Duration::from_millis(20));

/// What is compared: the first is the link as it is.
const VARIANTS: [(&str, Protection); 10] = [
    ("nothing", both(NONE)),
    ("bound: nothing is lost", both(Measure::Spared)),
    ("bound: nothing is lost after the handshake", Protection { handshake: NONE, data: Measure::Spared }),
    ("block code, 1 of 5", both(code(4, 4, 0))),
    ("window of 40, 1 of 11", both(code(10, 40, 0))),
    ("window of 40, 1 of 11, in order", both(code(10, 40, 60))),
    ("the same, after the handshake", Protection { handshake: NONE, data: code(10, 40, 60) }),
    ("window of 40, 1 of 5, in order", both(code(4, 40, 60))),
    ("a copy of the last of a flight", both(code(0, 1, 0))),
    ("handshake twice", Protection { handshake: SOON, data: NONE }),
];

/// Page times over seeds, sorted, in seconds.
fn times(profile: &NetworkProfile, algorithm: Algorithm, seeds: u64) -> Vec<f64> {
    let time = |seed| {
        let trial = run(profile, Work::Page, algorithm, seed);
        let trial = trial.unwrap_or_else(|problem| panic!("{profile:?}, seed {seed}: {problem}"));
        trial.time.unwrap_or(LIMIT).as_secs_f64()
    };
    let share = |first| move || (first..=seeds).step_by(2).map(time).collect::<Vec<f64>>();
    let (mut times, others) = std::thread::scope(|scope| {
        let other = scope.spawn(share(2));
        (share(1)(), other.join().unwrap_or_else(|_| panic!("a run has panicked")))
    });
    times.extend(others);
    times.sort_by(f64::total_cmp);
    times
}

fn percentile(times: &[f64], percent: usize) -> f64 {
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

/// Fails where a code for data alone wins the quarter that the decision asks for. The table of the decision: `SEEDS=400 cargo test --release -p tercel-sim --test repairs -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes and prints a table"]
fn what_codes_and_copies_would_win() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = number("SEEDS").unwrap_or(200);
    let algorithm = Algorithm::default();
    for megabits in [10, 100, 1] {
        let link = NetworkProfile::new(megabits, 150);
        let links = [("3 %", link.with_loss(30_000)), ("3 % in runs of 4", link.with_bursts(30_000, 4))];
        for (loss, profile) in links {
            let mut before = None;
            for (name, plan) in VARIANTS {
                let times = times(&profile.with_protection(plan), algorithm, seeds);
                let [half, most, late] = [50, 90, 99].map(|percent| percentile(&times, percent));
                let before = *before.get_or_insert(late);
                let won = (1.0 - late / before) * 100.0;
                let is_data_alone =
                    plan.handshake == NONE && plan.data != NONE && plan.data != Measure::Spared;
                assert!(
                    !is_data_alone || won < 25.0,
                    "{name}: build it, says the decision, if it wins a quarter"
                );
                println!(
                    "{algorithm:?} | {megabits} Mbit/s, {loss} | {name} | {half:.2} | {most:.2} | {late:.2} | {won:.0} %"
                );
            }
        }
    }
}
