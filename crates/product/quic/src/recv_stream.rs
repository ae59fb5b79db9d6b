//! The receiving part of a stream, as a handle.

use crate::shared::Guard;
use crate::stream_error::{ClosedStream, ReadError, ReadExactError, ReadToEndError, ResetError};
use crate::varint::VarInt;
use bytes::Bytes;
use core::future::poll_fn;
#[cfg(feature = "tokio")]
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;
use transport::StreamId;

/// The receiving part of a stream. Source: RFC 9000 §3.2.
///
/// Up to 1 MiB of a stream waits here, and as much as its receive window in the transport; then the peer has to wait.
///
/// When it is dropped before the end was read, the peer is asked to stop sending, with code 0.
#[derive(Debug)]
pub struct RecvStream {
    guard: Arc<Guard>,
    id: StreamId,
    /// The piece that is being read.
    front: Bytes,
}

impl RecvStream {
    pub(crate) fn new(guard: Arc<Guard>, id: StreamId) -> RecvStream {
        RecvStream { guard, id, front: Bytes::new() }
    }

    /// The stream's identifier.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Whether the stream has begun before the handshake was complete. On a server its first bytes may then be the copy of an
    /// earlier connection's, sent by an attacker, unless [`Connection::handshake_done`](crate::Connection::handshake_done) is ready.
    /// Source: RFC 8446 §8.
    pub fn is_0rtt(&self) -> bool {
        self.guard.0.change(|state| state.began_early(self.id))
    }

    /// Makes `front` hold bytes. Ready with `false` at the end of the stream.
    fn poll_front(&mut self, context: &Context<'_>) -> Poll<Result<bool, ReadError>> {
        if self.front.is_empty() {
            let id = self.id;
            let chunk = self.guard.0.change(|state| state.poll_chunk(id, usize::MAX, context));
            match ready!(chunk)? {
                Some(chunk) => self.front = chunk,
                None => return Poll::Ready(Ok(false)),
            }
        }
        Poll::Ready(Ok(true))
    }

    /// Reads into `into` and returns how many bytes; `None` at the end of the stream. Waits for at least one byte. Dropping
    /// the future loses none.
    ///
    /// # Errors
    /// The peer has reset the stream, this end has stopped it, or the connection is over and all that arrived was read.
    pub async fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, ReadError> {
        poll_fn(|context| self.poll_read(context, into)).await
    }

    /// As [`RecvStream::read`], for implementations of futures.
    ///
    /// # Errors
    /// As [`RecvStream::read`].
    pub fn poll_read(
        &mut self,
        context: &Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if into.is_empty() {
            return Poll::Ready(Ok(Some(0)));
        }
        if !ready!(self.poll_front(context))? {
            return Poll::Ready(Ok(None));
        }
        let piece = self.front.split_to(self.front.len().min(into.len()));
        if let Some(room) = into.get_mut(..piece.len()) {
            room.copy_from_slice(&piece);
        }
        Poll::Ready(Ok(Some(piece.len())))
    }

    /// Fills `into`. If the future is dropped, bytes may be lost.
    ///
    /// # Errors
    /// The stream ends first, or as [`RecvStream::read`].
    pub async fn read_exact(&mut self, into: &mut [u8]) -> Result<(), ReadExactError> {
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read(rest).await? {
                Some(read) => filled += read,
                None => return Err(ReadExactError::FinishedEarly(filled)),
            }
        }
        Ok(())
    }

    /// The next bytes, at most `max` of them and at least one, without a copy; `None` at the end of the stream. Dropping the
    /// future loses none.
    ///
    /// # Errors
    /// As [`RecvStream::read`].
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|context| {
            if !ready!(self.poll_front(context))? {
                return Poll::Ready(Ok(None));
            }
            Poll::Ready(Ok(Some(self.front.split_to(self.front.len().min(max)))))
        })
        .await
    }

    /// Puts the next pieces into `chunks`, without a copy, and returns how many; `None` at the end of the stream. Waits for at
    /// least one. Dropping the future loses none.
    ///
    /// # Errors
    /// As [`RecvStream::read`].
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        if chunks.is_empty() {
            return Ok(Some(0));
        }
        let mut filled = 0;
        poll_fn(|context| {
            for chunk in chunks.iter_mut().skip(filled) {
                match self.poll_front(context) {
                    Poll::Ready(Ok(true)) => *chunk = core::mem::take(&mut self.front),
                    // The end and an error are told by the next call.
                    _ if filled > 0 => break,
                    Poll::Ready(Ok(false)) => return Poll::Ready(Ok(None)),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
                filled += 1;
            }
            Poll::Ready(Ok(Some(filled)))
        })
        .await
    }

    /// All bytes up to the end of the stream. If the future is dropped, bytes are lost.
    ///
    /// # Errors
    /// The stream has more than `limit` bytes, or as [`RecvStream::read`].
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(usize::MAX).await? {
            if chunk.len() > limit - all.len() {
                return Err(ReadToEndError::TooLong);
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    /// Asks the peer to stop sending; what has arrived and what still does is discarded. Source: RFC 9000 §19.5.
    ///
    /// # Errors
    /// The stream was stopped before.
    pub fn stop(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        self.front = Bytes::new();
        self.guard.0.change(|state| state.stop(self.id, code))
    }

    /// Waits until the peer has reset the stream: `Some(code)`; or cannot any more, because all of it has arrived or this end
    /// has stopped it: `None`. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn received_reset(&mut self) -> Result<Option<VarInt>, ResetError> {
        poll_fn(|context| self.guard.0.change(|state| state.poll_reset(self.id, context))).await
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.guard.0.change(|state| state.leave_recv(self.id));
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let stream = self.get_mut();
        if into.remaining() > 0 && ready!(stream.poll_front(context))? {
            into.put_slice(&stream.front.split_to(stream.front.len().min(into.remaining())));
        }
        Poll::Ready(Ok(()))
    }
}
