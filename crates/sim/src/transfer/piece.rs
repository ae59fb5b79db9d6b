//! A run of the pattern on its way out, and one on its way in.

use super::mood::Mood;
use base::pattern;
use bytes::Bytes;
use transport::{Connection, StreamId};

/// Bytes of the pattern that are still to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    place: u64,
    left: u64,
}

impl Outgoing {
    pub(super) fn new(offset: u64, len: u64) -> Outgoing {
        Outgoing { place: offset, left: len }
    }

    pub(super) fn is_written(&self) -> bool {
        self.left == 0
    }

    /// Writes as much as the stream takes. `Err` when it takes nothing any more, because it was reset.
    pub(super) fn write(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        mood: &mut Mood,
    ) -> Result<(), transport::WriteError> {
        loop {
            let room = connection.send_capacity(id).min(usize::try_from(self.left).unwrap_or(usize::MAX));
            if room == 0 {
                return Ok(());
            }
            let bytes = pattern::at(self.place);
            let len = mood.write_len(room.min(bytes.len()));
            connection.write(id, Bytes::from_static(bytes.get(..len).unwrap_or(bytes)))?;
            self.place += len as u64;
            self.left -= len as u64;
        }
    }
}

/// Bytes of the pattern that are expected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    place: u64,
    left: u64,
}

impl Incoming {
    pub(super) fn new(offset: u64, len: u64) -> Incoming {
        Incoming { place: offset, left: len }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Bytes still to come.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Compares the next bytes.
    pub(super) fn on_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
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
