use super::*;
use proptest::prelude::*;

fn decoded(bytes: &[u8]) -> Result<Vec<u8>, InvalidHuffman> {
    let mut out = Vec::new();
    decode(bytes, &mut out).map(|()| out)
}

fn encoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(text, &mut out);
    out
}

/// RFC 7541 §C.4 and §C.6: the strings of the examples.
#[test]
fn the_examples_of_rfc_7541() {
    let examples: [(&str, &[u8]); 9] = [
        ("www.example.com", &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]),
        ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
        ("custom-key", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f]),
        ("custom-value", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf]),
        ("302", &[0x64, 0x02]),
        ("307", &[0x64, 0x0e, 0xff]),
        ("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
        (
            "Mon, 21 Oct 2013 20:13:21 GMT",
            &[
                0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81,
                0x66, 0xe0, 0x82, 0xa6, 0x2d, 0x1b, 0xff,
            ],
        ),
        (
            "https://www.example.com",
            &[
                0x9d, 0x29, 0xad, 0x17, 0x18, 0x63, 0xc7, 0x8f, 0x0b, 0x97, 0xc8, 0xe9, 0xae, 0x82, 0xae,
                0x43, 0xd3,
            ],
        ),
    ];
    for (text, bytes) in examples {
        assert_eq!(encoded(text.as_bytes()), bytes, "{text}");
        assert_eq!(decoded(bytes).as_deref(), Ok(text.as_bytes()));
        assert_eq!(encoded_size(text.as_bytes()), bytes.len());
    }
}

/// RFC 7541 §5.2: padding is fewer than 8 bits, all ones; EOS never appears.
#[test]
fn wrong_ends_are_refused() {
    assert_eq!(decoded(&[]), Ok(vec![]));
    assert_eq!(decoded(&[0xff]), Err(InvalidHuffman), "eight bits of padding");
    assert_eq!(decoded(&[0x1f]), Ok(b"a".to_vec()));
    assert_eq!(decoded(&[0x1f, 0xff]), Err(InvalidHuffman), "padding of a whole byte and more");
    assert_eq!(decoded(&[0x18]), Err(InvalidHuffman), "padding of zeros");
    assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc]), Err(InvalidHuffman), "EOS");
    assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), Err(InvalidHuffman), "EOS and padding");
    assert_eq!(decoded(&[0xff, 0xc7]), Ok(vec![0]), "13 bits of a code, then 3 of padding");
    assert_eq!(decoded(&[0xff, 0xc3]), Err(InvalidHuffman), "the same, but not padded with ones");
}

/// Every symbol on its own, after every shift that a preceding text can cause.
#[test]
fn every_byte_at_every_bit_offset() {
    for byte in 0..=255_u8 {
        for before in 0..9 {
            let mut text = vec![b'0'; before];
            text.push(byte);
            text.extend([b'z'; 3]);
            assert_eq!(decoded(&encoded(&text)), Ok(text));
        }
    }
}

/// The decoded size is limited, not the encoded one: what fits exactly passes, one byte more does not.
#[test]
fn the_limit_counts_decoded_bytes() {
    for text in [&b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"[..], b"\x01\x02\x03\x04\x05\x06\x07\x08"] {
        let bytes = encoded(text);
        let mut out = b"before".to_vec();
        assert_eq!(decode_within(&bytes, &mut out, text.len()), Ok(()));
        assert_eq!(out.strip_prefix(b"before"), Some(text));
        for limit in 0..text.len() {
            let mut out = Vec::new();
            assert_eq!(decode_within(&bytes, &mut out, limit), Err(Refused::TooLarge), "{limit}");
            assert!(out.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn any_text_survives(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = encoded(&text);
        prop_assert_eq!(bytes.len(), encoded_size(&text));
        prop_assert_eq!(decoded(&bytes), Ok(text));
    }

    #[test]
    fn printable_text_survives(text in "[ -~]{0,300}") {
        prop_assert_eq!(decoded(&encoded(text.as_bytes())), Ok(text.into_bytes()));
    }

    /// Any bytes decode or are refused; what decodes is the encoding of what came out (the code is unambiguous).
    #[test]
    fn any_bytes_are_handled(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(text) = decoded(&bytes) {
            prop_assert_eq!(encoded(&text), bytes);
        }
    }
}
