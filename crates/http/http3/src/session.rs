//! A connection together with the application's end of its messages: what a worker keeps for each connection.

use crate::connection::Connection;
use crate::quic::QuicConnection;
use crate::sink::MessageSink;
use base::time::Instant;
use transport::{Fin, StreamId, StreamSink};

/// Both, in the open: while the application acts on one it may use the other.
#[derive(Debug)]
pub struct Session<M> {
    /// The protocol.
    pub connection: Connection,
    /// The application.
    pub messages: M,
}

impl<M: MessageSink> Session<M> {
    /// See [`Connection::on_turn`].
    #[inline]
    pub fn on_turn(&mut self, quic: &mut impl QuicConnection, now: Instant) {
        self.connection.on_turn(quic, &mut self.messages, now);
    }

    /// Lends the bytes of a stream again on which `on_body` took less than all.
    pub fn deliver(&mut self, quic: &mut impl QuicConnection, now: Instant, id: StreamId) {
        quic.deliver(now, id, self);
        self.connection.act(quic, now);
    }
}

impl<M: MessageSink> StreamSink for Session<M> {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.connection.on_stream_data(&mut self.messages, id, bytes, fin)
    }
}
