//! A run of the laboratory: studies one after the other, on one machine, into one report.
//!
//! A study that fails is a study with a problem, and the next one runs all the same. When all shall end, the study under way returns
//! what it has, and the rest is not begun. The keeper of the run hears of it after each study.

use std::io;

use bench::environment::Environment;
use report::model::{Run, Study};

use crate::context::{Context, Effort, Profiles};
use crate::{e1, e2, e3, e4, e5};

/// A study: what it is called in commands, its title for a run in which it fails, and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct StudyEntry {
    /// As in `tercel bench ID`.
    pub id: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// Measures.
    pub run: fn(&mut Context<'_>) -> io::Result<Study>,
    /// Why it says nothing of where CPU time goes, if so: a sentence.
    pub no_profiles: Option<&'static str>,
}

/// Why E8 takes no profiles.
const WAITS: &str = "e8 takes no profiles: its servers wait for the network nearly all of the time, so few samples would be of any work; \
    e5 --profile looks into the same servers at full load";

/// Why shares takes none.
const WAITS_TOO: &str = "shares takes no profiles: a link of 20 Mbit/s gives its servers little to do";

/// All studies, in the order in which a run has them.
pub const STUDIES: &[StudyEntry] = &[
    StudyEntry { id: "e1", title: "Kernel UDP against AF_XDP", run: e1::run, no_profiles: None },
    StudyEntry { id: "e2", title: "Larger packets: DPLPMTUD", run: e2::run, no_profiles: None },
    StudyEntry { id: "e3", title: "Requests per second against latency", run: e3::run, no_profiles: None },
    StudyEntry { id: "e4", title: "Many small requests over HTTP/3", run: e4::run, no_profiles: None },
    StudyEntry {
        id: "e5",
        title: "Few large files over HTTP/1.1, HTTP/2 and HTTP/3",
        run: e5::run,
        no_profiles: None,
    },
    StudyEntry {
        id: "e6",
        title: "Can HTTP/3 be as cheap as HTTP/2 and HTTP/1.1?",
        run: crate::e6::run,
        no_profiles: None,
    },
    StudyEntry {
        id: "e7",
        title: "Handshakes: full, resumed, 0-RTT",
        run: crate::e7::run,
        no_profiles: None,
    },
    StudyEntry {
        id: "e8",
        title: "Bad networks, with real processes",
        run: crate::e8::run,
        no_profiles: Some(WAITS),
    },
    StudyEntry {
        id: "shares",
        title: "Beside the kernel's TCP",
        run: crate::shares::run,
        no_profiles: Some(WAITS_TOO),
    },
    StudyEntry { id: "acks", title: "What acknowledgements cost", run: crate::acks::run, no_profiles: None },
];

/// The study of this name.
pub fn find(id: &str) -> Option<&'static StudyEntry> {
    STUDIES.iter().find(|entry| entry.id == id)
}

/// Runs studies. `keep` is given the run after each of them.
pub fn run(studies: &[StudyEntry], context: &mut Context<'_>, keep: &mut dyn FnMut(&Run)) -> Run {
    let began = cpu::clock_seconds();
    let mut run = Run {
        began: report::date::now(),
        is_quick: context.effort == Effort::Quick,
        // Before we are the load ourselves.
        environment: environment(&Environment::here(), context.cores),
        ..Run::default()
    };
    for (index, entry) in studies.iter().enumerate() {
        if context.is_stopped() {
            break;
        }
        context.tell(&format!("── {} of {}: {}, {}", index + 1, studies.len(), entry.id, entry.title));
        if let Some(why) = entry.no_profiles.filter(|_| context.profiles == Profiles::Taken) {
            context.tell(why);
        }
        let since = cpu::clock_seconds();
        let study = (entry.run)(context).unwrap_or_else(|error| Study {
            id: entry.id.to_owned(),
            title: entry.title.to_owned(),
            problem: Some(error.to_string()),
            seconds: cpu::clock_seconds() - since,
            ..Study::default()
        });
        if let Some(problem) = &study.problem {
            context.tell(&format!("{}: {problem}", entry.id));
        }
        run.studies.push(study);
        run.seconds = cpu::clock_seconds() - began;
        run.was_interrupted = context.is_stopped();
        keep(&run);
    }
    run
}

fn environment(here: &Environment, cores: [usize; 2]) -> Vec<(String, String)> {
    let Environment {
        kernel,
        cpu,
        cpu_features,
        cores: allowed,
        revision,
        version,
        socket_buffers_max,
        tcp_congestion,
        load,
    } = here;
    let [receive, send] = socket_buffers_max;
    let pairs = [
        ("kernel", kernel.clone()),
        ("CPU", cpu.clone()),
        ("CPU has", cpu_features.clone()),
        ("cores", format!("{allowed}; server on {}, client on {}", cores[0], cores[1])),
        ("tercel", format!("{version}, revision {revision}")),
        ("socket buffers", format!("at most {receive} bytes to receive, {send} to send")),
        (
            "kernel's TCP",
            format!(
                "congestion control {tcp_congestion} by default; studies of TCP name what their connections used"
            ),
        ),
        ("load at the beginning", load.to_string()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::context::CellChoice;

    static STOP: AtomicBool = AtomicBool::new(false);

    fn good(_: &mut Context<'_>) -> io::Result<Study> {
        Ok(Study { id: "good".to_owned(), ..Study::default() })
    }

    fn bad(_: &mut Context<'_>) -> io::Result<Study> {
        Err(io::Error::other("it broke"))
    }

    fn interrupted(_: &mut Context<'_>) -> io::Result<Study> {
        STOP.store(true, Ordering::Relaxed);
        Ok(Study { id: "half".to_owned(), problem: Some("interrupted".to_owned()), ..Study::default() })
    }

    /// Deleted, one failure or an impatient user could cost hours of measurements.
    #[test]
    fn what_was_measured_is_kept() {
        let entry = |id, run| StudyEntry { id, title: "a title", run, no_profiles: Some("it waits") };
        let studies: [StudyEntry; 4] =
            [entry("bad", bad), entry("good", good), entry("half", interrupted), entry("never", good)];
        let mut lines = Vec::new();
        let mut tell = |line: &str| lines.push(line.to_owned());
        let program = "/nowhere/tercel".into();
        let mut context = Context {
            program,
            cores: [0, 0],
            effort: Effort::Quick,
            cells: CellChoice::default(),
            profiles: Profiles::Taken,
            stop: &STOP,
            progress: &mut tell,
        };
        let mut kept = Vec::new();
        let run = run(&studies, &mut context, &mut |run| kept.push(run.studies.len()));
        let ids: Vec<&str> = run.studies.iter().map(|study| study.id.as_str()).collect();
        assert_eq!((ids, kept), (vec!["bad", "good", "half"], vec![1, 2, 3]));
        assert_eq!(run.studies[0].problem.as_deref(), Some("it broke"));
        assert!(run.was_interrupted && run.is_quick && !run.began.is_empty());
        assert!(lines.iter().any(|line| line.contains("2 of 4")), "{lines:?}");
        assert!(lines.iter().any(|line| line == "it waits"), "{lines:?}");
    }

    #[test]
    fn names_of_studies_are_unique() {
        for entry in STUDIES {
            assert_eq!(find(entry.id).map(|found| found.title), Some(entry.title));
        }
    }
}
