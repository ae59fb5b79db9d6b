//! Streams at rest, kept small.
//!
//! A connection of HTTP/3 has six unidirectional streams that stay for its life and carry a few bytes at its beginning. A stream that
//! goes in one direction is at rest when nothing of it is buffered, in flight, owed or announced: then its offsets and limits say all, an
//! eighth of a [`Stream`]. Streams come to rest where a quiet connection gives memory back, and a look-up of their ID wakes them
//! ([`super::slots::Slots`]).

use super::config::Priority;
use super::stream::{Stream, Writer};
use crate::flow::{CreditAtRest, WindowAtRest};
use crate::stream_id::StreamId;

/// A stream at rest.
#[derive(Debug)]
pub(super) struct RestingStream {
    pub(super) id: StreamId,
    part: RestingPart,
}

/// Each with the priority, which stands beside the discriminant and takes no word of its own there.
#[derive(Debug)]
enum RestingPart {
    Send(Priority, CreditAtRest),
    Recv(Priority, WindowAtRest),
}

impl RestingStream {
    /// The stream at rest; `None` while anything of it is under way, or if it has two parts.
    pub(super) fn of(stream: &Stream) -> Option<RestingStream> {
        let is_idle = stream.writer == Writer::Content
            && stream.notices.is_empty()
            && !stream.in_events
            && !stream.in_control;
        let priority = stream.priority;
        let part = match (stream.send.is_absent(), stream.recv.is_absent()) {
            (false, true) => stream.send.at_rest().map(|credit| RestingPart::Send(priority, credit)),
            (true, false) => stream.recv.at_rest().map(|window| RestingPart::Recv(priority, window)),
            (true, true) | (false, false) => None,
        };
        let part = part.filter(|_| is_idle)?;
        Some(RestingStream { id: stream.id, part })
    }

    /// Makes `stream`, which is new, the stream that came to rest.
    pub(super) fn wake(self, stream: &mut Stream) {
        match self.part {
            RestingPart::Send(priority, credit) => {
                stream.priority = priority;
                stream.send.wake(credit);
            }
            RestingPart::Recv(priority, window) => {
                stream.priority = priority;
                stream.recv.wake(window);
            }
        }
    }
}
