//! Received packets that lie in several frames, put together.
//!
//! The kernel leaves room in front of each frame, so the parts of a packet never touch: each is copied to the end of one
//! buffer, and its frame goes back at once. That copy is the price of packets beyond 3,770 bytes; those of one frame are
//! decrypted where they lie.
//!
//! Invariant: what was lent stays where it is until the next batch; of a packet whose end has not come only the beginning
//! of a batch moves the parts.

use core::ops::Range;

/// The longest packet: Ethernet with two tags, and the longest that IP has.
const LONGEST: usize = 14 + 2 * 4 + 40 + 65_535;

/// What the last part left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    No,
    /// A packet that begins here.
    From(usize),
    /// A packet longer than any, of which nothing is kept.
    TooLong,
}

#[derive(Debug, Default)]
pub(crate) struct Joiner {
    bytes: Vec<u8>,
    open: Open,
}

impl Joiner {
    /// Without memory before it is needed.
    pub(crate) fn new() -> Joiner {
        Joiner { bytes: Vec::new(), open: Open::No }
    }

    /// Whether a packet's end has not come.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open != Open::No
    }

    /// What was joined is not lent any more.
    #[inline]
    pub(crate) fn begin_batch(&mut self) {
        let Open::From(start) = self.open else { return self.bytes.clear() };
        self.bytes.drain(..start);
        self.open = Open::From(0);
    }

    /// Appends a part. Returns where the packet lies if that was its last one; a packet that is too long is empty.
    pub(crate) fn add(&mut self, part: &[u8], continues: bool) -> Option<Range<usize>> {
        let start = match self.open {
            Open::No => self.bytes.len(),
            Open::From(start) => start,
            Open::TooLong => {
                if !continues {
                    self.open = Open::No;
                }
                return (!continues).then_some(0..0);
            }
        };
        if self.bytes.len() - start + part.len() > LONGEST {
            self.bytes.truncate(start);
            self.open = if continues { Open::TooLong } else { Open::No };
            return (!continues).then_some(0..0);
        }
        self.bytes.extend_from_slice(part);
        self.open = if continues { Open::From(start) } else { Open::No };
        (!continues).then_some(start..self.bytes.len())
    }

    /// Bytes of a packet that was put together in this batch.
    #[inline]
    pub(crate) fn bytes(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.bytes[range]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_packets_also_across_batches() {
        // Deleted, a packet whose parts come in two batches could lose its beginning, or change one that is lent.
        let mut joiner = Joiner::new();
        assert_eq!(joiner.add(b"ab", true), None);
        let first = joiner.add(b"c", false).unwrap();
        assert_eq!(joiner.bytes(first.clone()), b"abc");
        assert_eq!(joiner.add(b"de", true), None);
        assert!(joiner.is_open());
        assert_eq!(joiner.bytes(first), b"abc");
        joiner.begin_batch();
        let second = joiner.add(b"f", false).unwrap();
        assert_eq!((second.clone(), joiner.bytes(second)), (0..3, &mut b"def".to_owned()[..]));
        joiner.begin_batch();
        assert_eq!((joiner.bytes.len(), joiner.is_open()), (0, false));
    }

    #[test]
    fn a_packet_without_end_takes_no_memory() {
        let mut joiner = Joiner::new();
        let part = [7; 4000];
        for _ in 0..1000 {
            assert_eq!(joiner.add(&part, true), None);
            assert!(joiner.bytes.len() <= LONGEST);
        }
        assert_eq!(joiner.add(&part, false), Some(0..0));
        assert_eq!(joiner.add(&part, false), Some(0..4000), "the next one is whole");
    }
}
