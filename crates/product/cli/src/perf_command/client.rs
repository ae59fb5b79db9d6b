//! `tercel perf client`.

use crate::connection_options::ConnectionArgs;
use crate::load_command::span;
use crate::options::QuicArgs;
use crate::path_options::PathArgs;
use ports::DataPathChoice;

use crate::signals::stop_flag;
use base::time::Duration;
use clap::{Args, ValueEnum};
use client::error::GetError;
use client::resolve::resolve;
use client::target::Target;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use crypto::TlsOptions;
use datapath::Port;
use load::perf::{Amount, PerfPlan, Run, Task, ThreadSetup, echo, protocol};
use load::{Bound, choose_address};
use ports::{AnyPort, OpenOutcome};
use serde::Serialize;
use server::Cores;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use transport::ClientConfig;
use worker::HandOff;

/// How long a run takes when nothing is said about its end.
const DEFAULT_SPAN: Duration = Duration::from_secs(10);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Test {
    /// Requests and answers: how many a second, and how long each takes.
    Requests,
    /// How much comes.
    Download,
    /// How much goes.
    Upload,
    /// How many handshakes a second, and how long each takes.
    Handshakes,
    /// Bare datagrams, one request at a time: what the network and the data path take. Needs tercel perf serve --echo.
    Echo,
}

/// Flags of `tercel perf client`.
#[derive(Args)]
pub(crate) struct ClientArgs {
    /// Whom to ask; the port is 4433 unless it is given.
    #[arg(value_name = "HOST[:PORT]")]
    server: String,
    /// What is measured.
    #[arg(value_enum, default_value = "requests")]
    test: Test,

    /// Bytes of each request, the 8 of the protocol among them.
    #[arg(long, default_value = "512", value_name = "BYTES", value_parser = bytes, help_heading = "Load")]
    request: u64,
    /// Bytes of each answer.
    #[arg(long, default_value = "8KiB", value_name = "BYTES", value_parser = bytes, help_heading = "Load")]
    response: u64,
    /// Bytes that each stream of a download or upload carries; without it, as many as there is time for.
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Load")]
    size: Option<u64>,
    /// Connections in all; of handshakes, how many are under way at a time.
    #[arg(short = 'c', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Load")]
    connections: u32,
    /// At most this many connections are being made at a time; the test begins when all are there. Where handshakes are the test, -c
    /// says it. A server that gets more at once than it can answer within a second makes clients send again, and then give up.
    #[arg(long, default_value_t = load::HANDSHAKES_AT_A_TIME as u32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Load")]
    handshakes: u32,
    /// Requests, or streams, at a time on each connection, as far as the server allows.
    #[arg(short = 'm', long, visible_alias = "streams", default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Load")]
    outstanding: u32,
    /// Threads, each with connections of its own, and with a socket of its own where the path is not xdp.
    #[arg(short = 't', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..), help_heading = "Load")]
    threads: u8,
    /// Requests, streams or handshakes in all. A download or upload with --size has one for each place unless this is given.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration", help_heading = "Load")]
    count: Option<u64>,
    /// Seconds to measure, 10 unless something else says when it is over.
    #[arg(short = 'D', long, value_name = "SECONDS", value_parser = span, help_heading = "Load")]
    duration: Option<Duration>,
    /// Seconds that are not counted, before.
    #[arg(long, default_value = "0.5", value_name = "SECONDS", value_parser = span, help_heading = "Load")]
    warm_up: Duration,
    /// Keep each thread on a core: auto, or cores such as 0,2-5 for the first thread, the second and so on.
    #[arg(long, value_name = "CORES|auto", num_args = 0..=1, default_missing_value = "auto", help_heading = "Load")]
    pin: Option<Cores>,

    /// Print one JSON object instead of text.
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// The server's process, if it runs here: its CPU time over the same interval is part of the result.
    #[arg(long, value_name = "PID", help_heading = "Output")]
    server_pid: Option<u32>,

    #[command(flatten)]
    connection: ConnectionArgs,
    /// Version of QUIC: 1 or 2.
    #[arg(long, default_value_t = 1, value_name = "VERSION", value_parser = clap::value_parser!(u8).range(1..=2), help_heading = "QUIC")]
    quic_version: u8,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    quic: QuicArgs,
}

/// Measures, and says how it went.
pub(super) fn run(args: &ClientArgs) -> ExitCode {
    let measured = args.path.check().map_err(GetError::Usage).and_then(|()| args.measure());
    measured.unwrap_or_else(|error| {
        eprintln!("tercel perf client: {error}");
        ExitCode::from(error.exit_code())
    })
}

fn usage(error: impl core::fmt::Display) -> GetError {
    GetError::Usage(error.to_string())
}

fn seed() -> Result<[u8; 32], GetError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(usage)?;
    Ok(seed)
}

impl ClientArgs {
    fn measure(&self) -> Result<ExitCode, GetError> {
        let target = target(&self.server)?;
        let address = choose_address(&resolve(&target, self.connection.family(), &[])?)?;
        let threads = usize::from(self.threads);
        let stop = stop_flag(|| {}).map_err(usage)?;
        if self.test == Test::Echo {
            return self.echo(self.open(address, 1)?.ports, address, &stop);
        }
        let plan = self.plan(&target, address)?;
        plan.check(threads).map_err(usage)?;
        // All queues of an interface are one path; sockets of the kernel's are as many as there are threads.
        let share = if self.path.datapath == DataPathChoice::Xdp { self.threads } else { 1 };
        let first = self.open(address, share)?;
        first.verdict.iter().for_each(|verdict| eprintln!("{verdict}"));
        let mut ports = first.ports;
        while self.path.datapath != DataPathChoice::Xdp && ports.len() < threads {
            ports.extend(self.open(address, 1)?.ports);
        }
        self.ask(ports, &plan, &stop)
    }

    /// Ports towards the server.
    fn open(&self, address: SocketAddr, workers: u8) -> Result<OpenOutcome, GetError> {
        let local = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let options = ports::OpenOptions {
            towards: Some(address.ip()),
            workers: ports::Workers::Exactly(workers),
            ..self.quic.techniques().paths(self.path.options(local, self.quic.demanded_payload()))
        };
        ports::open(&options).map_err(GetError::Usage)
    }

    fn plan(&self, target: &Target, address: SocketAddr) -> Result<PerfPlan, GetError> {
        let size = self.size.map_or(Amount::UntilOver, Amount::Bytes);
        let task = match self.test {
            Test::Handshakes => Task::Handshakes,
            Test::Download => {
                Task::Exchanges { request: Amount::Bytes(protocol::PREFIX as u64), response: size }
            }
            Test::Upload => Task::Exchanges { request: size, response: Amount::Bytes(0) },
            Test::Requests | Test::Echo => Task::Exchanges {
                request: Amount::Bytes(self.request),
                response: Amount::Bytes(self.response),
            },
        };
        let is_bulk = matches!(self.test, Test::Download | Test::Upload);
        let places = u64::from(self.connections) * u64::from(self.outstanding);
        let bound = match (self.count, self.duration) {
            (Some(count), _) => Bound::Requests(count),
            (None, None) if is_bulk && self.size.is_some() => Bound::Requests(places),
            (None, span) => Bound::Span(span.unwrap_or(DEFAULT_SPAN)),
        };
        // What is to be transferred once is measured from its beginning.
        let warm_up = match bound {
            Bound::Requests(_) if is_bulk => Duration::ZERO,
            _ => self.warm_up,
        };
        Ok(PerfPlan {
            server_name: target.host().to_owned(),
            address,
            task,
            connections: self.connections as usize,
            handshakes: self.handshakes as usize,
            outstanding: self.outstanding as usize,
            bound,
            warm_up,
            quic: self.quic_config()?,
            spin: self.path.spin,
        })
    }

    fn quic_config(&self) -> Result<ClientConfig, GetError> {
        let version = crate::options::quic_version(self.quic_version);
        let transport = self.quic.transport(version).map_err(usage)?;
        let options = TlsOptions { alpn: vec![protocol::ALPN.to_vec()], ..self.quic.tls() };
        let tls = self.connection.quic_tls(&options)?;
        Ok(ClientConfig { tls, transport: Arc::new(transport), token: Vec::new() })
    }

    fn ask(&self, ports: Vec<AnyPort>, plan: &PerfPlan, stop: &AtomicBool) -> Result<ExitCode, GetError> {
        let cores = match &self.pin {
            Some(pin) => {
                let refused = |text| GetError::Usage(format!("--pin: {text}"));
                pin.assign(ports.len(), &cpu::allowed()).map_err(refused)?
            }
            None => Vec::new(),
        };
        let is_one_address = self.path.datapath == DataPathChoice::Xdp && ports.len() > 1;
        let crew = match is_one_address {
            true => HandOff::group(ports.iter().map(Port::waker).collect()),
            false => Vec::new(),
        };
        let mut members = crew.into_iter();
        let mut thread_setups = Vec::new();
        for port in ports {
            thread_setups.push(ThreadSetup { port, seed: seed()?, member: members.next() });
        }
        let prepare = |thread: usize| match cores.get(thread) {
            Some(core) => cpu::pin(*core),
            None => Ok(()),
        };
        let crew = Run { thread_setups, server: self.server_pid, prepare: &prepare };
        let report = crew.run(plan, stop).map_err(|error| GetError::Broken(error.to_string()))?;
        self.print(&report);
        if report.is_clean() {
            return Ok(ExitCode::SUCCESS);
        }
        let fault = report.first_fault.as_deref().unwrap_or("nothing was exchanged");
        eprintln!("tercel perf client: {fault}");
        Ok(ExitCode::FAILURE)
    }

    fn echo(
        &self,
        ports: Vec<AnyPort>,
        address: SocketAddr,
        stop: &AtomicBool,
    ) -> Result<ExitCode, GetError> {
        let range = echo::MIN_REQUEST as u64..=u64::from(self.quic.demanded_payload());
        if !range.contains(&self.request) || self.response == 0 || self.response > echo::MAX_ANSWER {
            return Err(usage(format!(
                "a request of the echo is one datagram of {} to {} bytes (--packet-size), an answer 1 to {} bytes",
                range.start(),
                range.end(),
                echo::MAX_ANSWER
            )));
        }
        if let Some(Cores::These(cores)) = &self.pin
            && let Some(core) = cores.first()
        {
            cpu::pin(*core).map_err(usage)?;
        }
        let mut port = ports.into_iter().next().ok_or_else(|| usage("the data path has no port"))?;
        let plan = echo::EchoPlan {
            address,
            request: self.request as usize,
            response: self.response,
            segment: self.quic.demanded_payload(),
            warm_up: self.warm_up,
            span: self.duration.unwrap_or(DEFAULT_SPAN),
            spin: self.path.spin,
            server: self.server_pid,
        };
        let echoed =
            echo::measure(&mut port, &plan, stop).map_err(|error| GetError::Broken(error.to_string()))?;
        self.print(&echoed);
        if echoed.completed > 0 {
            return Ok(ExitCode::SUCCESS);
        }
        eprintln!("tercel perf client: {address} does not echo: is it tercel perf serve --echo?");
        Ok(ExitCode::FAILURE)
    }

    fn print(&self, report: &(impl Serialize + core::fmt::Display)) {
        if self.json {
            // A report is numbers, texts and lists of them.
            println!("{}", serde_json::to_string(report).unwrap_or_default());
        } else {
            println!("{report}");
        }
    }
}

/// `HOST`, `HOST:PORT`, or an IPv6 address with or without brackets.
fn target(server: &str) -> Result<Target, GetError> {
    let is_bare_v6 = server.parse::<Ipv6Addr>().is_ok();
    let host = if is_bare_v6 { format!("[{server}]") } else { server.to_owned() };
    let has_port = !is_bare_v6 && host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let port = if has_port { String::new() } else { format!(":{}", protocol::PORT) };
    let parsed = Target::parse(&format!("https://{host}{port}/")).ok().filter(|target| target.path() == "/");
    parsed.ok_or_else(|| usage(format!("{server} is no server: write HOST or HOST:PORT")))
}

/// `512`, `8KiB`, `2GB`.
fn bytes(text: &str) -> Result<u64, String> {
    let name = format!("bytes/{text}");
    server::generated::size_of(name.as_bytes())
        .ok_or_else(|| "a number of bytes such as 512, 8KiB or 2GB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_with_and_without_a_port() {
        let table = [
            ("localhost", Some(("localhost", 4433))),
            ("localhost:99", Some(("localhost", 99))),
            ("192.0.2.1", Some(("192.0.2.1", 4433))),
            ("192.0.2.1:99", Some(("192.0.2.1", 99))),
            ("fd00::1", Some(("fd00::1", 4433))),
            ("[fd00::1]", Some(("fd00::1", 4433))),
            ("[fd00::1]:99", Some(("fd00::1", 99))),
            ("localhost/path", None),
            ("localhost:none", None),
            ("", None),
        ];
        for (text, expected) in table {
            let found = target(text).ok();
            assert_eq!(found.as_ref().map(|target| (target.host(), target.port())), expected, "{text}");
        }
    }
}
