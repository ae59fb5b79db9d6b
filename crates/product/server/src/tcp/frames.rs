//! Tells content from control in what h2 writes.
//!
//! A peer makes us write whenever it likes, with a PING or SETTINGS. Only DATA is a sign that it takes what it asked for, so
//! the bytes on their way to TLS are followed from frame header to frame header (RFC 9113 §4.1); nothing is kept of them.
//! HEADERS do not count either: cheap requests would keep others alive that never move.

use std::io::IoSlice;

/// A frame's header, in bytes.
const HEADER: usize = 9;
/// The type of DATA. RFC 9113 §6.1.
const DATA: u8 = 0;

/// Where one direction of an HTTP/2 connection is within its frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    /// So much of the header is there; all of it while a payload passes.
    known: usize,
    /// What is left of the payload, in bytes.
    left: usize,
}

impl Frames {
    /// The first `taken` bytes of `buffers` pass. Returns how many of them are payload of DATA.
    pub(super) fn pass(&mut self, buffers: &[IoSlice<'_>], taken: usize) -> usize {
        let (mut taken, mut content) = (taken, 0);
        for buffer in buffers {
            let (now, _) = buffer.split_at(taken.min(buffer.len()));
            taken -= now.len();
            content += self.pass_bytes(now);
        }
        content
    }

    fn pass_bytes(&mut self, mut bytes: &[u8]) -> usize {
        let mut content = 0;
        while let Some(&byte) = bytes.first() {
            if self.left > 0 {
                let (payload, rest) = bytes.split_at(self.left.min(bytes.len()));
                self.left -= payload.len();
                content += if self.header[3] == DATA { payload.len() } else { 0 };
                bytes = rest;
                continue;
            }
            if matches!(self.known, 0 | HEADER)
                && let Some((header, rest)) = bytes.split_first_chunk::<HEADER>()
            {
                self.on_header(*header);
                bytes = rest;
                continue;
            }
            self.known %= HEADER;
            self.header[self.known] = byte;
            self.known += 1;
            bytes = bytes.get(1..).unwrap_or_default();
            if self.known == HEADER {
                self.on_header(self.header);
            }
        }
        content
    }

    fn on_header(&mut self, header: [u8; HEADER]) {
        let [high, middle, low, ..] = header;
        self.left = u32::from_be_bytes([0, high, middle, low]) as usize;
        (self.header, self.known) = (header, HEADER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, len: usize) -> Vec<u8> {
        let [_, high, middle, low] = (len as u32).to_be_bytes();
        let mut frame = vec![high, middle, low, kind, 0, 0, 0, 0, 1];
        // Looks like a header of DATA when it is taken for one.
        frame.resize(HEADER + len, 0);
        frame
    }

    /// SETTINGS, DATA, PING, empty DATA, HEADERS, DATA: however they are cut, the same is content.
    #[test]
    fn only_the_payload_of_data_is_content() {
        let frames = [frame(4, 6), frame(0, 70_000), frame(6, 8), frame(0, 0), frame(1, 300), frame(0, 5)];
        let all = frames.concat();
        for piece in [1, 7, 9, 10, 16_384, all.len()] {
            let mut state = Frames::default();
            let content: usize =
                all.chunks(piece).map(|piece| state.pass(&[IoSlice::new(piece)], piece.len())).sum();
            assert_eq!(content, 70_005, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_was_not_taken_comes_again() {
        let data = frame(0, 100);
        let (header, payload) = data.split_at(HEADER);
        let mut state = Frames::default();
        assert_eq!(state.pass(&[IoSlice::new(header), IoSlice::new(payload)], HEADER + 40), 40);
        assert_eq!(state.pass(&[IoSlice::new(&payload[40..]), IoSlice::new(&frame(6, 8))], 60 + 17), 60);
        assert_eq!(state.pass(&[IoSlice::new(&data)], 3), 0);
    }
}
