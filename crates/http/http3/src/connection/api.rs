//! What the application asks of a connection.

use super::Connection;
use crate::error::Code;
use crate::exchange::Exchange;
use crate::fields;
use crate::message::{Answers, Message};
use crate::outgoing::{Arena, BodyLength, Framing, Outgoing, SendError};
use crate::quic::QuicConnection;
use base::time::Instant;
use bytes::Bytes;
use http::{HeaderMap, Method, request, response};
use qlog::StreamType;
use transport::{Dir, StreamId};

/// Why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The server is about to leave: it takes no more requests on this connection.
    GoingAway,
    /// The server allows no more at present; the transport's `StreamsAvailable` event tells when it does.
    NoStream,
    /// The server takes no field section of this size.
    HeadTooLarge,
    /// The connection is over, or is a server's.
    Closed,
}

impl core::fmt::Display for RequestError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            RequestError::GoingAway => "the server takes no more requests on this connection",
            RequestError::NoStream => "the server's limit on streams is reached",
            RequestError::HeadTooLarge => "field section larger than the server takes",
            RequestError::Closed => "the connection is over",
        })
    }
}

impl core::error::Error for RequestError {}

/// A response's head as it goes on the wire, to be sent any number of times on any connection.
#[derive(Clone, Debug)]
pub struct EncodedHead {
    bytes: Bytes,
    size: u64,
    body: BodyLength,
}

impl EncodedHead {
    /// Encodes the head of a response. Names must be in lower case and, like the values, free of what RFC 9110 §5 forbids.
    pub fn response<'a>(
        status: u16,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        body: BodyLength,
    ) -> EncodedHead {
        let write = |out: &mut Vec<u8>| fields::write_response(status, fields, out);
        let (bytes, size) = Arena::default().head(data_length(body), write);
        // The arena's buffer is larger than what was cut from it.
        EncodedHead { bytes: Bytes::copy_from_slice(&bytes), size, body }
    }
}

/// A request as it goes on the wire, to be sent any number of times on any connection to the same server.
#[derive(Clone, Debug)]
pub struct EncodedRequest {
    bytes: Bytes,
    size: u64,
    body: BodyLength,
    answers: Answers,
}

impl EncodedRequest {
    /// Encodes the head of a request.
    pub fn new(head: &request::Parts, body: BodyLength) -> EncodedRequest {
        let (bytes, size) = Arena::default().head(data_length(body), |out| fields::write_request(head, out));
        EncodedRequest {
            bytes: Bytes::copy_from_slice(&bytes),
            size,
            body,
            answers: answers_to(&head.method),
        }
    }

    /// Encodes a head from its lines as they are, right or wrong: tests of servers need both.
    pub fn of_lines<'a>(
        lines: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        body: BodyLength,
    ) -> EncodedRequest {
        let (bytes, size) = Arena::default().head(data_length(body), |out| fields::write_lines(lines, out));
        EncodedRequest { bytes: Bytes::copy_from_slice(&bytes), size, body, answers: Answers::Other }
    }
}

fn answers_to(method: &Method) -> Answers {
    match *method {
        Method::HEAD => Answers::Head,
        Method::CONNECT => Answers::Connect,
        _ => Answers::Other,
    }
}

fn data_length(body: BodyLength) -> Option<u64> {
    match body {
        BodyLength::Known(length) => Some(length),
        BodyLength::Empty | BodyLength::Unknown => None,
    }
}

impl Connection {
    /// Sends the head of a final response. With [`BodyLength::Empty`] that is all of it.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn respond(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        head: &response::Parts,
        body: BodyLength,
    ) -> Result<(), SendError> {
        let fields = head.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        self.respond_with(quic, id, head.status.as_u16(), fields, body)
    }

    /// As [`Connection::respond`], with the fields from anywhere. Names must be in lower case and, like the values, free of
    /// what RFC 9110 §5 forbids.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn respond_with<'a>(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        status: u16,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        body: BodyLength,
    ) -> Result<(), SendError> {
        let next = self.outgoing(id)?.after_head(body)?;
        let write = |out: &mut Vec<u8>| fields::write_response(status, fields, out);
        let (bytes, size) = self.arena().head(data_length(body), write);
        self.send_head(quic, id, &EncodedHead { bytes, size, body }, next)
    }

    /// As [`Connection::respond`], with a head that was encoded before.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn respond_encoded(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        head: &EncodedHead,
    ) -> Result<(), SendError> {
        let next = self.outgoing(id)?.after_head(head.body)?;
        self.send_head(quic, id, head, next)
    }

    /// Sends a whole response with content that is there: a head that was encoded before, for content of this length, the content, and the
    /// end. The content is kept, not copied, until it is acknowledged.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn respond_at_once(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        head: &EncodedHead,
        content: Bytes,
    ) -> Result<(), SendError> {
        let next = self.outgoing(id)?.after_head(head.body)?;
        if next != (Outgoing::Known { left: content.len() as u64 }) {
            return Err(SendError::WrongLength);
        }
        //= rfc9114/4.2.2#1
        if head.size > self.peer_max_field_section_size() {
            return Err(SendError::HeadTooLarge);
        }
        let written = quic.write_whole(id, [head.bytes.clone(), content]);
        self.on_sent_all(id);
        written.map_err(|_| SendError::NoSuchExchange)?;
        self.abuse_budgets.on_answered();
        self.trace_sent(quic, id, &head.bytes);
        Ok(())
    }

    /// Sends a whole response whose content is short: head, content and end in one piece.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn respond_whole<'a>(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        status: u16,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        content: &[u8],
    ) -> Result<(), SendError> {
        let next = self.outgoing(id)?.after_head(BodyLength::Empty)?;
        let write = |out: &mut Vec<u8>| fields::write_response(status, fields, out);
        let (bytes, size) = self.arena().whole(content, write);
        self.send_head(quic, id, &EncodedHead { bytes, size, body: BodyLength::Empty }, next)
    }

    /// Sends an interim response, status 1xx but not 101. RFC 9110 §15.2.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn respond_interim<'a>(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        status: u16,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<(), SendError> {
        debug_assert!((100..200).contains(&status) && status != 101, "{status} is no interim status");
        let now = self.outgoing(id)?;
        now.after_head(BodyLength::Unknown)?;
        let write = |out: &mut Vec<u8>| fields::write_response(status, fields, out);
        let (bytes, size) = self.arena().head(None, write);
        self.send_head(quic, id, &EncodedHead { bytes, size, body: BodyLength::Unknown }, now)
    }

    fn send_head(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        head: &EncodedHead,
        next: Outgoing,
    ) -> Result<(), SendError> {
        //= rfc9114/4.2.2#1
        if head.size > self.peer_max_field_section_size() {
            return Err(SendError::HeadTooLarge);
        }
        self.write(quic, id, head.bytes.clone())?;
        self.trace_sent(quic, id, &head.bytes);
        self.proceed(quic, id, next)
    }

    /// Bytes that begin with a frame were handed over.
    #[inline]
    fn trace_sent(&mut self, quic: &mut impl QuicConnection, id: StreamId, bytes: &[u8]) {
        if let Some(trace) = &mut self.trace {
            trace.on_sent(quic, id, bytes);
        }
    }

    /// Sends content. The bytes are kept, not copied, until they are acknowledged; the transport's `send_capacity` says how
    /// many are welcome now.
    ///
    /// # Errors
    /// Nothing was sent.
    #[inline]
    pub fn write_body(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        bytes: Bytes,
    ) -> Result<(), SendError> {
        let (next, framing) = self.outgoing(id)?.after_body(bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        if framing == Framing::Own {
            let header = self.arena().data_header(bytes.len() as u64);
            self.trace_sent(quic, id, &header);
            self.write(quic, id, header)?;
        }
        self.write(quic, id, bytes)?;
        self.proceed(quic, id, next)
    }

    /// Sends trailers, and with them the end.
    ///
    /// # Errors
    /// Nothing was sent; [`SendError::WrongLength`] when content is owed.
    pub fn write_trailers(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        trailers: &HeaderMap,
    ) -> Result<(), SendError> {
        self.outgoing(id)?.check_content_complete()?;
        let (bytes, size) = self.arena().head(None, |out| fields::write_trailers(trailers, out));
        self.send_head(quic, id, &EncodedHead { bytes, size, body: BodyLength::Empty }, Outgoing::Done)
    }

    /// Ends the message.
    ///
    /// # Errors
    /// [`SendError::WrongLength`] when content is owed: it can still be sent, or the exchange cancelled.
    pub fn finish(&mut self, quic: &mut impl QuicConnection, id: StreamId) -> Result<(), SendError> {
        self.outgoing(id)?.check_content_complete()?;
        self.proceed(quic, id, Outgoing::Done)
    }

    /// Gives up an exchange in both directions. Nothing more is heard of it.
    pub fn cancel(&mut self, quic: &mut impl QuicConnection, id: StreamId, code: Code) {
        if let Some(mut exchange) = self.exchanges.remove(id.index()) {
            self.buffered = self.buffered.saturating_sub(exchange.incoming.give_up());
            quic.reset(id, code.0);
            quic.stop_sending(id, code.0);
        }
    }

    /// Takes no more of a message whose rest does not matter, such as the content of a request that was answered already.
    /// RFC 9114 §4.1.
    pub fn stop_reading(&mut self, quic: &mut impl QuicConnection, id: StreamId) {
        let Some(exchange) = self.exchanges.entry_mut(id.index()) else { return };
        if exchange.incoming.is_ended() {
            return;
        }
        self.buffered = self.buffered.saturating_sub(exchange.incoming.give_up());
        //= rfc9114/4.1#5
        quic.stop_sending(id, Code::NO_ERROR.0);
        if exchange.is_over() {
            self.exchanges.remove(id.index());
        }
    }

    /// Throws away what still comes of a message whose rest does not matter, such as the content of a request that was
    /// answered early: nothing more of it is lent. A client may read no response before it has sent all, so it is asked to
    /// stop (RFC 9114 §4.1) only after `most` more bytes, or when it is too slow by the deadlines for content.
    pub fn discard(&mut self, id: StreamId, most: u64) {
        let Some(exchange) = self.exchanges.entry_mut(id.index()) else { return };
        if !exchange.incoming.is_ended() {
            self.buffered = self.buffered.saturating_sub(exchange.incoming.discard(most));
        }
    }

    /// Sends the head of a request on a stream of its own. With [`BodyLength::Empty`] that is all of it.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn request(
        &mut self,
        quic: &mut impl QuicConnection,
        head: &request::Parts,
        body: BodyLength,
    ) -> Result<StreamId, RequestError> {
        self.check_request()?;
        let (bytes, size) = self.arena().head(data_length(body), |out| fields::write_request(head, out));
        self.send_request(quic, &EncodedRequest { bytes, size, body, answers: answers_to(&head.method) })
    }

    /// As [`Connection::request`], with a request that was encoded before.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn request_encoded(
        &mut self,
        quic: &mut impl QuicConnection,
        request: &EncodedRequest,
    ) -> Result<StreamId, RequestError> {
        self.check_request()?;
        self.send_request(quic, request)
    }

    #[inline]
    fn check_request(&self) -> Result<(), RequestError> {
        if self.side.is_server() || self.closed || self.failure.is_some() {
            return Err(RequestError::Closed);
        }
        //= rfc9114/5.2#4
        if self.is_going_away() {
            return Err(RequestError::GoingAway);
        }
        Ok(())
    }

    fn send_request(
        &mut self,
        quic: &mut impl QuicConnection,
        request: &EncodedRequest,
    ) -> Result<StreamId, RequestError> {
        if request.size > self.peer_max_field_section_size() {
            return Err(RequestError::HeadTooLarge);
        }
        let id = quic.open(Dir::Bidi).map_err(|_| RequestError::NoStream)?;
        let next = Outgoing::Head.after_head(request.body).map_err(|_| RequestError::Closed)?;
        let exchange = Exchange { incoming: Message::new(request.answers), outgoing: Outgoing::Head };
        self.exchanges.insert(id.index(), exchange);
        self.abuse_budgets.on_exchange();
        if let Some(trace) = &mut self.trace {
            trace.on_opened(quic, id, StreamType::Request);
            trace.on_sent(quic, id, &request.bytes);
        }
        self.write(quic, id, request.bytes.clone())
            .and_then(|()| self.proceed(quic, id, next))
            .map_err(|_| RequestError::Closed)?;
        Ok(id)
    }

    /// Closes the connection without an error. RFC 9114 §5.2.
    pub fn close(&mut self, quic: &mut impl QuicConnection, now: Instant) {
        if !self.closed {
            self.closed = true;
            quic.close(now, Code::NO_ERROR.0, b"");
        }
    }

    #[inline]
    fn outgoing(&mut self, id: StreamId) -> Result<Outgoing, SendError> {
        let exchange = self.exchanges.entry_mut(id.index()).ok_or(SendError::NoSuchExchange)?;
        Ok(exchange.outgoing)
    }

    /// Hands bytes to the transport. It refuses only on streams that are over.
    #[inline]
    fn write(&mut self, quic: &mut impl QuicConnection, id: StreamId, bytes: Bytes) -> Result<(), SendError> {
        quic.write(id, bytes).map_err(|_| {
            self.on_sent_all(id);
            SendError::NoSuchExchange
        })
    }

    #[inline]
    fn proceed(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        next: Outgoing,
    ) -> Result<(), SendError> {
        if next.is_done() {
            let finished = quic.finish(id).map_err(|_| SendError::NoSuchExchange);
            if finished.is_ok() {
                self.abuse_budgets.on_answered();
            }
            self.on_sent_all(id);
            return finished;
        }
        if let Some(exchange) = self.exchanges.entry_mut(id.index()) {
            if exchange.outgoing.becomes_bulk(next) {
                quic.defer(id);
            }
            exchange.outgoing = next;
        }
        Ok(())
    }
}
