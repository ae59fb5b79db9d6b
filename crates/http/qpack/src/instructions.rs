//! The QPACK streams while no dynamic table is in use in either direction. RFC 9204 §4.3, §4.4.
//!
//! Both readers take bytes as they come and keep at most one unfinished integer. They return how many instructions they
//! saw, for the caller to count: an instruction without effect costs us time and the peer nothing.

use crate::error::{Code, Error};
use crate::integer::{Partial, Progress};

/// The peer's encoder stream, read by a decoder whose table has capacity 0.
///
/// The only instruction that such a peer may send is Set Dynamic Table Capacity to 0, which is one byte: an insertion is
/// larger than the table (RFC 9204 §3.2.2) and a duplicate refers to nothing.
#[derive(Debug, Default)]
pub struct EncoderStream(());

const SET_CAPACITY_0: u8 = 0b0010_0000;

impl EncoderStream {
    /// At the beginning of the stream, after its type.
    pub fn new() -> EncoderStream {
        EncoderStream::default()
    }

    /// Takes in the next bytes; returns the number of instructions in them.
    ///
    /// # Errors
    /// A connection error, QPACK_ENCODER_STREAM_ERROR. It shows at the first byte of the instruction, so nothing that the
    /// instruction announces is ever waited for.
    pub fn on_bytes(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        match bytes.iter().find(|&&byte| byte != SET_CAPACITY_0) {
            None => Ok(bytes.len()),
            Some(byte) => {
                let reason = match byte >> 5 {
                    //= rfc9204/3.2.3#1
                    0b001 => "dynamic table capacity above 0",
                    0b000 => "duplicate of an entry that does not exist",
                    _ => "insertion into a dynamic table of capacity 0",
                };
                Err(Error { code: Code::ENCODER_STREAM_ERROR, reason })
            }
        }
    }
}

/// The peer's decoder stream, read by an encoder that never inserts.
///
/// Such an encoder waits for no acknowledgement, so only Stream Cancellation may come; it has no effect.
#[derive(Debug, Default)]
pub struct DecoderStream {
    unfinished: Option<Partial>,
}

impl DecoderStream {
    /// At the beginning of the stream, after its type.
    pub fn new() -> DecoderStream {
        DecoderStream::default()
    }

    /// Takes in the next bytes; returns the number of instructions that ended in them.
    ///
    /// # Errors
    /// A connection error, QPACK_DECODER_STREAM_ERROR.
    pub fn on_bytes(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        const fn error(reason: &'static str) -> Error {
            Error { code: Code::DECODER_STREAM_ERROR, reason }
        }
        let mut finished = 0;
        for &byte in bytes {
            let progress = match self.unfinished.take() {
                Some(partial) => {
                    partial.next(byte).map_err(|_| error("integer above 62 bits or 10 bytes"))?
                }
                None => match byte >> 6 {
                    0b01 => Partial::begin(byte, 6),
                    //= rfc9204/4.4.3#1
                    0b00 => return Err(error("insert count increment without an insertion")),
                    //= rfc9204/4.4.1#1
                    _ => return Err(error("acknowledgment of a section that refers to no dynamic table")),
                },
            };
            match progress {
                Progress::Done(_) => finished += 1,
                Progress::More(partial) => self.unfinished = Some(partial),
            }
        }
        Ok(finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9204 §3.2.2, §4.3.1: with capacity 0 nothing but "capacity 0" may be said.
    #[test]
    fn the_encoder_stream_permits_capacity_0_only() {
        let mut stream = EncoderStream::new();
        assert_eq!(stream.on_bytes(&[]), Ok(0));
        assert_eq!(stream.on_bytes(&[0x20, 0x20]), Ok(2));
        // The instructions of RFC 9204 §B.2, §B.4: capacity 220, insertions, duplicate.
        for first in [0x3f, 0xc0, 0xc1, 0x4a, 0x02, 0x21, 0x00] {
            let error = stream.on_bytes(&[first]).unwrap_err();
            assert_eq!(error.code, Code::ENCODER_STREAM_ERROR);
        }
    }

    #[test]
    fn the_decoder_stream_permits_cancellations_only() {
        let mut stream = DecoderStream::new();
        // RFC 9204 §B.4: Stream Cancellation (Stream=8).
        assert_eq!(stream.on_bytes(&[0x48]), Ok(1));
        assert_eq!(stream.on_bytes(&[0x7f, 0x80, 0x01, 0x40]), Ok(2));
        // §B.2: Section Acknowledgment (stream=4); §B.3: Insert Count Increment (1); increment 0.
        for first in [0x84, 0x01, 0x00] {
            let error = DecoderStream::new().on_bytes(&[first]).unwrap_err();
            assert_eq!(error.code, Code::DECODER_STREAM_ERROR);
        }
    }

    /// CVE-2026-119235: continuation bytes without end must neither be stored nor read again and again.
    #[test]
    fn an_endless_cancellation_is_refused() {
        let mut stream = DecoderStream::new();
        assert_eq!(stream.on_bytes(&[0x7f]), Ok(0));
        let read = (0..100).take_while(|_| stream.on_bytes(&[0x80]).is_ok()).count();
        assert_eq!(read, 8);
        assert!(size_of::<DecoderStream>() <= 24);
    }

    proptest! {
        /// However the bytes are cut, the outcome is the same, and none panics.
        #[test]
        fn cuts_do_not_matter(bytes in proptest::collection::vec(prop_oneof![Just(0x20_u8), Just(0x7f), Just(0x80), any::<u8>()], 0..40)) {
            let whole = DecoderStream::new().on_bytes(&bytes);
            let mut stream = DecoderStream::new();
            let pieces: Result<usize, Error> = bytes.iter().map(|byte| stream.on_bytes(&[*byte])).sum();
            prop_assert_eq!(whole, pieces);
            let whole = EncoderStream::new().on_bytes(&bytes);
            let mut stream = EncoderStream::new();
            let pieces: Result<usize, Error> = bytes.iter().map(|byte| stream.on_bytes(&[*byte])).sum();
            prop_assert_eq!(whole, pieces);
        }
    }
}
