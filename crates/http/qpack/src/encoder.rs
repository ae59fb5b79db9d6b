//! Encoding a field section without a dynamic table. RFC 9204 §4.5.
//!
//! The result depends on the lines alone, not on the connection: who sends the same lines again may keep the bytes.

use crate::huffman;
use crate::integer;
use crate::static_table::{self, Index, Match};

/// Appends the encoded field section of `lines` to `out`. Names must be in lower case (RFC 9114 §4.2).
pub fn encode<'a>(lines: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) {
    write_prefix(out);
    for (name, value) in lines {
        write_line(name, value, out);
    }
}

/// Begins an encoded field section: Required Insert Count 0, Base 0. RFC 9204 §4.5.1.
#[inline]
pub fn write_prefix(out: &mut Vec<u8>) {
    //= rfc9204/2.1.1#1
    out.extend_from_slice(&[0, 0]);
}

/// Appends one line to a section that was begun.
#[inline]
pub fn write_line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    debug_assert!(!name.iter().any(u8::is_ascii_uppercase), "field names are in lower case");
    match static_table::find(name, value) {
        Match::Line(index) => integer::write(0b1100_0000, 6, index.as_usize() as u64, out),
        Match::Name(index) => {
            //= rfc9204/7.1.3#1
            let pattern = if is_secret(index) { 0b0111_0000 } else { 0b0101_0000 };
            integer::write(pattern, 4, index.as_usize() as u64, out);
            write_literal(0, 7, value, out);
        }
        Match::None => {
            let pattern = if name == b"proxy-authorization" { 0b0011_0000 } else { 0b0010_0000 };
            write_literal(pattern, 3, name, out);
            write_literal(0, 7, value, out);
        }
    }
}

/// Whether values of this name grant access. No intermediary may put them into a dynamic table, where a third party
/// could find them out byte by byte. RFC 9204 §7.1.3.
fn is_secret(index: Index) -> bool {
    const COOKIE: usize = 5;
    const SET_COOKIE: usize = 14;
    const AUTHORIZATION: usize = 84;
    matches!(index.as_usize(), COOKIE | SET_COOKIE | AUTHORIZATION)
}

/// Appends a string literal, in Huffman code when that is shorter. RFC 9204 §4.1.2.
#[inline]
fn write_literal(pattern: u8, bits: u32, text: &[u8], out: &mut Vec<u8>) {
    let coded = 1_u8 << bits;
    // While the length fits in the prefix, the length comes after the fact: the text is read once, not twice.
    if text.len() < usize::from(coded) {
        let at = out.len();
        out.push(0);
        huffman::encode(text, out);
        let mut size = out.len() - at - 1;
        let mut first = pattern | coded;
        // With an equal size the plain text is the one that is cheaper to read. It also keeps a length of all ones, which
        // would announce a longer integer, from being written here: that one is left to the general way below.
        if size >= text.len() {
            out.truncate(at + 1);
            out.extend_from_slice(text);
            (size, first) = (text.len(), pattern);
        }
        if size < usize::from(coded) - 1 {
            if let Some(place) = out.get_mut(at) {
                *place = first | size as u8;
            }
            return;
        }
        out.truncate(at);
    }
    let size = huffman::encoded_size(text);
    if size < text.len() {
        integer::write(pattern | coded, bits, size as u64, out);
        huffman::encode(text, out);
    } else {
        integer::write(pattern, bits, text.len() as u64, out);
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(lines: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut out);
        out
    }

    /// RFC 9204 §B.1, but that Huffman code is used, as it is shorter: the representation and the index are the RFC's.
    #[test]
    fn a_name_of_the_static_table() {
        let out = encoded(&[(":path", "/index.html")]);
        assert_eq!(out.get(..4), Some(&[0x00, 0x00, 0x51, 0x88][..]));
        let mut text = Vec::new();
        huffman::decode(&out[4..], &mut text).unwrap();
        assert_eq!(text, b"/index.html");
    }

    #[test]
    fn whole_lines_of_the_static_table_take_a_byte_or_two() {
        assert_eq!(encoded(&[(":method", "GET"), (":path", "/")]), [0, 0, 0xd1, 0xc1]);
        assert_eq!(encoded(&[(":status", "100")]), [0, 0, 0xff, 0x00]);
        assert_eq!(encoded(&[("x-frame-options", "sameorigin")]), [0, 0, 0xff, 98 - 63]);
    }

    /// What a third party must not find out carries the N bit.
    #[test]
    fn secrets_are_never_indexed() {
        assert_eq!(encoded(&[("authorization", "x")])[2] & 0b0010_0000, 0b0010_0000);
        assert_eq!(encoded(&[("cookie", "x")])[2] & 0b0010_0000, 0b0010_0000);
        assert_eq!(encoded(&[("proxy-authorization", "x")])[2] & 0b0001_0000, 0b0001_0000);
        assert_eq!(encoded(&[("etag", "x")])[2] & 0b0010_0000, 0);
    }
}
