//! An HTTP/3 server and a client in one thread, in a loop that belongs to this program.
//!
//! A tercel worker needs no thread, no runtime and no callback of its own: it is a value with a method `turn(now)`. The code
//! that calls the method drives it. This program owns two workers, a server's and a client's, each on a UDP socket on loopback,
//! and asks the kernel itself, by poll(2), when one of them has something to do. A game, a database or an event loop that
//! has descriptors of its own to watch would add them to the same call.
//!
//! ```text
//! cargo run --release --example one_thread -- 200000000
//! ```
//!
//! Read `run`, then `Loop`; the rest is a client that compares what it gets.

use base::pattern;
use base::time::{Duration, Instant};
use crypto::{ClientTls, Identity, Roots, ServerTls, TlsOptions};
use datapath::Port as _;
use http3::{Abort, BodyLength, MessageSink, ResponseHead, Session};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use server::access_log::{AccessLog, Target};
use server::handler::{FileOptions, Files};
use server::http3::Server;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Event, Fin, IncomingPolicy, ServerConfig, StreamId,
    StreamSink, TransportConfig,
};
use udp::{BindOptions, UdpPort, Variant};
use worker::{App, Next, Worker};

/// Longer than this nothing takes here.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let size = std::env::args().nth(1).map_or(Ok(50_000_000), |text| text.parse())?;
    let report = run(size)?;
    println!("{} bytes, each compared, in {:.3} s on one thread", report.bytes, report.seconds);
    println!("{} turns, {} waits, both ends closed and forgotten", report.turns, report.waits);
    Ok(())
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// Content that arrived, and was as it should be.
    pub(crate) bytes: u64,
    /// From the first packet to the last byte.
    pub(crate) seconds: f64,
    /// How often the loop let both workers turn.
    pub(crate) turns: u64,
    /// How often there was nothing to do, so that it waited.
    pub(crate) waits: u64,
}

/// Downloads a generated body of `size` bytes from a server in the same thread.
///
/// # Errors
/// Whatever does not work, and whatever is not as it should be.
pub(crate) fn run(size: u64) -> Result<Report, Box<dyn Error>> {
    let server = server()?;
    let address = server.port().local_address();
    let mut driver = Loop { server, client: client()?, turns: 0, waits: 0 };
    let began = driver.client.clock();
    let tls = ClientTls::new(&Roots::Insecure, &TlsOptions::default())?;
    let config = ClientConfig { tls, transport: Arc::new(TransportConfig::default()), token: Vec::new() };
    let download = Download::new(address, size, began)?;
    driver.client.connect(&config, "localhost", address, download)?;

    driver.run_until(|driver| driver.client.app_mut().outcome.is_some())?;
    let seconds = driver.client.now().saturating_since(began).as_secs_f64();
    let outcome = driver.client.app_mut().outcome.take();
    let bytes = outcome.ok_or("the download did not end")??;
    if bytes != size {
        return Err(format!("{bytes} bytes instead of {size}").into());
    }
    // The client has closed the connection. Both ends remember it for a moment, for packets that are late, and need a turn
    // when the time has come to forget it: nothing but the deadlines wakes the loop now.
    driver.run_until(|driver| driver.client.connections() + driver.server.connections() == 0)?;
    Ok(Report { bytes, seconds, turns: driver.turns, waits: driver.waits })
}

/// The program's own loop, with two workers in it.
struct Loop {
    server: Worker<UdpPort, Server>,
    client: Worker<UdpPort, Client>,
    turns: u64,
    waits: u64,
}

impl Loop {
    fn run_until(&mut self, mut is_done: impl FnMut(&mut Loop) -> bool) -> Result<(), Box<dyn Error>> {
        let end = self.client.clock() + PATIENCE;
        loop {
            // The clock is read once for everybody. A turn takes in what has arrived, lets the applications act, and sends.
            let now = self.client.clock();
            self.server.turn(now)?;
            self.client.turn(now)?;
            self.turns += 1;
            if is_done(self) {
                return Ok(());
            }
            if now >= end {
                return Err("it takes too long".into());
            }
            self.wait(now)?;
        }
    }

    /// Sleeps until a worker has something to do: one of its descriptors is readable, or its deadline has passed.
    fn wait(&mut self, now: Instant) -> Result<(), Box<dyn Error>> {
        let deadlines = [self.server.next_deadline(), self.client.next_deadline()];
        // With nothing due the loop would sleep for ever, if it were not for its own patience.
        let deadline = deadlines.into_iter().flatten().min().unwrap_or(now + PATIENCE);
        if deadline <= now {
            return Ok(()); // a connection has more to do at once
        }
        self.waits += 1;
        let timeout = Timespec::try_from(core::time::Duration::from(deadline.saturating_since(now)))?;
        let (of_server, of_client) = (self.server.descriptors(), self.client.descriptors());
        let watched = of_server.iter().chain(&of_client);
        let mut events: Vec<PollFd<'_>> =
            watched.map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
        match poll(&mut events, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |events: &[PollFd<'_>]| events.iter().any(|event| !event.revents().is_empty());
        let (server_events, client_events) = events.split_at(of_server.len());
        let ready = (is_ready(server_events), is_ready(client_events));
        // A port is told that it was woken before its worker turns. Not every port minds, some do.
        if ready.0 {
            self.server.on_woken();
        }
        if ready.1 {
            self.client.on_woken();
        }
        Ok(())
    }
}

/// A socket of its own for each worker.
fn port() -> Result<UdpPort, Box<dyn Error>> {
    Ok(UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse()?, Variant::Gso))?)
}

/// Tercel's own server: `/bytes/123` is a body of 123 bytes that every client can compute.
fn server() -> Result<Worker<UdpPort, Server>, Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let identity = Identity::from_der(vec![made.cert.der().to_vec()], made.signing_key.serialize_der())?;
    let tls = ServerTls::new(&identity, &TlsOptions::default())?;
    let config = ServerConfig { tls, transport: Arc::new(TransportConfig::default()) };
    let log = AccessLog::start(Target::Off)?;
    let app = Server::new(Files::new(FileOptions::default()), log.recorder());
    // All randomness of an endpoint comes from its seed, which must be secret.
    let endpoint = Endpoint::new(EndpointConfig::default(), seed()?);
    Ok(Worker::new(port()?, app, endpoint, Some(config), worker::Config::default()))
}

/// A worker without a server's configuration is a client's.
fn client() -> Result<Worker<UdpPort, Client>, Box<dyn Error>> {
    let config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
    let endpoint = Endpoint::new(config, seed()?);
    Ok(Worker::new(port()?, Client::default(), endpoint, None, worker::Config::default()))
}

fn seed() -> Result<[u8; 32], Box<dyn Error>> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    Ok(seed)
}

/// The application on the client's worker: what all its connections have in common.
#[derive(Default)]
struct Client {
    /// How many bytes came, or why not all of them.
    outcome: Option<Result<u64, String>>,
}

/// What the worker keeps for each connection: the protocol, and the application's end of it.
struct Download {
    session: Session<Body>,
    request: Option<http::request::Parts>,
}

impl Download {
    fn new(server: SocketAddr, size: u64, now: Instant) -> Result<Download, http::Error> {
        let request = http::Request::get(format!("https://{server}/bytes/{size}")).body(())?;
        let config = Arc::new(http3::Config::client());
        let connection = http3::Connection::new(wire::Side::Client, config, now);
        let session = Session { connection, messages: Body::default() };
        Ok(Download { session, request: Some(request.into_parts().0) })
    }
}

/// The response as it comes in.
#[derive(Default)]
struct Body {
    received: u64,
    outcome: Option<Result<u64, String>>,
}

impl Body {
    fn end(&mut self, outcome: Result<u64, String>) {
        self.outcome.get_or_insert(outcome);
    }
}

impl MessageSink for Body {
    fn on_response(&mut self, _: StreamId, head: &ResponseHead<'_>) {
        if head.status() != 200 {
            self.end(Err(format!("status {}", head.status())));
        }
    }

    /// The bytes are lent: they lie decrypted in the kernel's buffer and are compared there.
    fn on_body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        if let Some(place) = pattern::first_difference(self.received, bytes) {
            self.end(Err(format!("byte {place} is wrong")));
        }
        self.received += bytes.len() as u64;
        bytes.len()
    }

    fn on_end(&mut self, _: StreamId) {
        self.end(Ok(self.received));
    }

    fn on_abort(&mut self, _: StreamId, abort: Abort) {
        self.end(Err(format!("the response broke off: {abort:?}")));
    }

    fn on_event(&mut self, event: &Event) {
        if let Event::Closed(reason) = event {
            self.end(Err(format!("the connection ended: {reason:?}")));
        }
    }
}

impl StreamSink for Download {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.session.on_stream_data(id, bytes, fin)
    }
}

impl App for Client {
    type State = Download;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> Download {
        // A client accepts no connections. The trait requires the method.
        let connection = http3::Connection::new(wire::Side::Client, Arc::new(http3::Config::client()), now);
        Download { session: Session { connection, messages: Body::default() }, request: None }
    }

    /// Something has happened on the connection: ask when it is there, close when the answer is.
    fn on_turn(&mut self, now: Instant, connection: &mut Connection, state: &mut Download) -> Next {
        let Download { session, request } = state;
        session.on_turn(connection, now);
        if connection.is_connected()
            && let Some(head) = request.take()
            && let Err(error) = session.connection.request(connection, &head, BodyLength::Empty)
        {
            session.messages.end(Err(error.to_string()));
        }
        if self.outcome.is_none()
            && let Some(outcome) = session.messages.outcome.take()
        {
            self.outcome = Some(outcome);
            session.connection.close(connection, now);
        }
        session.connection.next_timeout().map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, _: Download) {
        self.outcome.get_or_insert_with(|| Err("the connection ended".to_owned()));
    }
}
