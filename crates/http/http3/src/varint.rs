//! A variable-length integer that may arrive in pieces. RFC 9000 §16.

use wire::Reader;

/// The bytes of an integer that have arrived, at most seven: the eighth completes it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartialVarint {
    bytes: [u8; 8],
    len: u8,
}

impl PartialVarint {
    /// Takes bytes off the front of `input` until the integer is complete; `None` when the input ends before.
    pub(crate) fn read(&mut self, input: &mut &[u8]) -> Option<u64> {
        loop {
            let (&byte, rest) = input.split_first()?;
            *input = rest;
            if let Some(place) = self.bytes.get_mut(usize::from(self.len)) {
                *place = byte;
                self.len += 1;
            }
            let so_far = self.bytes.get(..usize::from(self.len)).unwrap_or(&[]);
            if let Ok(value) = Reader::new(so_far).varint() {
                self.len = 0;
                return Some(value);
            }
        }
    }

    /// Whether some but not all bytes have arrived.
    pub(crate) fn is_begun(&self) -> bool {
        self.len > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// HAProxy aborted on one byte of a stream type of two; Envoy read an integer across a gap.
        #[test]
        fn an_integer_in_pieces_is_the_integer(value in 0..=wire::varint::MAX, shift in 0_u32..62, cut in 0_usize..8, tail: Vec<u8>) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            wire::varint::append(&mut bytes, value);
            let cut = cut.min(bytes.len() - 1);
            bytes.extend_from_slice(&tail);
            let mut partial = PartialVarint::default();
            let mut first = &bytes[..cut];
            prop_assert_eq!(partial.read(&mut first), None);
            prop_assert_eq!(partial.is_begun(), cut > 0);
            let mut second = &bytes[cut..];
            prop_assert_eq!(partial.read(&mut second), Some(value));
            prop_assert_eq!(second, &tail[..]);
            prop_assert!(!partial.is_begun());
        }
    }
}
