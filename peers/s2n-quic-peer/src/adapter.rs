//! s2n-quic's connections and streams as h3 wants them. h3 lends content as slices, so each piece is copied once, as in quinn.

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use s2n_quic::application;
use s2n_quic::connection::{self, Handle, StreamAcceptor};
use s2n_quic::stream::{self, BidirectionalStream, ReceiveStream, SendStream};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// How much is copied for s2n-quic at once, in bytes.
const PIECE: usize = 64 << 10;

/// A connection.
pub(crate) struct Quic {
    opener: Opener,
    acceptor: StreamAcceptor,
}

impl Quic {
    pub(crate) fn new(connection: s2n_quic::Connection) -> Quic {
        let (handle, acceptor) = connection.split();
        Quic { opener: Opener(handle), acceptor }
    }
}

fn connection_error(error: connection::Error) -> ConnectionErrorIncoming {
    match error {
        connection::Error::Application { error, .. } => {
            ConnectionErrorIncoming::ApplicationClose { error_code: error.into() }
        }
        connection::Error::IdleTimerExpired { .. } => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn stream_error(error: stream::Error) -> StreamErrorIncoming {
    match error {
        stream::Error::StreamReset { error, .. } => {
            StreamErrorIncoming::StreamTerminated { error_code: error.into() }
        }
        stream::Error::ConnectionError { error, .. } => {
            StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection_error(error) }
        }
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

fn lost(error: connection::Error) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection_error(error) }
}

fn closed() -> ConnectionErrorIncoming {
    ConnectionErrorIncoming::Undefined(Arc::new(std::io::Error::from(std::io::ErrorKind::NotConnected)))
}

/// Any code of HTTP/3 is one of an application.
fn code(value: u64) -> application::Error {
    application::Error::new(value).unwrap_or(application::Error::UNKNOWN)
}

/// A number that came from QUIC.
fn stream_id(value: u64) -> StreamId {
    StreamId::try_from(value).unwrap_or_else(|_| unreachable!("QUIC's stream ids are below 2^62"))
}

impl quic::Connection<Bytes> for Quic {
    type RecvStream = Receiver;
    type OpenStreams = Opener;

    fn poll_accept_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Receiver, ConnectionErrorIncoming>> {
        let accepted = ready!(self.acceptor.poll_accept_receive_stream(cx)).map_err(connection_error)?;
        Poll::Ready(accepted.map(Receiver).ok_or_else(closed))
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Both, ConnectionErrorIncoming>> {
        let accepted =
            ready!(self.acceptor.poll_accept_bidirectional_stream(cx)).map_err(connection_error)?;
        Poll::Ready(accepted.map(Both::new).ok_or_else(closed))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl quic::OpenStreams<Bytes> for Quic {
    type BidiStream = Both;
    type SendStream = Sender;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Both, StreamErrorIncoming>> {
        quic::OpenStreams::poll_open_bidi(&mut self.opener, cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Sender, StreamErrorIncoming>> {
        quic::OpenStreams::poll_open_send(&mut self.opener, cx)
    }

    fn close(&mut self, reason: Code, words: &[u8]) {
        quic::OpenStreams::close(&mut self.opener, reason, words);
    }
}

/// Opens streams.
#[derive(Clone)]
pub(crate) struct Opener(Handle);

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = Both;
    type SendStream = Sender;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Both, StreamErrorIncoming>> {
        Poll::Ready(ready!(self.0.poll_open_bidirectional_stream(cx)).map(Both::new).map_err(lost))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Sender, StreamErrorIncoming>> {
        Poll::Ready(ready!(self.0.poll_open_send_stream(cx)).map(Sender::new).map_err(lost))
    }

    fn close(&mut self, reason: Code, _: &[u8]) {
        self.0.close(code(reason.value()));
    }
}

/// A stream in both directions.
pub(crate) struct Both {
    sender: Sender,
    receiver: Receiver,
}

impl Both {
    fn new(stream: BidirectionalStream) -> Both {
        let (receiver, sender) = stream.split();
        Both { sender: Sender::new(sender), receiver: Receiver(receiver) }
    }
}

impl quic::BidiStream<Bytes> for Both {
    type SendStream = Sender;
    type RecvStream = Receiver;

    fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }
}

impl quic::RecvStream for Both {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receiver.poll_data(cx)
    }

    fn stop_sending(&mut self, reason: u64) {
        self.receiver.stop_sending(reason);
    }

    fn recv_id(&self) -> StreamId {
        self.receiver.recv_id()
    }
}

impl quic::SendStream<Bytes> for Both {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.sender.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.sender.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.sender.poll_finish(cx)
    }

    fn reset(&mut self, reason: u64) {
        self.sender.reset(reason);
    }

    fn send_id(&self) -> StreamId {
        self.sender.send_id()
    }
}

/// The receiving side of a stream.
pub(crate) struct Receiver(ReceiveStream);

impl quic::RecvStream for Receiver {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        Poll::Ready(ready!(self.0.poll_receive(cx)).map_err(stream_error))
    }

    fn stop_sending(&mut self, reason: u64) {
        // It fails when there is nothing left to stop.
        let _ = self.0.stop_sending(code(reason));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.0.id())
    }
}

/// The sending side of a stream.
pub(crate) struct Sender {
    stream: SendStream,
    /// What h3 has handed over and s2n-quic has not taken.
    writing: Option<WriteBuf<Bytes>>,
}

impl Sender {
    fn new(stream: SendStream) -> Sender {
        Sender { stream, writing: None }
    }
}

impl quic::SendStream<Bytes> for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = self.writing.as_mut().filter(|data| data.has_remaining()) {
            let room = ready!(self.stream.poll_send_ready(cx)).map_err(stream_error)?;
            let chunk = data.chunk();
            let piece = Bytes::copy_from_slice(&chunk[..chunk.len().min(room).min(PIECE)]);
            data.advance(piece.len());
            self.stream.send_data(piece).map_err(stream_error)?;
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(self.stream.finish().map_err(stream_error))
    }

    fn reset(&mut self, reason: u64) {
        // It fails when the stream has ended anyway.
        let _ = self.stream.reset(code(reason));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}
