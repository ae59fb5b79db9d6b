//! What a server costs that has nothing to do: its share of a core, on each path and in each mode of waiting.
//!
//! A server process without clients, then one with a connection that is open and silent. A client of this process
//! opens it, and takes no more turns while the clock runs, so that nothing but the server's own doing is counted.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crypto::{ClientTls, Roots, TlsOptions};
use datapath::Port as _;
use serde::Serialize;
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Fin, StreamId, StreamSink, TransportConfig,
};
use udp::{BindOptions, UdpPort, Variant};
use worker::{App, Next, Worker};

use crate::environment::Environment;
use crate::method::Method;
use crate::pair::{ProgramPair, Server};
use crate::process::is_interruption;
use crate::site::{End, Site};

/// A share of a core that an idle server should stay below when it sleeps.
pub const AIM: f64 = 0.02;
/// How long a server may settle before the clock runs.
const SETTLE: Duration = Duration::from_millis(500);
/// How long a handshake may take.
const HANDSHAKE: base::time::Duration = base::time::Duration::from_secs(5);

/// How a worker waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Sleeps at once.
    Block,
    /// Polls for 50 µs, then sleeps.
    SpinThenBlock,
    /// Never sleeps.
    Spin,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Block, Mode::SpinThenBlock, Mode::Spin];

    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Block => "block",
            Mode::SpinThenBlock => "spin 50 µs, then block",
            Mode::Spin => "spin",
        }
    }

    fn flags(self) -> [&'static str; 2] {
        match self {
            Mode::Block => ["--spin", "0"],
            Mode::SpinThenBlock => ["--spin", "50"],
            Mode::Spin => ["--spin", "always"],
        }
    }
}

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub struct IdlePlan {
    /// The tercel program. Its place is left out of the results.
    #[serde(skip)]
    pub program: PathBuf,
    /// How long each server is watched.
    pub seconds: f64,
    /// Its core.
    pub core: usize,
    /// The paths.
    pub methods: Vec<Method>,
}

/// One path in one mode.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The path.
    pub method: Method,
    /// How it waits.
    pub mode: Mode,
    /// Share of a core without and with an idle connection; none when there was a problem.
    pub shares: Option<[f64; 2]>,
    /// What it was.
    pub problem: Option<String>,
}

impl Row {
    /// Whether one that sleeps stays below [`AIM`]; one that spins is not asked to.
    pub fn is_as_it_should_be(&self) -> bool {
        self.mode == Mode::Spin || self.shares.is_some_and(|shares| shares.iter().all(|share| *share < AIM))
    }
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Idle {
    /// What was to be measured.
    pub plan: IdlePlan,
    /// Where.
    pub environment: Environment,
    /// One for each path and mode.
    pub rows: Vec<Row>,
}

/// Measures each path in each mode. `progress` hears a line for each.
///
/// # Errors
/// `stop` was set, or nothing can be measured at all.
pub fn run(
    plan: &IdlePlan,
    site: &Site,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> io::Result<Idle> {
    let mut idle = Idle { plan: plan.clone(), environment: Environment::here(), rows: Vec::new() };
    let pair = ProgramPair::new(&plan.program, site, stop)?;
    for &method in &plan.methods {
        for mode in Mode::ALL {
            let (shares, problem) = match watch(plan, &pair, method, mode) {
                Ok(shares) => (Some(shares), None),
                Err(error) if is_interruption(&error, stop) => {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
                }
                Err(error) => (None, Some(error.to_string())),
            };
            let row = Row { method, mode, shares, problem };
            progress(&row.to_string());
            idle.rows.push(row);
        }
    }
    Ok(idle)
}

fn watch(plan: &IdlePlan, pair: &ProgramPair<'_>, method: Method, mode: Mode) -> io::Result<[f64; 2]> {
    // The connection must outlive the watch.
    let silence = format!("{:.0}", plan.seconds + 60.0);
    let flags = [&mode.flags()[..], &["--idle-timeout", &silence]].concat();
    let server = pair.serve(method, pair.site.ipv4(End::Server), &[plan.core], &flags)?;
    let alone = share(plan, &server, pair.stop)?;
    let client = pair.site.run(End::Client, || connect(server.address, plan.seconds))?;
    let with_connection = share(plan, &server, pair.stop)?;
    drop(client);
    server.finish(pair.stop)?;
    Ok([alone, with_connection])
}

/// The server's share of a core from now on.
fn share(plan: &IdlePlan, server: &Server, stop: &AtomicBool) -> io::Result<f64> {
    let gone = || io::Error::other("the server has gone");
    sleep(SETTLE, stop)?;
    let (began, before) = (cpu::clock_seconds(), cpu::seconds_of(server.id()).ok_or_else(gone)?);
    sleep(Duration::from_secs_f64(plan.seconds), stop)?;
    let after = cpu::seconds_of(server.id()).ok_or_else(gone)?;
    Ok((after - before) / (cpu::clock_seconds() - began))
}

/// Sleeps in steps, so that an interruption is noticed.
fn sleep(span: Duration, stop: &AtomicBool) -> io::Result<()> {
    let until = cpu::clock_seconds() + span.as_secs_f64();
    loop {
        let left = until - cpu::clock_seconds();
        if left <= 0.0 {
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
        }
        std::thread::sleep(Duration::from_secs_f64(left.min(0.1)));
    }
}

/// A client that wants nothing.
#[derive(Debug, Default)]
struct IdleClient;

impl StreamSink for IdleClient {
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], _: Fin) -> usize {
        bytes.len()
    }
}

impl App for IdleClient {
    type State = IdleClient;

    fn on_accept(&mut self, _: base::time::Instant, _: &mut Connection) -> IdleClient {
        IdleClient
    }

    fn on_turn(&mut self, _: base::time::Instant, _: &mut Connection, _: &mut IdleClient) -> Next {
        Next::Wait
    }

    fn on_gone(&mut self, _: base::time::Instant, _: &Connection, _: IdleClient) {}
}

/// An open connection. It stays so without turns, until the server's patience is over.
fn connect(peer: SocketAddr, seconds: f64) -> io::Result<Worker<UdpPort, IdleClient>> {
    let tls = ClientTls::new(&Roots::Insecure, &TlsOptions::default()).map_err(io::Error::other)?;
    let idle_timeout = base::time::Duration::from_secs(seconds as u64 + 60);
    let transport = TransportConfig { idle_timeout, ..TransportConfig::default() }.build();
    let transport = Arc::new(transport.map_err(io::Error::other)?);
    let mut any = peer;
    any.set_ip(if peer.is_ipv4() { [0; 4].into() } else { [0; 16].into() });
    any.set_port(0);
    let mut port = UdpPort::bind(&BindOptions::new(any, Variant::Gso)).map_err(io::Error::other)?;
    let deadline = port.now() + HANDSHAKE;
    let seed = u64::from(std::process::id()).to_be_bytes().repeat(4);
    let endpoint = Endpoint::new(EndpointConfig::default(), seed.try_into().unwrap_or([3; 32]));
    let mut worker = Worker::new(port, IdleClient, endpoint, None, worker::Config::default());
    let config = ClientConfig { tls, transport, token: Vec::new() };
    let handle = worker.connect(&config, "localhost", peer, IdleClient).map_err(io::Error::other)?;
    // A few more turns than the handshake needs: acknowledgements, tickets, new connection IDs.
    let mut settled_at = None;
    while worker.now() < deadline {
        let next = worker.now() + base::time::Duration::from_millis(20);
        worker.run_turn(Some(next))?;
        let is_connected = worker.connection(handle).is_some_and(|(connection, _)| connection.is_connected());
        if is_connected && settled_at.is_none() {
            settled_at = Some(worker.now() + base::time::Duration::from_millis(300));
        }
        if settled_at.is_some_and(|at| worker.now() >= at) {
            return Ok(worker);
        }
    }
    Err(io::Error::other("the idle connection was not established in 5 s"))
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:12} {:24}", self.method, self.mode.name())?;
        let Some([alone, with_connection]) = self.shares else {
            return write!(f, " -  {}", self.problem.as_deref().unwrap_or("not measured"));
        };
        let verdict = if self.is_as_it_should_be() { "" } else { "  ABOVE THE AIM" };
        write!(f, "{:>10.2} % {:>10.2} %{verdict}", alone * 100.0, with_connection * 100.0)
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "An idle server's share of a core over {} s", self.plan.seconds)?;
        writeln!(f, "{}\n", self.environment)?;
        writeln!(f, "{:12} {:24}{:>12} {:>12}", "path", "waiting", "alone", "1 connection")?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        writeln!(f, "\nAim: less than {} % of a core where the server sleeps.", AIM * 100.0)
    }
}
