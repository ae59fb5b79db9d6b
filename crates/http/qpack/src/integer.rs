//! Prefixed integers. RFC 9204 §4.1.1, RFC 7541 §5.1.
//!
//! The low bits of a byte hold the value, or, when they are all ones, the beginning of a longer encoding of seven bits a
//! byte. We take values up to 62 bits in at most ten bytes, which is what RFC 9204 asks for: without the second limit a
//! peer could send continuation bytes of value 0 without end.

/// The largest value taken: 2^62 - 1.
const MAX: u64 = (1 << 62) - 1;

/// The most bytes that an encoding takes, the byte with the prefix included.
const MAX_SIZE: u8 = 10;

/// An integer above 62 bits, or spread over more than ten bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// An integer of which some bytes were read: a few bytes of state, whatever the peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partial {
    value: u64,
    /// Bytes read, at least 1.
    size: u8,
}

/// How far an integer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Done(u64),
    More(Partial),
}

impl Partial {
    /// Begins with the byte that holds the prefix; `bits` (1 to 8) of it belong to the integer.
    #[inline]
    pub(crate) fn begin(first: u8, bits: u32) -> Progress {
        let mask = prefix_mask(bits);
        if first & mask < mask {
            Progress::Done(u64::from(first & mask))
        } else {
            Progress::More(Partial { value: u64::from(mask), size: 1 })
        }
    }

    /// Goes on with the next byte.
    #[inline]
    pub(crate) fn next(self, byte: u8) -> Result<Progress, TooLong> {
        let size = self.size + 1;
        // `size` is at most 10: the byte that would ask for an eleventh is refused below. So the shift is at most 56 and seven bits fit above it.
        let shift = 7 * u32::from(size - 2);
        let value = self.value.saturating_add(u64::from(byte & 0x7f) << shift);
        //= rfc9204/4.1.1#1
        if value > MAX {
            return Err(TooLong);
        }
        if byte & 0x80 == 0 {
            return Ok(Progress::Done(value));
        }
        if size >= MAX_SIZE {
            return Err(TooLong);
        }
        Ok(Progress::More(Partial { value, size }))
    }
}

const fn prefix_mask(bits: u32) -> u8 {
    (0xff_u16 >> (8 - bits)) as u8
}

/// Why an integer inside a complete section cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    EndsEarly,
    TooLong,
}

/// Reads an integer whose first byte, `first`, was already taken from the front of `rest`.
#[inline]
pub(crate) fn read(first: u8, bits: u32, rest: &mut &[u8]) -> Result<u64, Invalid> {
    let mut progress = Partial::begin(first, bits);
    loop {
        match progress {
            Progress::Done(value) => return Ok(value),
            Progress::More(partial) => {
                let (&byte, tail) = rest.split_first().ok_or(Invalid::EndsEarly)?;
                *rest = tail;
                progress = partial.next(byte).map_err(|TooLong| Invalid::TooLong)?;
            }
        }
    }
}

/// Appends `value` with a prefix of `bits` bits; `pattern` fills the bits above.
#[inline]
pub(crate) fn write(pattern: u8, bits: u32, value: u64, out: &mut Vec<u8>) {
    let mask = prefix_mask(bits);
    if value < u64::from(mask) {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | mask);
    let mut rest = value - u64::from(mask);
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(bytes: &[u8], bits: u32) -> Result<u64, Invalid> {
        let (&first, mut rest) = bytes.split_first().unwrap();
        read(first, bits, &mut rest)
    }

    /// RFC 7541 §C.1: 10 and 1337 with a 5-bit prefix, 42 with 8 bits.
    #[test]
    fn the_examples_of_rfc_7541() {
        for (value, bits, bytes) in [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a])] {
            let mut out = Vec::new();
            write(0, bits, value, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(read_all(bytes, bits), Ok(value));
        }
    }

    /// CVE-2026-119235, CVE-2026-100661: a peer that never ends an integer must not be read without end.
    #[test]
    fn an_endless_integer_is_refused_after_ten_bytes() {
        for continuation in [0x80, 0xff] {
            let mut bytes = vec![0xff];
            bytes.extend([continuation; 9]);
            assert_eq!(read_all(&bytes, 8), Err(Invalid::TooLong));
        }
        // Nine continuation bytes are the most; padding within them is legal.
        let mut bytes = vec![0xff];
        bytes.extend([0x80; 8]);
        bytes.push(0x00);
        assert_eq!(read_all(&bytes, 8), Ok(255));
    }

    #[test]
    fn values_above_62_bits_are_refused() {
        let mut out = Vec::new();
        write(0, 8, MAX, &mut out);
        assert_eq!(read_all(&out, 8), Ok(MAX));
        out.clear();
        write(0, 8, MAX + 1, &mut out);
        assert_eq!(read_all(&out, 8), Err(Invalid::TooLong));
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(value in 0..=MAX, bits in 1_u32..=8, shift in 0_u32..62) {
            let value = value >> shift;
            let mut out = Vec::new();
            write(0, bits, value, &mut out);
            prop_assert!(out.len() <= usize::from(MAX_SIZE));
            prop_assert_eq!(read_all(&out, bits), Ok(value));
            out.pop();
            if !out.is_empty() {
                prop_assert_eq!(read_all(&out, bits), Err(Invalid::EndsEarly));
            }
        }
    }
}
