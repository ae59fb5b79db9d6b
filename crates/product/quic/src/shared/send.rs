//! The sending part of a stream, between its handle and the worker.
//!
//! ```text
//! Open ── finish ──> Finishing ── passed on ──> Finished ── acknowledged ──> Acknowledged
//!   ├── reset, reset_at ─┴───> Resetting ── passed on ──> Reset
//!   └──── STOP_SENDING ──> Stopped
//! ```

use crate::varint::VarInt;
use crate::wakers::Wakers;
use bytes::Bytes;
use core::task::{Context, Waker};
use transport::Priority;

/// Bytes that a stream takes before the worker has said how much room there is.
pub(crate) const FIRST_ROOM: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendState {
    Open,
    /// The end is still to be passed on to the transport.
    Finishing,
    Finished,
    /// The peer has received all of it.
    Acknowledged,
    /// The reset is still to be passed on to the transport.
    Resetting(Reset),
    Reset,
    /// The peer wants no more.
    Stopped(VarInt),
}

/// How a handle gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reset {
    pub(crate) code: VarInt,
    /// The first bytes of the stream that arrive all the same.
    pub(crate) reliable_size: u64,
}

/// The sending part of a stream.
#[derive(Debug)]
pub(crate) struct SendHalf {
    pub(crate) state: SendState,
    /// Bytes that the handle may still hand over.
    pub(crate) room: usize,
    /// Bytes that the handle has handed over.
    pub(crate) written: u64,
    /// Handed over and not passed on to the transport.
    pub(crate) pending: Vec<Bytes>,
    pub(crate) priority: Priority,
    /// The priority is still to be passed on.
    pub(crate) has_new_priority: bool,
    /// In the list of what the worker has to look at.
    pub(crate) is_dirty: bool,
    /// The stream's handle and the futures that wait for its fate.
    pub(crate) users: usize,
    pub(crate) writer: Option<Waker>,
    pub(crate) watchers: Wakers,
}

impl SendHalf {
    /// A new part, with a place for its handle.
    pub(crate) fn new() -> SendHalf {
        SendHalf {
            state: SendState::Open,
            room: FIRST_ROOM,
            written: 0,
            pending: Vec::new(),
            priority: Priority::default(),
            has_new_priority: false,
            is_dirty: false,
            users: 1,
            writer: None,
            watchers: Wakers::default(),
        }
    }

    /// Whether neither the worker nor a handle needs it.
    pub(crate) fn is_over(&self) -> bool {
        let is_told =
            matches!(self.state, SendState::Acknowledged | SendState::Reset | SendState::Stopped(_));
        is_told && self.users == 0
    }

    /// The writer waits for room.
    pub(crate) fn await_room(&mut self, context: &Context<'_>) {
        note(&mut self.writer, context);
    }

    /// Something has changed: everybody looks again.
    pub(crate) fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.writer.take());
        self.watchers.hand_to(woken);
    }
}

/// Keeps the task's waker.
pub(super) fn note(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(context.waker()),
        None => *place = Some(context.waker().clone()),
    }
}
