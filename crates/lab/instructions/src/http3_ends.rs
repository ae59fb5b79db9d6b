//! Small requests over HTTP/3.

use crate::parts::{Parts, Row};
use crate::site::Site;
use crate::world::{App, World};
use base::time::Instant;
use http3::{Abort, BodyLength, MessageSink, Session};
use server::access_log::{AccessLog, Target};
use server::handler::Files;
use server::http3::{Server, State};
use std::error::Error;
use std::sync::Arc;
use transport::{Connection, StreamId};
use wire::Side;
use worker::{App as _, Next};

/// Requests that are sent at once.
const BATCH: u64 = 10;
/// Batches before figures are taken, and those that are counted.
const WARM_UP: u64 = 20;
const COUNTED: u64 = 200;

struct ServerEnd {
    server: Server<Files>,
    state: Option<State<Files>>,
}

impl App for ServerEnd {
    type Sink = State<Files>;

    fn on_accept(&mut self, now: Instant, connection: &mut Connection) {
        self.state = Some(self.server.on_accept(now, connection));
    }

    fn sink(&mut self) -> Option<&mut State<Files>> {
        self.state.as_mut()
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection) -> bool {
        let Some(state) = &mut self.state else { return false };
        self.server.on_turn(now, connection, state) == Next::Again
    }
}

/// Counts responses.
#[derive(Default)]
struct Responses {
    ended: u64,
    bytes: usize,
    failed: u64,
}

impl MessageSink for Responses {
    fn on_body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        self.bytes += bytes.len();
        bytes.len()
    }

    fn on_end(&mut self, _: StreamId) {
        self.ended += 1;
    }

    fn on_abort(&mut self, _: StreamId, _: Abort) {
        self.failed += 1;
    }
}

struct ClientEnd {
    session: Session<Responses>,
    head: http::request::Parts,
    /// Requests that are still to be sent.
    left: u64,
}

impl App for ClientEnd {
    type Sink = Session<Responses>;

    fn on_accept(&mut self, _: Instant, _: &mut Connection) {}

    fn sink(&mut self) -> Option<&mut Session<Responses>> {
        Some(&mut self.session)
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection) -> bool {
        self.session.on_turn(connection, now);
        for _ in 0..std::mem::take(&mut self.left) {
            let asked = self.session.connection.request(connection, &self.head, BodyLength::Empty);
            self.session.messages.failed += u64::from(asked.is_err());
        }
        false
    }
}

/// What a small request costs the server.
pub(crate) fn requests(parts: &mut Parts) -> Result<(), Box<dyn Error>> {
    let site = Site::new()?;
    let server = Server::new(Files::new(site.options()?), AccessLog::start(Target::Off)?.recorder());
    let (head, ()) = http::Request::get(format!("https://localhost{}", crate::generator::PATH))
        .header("user-agent", crate::generator::USER_AGENT)
        .body(())?
        .into_parts();
    let config = Arc::new(http3::Config::client());
    let connection = http3::Connection::new(Side::Client, config, Instant::from_nanos(1 << 40));
    let session = Session { connection, messages: Responses::default() };
    let client = ClientEnd { session, head, left: 0 };
    let mut world = World::new(b"h3", (client, ServerEnd { server, state: None }))?;
    world.connect()?;
    world.run_until("the handshake", |world| {
        world.is_confirmed() && world.client.app.session.connection.peer_settings().is_some()
    })?;
    let mut run = |batches: u64| -> Result<(), Box<dyn Error>> {
        for _ in 0..batches {
            let wanted = world.client.app.session.messages.ended + BATCH;
            world.client.app.left = BATCH;
            world.run_until("a response", |world| {
                let Responses { ended, failed, .. } = world.client.app.session.messages;
                ended >= wanted || failed > 0
            })?;
        }
        let Responses { ended, bytes, failed } = world.client.app.session.messages;
        let is_right = failed == 0 && bytes as u64 == ended * crate::generator::SIZE;
        if is_right { Ok(()) } else { Err("a request over HTTP/3 has failed".into()) }
    };
    run(WARM_UP)?;
    parts.begin();
    run(COUNTED)?;
    parts.end(&[Row {
        name: "request over HTTP/3",
        functions: &["server_receives", "server_sends"],
        count: COUNTED * BATCH,
    }]);
    Ok(())
}
