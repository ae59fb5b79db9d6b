//! Frame headers: what they say, where they may stand, and how they are read and written. RFC 9114 §7.
//!
//! A header is two variable-length integers. Nearly always both lie in the bytes at hand and are read in place; otherwise
//! the bytes so far are kept, at most 15. Payloads are the reader's business: nothing here is ever as long as a length on
//! the wire says.

use crate::error::{Code, ConnectionError};
use crate::varint::PartialVarint;
use wire::{Reader, varint};

/// Frame types.
pub(crate) mod ty {
    pub(crate) const DATA: u64 = 0x00;
    pub(crate) const HEADERS: u64 = 0x01;
    pub(crate) const CANCEL_PUSH: u64 = 0x03;
    pub(crate) const SETTINGS: u64 = 0x04;
    pub(crate) const PUSH_PROMISE: u64 = 0x05;
    pub(crate) const GOAWAY: u64 = 0x07;
    pub(crate) const MAX_PUSH_ID: u64 = 0x0d;
    /// RFC 9218 §7.2, for a request stream.
    pub(crate) const PRIORITY_UPDATE_REQUEST: u64 = 0x0f_0700;
    /// RFC 9218 §7.2, for a push.
    pub(crate) const PRIORITY_UPDATE_PUSH: u64 = 0x0f_0701;
}

/// Type and length of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) ty: u64,
    pub(crate) length: u64,
}

/// What a frame is to a reader that knows the frames of RFC 9114 and RFC 9218.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Headers,
    PushPromise,
    /// SETTINGS, GOAWAY and the others that only a control stream carries.
    Control,
    /// PRIORITY, PING, WINDOW_UPDATE and CONTINUATION of HTTP/2. RFC 9114 §7.2.8.
    Http2,
    /// Unknown or reserved: skipped. RFC 9114 §9.
    Unknown,
}

impl FrameHeader {
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match self.ty {
            ty::DATA => Kind::Data,
            ty::HEADERS => Kind::Headers,
            ty::PUSH_PROMISE => Kind::PushPromise,
            ty::CANCEL_PUSH
            | ty::SETTINGS
            | ty::GOAWAY
            | ty::MAX_PUSH_ID
            | ty::PRIORITY_UPDATE_REQUEST
            | ty::PRIORITY_UPDATE_PUSH => Kind::Control,
            0x02 | 0x06 | 0x08 | 0x09 => Kind::Http2,
            _ => Kind::Unknown,
        }
    }
}

/// Reads frame headers from a stream's bytes as they come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeaderReader {
    ty: Option<u64>,
    partial: PartialVarint,
}

impl HeaderReader {
    /// Takes a header off the front of `input`; `None` when the input, then used up, ends before it is complete.
    #[inline]
    pub(crate) fn read(&mut self, input: &mut &[u8]) -> Option<FrameHeader> {
        if self.ty.is_none() && !self.partial.is_begun() {
            let mut reader = Reader::new(input);
            if let (Ok(ty), Ok(length)) = (reader.varint(), reader.varint()) {
                *input = reader.peek();
                return Some(FrameHeader { ty, length });
            }
        }
        self.read_pieces(input)
    }

    #[cold]
    fn read_pieces(&mut self, input: &mut &[u8]) -> Option<FrameHeader> {
        let ty = match self.ty {
            Some(ty) => ty,
            None => *self.ty.insert(self.partial.read(input)?),
        };
        let length = self.partial.read(input)?;
        self.ty = None;
        Some(FrameHeader { ty, length })
    }

    /// Whether a header has begun but is not complete: the stream must not end here.
    pub(crate) fn is_begun(&self) -> bool {
        self.ty.is_some() || self.partial.is_begun()
    }
}

/// Appends a frame header.
pub(crate) fn append_header(out: &mut Vec<u8>, ty: u64, length: u64) {
    varint::append(out, ty);
    varint::append(out, length);
}

/// The payload of a frame that holds one integer: exactly one, RFC 9114 §7.1.
pub(crate) fn single_integer(payload: &[u8]) -> Result<u64, ConnectionError> {
    let mut reader = Reader::new(payload);
    match reader.varint() {
        //= rfc9114/7.1#1
        Ok(value) if reader.is_empty() => Ok(value),
        _ => Err(ConnectionError {
            code: Code::FRAME_ERROR,
            reason: "frame length does not match its content",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However a header is cut, it is read once and whole, and nothing behind it is touched.
        #[test]
        fn headers_in_pieces(ty in 0..=varint::MAX, length in 0..=varint::MAX, shift in 0_u32..62, cuts in proptest::collection::vec(0_usize..20, 0..4)) {
            let header = FrameHeader { ty: ty >> shift, length: length >> shift };
            let mut bytes = Vec::new();
            append_header(&mut bytes, header.ty, header.length);
            let size = bytes.len();
            bytes.extend(b"payload");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut reader = HeaderReader::default();
            let mut start = 0;
            for cut in cuts {
                let mut piece = &bytes[start..cut];
                if let Some(read) = reader.read(&mut piece) {
                    prop_assert_eq!(read, header);
                    prop_assert_eq!(cut - piece.len(), size);
                    prop_assert!(!reader.is_begun());
                    return Ok(());
                }
                prop_assert!(piece.is_empty());
                prop_assert_eq!(reader.is_begun(), cut > 0);
                start = cut;
            }
            prop_assert!(false, "the header was never complete");
        }
    }

    #[test]
    fn frames_of_http2_are_told_from_unknown_ones() {
        for ty in [0x02, 0x06, 0x08, 0x09] {
            assert_eq!(FrameHeader { ty, length: 0 }.kind(), Kind::Http2);
        }
        for ty in [0x0a, 0x0c, 0x21, 0x40, varint::MAX] {
            assert_eq!(FrameHeader { ty, length: 0 }.kind(), Kind::Unknown);
        }
    }

    #[test]
    fn one_integer_is_one_integer() {
        assert_eq!(single_integer(&[0x05]), Ok(5));
        for payload in [&[][..], &[0x40], &[0x05, 0x05]] {
            assert_eq!(single_integer(payload).map_err(|error| error.code), Err(Code::FRAME_ERROR));
        }
    }
}
