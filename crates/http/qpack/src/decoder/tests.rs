use super::*;
use crate::encoder::encode;
use crate::error::Code;
use proptest::prelude::*;

const WIDE: Limits = Limits { max_field_section_size: 1 << 20, max_lines: 1_000 };

type Lines = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(encoded: &[u8], limits: &Limits) -> Result<Lines, DecodeError> {
    let mut section = FieldSection::new();
    section.decode(encoded, limits)?;
    Ok(section.lines().map(|line| (line.name.to_vec(), line.value.to_vec())).collect())
}

fn fails(encoded: &[u8]) -> bool {
    matches!(decode(encoded, &WIDE), Err(DecodeError::Failed(error)) if error.code == Code::DECOMPRESSION_FAILED)
}

/// RFC 9204 §B.1.
#[test]
fn the_example_of_the_rfc() {
    let mut encoded = vec![0x00, 0x00, 0x51, 0x0b];
    encoded.extend(b"/index.html");
    assert_eq!(decode(&encoded, &WIDE), Ok(vec![(b":path".to_vec(), b"/index.html".to_vec())]));
}

/// RFC 9204 §B.2, §B.4, §B.5 refer to the dynamic table, which we said has no room.
#[test]
fn what_needs_a_dynamic_table_fails() {
    assert!(fails(&[0x03, 0x81, 0x10, 0x11]), "§B.2");
    assert!(fails(&[0x05, 0x00, 0x80, 0xc1, 0x81]), "§B.4");
    for first in [0x80, 0xbf, 0x40, 0x60, 0x10, 0x1f, 0x00, 0x08] {
        assert!(fails(&[0x00, 0x00, first, 0x00, 0x00]), "{first:#x}");
    }
    assert!(fails(&[0x01, 0x00]), "Required Insert Count");
    assert!(fails(&[0x00, 0x80]), "negative Base");
    assert_eq!(decode(&[0x00, 0x7f, 0x05], &WIDE), Ok(vec![]), "any other Base is permitted");
}

#[test]
fn truncated_and_foreign_sections_fail() {
    assert!(fails(&[]));
    assert!(fails(&[0x00]));
    assert!(fails(&[0x00, 0x00, 0xff]), "an index that does not end");
    assert!(fails(&[0x00, 0x00, 0xff, 0x24]), "static index 99");
    assert!(fails(&[0x00, 0x00, 0x5f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]), "a huge index");
    assert!(fails(&[0x00, 0x00, 0x51]), "no value");
    assert!(fails(&[0x00, 0x00, 0x51, 0x03, b'a']), "a short value");
    assert!(fails(&[0x00, 0x00, 0x21, b'a']), "a name without a value");
    assert!(fails(&[0x00, 0x00, 0x51, 0x81, 0xff]), "bad Huffman code");
    let mut endless = vec![0x00, 0x00, 0x51, 0x7f];
    endless.extend([0x80; 30]);
    assert!(fails(&endless), "an endless length");
}

/// CVE-2025-64702, CVE-2026-40898, CVE-2026-44892: a small section must not become large. One byte a line is the worst
/// case: each costs 32 bytes and more of the limit.
#[test]
fn the_limit_counts_decoded_bytes() {
    let mut bomb = vec![0x00, 0x00];
    bomb.extend([0xc0 | 58; 10_000]);
    let limits = Limits { max_field_section_size: 16_384, max_lines: usize::MAX };
    let mut section = FieldSection::new();
    assert_eq!(section.decode(&bomb, &limits), Err(DecodeError::TooLarge));
    assert!(section.size() <= 16_384);
    assert!(section.len() <= 16_384 / 32);

    // The smallest limit that a section fits, and one byte less.
    let mut encoded = Vec::new();
    let lines = [(&b":status"[..], &b"200"[..]), (b"etag", b"\"abc\""), (b"x-name", b"value")];
    encode(lines, &mut encoded);
    let size = lines.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>() as u64;
    assert!(decode(&encoded, &Limits { max_field_section_size: size, max_lines: 3 }).is_ok());
    for (max_field_section_size, max_lines) in [(size - 1, 3), (size, 2), (0, 0), (31, 9)] {
        let limits = Limits { max_field_section_size, max_lines };
        assert_eq!(decode(&encoded, &limits), Err(DecodeError::TooLarge));
    }
}

/// CVE-2026-100661: the announced length alone decides; nothing is allocated or waited for.
#[test]
fn a_literal_longer_than_the_limit_is_refused_by_its_length() {
    let limits = Limits { max_field_section_size: 1_000, max_lines: 10 };
    assert_eq!(decode(&[0x00, 0x00, 0x51, 0x7f, 0xff, 0xff, 0x7f], &limits), Err(DecodeError::TooLarge));
    assert_eq!(decode(&[0x00, 0x00, 0x27, 0xff, 0xff, 0x7f], &limits), Err(DecodeError::TooLarge));
}

#[test]
fn the_sections_memory_is_reused_and_given_back() {
    let mut section = FieldSection::new();
    let large = vec![b'!'; 100_000];
    let mut encoded = Vec::new();
    encode([(&b"x"[..], &large[..])], &mut encoded);
    section.decode(&encoded, &WIDE).unwrap();
    assert_eq!(section.line_at(0).map(|line| line.value), Some(&large[..]));
    section.clear();
    assert!(section.text_mut().capacity() <= 16 * 1024);
}

#[test]
fn lines_say_how_they_were_sent() {
    let mut encoded = Vec::new();
    encode([(&b":method"[..], &b"GET"[..]), (b"cookie", b"a=b"), (b"x-y", b"z")], &mut encoded);
    let mut section = FieldSection::new();
    section.decode(&encoded, &WIDE).unwrap();
    let lines: Vec<_> =
        section.lines().map(|line| (line.static_name.map(Index::as_usize), line.never_indexed)).collect();
    assert_eq!(lines, [(Some(17), false), (Some(5), true), (None, false)]);
}

proptest! {
    #[test]
    fn sections_survive(
        lines in proptest::collection::vec(("[a-z0-9:_-]{0,30}", proptest::collection::vec(any::<u8>(), 0..300)), 0..20)
    ) {
        let mut encoded = Vec::new();
        encode(lines.iter().map(|(name, value)| (name.as_bytes(), &value[..])), &mut encoded);
        let expected: Vec<_> = lines.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
        prop_assert_eq!(decode(&encoded, &WIDE), Ok(expected));
        for end in 0..encoded.len() {
            let _ = decode(&encoded[..end], &WIDE);
        }
    }

    /// Any bytes are decoded or refused, and the limit holds.
    #[test]
    fn any_bytes_are_handled(mut bytes: Vec<u8>, prefixed: bool, size in 0_u64..2_000) {
        if prefixed {
            bytes.splice(0..0, [0, 0]);
        }
        let limits = Limits { max_field_section_size: size, max_lines: 20 };
        let mut section = FieldSection::new();
        let outcome = section.decode(&bytes, &limits);
        prop_assert!(section.size() <= size && section.len() <= 20);
        if outcome.is_ok() {
            // What was understood can be said again and means the same.
            let lines: Vec<_> = section.lines().map(|line| (line.name.to_ascii_lowercase(), line.value.to_vec())).collect();
            let mut again = Vec::new();
            encode(lines.iter().map(|(name, value)| (&name[..], &value[..])), &mut again);
            prop_assert_eq!(decode(&again, &WIDE), Ok(lines));
        }
    }
}
