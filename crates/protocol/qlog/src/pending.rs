//! Events that happen while their connection's trace is not at hand, such as those of HTTP/3 while the transport lends bytes.
//!
//! They are encoded at once, so that nothing is kept that a trace does not tell: no secret and no more of a text than is logged.
//! Rejected: a type per event that owns its texts, which would be a second copy of each event's definition.

use crate::{Event, json};
use core::mem;

/// Bytes of events that wait; with one event more the next ones are counted only.
const MAX_BYTES: usize = 256 << 10;
/// Memory beyond this is given back once the events are recorded.
const KEPT_BYTES: usize = 8 << 10;
/// Likewise, of the list of events.
const KEPT_EVENTS: usize = 64;

/// Events that wait to be recorded, in their order.
#[derive(Debug, Default)]
pub struct Pending {
    /// The data of all events.
    bytes: Vec<u8>,
    /// For each event its name and where its data end.
    events: Vec<(&'static str, usize)>,
    /// Events that found no room.
    missed: u64,
}

impl Pending {
    /// Something happened.
    pub fn push<E: Event>(&mut self, event: &E) {
        if self.bytes.len() >= MAX_BYTES {
            self.missed += 1;
            return;
        }
        json::object(&mut self.bytes, |data| event.write(data));
        self.events.push((E::NAME, self.bytes.len()));
    }

    /// Whether there is nothing to record.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Memory that it holds, in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.events.capacity() * size_of::<(&str, usize)>()
    }

    /// Lends each event's name and data, and forgets them. Returns how many events found no room.
    pub(crate) fn take(&mut self, mut tell: impl FnMut(&'static str, &[u8])) -> u64 {
        let mut begin = 0;
        for (name, end) in self.events.drain(..) {
            tell(name, self.bytes.get(begin..end).unwrap_or(b"{}"));
            begin = end;
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.events.shrink_to(KEPT_EVENTS);
        mem::take(&mut self.missed)
    }
}
