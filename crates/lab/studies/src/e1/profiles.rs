//! Where the server's core goes in each mode: a flame graph and a ledger of a download that is under way.
//!
//! The download is larger than it could be done in that time, so all samples are of the steady state; it is broken off
//! afterwards. Nanoseconds per packet are the server's CPU time from the operating system, from start to end, shared out as
//! the samples are; taking them costs some of that time, so figures here are not those of the trials.

use std::io;
use std::time::Duration;

use bench::method::Method;
use bench::pair::{ProgramPair, number};
use bench::site::{End, Site, Trains};
use profile::ledger::Work;
use profile::parts::Part;
use profile::{Ledger, Profile, Recorder, Target};
use report::model::{Block, Drawing, Study};

use crate::context::Context;

/// The server's paths that are looked into: what the study compared, and what it did not know.
const METHODS: [Method; 3] = [Method::Plain, Method::Gso, Method::XdpDriver];

/// More than any server sends meanwhile.
const BYTES: &str = "bytes/1000GB";

/// The beginning of a transfer is another thing.
const SETTLED: Duration = Duration::from_secs(1);

/// How long the client may take to end.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a reader must know.
const METHOD: &str = "Profiles: perf samples the server's clock on the CPU 997 times a second with call stacks during another download, after \
    its first second; each sample counts for one part of the work by a table of function names (crates/lab/profile/src/parts.rs). Of \
    the kernel's sending, delivery is the receiver's part of the network stack: a virtual link does it in the sender's call. Time that \
    the kernel spends outside the server's threads is in no part. Taking stacks slows the server down by a few per cent.";

/// Adds flame graphs, the ledger and what they say. A path that cannot be profiled is a note.
pub(super) fn add(context: &mut Context<'_>, packet_size: u16, study: &mut Study) {
    let mut found: Vec<(Method, Profile)> = Vec::new();
    for method in METHODS {
        if context.is_stopped() {
            break;
        }
        match measure(context, packet_size, method) {
            Ok(profile) => {
                context.tell(&format!("{method:12} profile  {}", profile.ledger.sentence()));
                found.push((method, profile));
            }
            Err(error) => study.notes.push(format!("No profile of {method}: {error}.")),
        }
    }
    if !found.is_empty() {
        tell(&found, study);
    }
}

fn measure(context: &Context<'_>, packet_size: u16, method: Method) -> io::Result<Profile> {
    let site = Site::veth(1).map_err(io::Error::other)?;
    site.let_trains_through(if method == Method::XdpGeneric { Trains::Cut } else { Trains::Whole })?;
    let pair = ProgramPair::new(&context.program, &site, context.stop)?;
    let size = packet_size.to_string();
    let quic = ["--cipher", "aes128", "--congestion", "cubic", "--packet-size", &size];
    let server = pair.serve(method, site.ipv4(End::Server), &context.cores[..1], &quic)?;
    let url = server.url(BYTES);
    let arguments = [&[url.as_str(), "--discard"][..], &quic].concat();
    let client = pair.get(Method::Gso, &context.cores[1..], &arguments)?;
    std::thread::sleep(SETTLED);
    let seconds = context.scaled(8.0, 3.0);
    let stacks = Recorder::start(&Target::Process(server.id()), Some(seconds))?.finish(context.stop)?;
    client.ask_to_end();
    // It is broken off, which it calls a failure.
    let _ = client.finish(PATIENCE, context.stop);
    let (ended, summary) = server.finish(context.stop)?;
    let packets = number(&summary, "sent_datagrams")? as u64;
    let profile = Profile::of(&stacks, &format!("The server's core, {method}"))?;
    let ledger = profile.ledger.with_work(Work { cpu_seconds: ended.usage.total_s(), packets });
    Ok(Profile { ledger, ..profile })
}

/// Puts what was found where it is read.
fn tell(found: &[(Method, Profile)], study: &mut Study) {
    study.method.push(METHOD.to_owned());
    let ledgers: Vec<(&str, &Ledger)> =
        found.iter().map(|(method, profile)| (method.name(), &profile.ledger)).collect();
    for (name, ledger) in &ledgers {
        study.findings.extend(ledger.largest().map(|(part, share)| {
            format!("{name}: the largest part of the server's CPU time is {part}, {:.1} %.", share * 100.0)
        }));
    }
    study.findings.push(verdict(&ledgers));
    study.blocks.push(Block::Table(Ledger::table("Where the server's CPU time goes", &ledgers)));
    for (method, profile) in found {
        let title =
            format!("Flame graph of the server, {method}: width is CPU time, colours are the ledger's parts");
        study.blocks.push(Block::Drawing(Drawing { title, svg: profile.svg.clone() }));
        study.notes.extend(profile.notes.iter().map(|note| format!("Profile of {method}: {note}")));
    }
    if let serde_json::Value::Object(raw) = &mut study.raw {
        let ledgers = found.iter().map(|(method, profile)| {
            (method.name().to_owned(), serde_json::to_value(&profile.ledger).unwrap_or_default())
        });
        raw.insert("profiles".to_owned(), ledgers.collect::<serde_json::Map<_, _>>().into());
    }
}

/// Beside what the study saw.
fn verdict(ledgers: &[(&str, &Ledger)]) -> String {
    let said: Vec<String> = ledgers
        .iter()
        .map(|(name, ledger)| {
            let [send, seal] = [Part::KernelSend, Part::PacketProtection].map(|part| ledger.share(part));
            if seal > 0.0 { format!("{:.1} with {name}", send / seal) } else { format!("all with {name}") }
        })
        .collect();
    format!(
        "The kernel's sending over packet protection, in CPU time: {}. The study saw the kernel's send call far ahead of encryption with \
         UDP, and the two about equal with AF_XDP.",
        said.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::inlines::Function;
    use profile::script::Side;
    use report::model::Cell;

    fn profile(send: u64, seal: u64) -> Profile {
        let stack = |name: &str, side| vec![Function { name: name.to_owned(), side }];
        let (sends, seals) =
            (stack("__sys_sendmsg", Side::Kernel), stack("crypto::packet::seal", Side::User));
        let ledger = Ledger::of([(sends.as_slice(), send), (seals.as_slice(), seal)]);
        let ledger = ledger.with_work(Work { cpu_seconds: 1.0, packets: 1_000_000 });
        Profile { ledger, svg: "<svg/>".to_owned(), notes: vec!["rough".to_owned()], ..Profile::default() }
    }

    /// Deleted, the question of the study, which of the two is larger, could be answered the wrong way round.
    #[test]
    fn the_verdict_is_of_these_profiles() {
        let mut study = Study { raw: serde_json::json!({}), ..Study::default() };
        tell(&[(Method::Plain, profile(75, 25)), (Method::XdpDriver, profile(50, 50))], &mut study);
        let told = study.findings.join("\n");
        assert!(told.contains("3.0 with plain, 1.0 with xdp driver"), "{told}");
        assert!(
            told.contains("plain: the largest part of the server's CPU time is kernel send, 75.0 %."),
            "{told}"
        );
        let Some(Block::Table(table)) = study.blocks.first() else { panic!("{study:?}") };
        assert_eq!(table.rows[0].cells[1], Cell::Number(750.0, 0), "nanoseconds per packet");
        assert_eq!((study.blocks.len(), study.notes.len()), (3, 2));
        assert_eq!(study.raw["profiles"]["plain"]["samples"], 100);
    }
}
