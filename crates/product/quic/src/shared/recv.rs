//! The receiving part of a stream, between its handle and the worker.
//!
//! ```text
//! Open ── end ──> Ended
//!   ├── RESET_STREAM ──> Reset
//!   └── stop ──> Stopping ── passed on ──> Stopped
//! ```
//!
//! Large pieces wait in the chunk that they arrived in; small ones are copied together, so that a byte that is not read does not
//! keep a chunk of 64 KiB.

use super::send::note;
use crate::varint::VarInt;
use bytes::{Bytes, BytesMut};
use core::task::{Context, Waker};
use std::collections::VecDeque;

/// Pieces below this many bytes are copied.
const SMALL: usize = 8 << 10;
/// Bytes of small pieces that become one.
const TAIL: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecvState {
    Open,
    /// All of it has arrived; it may not have been read.
    Ended,
    /// The peer gave up; what arrived before may not have been read.
    Reset(VarInt),
    /// STOP_SENDING is still to be passed on to the transport.
    Stopping(VarInt),
    Stopped,
}

/// The receiving part of a stream.
#[derive(Debug)]
pub(crate) struct RecvHalf {
    pub(crate) state: RecvState,
    queue: VecDeque<Bytes>,
    /// Small pieces behind the queue.
    tail: BytesMut,
    queued: usize,
    /// The transport waits until the reader has caught up.
    pub(crate) is_paused: bool,
    /// In the list of what the worker has to look at.
    pub(crate) is_dirty: bool,
    /// There is a handle, or will be one.
    pub(crate) is_used: bool,
    /// It has begun before the handshake was complete.
    pub(crate) is_early: bool,
    reader: Option<Waker>,
}

impl RecvHalf {
    pub(crate) fn new(is_early: bool) -> RecvHalf {
        RecvHalf {
            state: RecvState::Open,
            queue: VecDeque::new(),
            tail: BytesMut::new(),
            queued: 0,
            is_paused: false,
            is_dirty: false,
            is_used: true,
            is_early,
            reader: None,
        }
    }

    /// Bytes that were not read.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.queued += bytes.len();
        let is_small = bytes.len() < SMALL;
        if is_small {
            self.tail.extend_from_slice(&bytes);
        }
        if self.tail.len() >= TAIL || (!is_small && !self.tail.is_empty()) {
            self.queue.push_back(self.tail.split().freeze());
        }
        if !is_small {
            self.queue.push_back(bytes);
        }
    }

    /// The next bytes, at most `max` of them.
    pub(crate) fn pop(&mut self, max: usize) -> Option<Bytes> {
        if self.queue.is_empty() && !self.tail.is_empty() {
            self.queue.push_back(core::mem::take(&mut self.tail).freeze());
        }
        let front = self.queue.front_mut()?;
        let bytes = if front.len() <= max { self.queue.pop_front()? } else { front.split_to(max) };
        self.queued -= bytes.len();
        Some(bytes)
    }

    /// Drops what was not read. Returns how many bytes it was.
    pub(crate) fn discard(&mut self) -> usize {
        self.queue = VecDeque::new();
        self.tail = BytesMut::new();
        core::mem::take(&mut self.queued)
    }

    /// Whether neither the worker nor a handle needs it.
    pub(crate) fn is_over(&self) -> bool {
        !self.is_used && !matches!(self.state, RecvState::Open | RecvState::Stopping(_))
    }

    /// The reader waits for bytes.
    pub(crate) fn await_bytes(&mut self, context: &Context<'_>) {
        note(&mut self.reader, context);
    }

    pub(crate) fn wake(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.reader.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a peer that puts one byte of a stream that is not read between much of one that is would have 64 KiB kept for
    /// each of those bytes.
    #[test]
    fn a_small_piece_does_not_keep_the_chunk_that_it_arrived_in() {
        let (mut half, mut expected) = (RecvHalf::new(false), Vec::new());
        for round in 0..100_u8 {
            let chunk = Bytes::from(vec![round; 64 << 10]);
            let len = if round % 10 == 9 { SMALL } else { usize::from(round) };
            half.push(chunk.slice(..len));
            assert_eq!(chunk.is_unique(), len < SMALL);
            expected.extend_from_slice(&chunk[..len]);
        }
        assert_eq!(half.queued(), expected.len());
        let mut read = Vec::new();
        while let Some(bytes) = half.pop(1_000) {
            read.extend_from_slice(&bytes);
        }
        assert!(read == expected && half.queued() == 0);
    }
}
