//! One download of a large generated body, again and again, with something left out or added each time: what it costs the
//! server and the client in CPU time, by the operating system's account.
//!
//! A *lane* is a way of doing it: a name, and flags for both ends. Rounds have one trial of each lane; the first is not counted,
//! and every other one runs in the opposite order. Server and client are processes on a core each, started anew for each trial.
//! A lane that fails is told and left out; when all shall end, what was measured is kept.

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bench::course::{CourseWatch, Interval};
use bench::estimate::Estimate;
use bench::method::Method;
use bench::pair::{ProgramPair, number};
use bench::process::is_interruption;
use bench::site::End;
use bench::stats::{Ratio, Summary};
use report::model::Cell;
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::courses::Rounds;

/// Which program downloads, and over what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Asker {
    /// `tercel get`, over HTTP/3.
    Get,
    /// `tercel load --http`, with a single request: HTTP/1.1 or 2.
    Load(&'static str),
}

/// A way to download.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DownloadSeries {
    /// As tables call it.
    pub(crate) name: String,
    /// The server's data path. The client's is [`Method::Gso`], so that it is not what limits.
    pub(crate) method: Method,
    pub(crate) asker: Asker,
    /// Flags of `tercel serve`.
    pub(crate) server: Vec<String>,
    /// Flags of the client.
    pub(crate) client: Vec<String>,
    /// Another build of tercel that does it, at both ends. Where it lies is no result.
    #[serde(skip)]
    pub(crate) program: Option<PathBuf>,
    /// All counted trials, in order of time.
    pub(crate) trials: Vec<Trial>,
    /// Why it was left out.
    pub(crate) problem: Option<String>,
}

/// What one download was like.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Trial {
    /// CPU seconds for 10^9 bytes of content.
    pub(crate) server_cpu_s_per_gb: f64,
    pub(crate) client_cpu_s_per_gb: f64,
    /// 10^6 bytes of content a second.
    pub(crate) megabytes_per_second: f64,
    /// Shares of their cores that both used.
    pub(crate) server_share: f64,
    pub(crate) client_share: f64,
    /// UDP datagrams that the server sent, and what they carried on average; 0 over TCP.
    pub(crate) server_datagrams: f64,
    pub(crate) payload: f64,
    /// UDP datagrams that the client sent.
    pub(crate) client_datagrams: f64,
    /// Datagrams that the server handed over in one system call, on average.
    pub(crate) datagrams_per_call: f64,
    /// Datagrams that came to one of the server's workers and belonged to another.
    pub(crate) handed_off: f64,
    /// Whether the kernel held the server's trains until they departed.
    pub(crate) departure_times: bool,
    /// What the server did meanwhile.
    pub(crate) course: Vec<Interval>,
}

/// Downloads of several series, in turns.
pub(crate) struct DownloadRun<'a> {
    pub(crate) pair: &'a ProgramPair<'a>,
    /// Those of server and client.
    pub(crate) cores: [usize; 2],
    /// Content of one download.
    pub(crate) bytes: u64,
    /// Counted rounds.
    pub(crate) trials: usize,
    /// What progress messages call it.
    pub(crate) place: &'static str,
}

impl DownloadSeries {
    /// HTTP/3 with the same flags at both ends.
    pub(crate) fn new(name: &str, method: Method, flags: &[&str]) -> DownloadSeries {
        DownloadSeries::apart(name, method, flags, flags)
    }

    /// HTTP/3 with flags for each end.
    pub(crate) fn apart(name: &str, method: Method, server: &[&str], client: &[&str]) -> DownloadSeries {
        let own = |flags: &[&str]| flags.iter().map(|flag| (*flag).to_owned()).collect();
        DownloadSeries {
            name: name.to_owned(),
            method,
            asker: Asker::Get,
            server: own(server),
            client: own(client),
            program: None,
            trials: Vec::new(),
            problem: None,
        }
    }

    /// What the name of the server's data path must contain: without segmentation by the kernel it is another one.
    fn path_in_use(&self) -> &'static str {
        let is_left_out = |flags: &[String]| matches!(flags, [flag, names] if flag == "--without" && names.split(',').any(|name| name == "gso"));
        match self.method {
            Method::Gso if self.server.windows(2).any(is_left_out) => Method::Mmsg.family(),
            method => method.family(),
        }
    }

    /// The figures of its trials.
    pub(crate) fn values(&self, figure: impl Fn(&Trial) -> f64) -> Vec<f64> {
        self.trials.iter().map(figure).collect()
    }

    /// The same for a table, if there are any.
    pub(crate) fn cell(&self, digits: u8, figure: impl Fn(&Trial) -> f64) -> Cell {
        if self.trials.is_empty() {
            Cell::Empty
        } else {
            Cell::Trials(Summary::of(self.values(figure)), digits)
        }
    }

    /// The courses of its trials, under this name.
    pub(crate) fn rounds(&self, name: String) -> Rounds<'_> {
        Rounds { name, courses: self.trials.iter().map(|trial| &trial.course[..]).collect() }
    }

    /// The server's CPU time for the same content over that of another lane.
    pub(crate) fn cost_over(&self, other: &DownloadSeries) -> Option<Ratio> {
        let cost = |trial: &Trial| trial.server_cpu_s_per_gb;
        Ratio::by_rounds(&self.values(cost), &other.values(cost))
    }
}

impl DownloadRun<'_> {
    /// Runs all rounds.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] when all shall end; the lanes keep what was measured.
    pub(crate) fn run(&self, lanes: &mut [DownloadSeries], context: &mut Context<'_>) -> io::Result<()> {
        let mut estimate = Estimate::of_rounds(lanes.len(), self.trials + 1);
        for round in 0..=self.trials {
            let mut order: Vec<usize> = (0..lanes.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                let Some(lane) = lanes.get_mut(index).filter(|lane| lane.problem.is_none()) else { continue };
                if context.is_stopped() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                match self.trial(lane) {
                    Ok(trial) => {
                        let left = estimate.step(1.0);
                        context.tell(&format!("{}{left}", self.line(lane, round, &trial)));
                        lane.trials.extend((round > 0).then_some(trial));
                    }
                    Err(error) if is_interruption(&error, context.stop) => {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    Err(error) => {
                        context.tell(&format!("{}, {}: {error}", self.place, lane.name));
                        lane.problem = Some(error.to_string());
                    }
                }
            }
        }
        Ok(())
    }

    fn line(&self, lane: &DownloadSeries, round: usize, trial: &Trial) -> String {
        let counted = if round == 0 { "warm-up".to_owned() } else { format!("{round}/{}", self.trials) };
        format!(
            "{:9} {:34} {counted:8} server {:.3} CPU s/GB ({:3.0} %), client {:.3} ({:3.0} %), {:6.0} MB/s",
            self.place,
            lane.name,
            trial.server_cpu_s_per_gb,
            trial.server_share * 100.0,
            trial.client_cpu_s_per_gb,
            trial.client_share * 100.0,
            trial.megabytes_per_second
        )
    }

    fn trial(&self, lane: &DownloadSeries) -> io::Result<Trial> {
        let [server_core, client_core] = self.cores;
        let other =
            lane.program.as_ref().map(|program| ProgramPair::new(program, self.pair.site, self.pair.stop));
        let other = other.transpose()?;
        let pair = other.as_ref().unwrap_or(self.pair);
        let flags: Vec<&str> = lane.server.iter().map(String::as_str).collect();
        let server = pair.serve(lane.method, pair.site.ipv4(End::Server), &[server_core], &flags)?;
        let url = server.url(&format!("bytes/{}", self.bytes));
        let seconds_of = |id| cpu::seconds_of(id).ok_or_else(|| io::Error::other("the server has gone"));
        let before = seconds_of(server.id())?;
        let watch = CourseWatch::start(server.id(), pair.site.interface(End::Server));
        let told = self.download(pair, lane, (&url, client_core))?;
        let course = watch.finish();
        let server_cpu_s = seconds_of(server.id())? - before;
        let (_, summary) = server.finish(pair.stop)?;
        if told.bytes < self.bytes as f64 {
            return Err(io::Error::other(format!("{} bytes of {} came", told.bytes, self.bytes)));
        }
        let mut trial = Trial {
            server_cpu_s_per_gb: server_cpu_s * 1e9 / told.bytes,
            client_cpu_s_per_gb: told.cpu_s * 1e9 / told.bytes,
            megabytes_per_second: told.bytes / told.seconds / 1e6,
            server_share: server_cpu_s / told.seconds,
            client_share: told.cpu_s / told.seconds,
            course,
            ..Trial::default()
        };
        if lane.asker == Asker::Get {
            let in_use = summary["datapath"].as_str().unwrap_or_default();
            let wanted = lane.path_in_use();
            if !in_use.contains(wanted) {
                return Err(io::Error::other(format!("the server used {in_use}, not {wanted}")));
            }
            trial.server_datagrams = number(&summary, "sent_datagrams")?;
            trial.client_datagrams = number(&summary, "received_datagrams")?;
            trial.payload = number(&summary, "sent_bytes")? / trial.server_datagrams.max(1.0);
            trial.datagrams_per_call = trial.server_datagrams / number(&summary, "send_calls")?.max(1.0);
            trial.departure_times = summary["departure_times"].as_bool().unwrap_or(false);
        }
        Ok(trial)
    }

    fn download(
        &self,
        pair: &ProgramPair<'_>,
        lane: &DownloadSeries,
        (url, core): (&str, usize),
    ) -> io::Result<Told> {
        let patience = Duration::from_secs_f64(30.0 + self.bytes as f64 / 10e6);
        let mut flags: Vec<&str> = lane.client.iter().map(String::as_str).collect();
        match lane.asker {
            Asker::Get => {
                flags.extend([url, "--discard"]);
                let (ended, lines) = pair.fetch(Method::Gso, &[core], &flags, patience)?;
                let line = first(lines)?;
                let (bytes, seconds) = (number(&line, "bytes")?, number(&line, "seconds")?);
                Ok(Told { bytes, seconds, cpu_s: ended.usage.total_s() })
            }
            Asker::Load(http) => {
                flags.extend(["--http", http, "-n", "1", "-c", "1", "-m", "1", "--timeout", "600", url]);
                let ended = pair.load(&[core], &flags)?.finish(patience, pair.stop)?;
                let line = last_json(&ended.output)?;
                let bytes = number(&line, "content_bytes")?;
                Ok(Told { bytes, seconds: number(&line, "seconds")?, cpu_s: ended.usage.total_s() })
            }
        }
    }
}

/// What a client says.
struct Told {
    bytes: f64,
    seconds: f64,
    cpu_s: f64,
}

/// The figures that `tercel load` prints at its end.
pub(crate) fn last_json(output: &str) -> io::Result<Value> {
    let line = output.lines().rfind(|line| line.starts_with('{'));
    let line = line.ok_or_else(|| io::Error::other("the client printed no figures"))?;
    serde_json::from_str(line).map_err(io::Error::other)
}

fn first(lines: Vec<Value>) -> io::Result<Value> {
    lines.into_iter().next().ok_or_else(|| io::Error::other("the client printed no figures"))
}

/// How a ratio of costs reads as a saving: "12 % less (95 % interval: 8 to 16 %)", or that there is no telling.
pub(crate) fn saving(ratio: &Ratio) -> String {
    let percent = |ratio: f64| (1.0 - ratio) * 100.0;
    let (low, high) = (percent(ratio.high), percent(ratio.low));
    if ratio.spans_one() {
        return format!("no measurable difference (95 % interval of the saving: {low:.0} to {high:.0} %)");
    }
    let (amount, word) =
        if ratio.ratio < 1.0 { (percent(ratio.ratio), "less") } else { (-percent(ratio.ratio), "more") };
    let (low, high) = if ratio.ratio < 1.0 { (low, high) } else { (-high, -low) };
    format!("{amount:.0} % {word} (95 % interval: {low:.0} to {high:.0} %)")
}
