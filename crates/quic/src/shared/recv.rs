//! The receiving part of a stream, between its handle and the worker.
//!
//! ```text
//! Open ── end ──> Ended
//!   ├── RESET_STREAM ──> Reset
//!   └── stop ──> Stopping ── passed on ──> Stopped
//! ```

use super::send::note;
use crate::varint::VarInt;
use bytes::Bytes;
use core::task::{Context, Waker};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecvState {
    Open,
    /// All of it has arrived; it may not have been read.
    Ended,
    /// The peer gave up.
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
    queued: usize,
    /// The transport waits until the reader has caught up.
    pub(crate) is_paused: bool,
    /// In the list of what the worker has to look at.
    pub(crate) is_dirty: bool,
    /// There is a handle, or will be one.
    pub(crate) is_used: bool,
    reader: Option<Waker>,
}

impl RecvHalf {
    pub(crate) fn new() -> RecvHalf {
        RecvHalf {
            state: RecvState::Open,
            queue: VecDeque::new(),
            queued: 0,
            is_paused: false,
            is_dirty: false,
            is_used: true,
            reader: None,
        }
    }

    /// Bytes that were not read.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    pub(crate) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.queued += bytes.len();
            self.queue.push_back(bytes);
        }
    }

    /// The next bytes, at most `max` of them.
    pub(crate) fn pop(&mut self, max: usize) -> Option<Bytes> {
        let front = self.queue.front_mut()?;
        let bytes = if front.len() <= max { self.queue.pop_front()? } else { front.split_to(max) };
        self.queued -= bytes.len();
        Some(bytes)
    }

    /// Drops what was not read. Returns how many bytes it was.
    pub(crate) fn discard(&mut self) -> usize {
        self.queue = VecDeque::new();
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
