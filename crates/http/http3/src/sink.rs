//! Where messages go as they arrive.

use crate::error::Code;
use crate::fields::{RequestHead, ResponseHead, Trailers};
use transport::{Event, StreamId};

/// Why a message will not be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// The peer reset its stream, or said by GOAWAY that it did not look at it.
    Peer(Code),
    /// The message was wrong, too large, or too slow; the stream has been reset with this code.
    Local {
        /// What the peer is told.
        code: Code,
        /// For people.
        reason: &'static str,
    },
}

/// Who answers a request that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The connection, by a response without content.
    ByConnection,
    /// The application, by a response of its own.
    ByApplication,
}

/// The application's end of all messages of a connection.
///
/// Everything is lent for the duration of the call. While these methods run the transport is receiving: an application
/// notes what it wants to send and sends it in its turn. For each stream the calls come in this order: a head (interim
/// heads before it on a client), bytes, perhaps trailers, and `on_end`; `on_abort` may end it at any point. A request that
/// is not valid never gets as far as a head.
pub trait MessageSink {
    /// A request's head. Servers only.
    fn on_request(&mut self, _id: StreamId, _head: &RequestHead<'_>) {}

    /// A request is refused with this status before it has a head: its head is too large (431, RFC 9114 §4.2.2). An
    /// application that returns [`Refused::ByApplication`] must respond. Servers only.
    fn on_refused(&mut self, _id: StreamId, _status: u16) -> Refused {
        Refused::ByConnection
    }

    /// A response's head, interim or final. Clients only.
    fn on_response(&mut self, _id: StreamId, _head: &ResponseHead<'_>) {}

    /// The next bytes of the content, at least one; returns how many were taken. When fewer than all are taken the stream
    /// pauses, and no more credit is given for it, until `deliver` is called on the transport.
    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize;

    /// The fields that follow the content.
    fn on_trailers(&mut self, _id: StreamId, _trailers: &Trailers<'_>) {}

    /// The message is complete.
    fn on_end(&mut self, id: StreamId);

    /// The message will not be completed. On a server nothing need be sent any more unless a response is complete
    /// already; on a client nothing more of the request is sent.
    fn on_abort(&mut self, id: StreamId, abort: Abort);

    /// The peer wants no more of what we send on this stream; what was not sent will not be. A server hears it of responses
    /// too that were handed over whole: not all of them will be acknowledged.
    fn on_stop_sending(&mut self, _id: StreamId, _code: Code) {}

    /// A stream that was full takes bytes again.
    fn on_writable(&mut self, _id: StreamId) {}

    /// Everything that we sent on this stream was acknowledged.
    fn on_acknowledged(&mut self, _id: StreamId) {}

    /// The peer is about to leave: a client sends no more requests on this connection. Requests that the server did not
    /// look at have been aborted with H3_REQUEST_REJECTED before this call and can safely be sent again elsewhere.
    fn on_goaway(&mut self) {}

    /// Any other event of the transport: connected, closed, a token, more streams.
    fn on_event(&mut self, _event: &Event) {}
}
