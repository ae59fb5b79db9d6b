//! A soak: downloads at full rate over a link that loses datagrams, for as long as one likes.
//!
//! Generated bodies one after the other, every byte compared with what it must be, on a server that is told at the end what it
//! has left. It has passed when nothing was lost (each download whole), and when as many packet frames are free afterwards
//! as before. Without loss on the link nothing was tested, so the emulator's count must show some.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::environment::Environment;
use crate::method::Method;
use crate::pair::{ProgramPair, number};
use crate::process::is_interruption;
use crate::site::{End, LinkCount, Site, Trains};

/// How long one download may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is done.
#[derive(Clone, Debug, Serialize)]
pub struct SoakPlan {
    /// The tercel program. Its place is left out of the results.
    #[serde(skip)]
    pub program: PathBuf,
    /// For how long downloads are begun.
    pub seconds: f64,
    /// Share of datagrams that the link loses, each way.
    pub loss: f64,
    /// The server's path; the client uses GSO.
    pub method: Method,
    /// Clients at the same time: one alone would be slowed down by what it takes for congestion.
    pub clients: usize,
    /// Bytes of one download.
    pub bytes: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Soak {
    /// What was to be done.
    pub plan: SoakPlan,
    /// Where.
    pub environment: Environment,
    /// Downloads that were whole and right.
    pub downloads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the first to the last.
    pub seconds: f64,
    /// Why a download failed.
    pub failure: Option<String>,
    /// Packet frames that were free before and after, for each worker that has some.
    pub frames: Vec<[u64; 2]>,
    /// What the link did to datagrams on their way to the client.
    pub link: LinkCount,
    /// The server's own words about its path.
    pub path_in_use: String,
    /// CPU seconds of the server.
    pub server_cpu_s: f64,
}

impl Soak {
    /// Share of the datagrams to the client that the link lost.
    pub fn lost_share(&self) -> f64 {
        self.link.lost as f64 / self.link.entered.max(1) as f64
    }

    /// Why the soak has not passed.
    pub fn problem(&self) -> Option<String> {
        if let Some(failure) = &self.failure {
            return Some(format!("after {} downloads: {failure}", self.downloads));
        }
        if let Some([before, after]) = self.frames.iter().find(|[before, after]| before != after) {
            return Some(format!("frames leaked: {before} were free before, {after} after"));
        }
        if self.plan.method.is_xdp() && self.frames.is_empty() {
            return Some("the server does not tell how many frames were free".to_owned());
        }
        if self.plan.loss > 0.0 && self.link.lost == 0 {
            return Some("the link lost nothing, so nothing was tested".to_owned());
        }
        None
    }
}

/// Downloads until the time is over. `progress` hears a line for each download.
///
/// # Errors
/// `stop` was set, or nothing can be run at all.
pub fn run(
    plan: &SoakPlan,
    site: &Site,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> io::Result<Soak> {
    let environment = Environment::here();
    let trains = if plan.method == Method::XdpGeneric { Trains::Cut } else { Trains::Whole };
    site.let_trains_through(trains)?;
    let pair = ProgramPair::new(&plan.program, site, stop)?;
    let [server_core, client_core] = cpu::first_two();
    let server = pair.serve(plan.method, site.ipv4(End::Server), &[server_core], &[])?;
    let url = server.url(&format!("bytes/{}", plan.bytes));
    let began = cpu::clock_seconds();
    let until = began + plan.seconds;
    let (mut downloads, mut failure) = (0, None);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..plan.clients.max(1) {
            let (pair, url, tell) = (&pair, url.as_str(), tell.clone());
            scope.spawn(move || download(pair, url, client_core, until, &tell));
        }
        drop(tell);
        for outcome in told {
            match outcome {
                Ok(line) => {
                    downloads += 1;
                    progress(&format!("{:6.1} s: {line}", cpu::clock_seconds() - began));
                }
                Err(error) => failure = failure.take().or(Some(error)),
            }
        }
    });
    let failure = match failure {
        Some(error) if is_interruption(&error, stop) => {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
        }
        failure => failure.map(|error| error.to_string()),
    };
    let seconds = cpu::clock_seconds() - began;
    let (_, summary) = server.finish(stop)?;
    Ok(Soak {
        plan: plan.clone(),
        environment,
        downloads,
        bytes: downloads * plan.bytes,
        seconds,
        failure,
        frames: frames(&summary),
        link: site.towards_client(),
        path_in_use: crate::datapaths::path_in_use(&summary),
        server_cpu_s: number(&summary, "cpu_s")?,
    })
}

/// One download after the other, until the time is over or one fails.
fn download(
    pair: &ProgramPair<'_>,
    url: &str,
    core: usize,
    until: f64,
    tell: &mpsc::Sender<io::Result<String>>,
) {
    while cpu::clock_seconds() < until {
        let fetched = pair.fetch(Method::Gso, &[core], &[url, "--verify-pattern"], PATIENCE);
        let outcome = fetched.map(|(_, lines)| download_line(&lines));
        let is_over = outcome.is_err();
        if tell.send(outcome).is_err() || is_over {
            return;
        }
    }
}

fn download_line(lines: &[Value]) -> String {
    let Some(line) = lines.first() else { return "no figures".to_owned() };
    let rate = line["goodput_bits_per_second"].as_f64().unwrap_or(0.0) / 8e6;
    format!("{} bytes right, {rate:.0} MB/s", line["bytes"])
}

/// Free frames before and after, of every worker that has frames.
fn frames(summary: &Value) -> Vec<[u64; 2]> {
    let pair = |worker: &Value| {
        let [before, after] =
            ["free_frames_at_start", "free_frames_at_end"].map(|name| worker[name].as_u64());
        Some([before?, after?])
    };
    summary["workers"].as_array().into_iter().flatten().filter_map(pair).collect()
}

impl fmt::Display for Soak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.environment)?;
        writeln!(
            f,
            "{} ({}): {} downloads of {:.1} MB by {} clients in {:.1} s, {:.0} MB/s, every byte compared",
            self.plan.method,
            self.path_in_use,
            self.downloads,
            self.plan.bytes as f64 / 1e6,
            self.plan.clients,
            self.seconds,
            self.bytes as f64 / 1e6 / self.seconds
        )?;
        writeln!(
            f,
            "link: {} of {} datagrams to the client lost ({:.2} %), {} more dropped",
            self.link.lost,
            self.link.entered,
            self.lost_share() * 100.0,
            self.link.dropped
        )?;
        for [before, after] in &self.frames {
            writeln!(f, "frames: {before} free before, {after} after")?;
        }
        match self.problem() {
            None => write!(f, "passed: nothing lost, no frame leaked"),
            Some(problem) => write!(f, "FAILED: {problem}"),
        }
    }
}
