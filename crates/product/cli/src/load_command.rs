//! `tercel load`: many requests over HTTP/1.1, 2 or 3, and how they fared.
//!
//! This file has the flags and what is printed; `plan` makes a plan of them, `ports` carries it out. The generator is in the
//! `load` room. The letters -n -c -m -t -D mean what they mean to h2load.

mod plan;
mod ports;
mod progress;
mod urls;

use crate::connection_options::ConnectionArgs;
use crate::options::QuicArgs;
use crate::path_options::PathArgs;
use crate::qlog_options::{self, QlogArgs};
use crate::signals::stop_flag;
use base::time::Duration;
use clap::{Args, ValueEnum};
use client::error::GetError;
use http::Method;
use load::{Expectation, ExpectationResult, GRAMMAR, Report, Trials, write_csv};
use progress::Line;
use serde::Serialize;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use traces::Qlog;

/// The exit code when an expectation was not met. The others are those of `tercel get`, and 1.
const UNMET: u8 = 4;

/// Versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Http {
    /// HTTP/1.1, over TCP.
    #[value(name = "1", alias = "1.1")]
    One,
    /// HTTP/2, over TCP.
    #[value(name = "2")]
    Two,
    /// HTTP/3, over QUIC.
    #[value(name = "3")]
    Three,
}

/// Sockets of a thread where nothing is said: enough to reach the workers of a server, and few enough to cost nothing.
const DEFAULT_SOCKETS: usize = 4;

/// Flags of `tercel load`.
#[derive(Args)]
#[command(after_help = MORE, after_long_help = after_long_help())]
pub(crate) struct LoadArgs {
    /// What to ask: https://HOST[:PORT]/PATH, one or more of the same server. Each connection begins at another one
    /// and asks them in turn.
    ///
    /// HTTP/1.1 and 2 also take http:// URLs, which go without TLS; HTTP/2 then takes for granted that the server speaks it.
    #[arg(required_unless_present = "urls_file", value_name = "URL")]
    urls: Vec<String>,
    /// Take URLs from this file as well, one on each line; - is standard input. Empty lines and those with a # are skipped.
    #[arg(long = "urls", value_name = "FILE|-", hide_short_help = true)]
    urls_file: Option<PathBuf>,

    /// Requests in all.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Load")]
    requests: Option<u64>,
    /// Seconds to measure, 10 unless -n says how many requests.
    #[arg(short = 'D', long, value_name = "SECONDS", value_parser = span, help_heading = "Load")]
    duration: Option<Duration>,
    /// Connections in all.
    #[arg(short = 'c', long = "clients", visible_alias = "connections", default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Load")]
    connections: u32,
    /// At most this many connections are being made at a time; requests begin when all are there.
    ///
    /// A server that gets more handshakes at once than it can answer within a second makes clients send again, and then give up. With
    /// --new-connections it is -c that says how many.
    #[arg(long, default_value_t = load::HANDSHAKES_AT_A_TIME as u32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Load", hide_short_help = true)]
    handshakes: u32,
    /// Requests at a time on each connection, as far as the server allows. HTTP/1.1 has one.
    #[arg(short = 'm', long, visible_alias = "max-concurrent-streams", default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Load")]
    streams: u32,
    /// Threads, each with connections of its own.
    #[arg(short = 't', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024), help_heading = "Load")]
    threads: u16,
    /// UDP sockets of each thread, each with a port of its own. New connections take them in turn.
    ///
    /// Without it, as many as a thread has connections, up to 4. A server whose workers share a port, and a network with
    /// several ways, tell flows apart by their ports. For HTTP/3 over kernel UDP; TCP has a socket for each connection.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=udp::MAX_SOCKETS as i64), help_heading = "Load", hide_short_help = true)]
    sockets: Option<u16>,
    /// Make a new connection for each request, -c at a time; latency then includes the handshake.
    ///
    /// Each handshake is a full one, unless --resume or --early-data is given. TCP connections are closed by a reset after the
    /// answer, or their ports would be used up.
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    new_connections: bool,
    /// With --new-connections: connections resume by session tickets of those before. The first ones cannot.
    #[arg(long, requires = "new_connections", help_heading = "Load", hide_short_help = true)]
    resume: bool,
    /// As --resume, with the request in the first packets (0-RTT), where a ticket of the server permits that. For HTTP/3.
    #[arg(
        long,
        requires = "new_connections",
        conflicts_with = "resume",
        help_heading = "Load",
        hide_short_help = true
    )]
    early_data: bool,
    /// Seconds of requests that are not counted, before.
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = span, help_heading = "Load", hide_short_help = true)]
    warm_up: Duration,
    /// Open loop: begin this many requests a second, and count latency from when each should have begun.
    ///
    /// Without it, each answer makes room for the next request: a slow server is asked less, and its pauses delay few requests.
    /// A server that stalls for a second then shows in the largest latency, and in nothing else; with --rate it shows in as many
    /// requests as were due in that second.
    #[arg(long, value_name = "N", help_heading = "Load")]
    rate: Option<f64>,
    /// A request fails after this many seconds without its answer.
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = span, help_heading = "Load", hide_short_help = true)]
    timeout: Duration,
    /// Do all of it this many times, each time with new connections, and tell mean and standard deviation.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000), help_heading = "Load", hide_short_help = true)]
    trials: u16,

    /// Bytes of content in each request.
    #[arg(
        short = 'b',
        long,
        default_value_t = 0,
        value_name = "BYTES",
        help_heading = "Request",
        hide_short_help = true
    )]
    body: u64,
    /// The method; GET, or POST when there is content.
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = "Request", hide_short_help = true)]
    method: Option<Method>,
    /// Add a field to every request: 'Name: value'. 'Name:' removes one that would be sent. Repeatable.
    #[arg(short = 'H', long = "header", value_name = "FIELD", help_heading = "Request")]
    headers: Vec<String>,
    /// The version of HTTP.
    #[arg(long, value_enum, default_value = "3", value_name = "VERSION", help_heading = "Request")]
    http: Http,

    /// Print one JSON object instead of text.
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Show no progress.
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    /// Keep a time series with slices of this many seconds, for --json and --csv; with --csv 1 unless this says otherwise.
    #[arg(long, value_name = "SECONDS", value_parser = slice, help_heading = "Output", hide_short_help = true)]
    series: Option<Duration>,
    /// Write the time series to this file: a line for each slice.
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    csv: Option<PathBuf>,
    /// What must be achieved, as in 'p99<5ms', 'rate>1000', 'errors<1%'; the exit code says whether it was. Repeatable.
    #[arg(long = "expect", value_name = "EXPECTATION", help_heading = "Output")]
    expectations: Vec<Expectation>,
    /// The server's process, if it runs here: its CPU time over the same interval is part of the result.
    #[arg(long, value_name = "PID", help_heading = "Output", hide_short_help = true)]
    server_pid: Option<u32>,

    #[command(flatten)]
    connection: ConnectionArgs,
    /// Give up a handshake after this many seconds.
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = span, help_heading = "Connection", hide_short_help = true)]
    connect_timeout: Duration,

    /// Version of QUIC: 1 or 2.
    #[arg(long, default_value_t = 1, value_name = "VERSION", value_parser = clap::value_parser!(u8).range(1..=2), help_heading = "QUIC", hide_short_help = true)]
    quic_version: u8,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    quic: QuicArgs,
    #[command(flatten)]
    qlog: QlogArgs,
}

/// Stands below the short help.
const MORE: &str = "Examples, exit codes, and what the flags mean in full: tercel load --help";

const EXAMPLES: &str = "\
Examples:
  tercel load -c 100 -m 10 -t 2 -D 10 https://example.org/            as fast as answers come, for 10 s
  tercel load --rate 5000 -c 50 -m 20 -D 60 https://example.org/      5,000 requests a second, latency from when each was due
  tercel load -k -n 1000000 -c 8 -m 64 --server-pid PID --json URL    a million requests, and what the server used
  tercel load --http 2 -c 10 -m 10 -n 100000 --trials 5 URL           over HTTP/2, five times, with mean and deviation
  tercel load --new-connections -c 20 -D 10 URL                       handshakes a second
  tercel load --new-connections --early-data -c 20 -D 10 URL          the same with requests in early data
  tercel load --rate 1000 --expect 'p99<5ms' --expect errors=0 URL    for scripts: the exit code is 4 when it was slower

Exit codes: 0 when every request succeeded, 1 when any failed, 2 when the command line is wrong, 4 when an expectation was
not met; else as tercel get. With an expectation about errors, errors alone do not give exit code 1.";

fn after_long_help() -> String {
    format!(
        "{EXAMPLES}\n\nExpectations are written {GRAMMAR}\nOf several trials the mean counts, of errors the sum."
    )
}

/// Generates load, and says how it went.
pub(crate) fn run(args: &LoadArgs) -> ExitCode {
    let outcome = args.measure().and_then(|runs| {
        args.write_csv(&runs)?;
        Ok(runs)
    });
    let runs = match outcome {
        Ok(runs) => runs,
        Err(error) => {
            eprintln!("tercel load: {error}");
            return ExitCode::from(error.exit_code());
        }
    };
    let verdicts: Vec<ExpectationResult> =
        args.expectations.iter().map(|expected| expected.judge(&runs)).collect();
    args.print(&runs, &verdicts);
    let forgives = args.expectations.iter().any(Expectation::is_about_errors);
    match (verdicts.iter().all(|verdict| verdict.met), runs.iter().all(Report::is_clean)) {
        (false, _) => ExitCode::from(UNMET),
        (true, is_clean) if is_clean || forgives => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What `--json` prints of a single run: the run itself, and what was expected of it.
#[derive(Serialize)]
struct SingleRun<'a> {
    #[serde(flatten)]
    run: &'a Report,
    expectations: &'a [ExpectationResult],
}

/// What it prints of several.
#[derive(Serialize)]
struct SeveralRuns<'a> {
    trials: &'a [Report],
    summary: Trials,
    expectations: &'a [ExpectationResult],
}

impl LoadArgs {
    /// All trials, or as many as there are until the user interrupts.
    fn measure(&self) -> Result<Vec<Report>, GetError> {
        let qlog = self.qlog.open().map_err(GetError::Usage)?;
        let outcome = self.measure_traced(qlog.as_ref());
        qlog.iter().for_each(qlog_options::finish);
        outcome
    }

    fn measure_traced(&self, qlog: Option<&Qlog>) -> Result<Vec<Report>, GetError> {
        let plan = self.plan(qlog)?;
        let stop = stop_flag(|| {}).map_err(|error| GetError::Usage(error.to_string()))?;
        let mut runs = Vec::new();
        for trial in 1..=self.trials {
            runs.push(self.trial(&plan, &stop, trial)?);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(runs)
    }

    fn trial(&self, plan: &load::LoadPlan, stop: &AtomicBool, trial: u16) -> Result<Report, GetError> {
        let of = if self.trials > 1 { format!("trial {trial} of {}  ", self.trials) } else { String::new() };
        let mut line = (!self.quiet).then(|| Line::on_terminal(of)).flatten();
        let report = ports::run(self, plan, stop, line.as_mut())?;
        drop(line);
        if self.trials > 1 && !self.json && !self.quiet {
            eprintln!(
                "trial {trial} of {}: {:.0} requests/s, p50 {:.2} ms, p99 {:.2} ms, {} failed",
                self.trials,
                report.requests_per_second,
                report.latency.p50_us / 1e3,
                report.latency.p99_us / 1e3,
                report.failed
            );
        }
        Ok(report)
    }

    /// UDP sockets of each thread.
    fn sockets_of_a_thread(&self) -> usize {
        let connections = (self.connections as usize).div_ceil(usize::from(self.threads.max(1)));
        self.sockets.map_or(connections.clamp(1, DEFAULT_SOCKETS), usize::from)
    }

    fn print(&self, runs: &[Report], expectations: &[ExpectationResult]) {
        if self.json {
            // Reports are numbers, texts and lists of them.
            let text = match runs {
                [run] if self.trials == 1 => serde_json::to_string(&SingleRun { run, expectations }),
                trials => {
                    serde_json::to_string(&SeveralRuns { trials, summary: Trials::of(trials), expectations })
                }
            };
            println!("{}", text.unwrap_or_default());
            return;
        }
        if let Some(last) = runs.last() {
            println!("{last}");
        }
        if self.trials > 1 {
            println!("\nThat was the last of {} trials.\n{}", runs.len(), Trials::of(runs));
        }
        expectations.iter().for_each(|verdict| println!("{verdict}"));
    }

    fn write_csv(&self, runs: &[Report]) -> Result<(), GetError> {
        let Some(path) = &self.csv else { return Ok(()) };
        let written = File::create(path).and_then(|file| write_csv(runs, &mut BufWriter::new(file)));
        written.map_err(|error| GetError::Write(path.clone(), error))
    }
}

/// Seconds, with a fraction if need be.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let text = text.strip_suffix('s').unwrap_or(text);
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds is needed".to_owned())?;
    if (0.0..=1e7).contains(&seconds) {
        Ok(Duration::from_nanos((seconds * 1e9) as u64))
    } else {
        Err("from 0 to 10000000 seconds".to_owned())
    }
}

/// The length of a slice.
fn slice(text: &str) -> Result<Duration, String> {
    span(text).and_then(|length| match length < Duration::from_millis(1) {
        true => Err("at least 0.001 seconds".to_owned()),
        false => Ok(length),
    })
}
