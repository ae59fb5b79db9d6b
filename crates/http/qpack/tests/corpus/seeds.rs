//! Inputs that reach far into the parsers.

use qpack::encode;

/// Target, name, bytes.
pub(crate) fn all() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let section = |lines: &[(&str, &str)]| {
        let mut out = vec![255, 255];
        encode(lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut out);
        out
    };
    let request = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "www.example.com"),
        (":path", "/a/b?c=d"),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
        ("cookie", "a=b"),
        ("x-own", "\u{1}\u{ff} <>"),
    ];
    // One byte a line: small to send, large to decode.
    let mut bomb = vec![255, 255, 0, 0];
    bomb.extend([0xc0 | 58; 300]);
    // RFC 7541 §C.4.1.
    let code = vec![0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
    vec![
        ("qpack_section", "request", section(&request)),
        ("qpack_section", "response", section(&[(":status", "200"), ("etag", "\"1\""), ("age", "0")])),
        ("qpack_section", "bomb", bomb),
        ("qpack_section", "dynamic", vec![255, 255, 0x03, 0x81, 0x10, 0x11]),
        (
            "qpack_section",
            "endless-length",
            vec![255, 255, 0, 0, 0x51, 0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
        ),
        ("qpack_huffman", "code", code),
        ("qpack_huffman", "long-codes", (0..=255).collect()),
        ("qpack_huffman", "eos", vec![0xff, 0xff, 0xff, 0xff]),
        ("qpack_instructions", "capacity", vec![0x20, 0x20]),
        ("qpack_instructions", "cancellations", vec![0x48, 0x7f, 0x80, 0x01, 0x40]),
        ("qpack_instructions", "endless", vec![0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80]),
    ]
}
