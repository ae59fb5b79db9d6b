//! `tercel get`: downloads by the library's client, over any version of HTTP.
//!
//! This file turns the command line into jobs and settings; what they mean is in the crate `client`. Where HTTP/3 may be spoken,
//! this thread drives its connections on a port of the data path that was asked for.

mod capture;
mod console;
mod paths;
mod summary;
mod words;

use crate::connection_options::ConnectionArgs;
use crate::multipath_options::PathsArgs;
use crate::options::QuicArgs;
use crate::path_options::PathArgs;
use crate::qlog_options::{self, QlogArgs};
use crate::signals::stop_flag;
use base::time::Duration;
use clap::{Args, ValueEnum};
use client::error::{EXIT_CODES, GetError};
use client::job::{Job, Wanted, parse_range};
use client::output::{self, Output};
use client::part::Resume;
use client::request::parse_headers;
use client::resolve::{ConnectOverride, Family};
use client::tally::Check;
use client::target::Target;
use client::{
    BuildError, Builder, Client, EarlyData, FetchOptions, Fetcher, HttpChoice, PlannedMove, Pool, Redirects,
};
use console::Console;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use crypto::{FileSessions, KeyLines, TlsOptions};
use datapath::Port;
use ports::{AnyPort, OpenOutcome};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use transport::TransportConfig;

/// How quiet a connection may be whose download a reader holds up.
const QUIET: std::time::Duration = std::time::Duration::from_secs(10);

/// Versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Http {
    /// What the server speaks: QUIC and TCP race.
    Auto,
    /// HTTP/1.1, over TCP.
    #[value(name = "1")]
    One,
    /// HTTP/2, over TCP.
    #[value(name = "2")]
    Two,
    /// HTTP/3, over QUIC.
    #[value(name = "3")]
    Three,
}

/// Flags of `tercel get`.
#[derive(Args)]
#[command(after_help = MORE, after_long_help = after_long_help())]
pub(crate) struct GetArgs {
    /// What to download: https://HOST[:PORT]/PATH, one or more.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Where to put it: a file, a folder, or - for standard output. Without it, a file named like the end of the URL.
    ///
    /// Until a file is complete it is called NAME.part, beside NAME.part.state, which says what is there. When a download is
    /// interrupted, the same command fetches the rest.
    #[arg(short, long, value_name = "FILE|FOLDER|-", help_heading = "Output")]
    output: Option<String>,
    /// Keep nothing: receive, count and forget. For measurements.
    #[arg(long, conflicts_with = "output", help_heading = "Output")]
    discard: bool,
    /// Keep nothing, but check every byte of a generated body, such as /bytes/2GB of tercel serve.
    #[arg(long, conflicts_with = "output", help_heading = "Output", hide_short_help = true)]
    verify_pattern: bool,
    /// Start over, whatever an earlier attempt has left.
    #[arg(long, visible_alias = "restart", help_heading = "Output", hide_short_help = true)]
    no_resume: bool,
    /// Say nothing but errors.
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    /// For each URL print one line of JSON: status, bytes, seconds, goodput, CPU seconds, datagrams, system calls and more.
    ///
    /// It goes to standard output, or to standard error when the download itself goes to standard output. CPU seconds, datagrams
    /// and system calls are those of the process while the URL was under way.
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Only the head: ask with HEAD and print status and fields.
    #[arg(short = 'I', long, conflicts_with_all = ["output", "discard", "verify_pattern", "range"], help_heading = "Request")]
    head: bool,
    /// Only these bytes: FIRST-LAST, counted from 0, both included; or FIRST- for the rest.
    #[arg(long, value_name = "FIRST-LAST", help_heading = "Request")]
    range: Option<String>,
    /// Requests at a time: several URLs at once, or several parts of a large file.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), help_heading = "Request")]
    parallel: u16,
    /// Add a field to every request: 'Name: value'. 'Name:' removes one that would be sent. Repeatable.
    #[arg(short = 'H', long = "header", value_name = "FIELD", help_heading = "Request")]
    headers: Vec<String>,
    /// The version of HTTP: 3, 2, 1 (for HTTP/1.1), or auto, which races QUIC with TCP and follows Alt-Svc.
    ///
    /// The flags of QUIC and of the data path, and the counts of datagrams and system calls in --json, are for HTTP/3.
    #[arg(
        long,
        value_enum,
        default_value = "3",
        value_name = "auto|1|2|3",
        hide_possible_values = true,
        help_heading = "Request"
    )]
    http: Http,

    #[command(flatten)]
    connection: ConnectionArgs,
    /// Each URL on a connection of its own, one after the other. Over HTTP/3 those after the first resume.
    ///
    /// Session tickets are kept in memory, for as long as the program runs, unless --session-cache names a file.
    #[arg(long, conflicts_with = "parallel", help_heading = "Connection", hide_short_help = true)]
    new_connections: bool,
    /// Send requests with the first packets to a server that is known from an earlier connection (0-RTT), over HTTP/3.
    ///
    /// An attacker may have such a request carried out twice, which does no harm to downloads. The report says what became of it.
    #[arg(long, help_heading = "Connection", hide_short_help = true)]
    early_data: bool,
    /// Keep session tickets, address tokens and settings of servers in this file, and resume the sessions of earlier runs, over HTTP/3.
    ///
    /// It is made if there is none, with mode 0600: who has it can resume the sessions. Programs may share it. A server is asked for its
    /// certificate again when it is not trusted any more, with other roots for example.
    #[arg(long, value_name = "FILE", help_heading = "Connection", hide_short_help = true)]
    session_cache: Option<PathBuf>,
    /// Use these addresses for the host and port of a URL, one after the other until one answers. Repeatable.
    #[arg(long, value_name = "HOST:PORT:ADDRESS[,ADDRESS]", help_heading = "Connection")]
    resolve: Vec<String>,
    /// Ask another server in place of a URL's: HOST1:PORT1:HOST2:PORT2, each may be empty. Repeatable.
    ///
    /// The certificate must still be for the host of the URL.
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", help_heading = "Connection", hide_short_help = true)]
    connect_to: Vec<String>,
    /// Give up a handshake after this many seconds.
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Connection", hide_short_help = true)]
    connect_timeout: u64,
    /// Give up a download when nothing arrived for this many seconds; 0 never gives up.
    ///
    /// As long as the reader of a pipe or a terminal takes nothing, the seconds are not counted.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", help_heading = "Connection")]
    timeout: u64,

    /// Version of QUIC: 1 or 2.
    #[arg(long, default_value_t = 1, value_name = "VERSION", value_parser = clap::value_parser!(u8).range(1..=2), help_heading = "QUIC", hide_short_help = true)]
    quic_version: u8,
    /// Move the connections to this local address, or to that of this interface, this many seconds after the beginning.
    ///
    /// The download goes on where it is until the server has answered at the new address, and stays there when it does not. Without
    /// this flag a connection moves when the system says that its address or route is gone. For kernel UDP.
    #[arg(long, value_name = "ADDRESS|INTERFACE@SECONDS", value_parser = PlannedMove::parse, help_heading = "QUIC", hide_short_help = true)]
    migrate_to: Option<PlannedMove>,
    #[command(flatten)]
    paths: PathsArgs,
    /// Write all datagrams and the TLS secrets that open them to this capture file (pcapng), for Wireshark.
    ///
    /// Who has the file reads everything that the connections carry: it is made with mode 0600. Delete it when you are done, or give it
    /// away without its secrets: `editcap --discard-all-secrets`.
    #[arg(long, value_name = "FILE", help_heading = "QUIC", hide_short_help = true)]
    pcap: Option<PathBuf>,
    /// Secrets on their way into the capture.
    #[arg(skip)]
    keys: KeyLines,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    quic: QuicArgs,
    #[command(flatten)]
    qlog: QlogArgs,
}

/// Stands below the short help.
const MORE: &str = "Examples, exit codes, and what the flags mean in full: tercel get --help";

const EXAMPLES: &str = "\
Examples:
  tercel get https://example.org/file.iso              a file, continued where it was interrupted
  tercel get --parallel 4 -o /tmp/ URL URL URL         several files into a folder, four at a time
  tercel get -k https://localhost:4433/bytes/2GB --discard --json     a measurement";

/// The examples, and what the exit codes mean.
fn after_long_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nExit codes:");
    for (code, meaning) in EXIT_CODES {
        let _ = write!(text, "\n  {code:>3}  {meaning}");
    }
    text.push_str(
        "\n\nSSLKEYLOGFILE=FILE in the environment logs the secrets of connections, for dissectors.",
    );
    text
}

/// Downloads, and says how it went.
pub(crate) fn run(args: &GetArgs) -> ExitCode {
    match get(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("tercel get: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn get(args: &GetArgs) -> Result<u8, GetError> {
    let jobs = args.jobs()?;
    let qlog = args.qlog.open().map_err(GetError::Usage)?;
    let builder = qlog.iter().fold(args.builder(&jobs)?, Builder::qlog);
    let sessions = args.sessions()?;
    let builder = sessions.iter().fold(builder, |builder, kept| builder.session_store(kept.clone()));
    let outcome = args.get(builder, &jobs);
    qlog.iter().for_each(qlog_options::finish);
    if let Some(error) = sessions.and_then(|sessions| sessions.take_error()) {
        eprintln!("tercel get: warning: {error}");
    }
    outcome
}
impl GetArgs {
    fn get(&self, builder: Builder, jobs: &[Job]) -> Result<u8, GetError> {
        if matches!(self.http, Http::One | Http::Two) {
            return self.get_over_tcp(builder, jobs);
        }
        self.path.check().map_err(GetError::Usage)?;
        self.quic.techniques().check(self.path.datapath).map_err(GetError::Usage)?;
        let paths = self.open(jobs).map_err(GetError::Usage)?;
        self.tell_of_proxy(jobs);
        if !self.quiet {
            paths.verdict.iter().for_each(|verdict| eprintln!("{verdict}"));
            paths.declined.iter().for_each(|line| eprintln!("{line}"));
        }
        self.run_on(paths.ports, builder, jobs)
    }

    /// Downloads on the first of these ports; there is no other.
    fn run_on(&self, ports: Vec<AnyPort>, builder: Builder, jobs: &[Job]) -> Result<u8, GetError> {
        let Some(port) = ports.into_iter().next().map(|port| self.path.held(port)) else {
            return Err(GetError::Broken("the data path has no port".to_owned()));
        };
        let Some(path) = &self.pcap else { return self.get_on(port, builder, jobs) };
        let captured = capture::captured(port, path, &self.keys);
        self.get_on(captured.map_err(|error| GetError::Write(path.clone(), error))?, builder, jobs)
    }

    /// Downloads while this thread drives the connections of HTTP/3.
    fn get_on(&self, port: AnyPort, builder: Builder, jobs: &[Job]) -> Result<u8, GetError> {
        let broken = |error: std::io::Error| GetError::Broken(error.to_string());
        let waker = port.waker();
        let stop = stop_flag(move || waker.iter().for_each(datapath::Waker::wake)).map_err(unusable)?;
        let (client, mut driver) = builder.build_on(port).map_err(|error| self.unbuilt(error))?;
        let mut console = Console::new(self, jobs);
        let fetcher = Fetcher::new(client, self.fetch_options()?);
        let outcome = driver.block_on(fetcher.run(jobs, &stop, &mut console));
        console.finish();
        // Only a port that has failed ends up here; what was received has been kept.
        outcome.map_err(broken)?;
        driver.close().map_err(broken)?;
        Ok(console.exit_code())
    }

    /// Downloads where no datagram is sent.
    fn get_over_tcp(&self, builder: Builder, jobs: &[Job]) -> Result<u8, GetError> {
        if self.pcap.is_some() {
            return Err(GetError::Usage("--pcap captures datagrams of QUIC: add --http 3".to_owned()));
        }
        if self.migrate_to.is_some() {
            return Err(GetError::Usage("--migrate-to moves connections of QUIC: add --http 3".to_owned()));
        }
        if self.paths.count().is_some() {
            return Err(GetError::Usage("--paths is for connections of QUIC: add --http 3".to_owned()));
        }
        if self.session_cache.is_some() {
            return Err(GetError::Usage("--session-cache keeps sessions of QUIC: add --http 3".to_owned()));
        }
        let client = builder.build().map_err(|error| self.unbuilt(error))?;
        self.tell_of_proxy(jobs);
        let stop = stop_flag(|| {}).map_err(unusable)?;
        let mut console = Console::new(self, jobs);
        let fetcher = Fetcher::new(client, self.fetch_options()?);
        let outcome = fetcher.run_blocking(jobs, &stop, &mut console);
        console.finish();
        outcome.map_err(unusable)?;
        Ok(console.exit_code())
    }

    fn unbuilt(&self, error: BuildError) -> GetError {
        match error {
            BuildError::Tls(error) => self.connection.explain(error),
            error => GetError::Usage(error.to_string()),
        }
    }

    /// The client's settings. A download follows redirects and measures silence by itself.
    fn builder(&self, jobs: &[Job]) -> Result<Builder, GetError> {
        let http = match self.http {
            Http::Auto => HttpChoice::Auto,
            Http::One => HttpChoice::Http1,
            Http::Two => HttpChoice::Http2,
            Http::Three => HttpChoice::Http3,
        };
        let builder = Client::builder()
            .roots(self.connection.roots()?)
            .ech(self.connection.ech())
            .tls_options(TlsOptions {
                key_lines: self.pcap.as_ref().map(|_| self.keys.clone()),
                ..self.quic.tls()
            })
            .transport(self.transport()?)
            .http(http)
            .family(self.connection.family())
            .detours(self.detours()?)
            .redirects(Redirects::None)
            .connect_timeout(std::time::Duration::from_secs(self.connect_timeout))
            .early_data(if self.early_data { EarlyData::SafeMethods } else { EarlyData::Off })
            .keep_alive(jobs.iter().any(|job| job.output.is_sequential()).then_some(QUIET))
            .silence(None);
        let builder = match self.connection.identity()? {
            Some(identity) => builder.identity(identity),
            None => builder,
        };
        let builder = self.paths.apply(builder)?;
        Ok(if self.new_connections {
            builder.pool(Pool::default().idle(std::time::Duration::ZERO).idle_per_origin(0))
        } else {
            builder
        })
    }

    /// The sessions of earlier runs.
    fn sessions(&self) -> Result<Option<Arc<FileSessions>>, GetError> {
        let opened = self.session_cache.as_ref().map(FileSessions::open).transpose();
        opened.map(|opened| opened.map(Arc::new)).map_err(|error| GetError::Usage(error.to_string()))
    }

    fn fetch_options(&self) -> Result<FetchOptions, GetError> {
        Ok(FetchOptions {
            parallel: usize::from(self.parallel),
            headers: parse_headers(&self.headers)?,
            silence: Duration::from_secs(self.timeout),
            limits_s: (self.connect_timeout, self.transport()?.idle_timeout.as_millis() / 1_000),
            migrate_to: self.migrate_to.clone(),
        })
    }

    fn tell_of_proxy(&self, jobs: &[Job]) {
        if !self.quiet {
            let targets: Vec<Target> = jobs.iter().map(|job| job.target.clone()).collect();
            ConnectionArgs::tell_of_proxy("get", &targets);
        }
    }

    fn detours(&self) -> Result<Vec<ConnectOverride>, GetError> {
        let mut detours = Vec::new();
        for text in &self.resolve {
            detours.extend(ConnectOverride::parse_resolve(text)?);
        }
        for text in &self.connect_to {
            detours.push(ConnectOverride::parse_connect_to(text)?);
        }
        Ok(detours)
    }

    /// What is to be done with each URL.
    fn jobs(&self) -> Result<Vec<Job>, GetError> {
        let targets =
            self.urls.iter().map(|url| Target::parse(url)).collect::<Result<Vec<Target>, GetError>>()?;
        let resume = if self.no_resume { Resume::Never } else { Resume::Allowed };
        let range = self.range.as_deref().map(parse_range).transpose()?;
        let first = range.as_ref().map_or(0, |range| range.start);
        let check = if self.verify_pattern { Check::Pattern(first) } else { Check::Nothing };
        let outputs = if self.discard || self.verify_pattern || self.head {
            vec![Output::Nowhere(check); targets.len()]
        } else {
            output::plan(self.output.as_deref(), &targets)?
        };
        let wanted = match range {
            _ if self.head => Wanted::Head,
            Some(range) => Wanted::Range(range, resume),
            None => Wanted::Whole(resume),
        };
        let jobs = targets.into_iter().zip(outputs);
        Ok(jobs.map(|(target, output)| Job { target, output, wanted: wanted.clone() }).collect())
    }

    /// The settings of QUIC.
    fn transport(&self) -> Result<TransportConfig, GetError> {
        let version = crate::options::quic_version(self.quic_version);
        let usage = |error: transport::InvalidConfig| GetError::Usage(error.to_string());
        let mut transport = self.quic.transport(version).map_err(usage)?;
        // One that asks for more patience than QUIC has gets it.
        let silence = Duration::from_secs(self.timeout);
        transport.idle_timeout = match (silence, transport.idle_timeout) {
            (Duration::ZERO, _) | (_, Duration::ZERO) => Duration::ZERO,
            (silence, idle) => idle.max(silence),
        };
        Ok(transport)
    }

    /// A port for all the addresses that may be asked.
    fn open(&self, jobs: &[Job]) -> Result<OpenOutcome, String> {
        let towards = jobs.first().and_then(|job| whom(&job.target));
        let open = |address: SocketAddr| {
            let options = self.path.options(address, self.quic.demanded_payload());
            let options = self.quic.techniques().paths(options);
            ports::open(&ports::OpenOptions { towards, ..options })
        };
        let v4 = || open((Ipv4Addr::UNSPECIFIED, 0).into());
        let v6 = || open((Ipv6Addr::UNSPECIFIED, 0).into());
        match self.connection.family() {
            Family::V4 => v4(),
            Family::V6 => v6(),
            // A system without IPv6.
            Family::Any => v6().or_else(|_| v4()),
        }
    }
}

/// The system lacks something that a download needs.
fn unusable(error: std::io::Error) -> GetError {
    GetError::Usage(error.to_string())
}

/// Where a server is, as far as its URL tells.
fn whom(target: &Target) -> Option<IpAddr> {
    // RFC 6761 §6.3: the name of this machine itself.
    let is_here = || target.host().eq_ignore_ascii_case("localhost");
    target.ip().or_else(|| is_here().then_some(Ipv4Addr::LOCALHOST.into()))
}
