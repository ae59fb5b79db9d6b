//! One function per fuzz target: any bytes in, an assertion fails if the crate breaks a promise. Not part of the API.
//!
//! The fuzzer (`fuzz/`) and the ordinary test run, which replays `fuzz/corpus/` and changes it, call the same functions.

use crate::decoder::Limits;
use crate::encoder::encode;
use crate::huffman;
use crate::instructions::{DecoderStream, EncoderStream};
use crate::section::FieldSection;

/// A fuzz target: its name, which is also that of its corpus folder, and its harness.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] =
    &[("qpack_section", section), ("qpack_huffman", huffman), ("qpack_instructions", instructions)];

/// An encoded field section. The first two bytes are the limits.
pub fn section(bytes: &[u8]) {
    let Some((&[size, lines], encoded)) = bytes.split_first_chunk::<2>() else { return };
    let limits = Limits { max_field_section_size: u64::from(size) * 64, max_lines: usize::from(lines) };
    let mut section = FieldSection::new();
    let outcome = section.decode(encoded, &limits);
    assert!(section.size() <= limits.max_field_section_size && section.len() <= limits.max_lines);
    if outcome.is_err() {
        return;
    }
    // What was understood can be said again and means the same. Our own encoder insists on lower case.
    let names: Vec<Vec<u8>> = section.lines().map(|line| line.name.to_ascii_lowercase()).collect();
    let values = section.lines().map(|line| line.value);
    let mut again = Vec::new();
    encode(names.iter().map(Vec::as_slice).zip(values), &mut again);
    let mut other = FieldSection::new();
    assert_eq!(other.decode(&again, &limits), Ok(()));
    assert_eq!(other.len(), section.len());
    for (one, other) in section.lines().zip(other.lines()) {
        assert!(one.name.eq_ignore_ascii_case(other.name) && one.value == other.value);
    }
}

/// Bytes as Huffman code, and as text.
pub fn huffman(bytes: &[u8]) {
    let mut text = Vec::new();
    if huffman::decode(bytes, &mut text).is_ok() {
        let mut again = Vec::new();
        huffman::encode(&text, &mut again);
        assert_eq!(again, bytes, "two codes for one text");
    }
    let (mut coded, mut text) = (Vec::new(), Vec::new());
    huffman::encode(bytes, &mut coded);
    assert_eq!(coded.len(), huffman::encoded_size(bytes));
    assert_eq!(huffman::decode(&coded, &mut text), Ok(()));
    assert_eq!(text, bytes);
}

/// Both QPACK streams, in one piece and byte by byte.
pub fn instructions(bytes: &[u8]) {
    let whole = EncoderStream::new().on_bytes(bytes);
    let mut stream = EncoderStream::new();
    assert_eq!(whole, bytes.chunks(1).map(|byte| stream.on_bytes(byte)).sum());
    let whole = DecoderStream::new().on_bytes(bytes);
    let mut stream = DecoderStream::new();
    assert_eq!(whole, bytes.chunks(1).map(|byte| stream.on_bytes(byte)).sum());
}
