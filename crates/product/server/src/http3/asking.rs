//! Calls of the handler, the beginning of its response, and what becomes of a request that made it panic: 500 if no head of a
//! response has left, else its stream is reset. The connection and its other requests go on.

use super::exchanges::{Begun, RequestState, Stage};
use super::record::Record;
use super::{Server, State, on_begun};
use crate::caught::caught;
use crate::connection_info::{ConnectionView, Viewed};
use crate::low::{Content as _, Context, FieldLines as _, Handler, Head as _, Request, Response, WakeTarget};
use crate::request::MAX_DISCARDED;
use base::time::Instant;
use http3::{BodyLength, Code, SendError};
use std::task::Poll;
use transport::{Connection, StreamId};

/// What a call of the handler came to. An error: it has panicked.
type Asked<H> = Result<Poll<Response<<H as Handler>::Fields, <H as Handler>::Content>>, ()>;

impl<H: Handler> Server<H> {
    /// Asks the handler for a response.
    #[inline]
    pub(super) fn ask(
        &mut self,
        now: Instant,
        connection: &Connection,
        state: &mut State<H>,
        asked: &mut RequestState<H>,
    ) -> Asked<H> {
        let waiting = state.session.messages.put_back();
        let wake = WakeTarget::Connection { call: &state.call, wake_list: &self.wake_list };
        let cx = Context { now, waiting, wake };
        let handler = &mut self.handler;
        if state.held.is_short() && !asked.head.has_begun() {
            return caught(|| Poll::Ready(handler.put_off(&cx)));
        }
        let request = Request {
            received: asked.stage.received(),
            head: &mut *asked.head,
            upload: &mut asked.upload,
            connection: ConnectionView {
                viewed: Viewed::Quic(connection),
                early: state.early.gate(connection),
            },
        };
        caught(|| handler.handle(request, &cx))
    }

    /// Sends the head of a response, with all of its content if that is there and short. Returns what was begun; `None`: the stream has
    /// ended.
    pub(super) fn begin(
        &mut self,
        connection: &mut Connection,
        state: &mut State<H>,
        id: StreamId,
        response: Response<H::Fields, H::Content>,
    ) -> Option<Begun<H>> {
        let http = &mut state.session.connection;
        let Response { status, fields, mut body } = response;
        let length = match body.remaining() {
            Some(0) => BodyLength::Empty,
            Some(bytes) => BodyLength::Known(bytes),
            None => BodyLength::Unknown,
        };
        let whole = match length {
            BodyLength::Known(bytes) if H::Fields::REPEATS && connection.has_room(id, bytes) => {
                caught(|| body.take_whole()).ok().flatten()
            }
            _ => None,
        };
        let mut begun = Begun { status, body: Some(body), sent: 0 };
        let sent = if H::Fields::REPEATS {
            let encoded = self.heads.encoded(status, fields, length);
            match whole {
                Some(content) => {
                    (begun.body, begun.sent) = (None, content.len() as u64);
                    http.respond_at_once(connection, id, encoded, content)
                }
                None => http.respond_encoded(connection, id, encoded),
            }
        } else {
            http.respond_with(connection, id, status, fields.lines(), length)
        };
        match sent {
            Ok(()) => return Some(begun),
            Err(SendError::HeadTooLarge) => {}
            Err(SendError::NoSuchExchange | SendError::OutOfOrder | SendError::WrongLength) => {
                // The client wants no answer.
                http.cancel(connection, id, Code::REQUEST_CANCELLED);
                return None;
            }
        }
        // RFC 9114 §4.2.2: the client said that it takes no head of this size. It hears that as far as it permits.
        self.respond_500(connection, state, id)
    }

    /// All of a response was handed over.
    pub(super) fn on_whole(
        &mut self,
        now: Instant,
        connection: &Connection,
        state: &mut State<H>,
        record: Record<H>,
    ) {
        state.shutdown.on_sent(now, record.sent);
        let at = self.at(now, connection);
        let messages = &mut *state.session.messages;
        let head = self.journal.on_whole(at, &mut messages.unacknowledged, record);
        head.into_iter().for_each(|head| messages.recycle(head));
    }

    /// Answers by 500 without content.
    fn respond_500(
        &mut self,
        connection: &mut Connection,
        state: &mut State<H>,
        id: StreamId,
    ) -> Option<Begun<H>> {
        let http = &mut state.session.connection;
        let dated = [(&b"date"[..], &self.clock.text()[..]), (b"content-length", b"0")];
        for fields in [&dated[..], &[]] {
            if http.respond_with(connection, id, 500, fields.iter().copied(), BodyLength::Empty).is_ok() {
                return Some(Begun { status: 500, body: None, sent: 0 });
            }
        }
        http.cancel(connection, id, Code::INTERNAL_ERROR);
        None
    }

    /// Answers by 500 a request that made the handler panic.
    #[cold]
    pub(super) fn fail(&mut self, connection: &mut Connection, state: &mut State<H>, asked: RequestState<H>) {
        let begun = self.respond_500(connection, state, asked.id);
        if begun.is_some() && asked.stage != Stage::Whole {
            state.session.connection.discard(asked.id, MAX_DISCARDED);
        }
        // Its content goes to the handler no more.
        on_begun(state, RequestState { stage: Stage::Whole, ..asked }, begun);
    }

    /// Ends requests whose head or content made the handler panic while it arrived.
    #[cold]
    pub(super) fn end_panicked(&mut self, now: Instant, connection: &mut Connection, state: &mut State<H>) {
        for id in core::mem::take(&mut state.session.messages.panicked) {
            if state.session.messages.forget(id) {
                let asked = RequestState::<H> {
                    id,
                    head: Box::default(),
                    upload: H::Upload::default(),
                    stage: Stage::Open,
                    began: Some(now),
                    is_unsafe: false,
                };
                self.fail(connection, state, asked);
            } else {
                state.session.connection.cancel(connection, id, Code::INTERNAL_ERROR);
            }
        }
    }
}
