//! The sending part of a stream, as a handle.

use crate::shared::{Guard, Reset};
use crate::stream_error::{ClosedStream, ResetAtError, StoppedError, WriteError};
use crate::varint::VarInt;
use bytes::{Bytes, BytesMut};
use core::future::poll_fn;
#[cfg(feature = "tokio")]
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;
use transport::{Priority, StreamId};

/// Bytes that one call copies at most.
const MAX_PIECE: usize = 64 << 10;
/// Pieces of at least this many bytes get memory of their own.
const LARGE: usize = 8 << 10;
/// Bytes of memory that smaller pieces share.
const CHUNK: usize = 16 << 10;

/// What [`SendStream::write_chunks`] has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes.
    pub bytes: usize,
    /// Chunks of which nothing is left.
    pub chunks: usize,
}

/// The sending part of a stream. Source: RFC 9000 §3.1.
///
/// When it is dropped, the stream is finished: what was written is delivered, unless the stream was finished or reset before.
#[derive(Debug)]
pub struct SendStream {
    guard: Arc<Guard>,
    id: StreamId,
    /// Where small pieces are copied to.
    chunk: BytesMut,
}

impl SendStream {
    pub(crate) fn new(guard: Arc<Guard>, id: StreamId) -> SendStream {
        SendStream { guard, id, chunk: BytesMut::new() }
    }

    /// The stream's identifier.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Writes some of `bytes`, copies them, and returns how many; waits for room for at least one. Dropping the future writes
    /// nothing. Source: RFC 9000 §2.2, §4.1.
    ///
    /// # Errors
    /// The peer has stopped the stream, the stream was finished or reset, or the connection is over.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|context| self.poll_write(context, bytes)).await
    }

    /// As [`SendStream::write`], for implementations of futures.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    pub fn poll_write(&mut self, context: &Context<'_>, bytes: &[u8]) -> Poll<Result<usize, WriteError>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let id = self.id;
        let room = ready!(self.guard.0.change(|state| state.poll_room(id, context)))?;
        let len = bytes.len().min(room).min(MAX_PIECE);
        let piece = self.copy(bytes.get(..len).unwrap_or(bytes));
        self.guard.0.change(|state| state.write(id, piece))?;
        Poll::Ready(Ok(len))
    }

    fn copy(&mut self, piece: &[u8]) -> Bytes {
        if piece.len() >= LARGE {
            return Bytes::copy_from_slice(piece);
        }
        if self.chunk.capacity() < piece.len() {
            self.chunk.reserve(CHUNK.max(piece.len()));
        }
        self.chunk.extend_from_slice(piece);
        self.chunk.split().freeze()
    }

    /// Writes all of `bytes`. If the future is dropped, a part may have been written.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        while !bytes.is_empty() {
            let written = self.write(bytes).await?;
            bytes = bytes.get(written..).unwrap_or(&[]);
        }
        Ok(())
    }

    /// Hands over all of `bytes` without a copy; they are kept until the peer has acknowledged them. If the future is dropped,
    /// a part may have been written.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    pub async fn write_chunk(&mut self, mut bytes: Bytes) -> Result<(), WriteError> {
        let id = self.id;
        while !bytes.is_empty() {
            poll_fn(|context| {
                self.guard.0.change(|state| {
                    let room = ready!(state.poll_room(id, context))?;
                    let piece = bytes.split_to(bytes.len().min(room));
                    Poll::Ready(state.write(id, piece))
                })
            })
            .await?;
        }
        Ok(())
    }

    /// Hands over as many of `chunks` as there is room for, without a copy; waits for room for at least one byte. What was taken
    /// is gone from `chunks`. Dropping the future writes nothing.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Written, WriteError> {
        let id = self.id;
        if chunks.iter().all(Bytes::is_empty) {
            return Ok(Written { bytes: 0, chunks: chunks.len() });
        }
        poll_fn(|context| {
            self.guard.0.change(|state| {
                let mut room = ready!(state.poll_room(id, context))?;
                let mut written = Written::default();
                for chunk in chunks.iter_mut() {
                    let piece = chunk.split_to(chunk.len().min(room));
                    room -= piece.len();
                    written.bytes += piece.len();
                    if !piece.is_empty() {
                        state.write(id, piece)?;
                    }
                    if !chunk.is_empty() {
                        break;
                    }
                    written.chunks += 1;
                }
                Poll::Ready(Ok(written))
            })
        })
        .await
    }

    /// Hands over all of `chunks` without a copy, one after the other, and leaves empty ones behind. If the future is dropped,
    /// a part may have been written.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    pub async fn write_all_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        for chunk in chunks {
            self.write_chunk(core::mem::take(chunk)).await?;
        }
        Ok(())
    }

    /// Writes all of `bytes` and finishes the stream. The last of them and the end leave together, so that no peer gets an end without
    /// bytes, which costs a frame more and which some take for nothing if it was lost at first. If the future is dropped, a part may have
    /// been written. Source: RFC 9000 §19.8.
    ///
    /// # Errors
    /// As [`SendStream::write`].
    pub async fn finish_with(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        let id = self.id;
        while !bytes.is_empty() {
            let room = poll_fn(|context| self.guard.0.change(|state| state.poll_room(id, context))).await?;
            let (piece, rest) = bytes.split_at(bytes.len().min(room).min(MAX_PIECE));
            let (piece, is_last) = (self.copy(piece), rest.is_empty());
            self.guard.0.change(|state| {
                state.write(id, piece)?;
                if is_last { state.finish(id).map_err(|_| WriteError::ClosedStream) } else { Ok(()) }
            })?;
            if is_last {
                return Ok(());
            }
            bytes = rest;
        }
        self.finish().map_err(|_| WriteError::ClosedStream)
    }

    /// No more bytes follow. What was written is still delivered; [`SendStream::stopped`] tells when it was.
    ///
    /// # Errors
    /// The stream was finished or reset before.
    pub fn finish(&mut self) -> Result<(), ClosedStream> {
        self.guard.0.change(|state| state.finish(self.id))
    }

    /// Gives up: bytes that have not arrived may never do so, and the peer is told the code. Source: RFC 9000 §19.4.
    ///
    /// # Errors
    /// The stream was reset before, or the peer has all of it.
    pub fn reset(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        self.guard.0.change(|state| state.reset(self.id, code))
    }

    /// As [`SendStream::reset`], but the first `reliable_size` bytes of the stream arrive before the peer reads the code: what
    /// identifies a stream is not lost with its content. Once for each stream. A size of 0 is [`SendStream::reset`]. Source:
    /// draft-ietf-quic-reliable-stream-reset §5.
    ///
    /// # Errors
    /// The peer does not understand RESET_STREAM_AT ([`crate::HandshakeData::can_reset_at`]), fewer bytes were written, the
    /// stream was reset before, or the peer has all of it.
    pub fn reset_at(&mut self, code: VarInt, reliable_size: u64) -> Result<(), ResetAtError> {
        self.guard.0.change(|state| state.reset_at(self.id, Reset { code, reliable_size }))
    }

    /// How the stream shares the connection with others; the default is urgency 3, not incremental. Source: RFC 9218 §4.
    ///
    /// # Errors
    /// The stream is over.
    pub fn set_priority(&self, priority: Priority) -> Result<(), ClosedStream> {
        self.guard.0.change(|state| state.set_priority(self.id, priority))
    }

    /// How the stream shares the connection with others.
    ///
    /// # Errors
    /// The stream is over.
    pub fn priority(&self) -> Result<Priority, ClosedStream> {
        self.guard.0.change(|state| state.priority(self.id))
    }

    /// Waits until the fate of the stream is known: `Some(code)` if the peer has stopped it, `None` if it was finished and the
    /// peer has acknowledged all of it, or if it was reset. The future keeps the connection open.
    pub fn stopped(&self) -> impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send + use<> {
        let stopped = Stopped::new(Arc::clone(&self.guard), self.id);
        async move { poll_fn(|context| stopped.poll_fate(context)).await }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        self.guard.0.change(|state| {
            // An error says that it was finished or reset before.
            let _ = state.finish(self.id);
            state.leave_send(self.id);
        });
    }
}

/// The wait for a stream's fate. The stream's state outlives the handle for it.
struct Stopped {
    guard: Arc<Guard>,
    id: StreamId,
}

impl Stopped {
    fn new(guard: Arc<Guard>, id: StreamId) -> Stopped {
        guard.0.change(|state| state.share_send(id));
        Stopped { guard, id }
    }

    fn poll_fate(&self, context: &Context<'_>) -> Poll<Result<Option<VarInt>, StoppedError>> {
        self.guard.0.change(|state| state.poll_stopped(self.id, context))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.guard.0.change(|state| state.leave_send(self.id));
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        SendStream::poll_write(self.get_mut(), context, bytes).map_err(Into::into)
    }

    /// Bytes leave by themselves: there is nothing to flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream; does not wait until the peer has it.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(self.get_mut().finish().map_err(Into::into))
    }
}
