//! `tercel bench e1` … `e8`: one of the published studies; and `tercel bench all`: every one, into one report.

use super::report::{colours, save};
use super::{compare, text};
use crate::signals::stop_flag;
use clap::Args;
use report::compare::Comparison;
use report::model::Run;
use report::{html, text as shown, write};
use std::path::{Path, PathBuf};
use studies::context::{CellChoice, Context, Effort, Profiles};
use studies::laboratory::{self, STUDIES, StudyEntry};

/// Flags of a study.
#[derive(Args)]
pub(super) struct StudyArgs {
    /// Less of everything: a look of two minutes at most.
    #[arg(long)]
    quick: bool,
    /// Also say where the server's CPU time goes: flame graphs and a ledger, for which tercel's server works once more. Needs perf.
    #[arg(long)]
    profile: bool,
    /// Print JSON: everything that was measured.
    #[arg(long)]
    json: bool,
    /// Write results.json, report.md and report.html into this directory, which is made.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Compare with this run, the last published one say, in compare.html beside the report.
    #[arg(long, value_name = "RUN", requires = "out")]
    against: Option<PathBuf>,
}

/// Flags of a study of many cells.
#[derive(Args)]
pub(super) struct CellsArgs {
    #[command(flatten)]
    study: StudyArgs,
    /// Only cells whose names contain this word. May be repeated: all must be there. Without --quick any cell may be chosen.
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// So many rounds over all cells.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    rounds: Option<u8>,
}

/// Flags of a whole run.
#[derive(Args)]
#[command(after_help = "\
Ctrl-C ends it early: what was measured so far is kept and written.

Examples:
  tercel bench all --quick                       a quarter of an hour, into results/ with the date
  tercel bench all --only e4,e5 --out mine       two studies, as they were published
  tercel bench all --against docs/results/2026-11-30-epyc-2-cores")]
pub(super) struct AllArgs {
    /// Less of everything: a quarter of an hour on two cores.
    #[arg(long)]
    quick: bool,
    /// Also say where the server's CPU time goes: flame graphs and ledgers, in all studies but E8. Needs perf.
    #[arg(long)]
    profile: bool,
    /// Where results.json, report.md and report.html go; without it a new directory below results/.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Compare with this run, the last published one say, in compare.html beside the report.
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// Only these studies, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "STUDIES")]
    only: Vec<String>,
}

/// Runs some cells of a study and prints them.
pub(super) fn run_cells(id: &str, args: &CellsArgs) -> Result<(), String> {
    let rounds = args.rounds.map(usize::from);
    run_chosen(id, &args.study, CellChoice { only: args.only.clone(), rounds })
}

/// Runs one study and prints it.
pub(super) fn run(id: &str, args: &StudyArgs) -> Result<(), String> {
    run_chosen(id, args, CellChoice::default())
}

fn run_chosen(id: &str, args: &StudyArgs, cells: CellChoice) -> Result<(), String> {
    let entry = laboratory::find(id).ok_or_else(|| format!("there is no study {id}"))?;
    if let Some(why) = entry.no_profiles.filter(|_| args.profile) {
        return Err(why.to_owned());
    }
    args.out.as_deref().map_or(Ok(()), write::prepare).map_err(text)?;
    let before = before(args.against.as_deref())?;
    let how_much = (effort(args.quick), cells, profiles(args.profile));
    let run = measure(&[*entry], how_much, &mut |run| match &args.out {
        Some(directory) => write::write(run, directory).map_err(text),
        None => Ok(()),
    })?;
    if let Some(directory) = &args.out {
        beside(before, &run, directory)?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&run).map_err(text)?);
    } else {
        print!("\n{}", shown::run(&run, colours()));
    }
    let problem = run.studies.into_iter().find_map(|study| study.problem);
    problem.map_or(Ok(()), |problem| Err(format!("{id}: {problem}")))
}

/// Runs all studies and writes their report, again after each.
pub(super) fn all(args: &AllArgs) -> Result<(), String> {
    let chosen = choose(&args.only)?;
    args.out.as_deref().map_or(Ok(()), write::prepare).map_err(text)?;
    let before = before(args.against.as_deref())?;
    let mut directory = args.out.clone();
    let mut keep = |run: &Run| {
        let into = directory.get_or_insert_with(|| write::fresh(Path::new("results"), &run.began));
        write::write(run, into).map_err(text)
    };
    let how_much = (effort(args.quick), CellChoice::default(), profiles(args.profile));
    let run = measure(&chosen, how_much, &mut keep)?;
    print!("\n{}", shown::run(&run, colours()));
    if let Some(directory) = directory {
        eprintln!("the report is {}", directory.join("report.html").display());
        beside(before, &run, &directory)?;
    }
    let failed: Vec<&str> =
        run.studies.iter().filter(|study| study.problem.is_some()).map(|study| study.id.as_str()).collect();
    match (run.was_interrupted, failed.as_slice()) {
        (true, _) => Err("interrupted; what was measured is in the report".to_owned()),
        (false, []) => Ok(()),
        (false, failed) => Err(format!("not finished: {}; the report says why", failed.join(", "))),
    }
}

/// The run to compare with and its name, read before hours of measuring.
fn before(against: Option<&Path>) -> Result<Option<(String, Run)>, String> {
    let read = |path: &Path| Ok((compare::name(path), write::read(path).map_err(text)?));
    against.map(read).transpose()
}

/// Writes the page of the two runs.
fn beside(before: Option<(String, Run)>, run: &Run, directory: &Path) -> Result<(), String> {
    let Some((name, before)) = before else { return Ok(()) };
    let file = directory.join("compare.html");
    // Only what was measured again is compared.
    let studies = before.studies.iter().filter(|old| run.studies.iter().any(|new| new.id == old.id));
    let before = Run { studies: studies.cloned().collect(), ..before };
    let comparison = Comparison::of(&before, run).as_run([&name, &compare::name(directory)]);
    save(&file, &html::comparison(&comparison))?;
    eprintln!("beside {name}: {}", file.display());
    Ok(())
}

fn effort(is_quick: bool) -> Effort {
    if is_quick { Effort::Quick } else { Effort::Full }
}

fn profiles(are_wanted: bool) -> Profiles {
    if are_wanted { Profiles::Taken } else { Profiles::None }
}

fn choose(only: &[String]) -> Result<Vec<StudyEntry>, String> {
    if only.is_empty() {
        return Ok(STUDIES.to_vec());
    }
    let names: Vec<&str> = STUDIES.iter().map(|entry| entry.id).collect();
    let missing = |id: &str| format!("there is no study {id}; there are {}", names.join(", "));
    only.iter().map(|id| laboratory::find(id).copied().ok_or_else(|| missing(id))).collect()
}

/// Measures; `keep` is called after each study, and what it could not do is told at once and at the end.
fn measure(
    studies: &[StudyEntry],
    (effort, cells, profiles): (Effort, CellChoice, Profiles),
    keep: &mut dyn FnMut(&Run) -> Result<(), String>,
) -> Result<Run, String> {
    let stop = stop_flag(|| {}).map_err(text)?;
    let began = cpu::clock_seconds();
    let mut progress = |line: &str| eprintln!("{:5.0} s  {line}", cpu::clock_seconds() - began);
    let mut context = Context {
        program: std::env::current_exe().map_err(text)?,
        cores: cpu::first_two(),
        effort,
        cells,
        profiles,
        stop: &stop,
        progress: &mut progress,
    };
    let mut kept = Ok(());
    let run = laboratory::run(studies, &mut context, &mut |run| {
        kept = keep(run);
        if let Err(problem) = &kept {
            eprintln!("{problem}");
        }
    });
    kept.map(|()| run)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a comparison could list every study of the other run that was not measured again, or be written nowhere.
    #[test]
    fn a_run_is_set_beside_another_in_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let study = |id: &str| report::model::Study { id: id.to_owned(), ..Default::default() };
        let old = Run {
            began: "2026-11-21T18:30:05Z".to_owned(),
            studies: vec![study("e1"), study("e4")],
            ..Run::default()
        };
        let directory = folder.path().join("old");
        write::write(&old, &directory).unwrap();
        let known = before(Some(&directory)).unwrap();
        let new =
            Run { began: "2026-11-27T04:30:00Z".to_owned(), studies: vec![study("e4")], ..Run::default() };
        beside(known, &new, folder.path()).unwrap();
        let page = std::fs::read_to_string(folder.path().join("compare.html")).unwrap();
        assert!(page.contains("old") && page.contains("The surroundings are alike."), "{page}");
        assert!(before(Some(Path::new("/nowhere"))).is_err() && before(None).unwrap().is_none());
    }

    /// Deleted, a study that does not exist could be left out without a word.
    #[test]
    fn studies_are_chosen_by_name() {
        assert_eq!(choose(&[]).unwrap().len(), STUDIES.len());
        let only = |names: &[&str]| choose(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        let chosen = only(&["e5", "e4"]).unwrap();
        assert_eq!(chosen.iter().map(|entry| entry.id).collect::<Vec<_>>(), ["e5", "e4"]);
        assert!(only(&["e99"]).unwrap_err().contains("there is no study e99; there are "));
    }
}
