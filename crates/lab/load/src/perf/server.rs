//! The server: it sends each client the bytes that it asks for.
//!
//! What the end of a request asks for goes into a list while packets are taken in; in the turn that follows, it is answered.
//! An answer that its stream takes whole, as nearly all requests' are, is in no table at all. The rest of a longer one
//! is in a table, and its stream is fed as it takes more.
//!
//! A request on a stream of one direction is answered on one of ours. Where the client allows no more of those for now, its
//! answer waits in the order in which they were asked for.
//!
//! Bounds: a client can have no more requests and replies here than the transport lets it have streams, and no more answers that
//! wait for a stream than [`MOST_WAITING`]. What is sent is lent from one block that all share, so an answer of any size pins
//! nothing.

use super::protocol::{NO_ERROR, NO_STREAMS, Prefix};
use base::pattern;
use base::time::Instant;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use transport::{Connection, Dir, Event, Fin, StreamId, StreamSink};
use wire::Side;
use worker::{App, Next};

/// Bytes that one answer may hand over in a turn, so that others get theirs.
const TURN_BYTES: u64 = 1 << 20;
/// Answers of one client that wait for it to allow more streams: their requests are over, so that nothing else bounds them.
const MOST_WAITING: usize = 1_024;

/// The application of a server's worker.
#[derive(Debug, Default)]
pub struct Server {
    is_over: bool,
}

/// What is kept for a connection.
#[derive(Debug, Default)]
pub struct State {
    /// Requests that have begun and not ended.
    arriving: Vec<Request>,
    /// Requests that have ended, and what they want back; `None` when they ended too soon to say.
    ready: Vec<(StreamId, Option<u64>)>,
    /// Answers that their streams did not take whole, and the bytes of each that are not handed over.
    replies: HashMap<StreamId, u64>,
    /// Streams that take bytes again.
    writable: Vec<StreamId>,
    /// The sizes of answers that wait for a stream of their own.
    waiting: VecDeque<u64>,
}

#[derive(Debug)]
struct Request {
    id: StreamId,
    prefix: Prefix,
}

impl Server {
    /// Ends all connections. The worker must then activate them.
    pub fn stop(&mut self) {
        self.is_over = true;
    }
}

impl StreamSink for State {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        if id.initiator() != Side::Client {
            return bytes.len();
        }
        let known = self.arriving.iter().position(|request| request.id == id);
        let mut prefix = Prefix::default();
        match (known.and_then(|place| self.arriving.get_mut(place)), fin) {
            (Some(request), Fin::Open) => request.prefix.take(bytes),
            (Some(request), Fin::End) => {
                prefix = request.prefix;
                prefix.take(bytes);
            }
            (None, _) => prefix.take(bytes),
        }
        match (known, fin) {
            (Some(_), Fin::Open) => {}
            (None, Fin::Open) => self.arriving.push(Request { id, prefix }),
            (known, Fin::End) => {
                if let Some(place) = known {
                    self.arriving.swap_remove(place);
                }
                self.ready.push((id, prefix.size()));
            }
        }
        bytes.len()
    }
}

impl State {
    fn hear(&mut self, connection: &mut Connection) {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Writable { id } => self.writable.push(id),
                Event::StopSending { id, .. } => _ = self.replies.remove(&id),
                Event::StreamReset { id, code } => {
                    self.arriving.retain(|request| request.id != id);
                    // The client has changed its mind; the other direction, if there is one, ends as well.
                    connection.reset(id, code);
                }
                Event::Closed(_) => *self = State::default(),
                _ => {}
            }
        }
    }

    /// Answers the requests that have ended.
    #[inline]
    fn answer(&mut self, now: Instant, connection: &mut Connection) -> Next {
        let mut next = Next::Wait;
        // In place: requests pass here in every turn, and must not allocate.
        for place in 0..self.ready.len() {
            let Some(&(id, size)) = self.ready.get(place) else { break };
            match (id.dir(), size) {
                // One that ended too soon is ignored: its other direction ends as if nothing had been wanted.
                (Dir::Bidi, size) => {
                    next = sooner(next, self.begin(connection, id, size.unwrap_or(0)));
                }
                (Dir::Uni, None | Some(0)) => {}
                (Dir::Uni, Some(size)) => self.waiting.push_back(size),
            }
        }
        self.ready.clear();
        while let Some(&unsent) = self.waiting.front() {
            let Ok(id) = connection.open(Dir::Uni) else { break };
            self.waiting.pop_front();
            next = sooner(next, self.begin(connection, id, unsent));
        }
        if self.waiting.len() > MOST_WAITING {
            connection.close(now, NO_STREAMS, b"too few streams to answer on");
        }
        next
    }

    /// Begins an answer; what its stream does not take now is kept.
    #[inline]
    fn begin(&mut self, connection: &mut Connection, id: StreamId, mut unsent: u64) -> Next {
        let next = match pump(connection, id, &mut unsent) {
            SendOutcome::Done => return Next::Wait,
            SendOutcome::Full => Next::Wait,
            SendOutcome::TurnOver => {
                self.writable.push(id);
                Next::Again
            }
        };
        self.replies.insert(id, unsent);
        next
    }

    /// Feeds the streams that take bytes again.
    #[inline]
    fn feed(&mut self, connection: &mut Connection) -> Next {
        let mut next = Next::Wait;
        let State { replies, writable, .. } = self;
        writable.retain(|id| {
            let Some(unsent) = replies.get_mut(id) else { return false };
            match pump(connection, *id, unsent) {
                SendOutcome::Done => {
                    replies.remove(id);
                    false
                }
                SendOutcome::Full => false,
                SendOutcome::TurnOver => {
                    next = Next::Again;
                    true
                }
            }
        });
        next
    }
}

/// Whatever is not to wait.
#[inline]
fn sooner(one: Next, other: Next) -> Next {
    if one == Next::Wait { other } else { one }
}

/// What became of an answer in this turn.
enum SendOutcome {
    /// All of it was handed over, or the client cancelled it.
    Done,
    /// The stream takes no more now.
    Full,
    /// It took its share of the turn.
    TurnOver,
}

#[inline]
fn pump(connection: &mut Connection, id: StreamId, unsent: &mut u64) -> SendOutcome {
    let mut left = TURN_BYTES;
    while *unsent > 0 {
        let room = connection.send_capacity(id).min(pattern::PERIOD) as u64;
        if room == 0 {
            return SendOutcome::Full;
        }
        if left == 0 {
            return SendOutcome::TurnOver;
        }
        let len = room.min(*unsent).min(left);
        let piece = pattern::at(0).get(..len as usize).unwrap_or_default();
        if connection.write(id, Bytes::from_static(piece)).is_err() {
            return SendOutcome::Done;
        }
        *unsent -= len;
        left -= len;
    }
    // A stream that is not there any more needs no end.
    let _ = connection.finish_stream(id);
    SendOutcome::Done
}

impl App for Server {
    type State = State;

    fn on_accept(&mut self, _: Instant, _: &mut Connection) -> State {
        State::default()
    }

    #[inline]
    fn on_turn(&mut self, now: Instant, connection: &mut Connection, state: &mut State) -> Next {
        state.hear(connection);
        if self.is_over && !connection.is_closed() {
            connection.close(now, NO_ERROR, b"");
        }
        let fed = state.feed(connection);
        sooner(fed, state.answer(now, connection))
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, _: State) {}
}
