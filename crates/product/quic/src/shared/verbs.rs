//! What handles ask of a connection.

use super::State;
use super::recv::{RecvHalf, RecvState};
use super::send::{Reset, SendHalf, SendState};
use crate::arrivals::limit;
use crate::error::ConnectionError;
use crate::facts::PathEvent;
use crate::stream_error::{ClosedStream, ReadError, ResetAtError, ResetError, StoppedError, WriteError};
use crate::varint::VarInt;
use bytes::Bytes;
use core::task::{Context, Poll};
use transport::{Dir, EarlyStatus, Priority, StreamId};
use wire::Side;

impl State {
    pub(crate) fn side(&self) -> Side {
        self.side
    }

    pub(crate) fn error(&self) -> Option<&ConnectionError> {
        self.error.as_ref()
    }

    /// Ready when the handshake is complete, or the connection over.
    pub(crate) fn poll_connected(&mut self, context: &Context<'_>) -> Poll<Result<(), ConnectionError>> {
        if let Some(error) = &self.error {
            return Poll::Ready(Err(error.clone()));
        }
        if self.is_connected {
            return Poll::Ready(Ok(()));
        }
        self.connecting.note(context);
        Poll::Pending
    }

    /// Ready when the handshake is over: whether the server has taken early data. A server itself has taken what came.
    pub(crate) fn poll_early_data(&mut self, context: &Context<'_>) -> Poll<bool> {
        let is_server = self.side == Side::Server;
        self.poll_connected(context).map(|outcome| {
            let handshake = self.facts.handshake.as_ref();
            let is_accepted = handshake.is_some_and(|data| data.early_data == EarlyStatus::Accepted);
            outcome.is_ok() && (is_server || is_accepted)
        })
    }

    /// Whether what has arrived may be the copy of an earlier connection.
    pub(crate) fn is_early(&self) -> bool {
        self.is_early && !self.is_connected
    }

    /// Whether the stream has begun before the handshake was complete.
    pub(crate) fn began_early(&self, id: StreamId) -> bool {
        self.recvs.get(&id).is_some_and(|half| half.is_early)
    }

    pub(crate) fn poll_closed(&mut self, context: &Context<'_>) -> Poll<ConnectionError> {
        match &self.error {
            Some(error) => Poll::Ready(error.clone()),
            None => {
                self.closing.note(context);
                Poll::Pending
            }
        }
    }

    /// The next change of the path.
    pub(crate) fn poll_path_event(
        &mut self,
        context: &Context<'_>,
    ) -> Poll<Result<PathEvent, ConnectionError>> {
        if let Some(event) = self.facts.next_path_event() {
            return Poll::Ready(Ok(event));
        }
        if let Some(error) = &self.error {
            return Poll::Ready(Err(error.clone()));
        }
        self.watching.note(context);
        Poll::Pending
    }

    /// Opens a stream as soon as the peer permits one. The identifier is assigned here.
    pub(crate) fn poll_open(
        &mut self,
        dir: Dir,
        context: &Context<'_>,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        if let Some(error) = &self.error {
            return Poll::Ready(Err(error.clone()));
        }
        let (side, is_early) = (self.side, !self.is_connected);
        let kind = self.kind(dir);
        if kind.opened >= kind.permitted {
            kind.is_wanted = true;
            kind.opening.note(context);
            self.wants_call = true;
            return Poll::Pending;
        }
        let id = StreamId::new(side, dir, kind.opened);
        kind.opened += 1;
        self.sends.insert(id, SendHalf::new());
        if dir == Dir::Bidi {
            self.recvs.insert(id, RecvHalf::new(is_early));
        }
        Poll::Ready(Ok(id))
    }

    /// The next stream of the peer's. Streams that have arrived can be accepted after the connection is lost, too.
    pub(crate) fn poll_accept(
        &mut self,
        dir: Dir,
        context: &Context<'_>,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        if let Some(id) = self.kind(dir).accepts.pop_front() {
            return Poll::Ready(Ok(id));
        }
        if let Some(error) = &self.error {
            return Poll::Ready(Err(error.clone()));
        }
        self.kind(dir).accepting.note(context);
        Poll::Pending
    }

    /// The part that bytes may be written to.
    fn open_send(&mut self, id: StreamId) -> Result<&mut SendHalf, WriteError> {
        if let Some(error) = &self.error {
            return Err(WriteError::ConnectionLost(error.clone()));
        }
        let half = self.sends.get_mut(&id).ok_or(WriteError::ClosedStream)?;
        match half.state {
            SendState::Open => Ok(half),
            SendState::Stopped(code) => Err(WriteError::Stopped(code)),
            _ => Err(WriteError::ClosedStream),
        }
    }

    /// How many bytes may be written now; at least one.
    pub(crate) fn poll_room(
        &mut self,
        id: StreamId,
        context: &Context<'_>,
    ) -> Poll<Result<usize, WriteError>> {
        let half = match self.open_send(id) {
            Ok(half) => half,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if half.room > 0 {
            return Poll::Ready(Ok(half.room));
        }
        half.await_room(context);
        Poll::Pending
    }

    /// Takes bytes for which there is room.
    pub(crate) fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), WriteError> {
        let half = self.open_send(id)?;
        half.room = half.room.saturating_sub(bytes.len());
        half.written = half.written.saturating_add(bytes.len() as u64);
        half.pending.push(bytes);
        self.mark_send(id);
        self.wants_call = true;
        Ok(())
    }

    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), ClosedStream> {
        match self.sends.get_mut(&id) {
            Some(half) if half.state == SendState::Open => half.state = SendState::Finishing,
            // As quinn: a stream that the peer has stopped can be finished, without effect.
            Some(half) if matches!(half.state, SendState::Stopped(_)) => return Ok(()),
            _ => return Err(ClosedStream),
        }
        self.mark_send(id);
        self.wants_call = true;
        Ok(())
    }

    pub(crate) fn reset(&mut self, id: StreamId, code: VarInt) -> Result<(), ClosedStream> {
        let half = self.sends.get_mut(&id).ok_or(ClosedStream)?;
        match half.state {
            SendState::Open | SendState::Finishing | SendState::Finished => {}
            SendState::Stopped(_) => return Ok(()),
            SendState::Acknowledged | SendState::Resetting(_) | SendState::Reset => {
                return Err(ClosedStream);
            }
        }
        half.state = SendState::Resetting(Reset { code, reliable_size: 0 });
        half.pending.clear();
        half.wake_all(&mut self.woken);
        self.mark_send(id);
        self.wants_call = true;
        Ok(())
    }

    /// As [`State::reset`], but the first bytes arrive.
    pub(crate) fn reset_at(&mut self, id: StreamId, reset: Reset) -> Result<(), ResetAtError> {
        if !self.facts.handshake.as_ref().is_some_and(|data| data.can_reset_at) {
            return Err(ResetAtError::Unsupported);
        }
        let half = self.sends.get_mut(&id).ok_or(ResetAtError::ClosedStream)?;
        match half.state {
            SendState::Open | SendState::Finishing | SendState::Finished => {}
            SendState::Stopped(_) => return Ok(()),
            SendState::Acknowledged | SendState::Resetting(_) | SendState::Reset => {
                return Err(ResetAtError::ClosedStream);
            }
        }
        if reset.reliable_size > half.written {
            return Err(ResetAtError::NotWritten);
        }
        half.state = SendState::Resetting(reset);
        half.wake_all(&mut self.woken);
        self.mark_send(id);
        self.wants_call = true;
        Ok(())
    }

    pub(crate) fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), ClosedStream> {
        let half = self.sends.get_mut(&id).ok_or(ClosedStream)?;
        half.priority = priority;
        half.has_new_priority = true;
        self.mark_send(id);
        self.wants_call = true;
        Ok(())
    }

    pub(crate) fn priority(&self, id: StreamId) -> Result<Priority, ClosedStream> {
        self.sends.get(&id).map(|half| half.priority).ok_or(ClosedStream)
    }

    /// What became of a sending part: the peer's code if it was stopped, `None` if it was acknowledged or reset.
    pub(crate) fn poll_stopped(
        &mut self,
        id: StreamId,
        context: &Context<'_>,
    ) -> Poll<Result<Option<VarInt>, StoppedError>> {
        let Some(half) = self.sends.get_mut(&id) else { return Poll::Ready(Ok(None)) };
        match half.state {
            SendState::Stopped(code) => return Poll::Ready(Ok(Some(code))),
            SendState::Acknowledged | SendState::Resetting(_) | SendState::Reset => {
                return Poll::Ready(Ok(None));
            }
            SendState::Open | SendState::Finishing | SendState::Finished => {}
        }
        if let Some(error) = &self.error {
            return Poll::Ready(Err(StoppedError::ConnectionLost(error.clone())));
        }
        half.watchers.note(context);
        Poll::Pending
    }

    /// Something else than the stream's handle needs the part, too.
    pub(crate) fn share_send(&mut self, id: StreamId) {
        if let Some(half) = self.sends.get_mut(&id) {
            half.users += 1;
        }
    }

    /// One user of a sending part has gone.
    pub(crate) fn leave_send(&mut self, id: StreamId) {
        if let Some(half) = self.sends.get_mut(&id) {
            half.users = half.users.saturating_sub(1);
            self.settle(id);
        }
    }

    /// The next bytes, at most `max`; `None` at the end. Bytes that arrived are given even if the connection is over.
    pub(crate) fn poll_chunk(
        &mut self,
        id: StreamId,
        max: usize,
        context: &Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        let Some(half) = self.recvs.get_mut(&id) else {
            return Poll::Ready(Err(ReadError::ClosedStream));
        };
        if let Some(bytes) = half.pop(max) {
            self.unread -= bytes.len();
            if half.is_paused && half.queued() <= limit(self.unread) / 2 {
                self.mark_recv(id);
                self.wants_call = true;
            }
            return Poll::Ready(Ok(Some(bytes)));
        }
        match half.state {
            RecvState::Ended => Poll::Ready(Ok(None)),
            RecvState::Reset(code) => Poll::Ready(Err(ReadError::Reset(code))),
            RecvState::Stopping(_) | RecvState::Stopped => Poll::Ready(Err(ReadError::ClosedStream)),
            RecvState::Open => match &self.error {
                Some(error) => Poll::Ready(Err(ReadError::ConnectionLost(error.clone()))),
                None => {
                    half.await_bytes(context);
                    Poll::Pending
                }
            },
        }
    }

    /// Whether the peer resets the stream: its code; `None` when it cannot any more.
    pub(crate) fn poll_reset(
        &mut self,
        id: StreamId,
        context: &Context<'_>,
    ) -> Poll<Result<Option<VarInt>, ResetError>> {
        let Some(half) = self.recvs.get_mut(&id) else { return Poll::Ready(Ok(None)) };
        match (half.state, &self.error) {
            (RecvState::Reset(code), _) => Poll::Ready(Ok(Some(code))),
            (RecvState::Ended | RecvState::Stopping(_) | RecvState::Stopped, _) => Poll::Ready(Ok(None)),
            (RecvState::Open, Some(error)) => Poll::Ready(Err(ResetError::ConnectionLost(error.clone()))),
            (RecvState::Open, None) => {
                half.await_bytes(context);
                Poll::Pending
            }
        }
    }

    /// What is here and what still comes is discarded, and the peer is asked to stop.
    pub(crate) fn stop(&mut self, id: StreamId, code: VarInt) -> Result<(), ClosedStream> {
        let half = self.recvs.get_mut(&id).ok_or(ClosedStream)?;
        if matches!(half.state, RecvState::Stopping(_) | RecvState::Stopped) {
            return Err(ClosedStream);
        }
        self.unread -= half.discard();
        if half.state != RecvState::Open {
            // The peer has sent all that it will: it need not be told.
            half.state = RecvState::Stopped;
            return Ok(());
        }
        half.state = RecvState::Stopping(code);
        half.wake(&mut self.woken);
        self.mark_recv(id);
        self.wants_call = true;
        Ok(())
    }

    /// The handle of a receiving part has gone.
    pub(crate) fn leave_recv(&mut self, id: StreamId) {
        // An error says that it was stopped before.
        let _ = self.stop(id, VarInt::default());
        if let Some(half) = self.recvs.get_mut(&id) {
            half.is_used = false;
            self.settle(id);
        }
    }
}
