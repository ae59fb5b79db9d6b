//! A run of the pattern on its way out, and one on its way in.

use crate::read_behaviour::ReadBehaviour;
use base::pattern;
use bytes::Bytes;
use transport::{Connection, StreamId};

/// Bytes of the pattern that are still to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    place: u64,
    left: u64,
}

impl Outgoing {
    pub(crate) fn new(offset: u64, len: u64) -> Outgoing {
        Outgoing { place: offset, left: len }
    }

    pub(crate) fn is_written(&self) -> bool {
        self.left == 0
    }

    /// The next bytes, at most `room` of them; `None` when there is no room or nothing left.
    pub(crate) fn next(&mut self, room: usize, read_behaviour: &mut ReadBehaviour) -> Option<Bytes> {
        let bytes = pattern::at(self.place);
        let most = room.min(usize::try_from(self.left).unwrap_or(usize::MAX)).min(bytes.len());
        if most == 0 {
            return None;
        }
        let len = read_behaviour.write_len(most);
        self.place += len as u64;
        self.left -= len as u64;
        Some(Bytes::from_static(bytes.get(..len).unwrap_or(bytes)))
    }

    /// Writes as much as a stream takes. `Err` when it takes nothing any more, because it was reset.
    pub(crate) fn write(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        read_behaviour: &mut ReadBehaviour,
    ) -> Result<(), transport::WriteError> {
        while let Some(bytes) = self.next(connection.send_capacity(id), read_behaviour) {
            connection.write(id, bytes)?;
        }
        Ok(())
    }
}

/// Bytes of the pattern that are expected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    place: u64,
    left: u64,
}

impl Incoming {
    pub(crate) fn new(offset: u64, len: u64) -> Incoming {
        Incoming { place: offset, left: len }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Bytes still to come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Compares the next bytes.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        if let Some(place) = pattern::first_difference(self.place, bytes) {
            return Err(format!("wrong byte, {} bytes into what was lent", place - self.place));
        }
        let len = bytes.len() as u64;
        if len > self.left {
            return Err(format!("{} bytes too many", len - self.left));
        }
        self.place += len;
        self.left -= len;
        Ok(())
    }
}
