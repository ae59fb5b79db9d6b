//! What a typical request and response section cost to encode and decode, in nanoseconds. `cargo bench -p tercel-qpack`.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use qpack::{FieldSection, Limits, encode};
use std::hint::black_box;
use std::time::Instant;

const REQUEST: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "www.example.com"),
    (":path", "/assets/app.3f9c2b.js"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    ("accept", "*/*"),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br"),
    ("referer", "https://www.example.com/"),
    ("sec-fetch-dest", "script"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-site", "same-origin"),
];

const RESPONSE: &[(&str, &str)] = &[
    (":status", "200"),
    ("content-type", "application/javascript"),
    ("content-length", "48213"),
    ("accept-ranges", "bytes"),
    ("etag", "\"18f3a2c4d5e6-bc55\""),
    ("last-modified", "Mon, 12 Oct 2026 08:30:12 GMT"),
    ("date", "Sat, 21 Nov 2026 10:20:30 GMT"),
    ("server", "tercel"),
];

const SMALL_REQUEST: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "https"), (":authority", "localhost:4433"), (":path", "/small.html")];

/// The median of several rounds, in nanoseconds a call.
fn measure(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 20_000;
    let mut rounds: Vec<f64> = (0..25)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call());
            start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied().unwrap_or(0.0)
}

fn main() {
    let limits = Limits { max_field_section_size: 65_536, max_lines: 256 };
    for (name, lines) in [("request", REQUEST), ("small request", SMALL_REQUEST), ("response", RESPONSE)] {
        let mut encoded = Vec::new();
        let encoding = measure(|| {
            encoded.clear();
            encode(
                black_box(lines).iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())),
                &mut encoded,
            );
        });
        let mut section = FieldSection::new();
        let decoding = measure(|| {
            let outcome = section.decode(black_box(&encoded), &limits);
            assert!(outcome.is_ok(), "{outcome:?}");
        });
        println!(
            "{name:14} {:2} lines, {:4} bytes, {:3} encoded: encode {encoding:5.0} ns, decode {decoding:5.0} ns",
            lines.len(),
            section.size() - 32 * lines.len() as u64,
            encoded.len(),
        );
    }
}
