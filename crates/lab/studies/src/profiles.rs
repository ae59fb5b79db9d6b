//! Where a server's core goes: a flame graph and a ledger of a server that is at work, for any study.
//!
//! What the server is asked lasts longer than the profile, so all samples are of the steady state; the client is ended afterwards.
//! Nanoseconds per packet, where packets are counted, are the server's CPU time from the operating system, from start to end, shared
//! out as the samples are; taking them costs some of that time, so figures here are not those of the trials.

use std::io;
use std::time::Duration;

use bench::method::Method;
use bench::pair::{ProgramPair, number};
use bench::process::Running;
use bench::site::{End, Site};
use profile::ledger::Work;
use profile::{Ledger, Profile, Recorder, Target};
use report::model::{Block, Drawing, Study};

use crate::context::{Context, Profiles};
use crate::downloads::{Asker, DownloadSeries};

/// More content than any server sends while it is watched.
const BYTES: &str = "bytes/1000GB";
/// More requests than any server answers meanwhile.
pub(crate) const REQUESTS: u64 = 1_000_000_000;
/// The beginning of a transfer is another thing.
const SETTLED: Duration = Duration::from_secs(1);
/// How long the client may take to end.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a reader must know.
const METHOD: &str = "Profiles: perf samples the server's clock on the CPU 997 times a second with call stacks while it does the same work \
    once more, after the first second; each sample counts for one part of the work by a table of function names \
    (crates/lab/profile/src/parts.rs). Of the kernel's sending, delivery is the receiver's part of the network stack: a virtual link does it \
    in the sender's call. Time that the kernel spends outside the server's threads is in no part. Taking stacks slows the server down by a \
    few per cent.";

/// Something to look into: its name in tables, and how a profile of it is taken.
pub(crate) struct Look<'a> {
    pub(crate) name: String,
    pub(crate) take: Box<Take<'a>>,
}

type Take<'a> = dyn Fn(&Context<'_>) -> io::Result<Profile> + 'a;

impl<'a> Look<'a> {
    pub(crate) fn new(name: &str, take: impl Fn(&Context<'_>) -> io::Result<Profile> + 'a) -> Look<'a> {
        Look { name: name.to_owned(), take: Box::new(take) }
    }

    /// At a server that sends a download of this series, at both ends of a site of its own that `make` makes.
    pub(crate) fn at_download(series: DownloadSeries, make: fn() -> io::Result<Site>) -> Look<'a> {
        let name = series.name.clone();
        Look::new(&name, move |context| of_download(context, &make()?, &series))
    }
}

/// Two namespaces that veth joins, for [`Look::at_download`].
pub(crate) fn veth() -> io::Result<Site> {
    Site::veth(1).map_err(io::Error::other)
}

/// Takes profiles if they are wanted and the study is whole, and puts them where they are read. What cannot be profiled is a note.
/// Returns what was found, for a study that has more to say of it.
pub(crate) fn add(
    context: &mut Context<'_>,
    looks: Vec<Look<'_>>,
    study: &mut Study,
) -> Vec<(String, Profile)> {
    let mut found = Vec::new();
    if context.profiles == Profiles::None || study.problem.is_some() {
        return found;
    }
    for Look { name, take } in looks {
        if context.is_stopped() {
            break;
        }
        match take(context) {
            Ok(profile) => {
                context.tell(&format!("{name}: profile  {}", profile.ledger.sentence()));
                found.push((name, profile));
            }
            Err(error) => study.notes.push(format!("No profile of {name}: {error}.")),
        }
    }
    if !found.is_empty() {
        tell(&found, study);
    }
    found
}

/// Watches a server that is at work for as long as a profile takes.
pub(crate) fn watch(server: u32, name: &str, context: &Context<'_>) -> io::Result<Profile> {
    std::thread::sleep(SETTLED);
    let stacks = Recorder::start(&Target::Process(server), Some(seconds(context)))?.finish(context.stop)?;
    Profile::of(&stacks, &format!("The server's core, {name}"))
}

/// How long a client must keep a server at work that is watched, in seconds.
pub(crate) fn work_seconds(context: &Context<'_>) -> f64 {
    // perf needs a moment to begin.
    SETTLED.as_secs_f64() + seconds(context) + 5.0
}

fn seconds(context: &Context<'_>) -> f64 {
    context.scaled(8.0, 3.0)
}

fn of_download(context: &Context<'_>, site: &Site, series: &DownloadSeries) -> io::Result<Profile> {
    let program = series.program.as_ref().unwrap_or(&context.program);
    let pair = ProgramPair::new(program, site, context.stop)?;
    let flags: Vec<&str> = series.server.iter().map(String::as_str).collect();
    let server = pair.serve(series.method, site.ipv4(End::Server), &context.cores[..1], &flags)?;
    let client = client(&pair, series, (&server.url(BYTES), context.cores[1]))?;
    let profile = watch(server.id(), &series.name, context)?;
    client.ask_to_end();
    // It is broken off, which it calls a failure.
    let _ = client.finish(PATIENCE, context.stop);
    let (ended, summary) = server.finish(context.stop)?;
    let packets = number(&summary, "sent_datagrams")? as u64;
    let ledger = profile.ledger.with_work(Work { cpu_seconds: ended.usage.total_s(), packets });
    Ok(Profile { ledger, ..profile })
}

fn client(
    pair: &ProgramPair<'_>,
    series: &DownloadSeries,
    (url, core): (&str, usize),
) -> io::Result<Running> {
    let mut flags: Vec<&str> = series.client.iter().map(String::as_str).collect();
    match series.asker {
        Asker::Get => {
            flags.extend([url, "--discard"]);
            pair.get(Method::Gso, &[core], &flags)
        }
        Asker::Load(http) => {
            flags.extend(["--http", http, "-n", "1", "-c", "1", "-m", "1", "--timeout", "600", url]);
            pair.load(&[core], &flags)
        }
    }
}

/// Puts what was found where it is read.
fn tell(found: &[(String, Profile)], study: &mut Study) {
    study.method.push(METHOD.to_owned());
    let ledgers: Vec<(&str, &Ledger)> =
        found.iter().map(|(name, profile)| (name.as_str(), &profile.ledger)).collect();
    study.findings.extend(largest(&ledgers));
    study.blocks.push(Block::Table(Ledger::table("Where the server's CPU time goes", &ledgers)));
    for (name, profile) in found {
        let title =
            format!("Flame graph of the server, {name}: width is CPU time, colours are the ledger's parts");
        study.blocks.push(Block::Drawing(Drawing { title, svg: profile.svg.clone() }));
        study.notes.extend(profile.notes.iter().map(|note| format!("Profile of {name}: {note}")));
    }
    let ledgers: serde_json::Map<_, _> = found
        .iter()
        .map(|(name, profile)| (name.clone(), serde_json::to_value(&profile.ledger).unwrap_or_default()))
        .collect();
    match &mut study.raw {
        serde_json::Value::Object(raw) => {
            raw.insert("profiles".to_owned(), ledgers.into());
        }
        other => *other = serde_json::json!({ "trials": other.take(), "profiles": ledgers }),
    }
}

/// One sentence on the parts that are largest. The table has the figures.
fn largest(ledgers: &[(&str, &Ledger)]) -> Option<String> {
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, ledger) in ledgers {
        let Some((part, _)) = ledger.largest() else { continue };
        match parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, names)) => names.push(name),
            None => parts.push((part, vec![name])),
        }
    }
    let said: Vec<String> = match &parts[..] {
        [] => return None,
        [(part, _)] => vec![(*part).to_owned()],
        parts => parts.iter().map(|(part, names)| format!("{part} with {}", names.join("; "))).collect(),
    };
    Some(format!("The largest part of the server's CPU time is {}.", said.join(", ")))
}

#[cfg(test)]
pub(crate) mod tests;
