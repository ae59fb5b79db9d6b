//! A client that reads as slowly as a test wants.

use base::time::{Duration, Instant};
use http3::{Abort, BodyLength, Code, Config, MessageSink, ResponseHead, Session};
use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use transport::{Connection, StreamId};
use wire::Side;
use worker::{App, Next};

/// What the client knows of a response.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) bytes: Vec<u8>,
    pub(crate) has_ended: bool,
    pub(crate) aborted: Option<Abort>,
}

/// How much the client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// All there is.
    All,
    /// So many bytes in each span.
    Slow(usize, Duration),
}

/// What a test sees of a connection without touching it.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) seen: BTreeMap<StreamId, Seen>,
    /// Requests can be sent.
    pub(crate) is_up: bool,
    pub(crate) is_closed: bool,
}

pub(crate) type Shared = Rc<RefCell<View>>;

#[derive(Debug)]
pub(crate) struct Messages {
    view: Shared,
    left: usize,
}

impl Messages {
    fn seen(&self, id: StreamId) -> RefMut<'_, Seen> {
        RefMut::map(self.view.borrow_mut(), |view| view.seen.entry(id).or_default())
    }
}

impl MessageSink for Messages {
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        self.seen(id).status = head.status();
    }
    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.left);
        self.left -= taken;
        self.seen(id).bytes.extend_from_slice(&bytes[..taken]);
        taken
    }
    fn on_end(&mut self, id: StreamId) {
        self.seen(id).has_ended = true;
    }
    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        self.seen(id).aborted = Some(abort);
    }
    fn on_stop_sending(&mut self, _: StreamId, _: Code) {}
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct State {
    session: Session<Messages>,
    pace: Pace,
    next_at: Instant,
}

impl State {
    pub(crate) fn new(pace: Pace, view: &Shared) -> State {
        let connection = http3::Connection::new(Side::Client, Arc::new(Config::client()), Instant::ZERO);
        let left = if pace == Pace::All { usize::MAX } else { 0 };
        let messages = Messages { view: Rc::clone(view), left };
        State { session: Session { connection, messages }, pace, next_at: Instant::ZERO }
    }

    pub(crate) fn get(&mut self, transport: &mut Connection, path: &str) -> StreamId {
        let head = http::Request::builder().uri(format!("https://server.example{path}"));
        let head = head.body(()).unwrap().into_parts().0;
        let id = self.session.connection.request(transport, &head, BodyLength::Empty).unwrap();
        drop(self.session.messages.seen(id));
        id
    }
}

impl transport::StreamSink for State {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: transport::Fin) -> usize {
        self.session.on_stream_data(id, bytes, fin)
    }
}

/// All clients.
pub(crate) struct Clients;

impl App for Clients {
    type State = State;

    fn on_accept(&mut self, _: Instant, _: &mut Connection) -> State {
        State::new(Pace::All, &Shared::default())
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, state: &mut State) -> Next {
        state.session.on_turn(connection, now);
        let mut view = state.session.messages.view.borrow_mut();
        view.is_up = state.session.connection.peer_settings().is_some();
        view.is_closed = connection.is_closed();
        let ids: Vec<StreamId> = view.seen.keys().copied().collect();
        drop(view);
        let Pace::Slow(bytes, span) = state.pace else { return Next::Wait };
        if now >= state.next_at {
            state.next_at = now + span;
            state.session.messages.left = bytes;
            for id in ids {
                state.session.deliver(connection, now, id);
            }
        }
        Next::At(state.next_at)
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, state: State) {
        state.session.messages.view.borrow_mut().is_closed = true;
    }
}
