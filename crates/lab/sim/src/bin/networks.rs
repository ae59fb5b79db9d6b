//! The study of bad networks, made anew: `cargo xtask networks`.
//!
//! Writes README.md, heat.svg and results.json into the directory that it is given. Cells are shared out among the machine's cores; what
//! comes out does not depend on that.

use recovery::congestion::Algorithm;
use sim::networks::{ALGORITHMS, Cell, Record, Work, cells, from_json, heat, measure, name, page, to_json};
use sim::revision;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

const HELP: &str = "\
usage: networks DIRECTORY [--again] [--only WORD] [--seeds NUMBER] [--threads NUMBER]

Runs downloads over simulated bad links, by each congestion controller, and writes DIRECTORY/README.md, heat.svg and results.json.
Takes some minutes. Example: cargo xtask networks, which is
  cargo run --release -p tercel-sim --bin networks -- docs/networks
--again     runs nothing: makes page and picture anew from DIRECTORY/results.json
--only      runs only contests whose axis, cell, work or controller contains WORD; prints instead of writing. May be repeated: all must match
--seeds     so many seeds instead of 5
--threads   on so many threads instead of one for each core";

/// What the command line asks.
struct Options {
    directory: String,
    again: bool,
    only: Vec<String>,
    seeds: Vec<u64>,
    threads: usize,
}

/// Seeds of each contest.
const SEEDS: u64 = 5;

fn main() -> ExitCode {
    let Some(options) = options() else {
        println!("{HELP}");
        return ExitCode::FAILURE;
    };
    match act(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("networks: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// `None` if they make no sense.
fn options() -> Option<Options> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        directory: String::new(),
        again: false,
        only: Vec::new(),
        seeds: (1..=SEEDS).collect(),
        threads: cores,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--again" => options.again = true,
            "--only" => options.only.push(words.next()?),
            "--seeds" => options.seeds = (1..=words.next()?.parse().ok()?).collect(),
            "--threads" => options.threads = words.next()?.parse().ok()?,
            word if word.starts_with('-') => return None,
            word => word.clone_into(&mut options.directory),
        }
    }
    (!options.directory.is_empty()).then_some(options)
}

fn act(options: &Options) -> Result<(), String> {
    let directory = Path::new(&options.directory);
    let path = directory.join("results.json");
    if options.again {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let (revision, seeds, records) =
            from_json(&value).ok_or("not what this program writes: run it without --again")?;
        return write_page(directory, (&revision, &seeds), &records);
    }
    let revision = revision(&["Cargo.lock", "crates"]);
    let records = run_all(options)?;
    if !options.only.is_empty() {
        print!("{}", page(&revision, &options.seeds, &records));
        return Ok(());
    }
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    write_page(directory, (&revision, &options.seeds), &records)?;
    write(&path, &to_json(&revision, &options.seeds, &records))
}

/// The page with its picture.
fn write_page(directory: &Path, (revision, seeds): (&str, &[u64]), records: &[Record]) -> Result<(), String> {
    write(&directory.join("heat.svg"), &report::plot::svg(&heat(records)))?;
    write(&directory.join("README.md"), &page(revision, seeds, records))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A contestant in a cell.
type Contest<'a> = (&'a Cell, Work, Algorithm);

/// What is asked for, in the order of the cells.
fn contests<'a>(cells: &'a [Cell], only: &[String]) -> Vec<Contest<'a>> {
    let mut contests = Vec::new();
    for cell in cells {
        for work in Work::ALL.into_iter().filter(|work| cell.runs(*work)) {
            contests.extend(ALGORITHMS.map(|algorithm| (cell, work, algorithm)));
        }
    }
    contests.retain(|(cell, work, algorithm)| {
        let text = format!("{};{};{};{}", cell.axis.name(), cell.name, work.name(), name(*algorithm));
        only.iter().all(|word| text.to_lowercase().contains(&word.to_lowercase()))
    });
    contests
}

/// All contests that are asked for, on some threads; the records in their order.
fn run_all(options: &Options) -> Result<Vec<Record>, String> {
    let cells = cells();
    let contests = contests(&cells, &options.only);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut records: Vec<(usize, Result<Record, String>)> = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((cell, work, algorithm)) = contests.get(index) else { return records };
            records.push((index, measure(cell, *work, *algorithm, &options.seeds)));
            if (index + 1).is_multiple_of(20) {
                eprintln!("{} of {}", index + 1, contests.len());
            }
        }
    };
    let records: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join()).collect()
    });
    let mut records: Vec<_> =
        records.map_err(|_| "a contest has panicked".to_owned())?.into_iter().flatten().collect();
    records.sort_by_key(|(index, _)| *index);
    records.into_iter().map(|(_, record)| record).collect()
}
