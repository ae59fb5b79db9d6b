//! Tunnels over HTTP/3: streams on which another protocol is spoken after an extended CONNECT. RFC 9220.
//!
//! To the server one is a request whose content and response have no end of their own. What differs: the connection stays although nothing
//! is said on it, the server's end is the tunnel's, and a tunnel that breaks off says so by another code.

use super::exchanges::Reply;
use super::lazy_exchanges::LazyExchanges;
use super::{Server, State};
use crate::low::{Handler, Head as _};
use base::time::{Duration, Instant};
use http3::{Code, Session};
use transport::{Connection, StreamId};

/// The client of a tunnel that says nothing is asked by PING whether it is there. RFC 9000 §10.1.2: most translators of addresses remember a
/// flow for 30 s.
const ASKED_AFTER: Duration = Duration::from_secs(15);

/// The tunnels of a connection.
#[derive(Debug, Default)]
pub(super) struct Tunnels {
    /// Those that were opened, and perhaps some that are over.
    opened: Vec<StreamId>,
    /// The client is asked whether it is there.
    is_asked: bool,
}

impl Tunnels {
    pub(super) fn are_open(&self) -> bool {
        self.is_asked || !self.opened.is_empty()
    }

    /// Whether a stream that has not ended is one.
    pub(super) fn has(&self, id: StreamId) -> bool {
        self.opened.contains(&id)
    }

    #[cold]
    pub(super) fn on_open(&mut self, id: StreamId) {
        self.opened.push(id);
    }
}

/// What a client hears of a response that breaks off. RFC 9220 §3: what is a reset of the connection over TCP.
pub(super) fn code_of<H: Handler>(reply: &Reply<H>) -> Code {
    //= rfc9220/3#3
    if reply.record.head.is_tunnel() { Code::REQUEST_CANCELLED } else { Code::INTERNAL_ERROR }
}

impl<H: Handler> Server<H> {
    /// Keeps the connection while it has tunnels, and ends them with the server.
    #[cold]
    pub(super) fn look_after_tunnels(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        state: &mut State<H>,
    ) {
        let State { session, tunnels, .. } = state;
        let messages = &session.messages;
        // Each has a response that goes on, or content that does.
        if tunnels.opened.len() > messages.replies.len() + messages.uploads.len() || self.ends_tunnels {
            tunnels.opened.retain(|id| messages.has_begun(*id));
        }
        let is_open = !tunnels.opened.is_empty();
        if is_open != core::mem::replace(&mut tunnels.is_asked, is_open) {
            connection.set_keep_alive(is_open.then_some(ASKED_AFTER));
        }
        if self.ends_tunnels {
            for id in core::mem::take(&mut tunnels.opened) {
                self.finish_tunnel(now, connection, session, id);
            }
        }
    }

    /// Says the end on a tunnel, unless the handler has, and takes no more of what the client sends.
    fn finish_tunnel(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        session: &mut Session<LazyExchanges<H>>,
        id: StreamId,
    ) {
        let Session { connection: http, messages } = session;
        let place = messages.replies.iter().position(|reply| reply.record.id == id);
        let record = place.map(|place| messages.replies.swap_remove(place).record);
        let is_said = record.is_some() && http.finish(connection, id).is_ok();
        http.stop_reading(connection, id);
        messages.abort_upload(id);
        let Some(record) = record else { return };
        if !is_said {
            return messages.given_up.push(record);
        }
        let at = self.at(now, connection);
        let head = self.journal.on_whole(at, &mut messages.unacknowledged, record);
        head.into_iter().for_each(|head| messages.recycle(head));
    }
}
