//! HTTP/3 over networks drawn at random: requests with and without content, of 1 byte to 2 MiB, with and without trailers,
//! announced lengths and interim responses, several at a time, some given up. Every byte arrives intact, every connection
//! whose network heals finishes, both ends forget each other, and a seed replays to the last bit.

use sim::requests::{plan, run};
use sim::{Seeds, draw};

fn one(seed: u64) -> Result<(), String> {
    let drawn = draw::scenario(seed);
    let plan = plan(seed, drawn.capacity);
    let is_alone = std::env::var_os("SIM_SEED").is_some();
    if is_alone {
        println!("{drawn:#?}\n{plan:?}");
    }
    let report = run(&drawn.scenario, &plan)?;
    if is_alone {
        println!("{report:#?}");
    }
    Ok(())
}

#[test]
fn every_seed_finishes() {
    let seeds = Seeds::from_environment(10_000);
    if let Err(failures) = seeds.run("--test requests every_seed_finishes", one) {
        panic!("\n{failures}");
    }
}

/// Nothing that TLS decides at random may show in what is sent when.
#[test]
fn a_seed_replays_to_the_last_bit() {
    let seeds = Seeds::from_environment(100);
    let twice = |seed| {
        let drawn = draw::scenario(seed);
        let plan = plan(seed, drawn.capacity);
        let (one, other) = (run(&drawn.scenario, &plan)?, run(&drawn.scenario, &plan)?);
        if one == other { Ok(()) } else { Err(format!("{one:?}\n{other:?}")) }
    };
    if let Err(failures) = seeds.run("--test requests a_seed_replays_to_the_last_bit", twice) {
        panic!("\n{failures}");
    }
}

/// Deleted, a trace could change what it tells of, or hold what no schema has, on networks that no other test has.
#[test]
fn traces_are_valid_and_change_nothing() {
    let seeds = Seeds::from_environment(60);
    let traced = |seed| {
        let mut drawn = draw::scenario(seed);
        let plan = plan(seed, drawn.capacity);
        drawn.scenario.traced = None;
        let without = run(&drawn.scenario, &plan)?;
        drawn.scenario.traced = Some(qlog::Keep::default());
        let with = run(&drawn.scenario, &plan)?;
        match with.events {
            0..=50 => Err(format!("{} events", with.events)),
            events if with == (sim::requests::Report { events, ..without }) => Ok(()),
            _ => Err(format!("{with:?}\n{without:?}")),
        }
    };
    if let Err(failures) = seeds.run("--test requests traces_are_valid_and_change_nothing", traced) {
        panic!("\n{failures}");
    }
}
