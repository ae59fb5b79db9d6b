//! One download: a link, a server and a client, all made for it, and what waited in the link's queue meanwhile. Where a client comes
//! again, link and server stay for a second one.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use bench::course::CourseWatch;
use bench::site::{End, Site};
use serde_json::Value;
use sim::networks::Work;

use super::lane::{Attempt, QueueWait, SecondVisit};
use super::plan::{Beside, PlannedCell, RESPONSE};
use super::requests::{Browsed, Browsing};
use super::sender::{Control, Sender};
use crate::contestants::{Http, LARGE, Serving, TestSite};

/// What all downloads have.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) ground: &'a TestSite,
    /// With the file of 100 MB, which some servers read before they listen.
    pub(super) large: &'a TestSite,
    /// The tercel program, which is the client.
    pub(super) program: &'a Path,
    pub(super) cores: [usize; 2],
    pub(super) stop: &'a AtomicBool,
}

impl Surroundings<'_> {
    /// Downloads over a link of the cell's kind. Namespaces are new each time, so that neither a server nor the kernel's TCP knows the
    /// path.
    ///
    /// # Errors
    /// There is no link, the server does not start, or [`io::ErrorKind::Interrupted`]. A download that fails is an attempt.
    pub(super) fn download(&self, cell: &PlannedCell, sender: &Sender, seed: u64) -> io::Result<Attempt> {
        let [to_client, to_server] = cell.link(seed);
        let site = Site::linked(&to_client, &to_server).map_err(io::Error::other)?;
        if let Control::Kernel(name) = sender.control {
            site.set_tcp_congestion(name)?;
        }
        let flags = sender.control.flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let files = if cell.work == Work::Large { self.large } else { self.ground };
        let ground = files.on_other(site)?;
        let server = sender.server.start_with(&ground, &flags, (self.cores[0], self.stop))?;
        let watch = CourseWatch::start(server.id(), ground.site().interface(End::Server));
        let told = match cell.beside {
            Beside::Nothing => self.get(cell, sender, (&ground, &server))?.map(|seconds| (seconds, None)),
            Beside::Requests => {
                let browsed = self.browse(cell, sender, (&ground, &server))?;
                browsed.map(|browsed| (browsed.seconds, Some(browsed.requests)))
            }
        };
        let course = watch.finish();
        let faults = ground.site().link_faults();
        let attempt = Attempt {
            seed,
            missed: faults.missed,
            worst_late_ms: faults.worst_late.as_secs_f64() * 1e3,
            queue: QueueWait::of(&ground.site().waits_towards_client()),
            course,
            ..Attempt::default()
        };
        Ok(match told {
            Ok((Some(seconds), None)) if cell.is_visited_twice() => {
                let second = Some(self.again(cell, sender, (&ground, &server))?);
                Attempt { seconds: Some(seconds), second, ..attempt }
            }
            Ok((seconds, requests)) => Attempt { seconds, requests, ..attempt },
            Err(fault) => Attempt { fault: Some(fault), ..attempt },
        })
    }

    /// The same download by a new client, which knows nothing of the first one; what the sender knows is its own affair.
    fn again(
        &self,
        cell: &PlannedCell,
        sender: &Sender,
        (ground, server): (&TestSite, &Serving),
    ) -> io::Result<SecondVisit> {
        let before = ground.site().link_faults().missed;
        let told = self.get(cell, sender, (ground, server))?;
        let faults = ground.site().link_faults();
        let (seconds, fault) = match told {
            Ok(seconds) => (seconds, None),
            Err(fault) => (None, Some(fault)),
        };
        let worst_late_ms = faults.worst_late.as_secs_f64() * 1e3;
        Ok(SecondVisit { seconds, fault, missed: faults.missed.saturating_sub(before), worst_late_ms })
    }

    /// Downloads by `tercel get`: the seconds until all was there, none if it was not in time, or what failed.
    fn get(
        &self,
        cell: &PlannedCell,
        sender: &Sender,
        (ground, server): (&TestSite, &Serving),
    ) -> io::Result<Result<Option<f64>, String>> {
        let mut command = Command::new(self.program);
        let limit = cell.limit();
        let patience = limit.as_secs().max(1).to_string();
        let files = cell.files();
        command.args(["get", "--insecure", "--discard", "--json", "--quiet", "--timeout", "0"]);
        command.args(["--connect-timeout", &patience, "--http", sender.http.flag()]);
        command.args(["--parallel", &files.len().to_string()]);
        command.args(files.into_iter().map(|file| server.url(file)));
        let began = cpu::clock_seconds();
        let client = ground.start(End::Client, "tercel get", self.cores[1], &mut command)?;
        match client.finish(limit, self.stop) {
            Ok(ended) => Ok(read(&ended.output, cell, sender.http)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(_) if cpu::clock_seconds() - began >= limit.as_secs_f64() => Ok(Ok(None)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Downloads with small requests beside.
    fn browse(
        &self,
        cell: &PlannedCell,
        sender: &Sender,
        (ground, server): (&TestSite, &Serving),
    ) -> io::Result<Result<Browsed, String>> {
        let of = |(name, bytes): (&str, u64)| (server.url(name), bytes);
        let browsing = Browsing {
            http: sender.http,
            bulk: of(LARGE),
            small: of(RESPONSE),
            limit: cell.limit(),
            stop: self.stop,
        };
        match ground.site().run(End::Client, || browsing.run()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            other => Ok(other.map_err(|error| error.to_string())),
        }
    }
}

/// The seconds until the last byte of the last file, from the lines of `tercel get --json`.
///
/// # Errors
/// What is wrong with the download, in words.
pub(super) fn read(output: &str, cell: &PlannedCell, http: Http) -> Result<Option<f64>, String> {
    let lines: Result<Vec<Value>, _> = output.lines().map(serde_json::from_str).collect();
    let lines = lines.map_err(|_| "tercel get printed something that is not understood".to_owned())?;
    if let Some(error) = lines.iter().find_map(|line| line["error"].as_str()) {
        return Err(error.to_owned());
    }
    let bytes: u64 = lines.iter().filter_map(|line| line["bytes"].as_u64()).sum();
    if lines.iter().any(|line| line["status"] != 200) || bytes != cell.bytes() {
        return Err(format!("{bytes} of {} bytes came", cell.bytes()));
    }
    if http == Http::Two && lines.iter().any(|line| line["http_version"] != "2.0") {
        return Err("it was not HTTP/2".to_owned());
    }
    let seconds = lines.iter().filter_map(|line| line["seconds"].as_f64()).max_by(f64::total_cmp);
    Ok(seconds.filter(|seconds| *seconds <= cell.limit().as_secs_f64()))
}
