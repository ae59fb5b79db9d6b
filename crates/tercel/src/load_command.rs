//! `tercel load`: many requests over HTTP/3, and how they fared.
//!
//! This file turns the command line into a plan; the generator is in the `load` room. The letters -n -c -m -t -D mean what
//! they mean to h2load.

mod progress;

use crate::options::QuicArgs;
use crate::path_options::KernelPath;
use crate::signals::stop_flag;
use base::time::Duration;
use clap::{Args, ValueEnum};
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use crypto::{ClientTls, Roots};
use http::request::Parts;
use http::{Method, Request, Uri};
use load::error::GetError;
use load::request::parse_headers;
use load::requests::{Bound, Crew, Pace, Plan, Report, Watcher, choose_address};
use load::resolve::{Family, resolve};
use load::target::Target;
use progress::Line;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use transport::ClientConfig;
use udp::{BindOptions, UdpPort};
use wire::Version;

/// How long a run takes when nothing is said about its end.
const DEFAULT_SPAN: Duration = Duration::from_secs(10);

/// Versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Http {
    /// HTTP/3, over QUIC.
    #[value(name = "3")]
    Three,
}

/// Flags of `tercel load`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// What to ask: https://HOST[:PORT]/PATH, one or more of the same server. Each connection asks them in turn.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Requests in all.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Load")]
    requests: Option<u64>,
    /// Seconds to measure, 10 unless -n says how many requests.
    #[arg(short = 'D', long, value_name = "SECONDS", value_parser = span, help_heading = "Load")]
    duration: Option<Duration>,
    /// Connections in all.
    #[arg(short = 'c', long = "clients", visible_alias = "connections", default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Load")]
    connections: u32,
    /// Requests at a time on each connection, as far as the server allows.
    #[arg(short = 'm', long, visible_alias = "max-concurrent-streams", default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Load")]
    streams: u32,
    /// Threads, each with a socket and connections of its own.
    #[arg(short = 't', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024), help_heading = "Load")]
    threads: u16,
    /// Seconds of requests that are not counted, before.
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = span, help_heading = "Load")]
    warm_up: Duration,
    /// Open loop: begin so many requests a second, and count latency from when each should have begun.
    ///
    /// Without it, each answer makes room for the next request: a slow server is asked less, and its pauses delay few requests.
    #[arg(long, value_name = "N", help_heading = "Load")]
    rate: Option<f64>,
    /// A request fails after so many seconds without its answer.
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = span, help_heading = "Load")]
    timeout: Duration,

    /// Bytes of content in each request.
    #[arg(short = 'b', long, default_value_t = 0, value_name = "BYTES", help_heading = "Request")]
    body: u64,
    /// The method; GET, or POST when there is content.
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = "Request")]
    method: Option<Method>,
    /// Add a field to every request: 'Name: value'. 'Name:' removes one that would be sent. Repeatable.
    #[arg(short = 'H', long = "header", value_name = "FIELD", help_heading = "Request")]
    headers: Vec<String>,
    /// The version of HTTP. Only 3 is there yet.
    #[arg(long, value_enum, default_value = "3", value_name = "VERSION", help_heading = "Request")]
    http: Http,

    /// Print one JSON object instead of text.
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Show no progress.
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    /// Keep a time series with slices of so many seconds, for --json.
    #[arg(long, value_name = "SECONDS", value_parser = span, requires = "json", help_heading = "Output")]
    series: Option<Duration>,
    /// The server's process, if it runs here: its CPU time over the same interval is part of the result.
    #[arg(long, value_name = "PID", help_heading = "Output")]
    server_pid: Option<u32>,

    /// Do not check the server's certificate. For tests: anybody in between can read and change everything.
    #[arg(short = 'k', long, conflicts_with = "cacert", help_heading = "Connection")]
    insecure: bool,
    /// Trust the certificates in this PEM file, and no others.
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    cacert: Option<PathBuf>,
    /// Use IPv4 addresses only.
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = "Connection")]
    ipv4: bool,
    /// Use IPv6 addresses only.
    #[arg(short = '6', long, help_heading = "Connection")]
    ipv6: bool,

    /// How datagrams reach the kernel.
    #[arg(long, value_enum, default_value = "gso", value_name = "PATH", help_heading = "QUIC")]
    datapath: KernelPath,
    /// Version of QUIC: 1 or 2.
    #[arg(long, default_value_t = 1, value_name = "VERSION", value_parser = clap::value_parser!(u8).range(1..=2), help_heading = "QUIC")]
    quic_version: u8,
    /// Poll so many microseconds for packets before sleeping.
    #[arg(long, default_value_t = 0, value_name = "MICROSECONDS", help_heading = "QUIC")]
    spin: u64,
    #[command(flatten)]
    quic: QuicArgs,
}

const EXAMPLES: &str = "\
Examples:
  tercel load -c 100 -m 10 -t 2 -D 10 https://example.org/            as fast as answers come, for 10 s
  tercel load --rate 5000 -c 50 -m 20 -D 60 https://example.org/      5,000 requests a second, latency from when each was due
  tercel load -k -n 1000000 -c 8 -m 64 --server-pid PID --json URL    a million requests, and what the server used

Exit codes: 0 when every request succeeded, 1 when any failed, 2 when the command line is wrong; else as tercel get.";

/// Generates load, and says how it went.
pub(crate) fn run(args: &LoadArgs) -> ExitCode {
    let report = match args.measure() {
        Ok(report) => report,
        Err(error) => {
            eprintln!("tercel load: {error}");
            return ExitCode::from(error.exit_code());
        }
    };
    if args.json {
        // A report is numbers, texts and lists of them.
        println!("{}", serde_json::to_string(&report).unwrap_or_default());
    } else {
        println!("{report}");
    }
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl LoadArgs {
    fn measure(&self) -> Result<Report, GetError> {
        let usage = |error: &dyn core::fmt::Display| GetError::Usage(error.to_string());
        let plan = self.plan()?;
        plan.check(usize::from(self.threads)).map_err(|error| usage(&error))?;
        let mut ports = Vec::new();
        let mut seeds = Vec::new();
        for _ in 0..self.threads {
            ports.push(self.port(plan.address)?);
            let mut seed = [0; 32];
            getrandom::fill(&mut seed).map_err(|error| usage(&error))?;
            seeds.push(seed);
        }
        let stop = stop_flag(|| {}).map_err(|error| usage(&error))?;
        let mut line = (!self.quiet).then(Line::on_terminal).flatten();
        let watcher = line.as_mut().map(|line| line as &mut dyn Watcher);
        let crew = Crew { ports, seeds, server: self.server_pid };
        let report = crew.run(&plan, &stop, watcher);
        drop(line);
        report.map_err(|error| GetError::Broken(error.to_string()))
    }

    /// A socket of its own for each thread, of the address's family.
    fn port(&self, address: SocketAddr) -> Result<UdpPort, GetError> {
        let local = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let without = self.quic.techniques().sockets();
        UdpPort::bind(&BindOptions { without, ..BindOptions::new(local, self.datapath.variant()) })
            .map_err(|error| GetError::Usage(error.to_string()))
    }

    fn plan(&self) -> Result<Plan, GetError> {
        let targets =
            self.urls.iter().map(|url| Target::parse(url)).collect::<Result<Vec<Target>, GetError>>()?;
        let first = targets.first().ok_or_else(|| GetError::Usage("give a URL to ask".into()))?;
        if let Some(other) = targets.iter().find(|target| !target.same_server(first)) {
            return Err(GetError::Usage(format!(
                "{other} is at another server than {first}: one run asks one server"
            )));
        }
        let family = match (self.ipv4, self.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        };
        Ok(Plan {
            server_name: first.host().to_owned(),
            address: choose_address(&resolve(first, family, &[])?)?,
            requests: targets.iter().map(|target| self.head(target)).collect::<Result<_, _>>()?,
            content: self.body,
            connections: self.connections as usize,
            streams: self.streams as usize,
            bound: match (self.requests, self.duration) {
                (Some(count), _) => Bound::Requests(count),
                (None, span) => Bound::Span(span.unwrap_or(DEFAULT_SPAN)),
            },
            warm_up: self.warm_up,
            pace: self.rate.map_or(Pace::Closed, Pace::Open),
            timeout: self.timeout,
            series: self.series,
            quic: self.quic_config()?,
            spin: Duration::from_micros(self.spin),
        })
    }

    fn head(&self, target: &Target) -> Result<Parts, GetError> {
        let uri = Uri::builder().scheme("https").authority(target.authority()).path_and_query(target.path());
        let mut request = Request::new(());
        *request.uri_mut() =
            uri.build().map_err(|error| GetError::Url(target.to_string(), error.to_string()))?;
        *request.method_mut() = match (&self.method, self.body) {
            (Some(method), _) => method.clone(),
            (None, 0) => Method::GET,
            (None, _) => Method::POST,
        };
        *request.headers_mut() = parse_headers(&self.headers)?;
        if self.body > 0 {
            request.headers_mut().insert(http::header::CONTENT_LENGTH, self.body.into());
        }
        Ok(request.into_parts().0)
    }

    fn quic_config(&self) -> Result<ClientConfig, GetError> {
        let version = if self.quic_version == 2 { Version::V2 } else { Version::V1 };
        let transport = self.quic.transport(version).map_err(|error| GetError::Usage(error.to_string()))?;
        let roots = match &self.cacert {
            _ if self.insecure => Roots::Insecure,
            None => Roots::System,
            Some(path) => Roots::Pem(
                std::fs::read(path).map_err(|error| GetError::Roots(path.clone(), error.to_string()))?,
            ),
        };
        let tls = ClientTls::new(&roots, &self.quic.tls()).map_err(|error| match &self.cacert {
            Some(path) => GetError::Roots(path.clone(), error.to_string()),
            None => GetError::Usage(error.to_string()),
        })?;
        Ok(ClientConfig { tls, transport: Arc::new(transport), token: Vec::new() })
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
