//! Raw stream transfers over networks drawn at random: every byte arrives intact, every healed connection finishes, both
//! ends forget each other, and a seed replays to the last bit.

use sim::transfer::{plan, run};
use sim::{Seeds, draw};

fn one(seed: u64) -> Result<(), String> {
    let drawn = draw::scenario(seed);
    let plan = plan(seed, &drawn);
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
    let seeds = Seeds::from_environment(5_000);
    if let Err(failures) = seeds.run("--test transfers every_seed_finishes", one) {
        panic!("\n{failures}");
    }
}

/// TLS brings its own randomness; nothing that it decides may show in what is sent when.
#[test]
fn a_seed_replays_to_the_last_bit() {
    let seeds = Seeds::from_environment(100);
    let twice = |seed| {
        let drawn = draw::scenario(seed);
        let plan = plan(seed, &drawn);
        let (one, other) = (run(&drawn.scenario, &plan)?, run(&drawn.scenario, &plan)?);
        if one == other { Ok(()) } else { Err(format!("{one:?}\n{other:?}")) }
    };
    if let Err(failures) = seeds.run("--test transfers a_seed_replays_to_the_last_bit", twice) {
        panic!("\n{failures}");
    }
}

/// Deleted, a trace could change what it tells of, or hold what no schema has, on networks that no other test has.
#[test]
fn traces_are_valid_and_change_nothing() {
    let seeds = Seeds::from_environment(60);
    let traced = |seed| {
        let mut drawn = draw::scenario(seed);
        let plan = plan(seed, &drawn);
        drawn.scenario.traced = None;
        let without = run(&drawn.scenario, &plan)?;
        drawn.scenario.traced = Some(qlog::Keep::default());
        let with = run(&drawn.scenario, &plan)?;
        match with.events {
            0..=50 => Err(format!("{} events", with.events)),
            events if with == (sim::transfer::Report { events, ..without }) => Ok(()),
            _ => Err(format!("{with:?}\n{without:?}")),
        }
    };
    if let Err(failures) = seeds.run("--test transfers traces_are_valid_and_change_nothing", traced) {
        panic!("\n{failures}");
    }
}
