//! A client of HTTP/3 by our own rooms: a worker in this thread.

use crate::message::{Answer, Ask, Who};
use base::time::Duration;
use bytes::Bytes;
use crypto::{ClientTls, Roots};
use http3::{Abort, BodyLength, EncodedRequest, MessageSink, ResponseHead, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Event, Fin, IncomingPolicy, StreamId, StreamSink,
    TransportConfig,
};
use udp::{BindOptions, UdpPort, Variant};
use worker::{App, Next, Worker};

const PATIENCE: Duration = Duration::from_secs(60);
/// Of the next client.
static SEED: AtomicU8 = AtomicU8::new(7);

/// Asks one after the other on one connection.
pub(crate) fn http3(port: u16, asks: &[Ask]) -> Vec<Answer> {
    let answers = http3_or_reset(port, asks);
    assert!(answers.iter().all(|answer| answer.reset.is_empty()), "a response broke off");
    answers
}

/// The same, where the server may reset streams.
pub(crate) fn http3_or_reset(port: u16, asks: &[Ask]) -> Vec<Answer> {
    http3_as(&Who::default(), port, asks)
}

/// The same of a client that is `who`.
pub(crate) fn http3_as(who: &Who, port: u16, asks: &[Ask]) -> Vec<Answer> {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let bind = BindOptions::new(([127, 0, 0, 1], 0).into(), Variant::Gso);
    let config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
    let app = Client { port, asks: asks.to_vec(), answers: Vec::new(), failure: None, is_done: false };
    let udp = UdpPort::bind(&bind).expect("a socket");
    // With one seed for all, the next client would have the connection IDs of the last.
    let endpoint = Endpoint::new(config, [SEED.fetch_add(1, Ordering::Relaxed); 32]);
    let mut worker = Worker::new(udp, app, endpoint, None, worker::Config::default());
    let tls = ClientTls::new(&Roots::Insecure, &who.tls("h3")).expect("a configuration");
    let config = ClientConfig { tls, transport: Arc::new(TransportConfig::default()), token: Vec::new() };
    let now = worker.clock();
    let connection = http3::Connection::new(wire::Side::Client, Arc::new(http3::Config::client()), now);
    let exchange = Exchange { session: Session { connection, messages: Reply::default() }, asked: 0 };
    worker.connect(&config, who.name, address, exchange).expect("a connection");
    let end = now + PATIENCE;
    while worker.app_mut().answers.len() < asks.len() {
        worker.run_turn(Some(end)).expect("a turn");
        assert!(worker.now() < end, "it takes too long");
        assert_eq!(worker.app_mut().failure, None);
    }
    // A server that was left without a word would wait for the idle timeout before it ends.
    worker.app_mut().is_done = true;
    worker.activate_all();
    let now = worker.clock();
    worker.turn(now).expect("a turn");
    std::mem::take(&mut worker.app_mut().answers)
}

struct Client {
    port: u16,
    asks: Vec<Ask>,
    answers: Vec<Answer>,
    failure: Option<String>,
    is_done: bool,
}

struct Exchange {
    session: Session<Reply>,
    asked: usize,
}

#[derive(Default)]
struct Reply {
    answer: Answer,
    is_complete: bool,
    failure: Option<String>,
}

impl MessageSink for Reply {
    fn on_response(&mut self, _: StreamId, head: &ResponseHead<'_>) {
        self.answer.status = head.status();
        for line in head.fields() {
            self.answer.add(line.name, line.value);
        }
    }

    fn on_body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        self.answer.content.extend_from_slice(bytes);
        bytes.len()
    }

    fn on_end(&mut self, _: StreamId) {
        self.is_complete = true;
    }

    fn on_abort(&mut self, _: StreamId, abort: Abort) {
        self.answer.reset = format!("{abort:?}");
        self.is_complete = true;
    }

    fn on_event(&mut self, event: &Event) {
        if let Event::Closed(reason) = event {
            self.failure = Some(format!("the connection ended: {reason:?}"));
        }
    }
}

impl StreamSink for Exchange {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.session.on_stream_data(id, bytes, fin)
    }
}

impl Client {
    fn ask(&self, connection: &mut Connection, exchange: &mut Exchange) -> Result<(), String> {
        let Some(ask) = self.asks.get(exchange.asked) else { return Ok(()) };
        exchange.asked += 1;
        if !ask.lines.is_empty() {
            let lines = ask.lines.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
            let request = EncodedRequest::of_lines(lines, BodyLength::Empty);
            let sent = exchange.session.connection.request_encoded(connection, &request);
            return sent.map(drop).map_err(|error| error.to_string());
        }
        let uri = format!("https://{}{}", ask.authority(self.port), ask.target);
        let mut request = http::Request::builder().method(ask.method).uri(uri);
        for (name, value) in &ask.fields {
            request = request.header(*name, value);
        }
        let (head, ()) = request.body(()).map_err(|error| error.to_string())?.into_parts();
        let http = &mut exchange.session.connection;
        if ask.content.is_empty() {
            return http
                .request(connection, &head, BodyLength::Empty)
                .map(drop)
                .map_err(|error| error.to_string());
        }
        let length = BodyLength::Known(ask.content.len() as u64);
        let id = http.request(connection, &head, length).map_err(|error| error.to_string())?;
        // All of it fits into the first window.
        http.write_body(connection, id, Bytes::from(ask.content.clone()))
            .map_err(|error| format!("{error:?}"))?;
        http.finish(connection, id).map_err(|error| format!("{error:?}"))
    }
}

impl App for Client {
    type State = Exchange;

    fn on_accept(&mut self, now: base::time::Instant, _: &mut Connection) -> Exchange {
        let connection = http3::Connection::new(wire::Side::Client, Arc::new(http3::Config::client()), now);
        Exchange { session: Session { connection, messages: Reply::default() }, asked: 0 }
    }

    fn on_turn(
        &mut self,
        now: base::time::Instant,
        connection: &mut Connection,
        state: &mut Exchange,
    ) -> Next {
        state.session.on_turn(connection, now);
        if state.session.messages.is_complete {
            let reply = std::mem::take(&mut state.session.messages);
            self.answers.push(reply.answer);
        }
        if self.is_done {
            state.session.connection.close(connection, now);
            return Next::Wait;
        }
        if connection.is_connected()
            && state.asked == self.answers.len()
            && let Err(failure) = self.ask(connection, state)
        {
            self.failure = Some(failure);
        }
        if let Some(failure) = state.session.messages.failure.take() {
            self.failure = Some(failure);
        }
        state.session.connection.next_timeout().map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, _: base::time::Instant, _: &Connection, _: Exchange) {
        self.failure.get_or_insert_with(|| "the connection ended".to_owned());
    }
}
