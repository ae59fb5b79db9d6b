//! Requests of HTTP/1.1 and HTTP/2 byte by byte, for heads that no client library would send.

use crate::message::Answer;
use crate::tcp;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};

/// Types of HTTP/2 frames. RFC 9113 §6.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 0x1;
/// END_STREAM and END_HEADERS.
const WHOLE: u8 = 0x5;

/// Sends `head` as it is over HTTP/1.1, and reads one answer.
pub(crate) async fn http1(port: u16, head: &[u8]) -> Answer {
    let mut stream = BufReader::new(tcp::connect(port, "http/1.1").await);
    stream.write_all(head).await.expect("sent");
    tcp::read_answer(&mut stream, "GET").await
}

/// Sends a request with these lines over HTTP/2. Returns its status, or the code with which it was reset, as an error.
pub(crate) async fn http2(port: u16, lines: &[(Vec<u8>, Vec<u8>)]) -> Result<u16, u32> {
    let mut stream = tcp::connect(port, "h2").await;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frame(&mut bytes, (SETTINGS, 0, 0), &[]);
    frame(&mut bytes, (HEADERS, WHOLE, 1), &section(lines));
    stream.write_all(&bytes).await.expect("sent");
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await.expect("a frame");
        let [high, middle, low, kind, ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        stream.read_exact(&mut payload).await.expect("its payload");
        let code = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four bytes"));
        match kind {
            HEADERS => return Ok(status(&payload)),
            RST_STREAM => return Err(code(0)),
            GOAWAY => return Err(code(4)),
            _ => {}
        }
    }
}

/// Asks for `path`, with content of `size` bytes, over HTTP/2 with room for all of it, calls `then` when the first of it has come, and
/// reads the last of it slowly, with a frame after each pause as if credit was given. Returns how much came.
pub(crate) async fn http2_slowly(port: u16, (path, size): (&str, usize), then: impl FnOnce()) -> usize {
    const PAUSE: Duration = Duration::from_secs(1);
    const STEP: usize = 1_000_000;
    // More than the sockets hold.
    let slow_from = size.saturating_sub(14_000_000);
    let mut stream = tcp::connect(port, "h2").await;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let line = |name: &str, value: &str| (name.into(), value.into());
    let lines = [
        line(":method", "GET"),
        line(":scheme", "https"),
        line(":authority", "localhost"),
        line(":path", path),
    ];
    // SETTINGS_INITIAL_WINDOW_SIZE.
    let window = [&4_u16.to_be_bytes()[..], &0x7fff_ffff_u32.to_be_bytes()].concat();
    frame(&mut bytes, (SETTINGS, 0, 0), &window);
    frame(&mut bytes, (WINDOW_UPDATE, 0, 0), &0x4000_0000_u32.to_be_bytes());
    frame(&mut bytes, (HEADERS, WHOLE, 1), &section(&lines));
    stream.write_all(&bytes).await.expect("sent");
    let (mut then, mut received, mut paused_at) = (Some(then), 0, 0);
    while received < size {
        let mut header = [0; 9];
        if stream.read_exact(&mut header).await.is_err() {
            break;
        }
        let [high, middle, low, kind, flags, ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        if stream.read_exact(&mut payload).await.is_err() {
            break;
        }
        let mut answer = Vec::new();
        match kind {
            DATA => received += payload.len(),
            PING if flags & ACK == 0 => frame(&mut answer, (PING, ACK, 0), &payload),
            _ => {}
        }
        if received > 0
            && let Some(then) = then.take()
        {
            then();
        }
        if received > slow_from && received >= paused_at + STEP {
            paused_at = received;
            tokio::time::sleep(PAUSE).await;
            frame(&mut answer, (WINDOW_UPDATE, 0, 0), &1_u32.to_be_bytes());
        }
        if stream.write_all(&answer).await.is_err() {
            break;
        }
    }
    received
}

fn frame(out: &mut Vec<u8>, (kind, flags, stream): (u8, u8, u32), payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// RFC 7541 §6.2.2: literals without indexing, spelled out.
fn section(lines: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut section = Vec::new();
    for (name, value) in lines {
        section.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "one byte of length");
            section.push(text.len() as u8);
            section.extend_from_slice(text);
        }
    }
    section
}

/// The status of an answer: its first line, from the static table or a literal with a Huffman code. RFC 7541 §6, §B.
fn status(section: &[u8]) -> u16 {
    const KNOWN: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    match section {
        [index @ 0x88..=0x8e, ..] => KNOWN[usize::from(index - 0x88)],
        [0x08 | 0x48, length, text @ ..] => {
            let text = &text[..usize::from(length & 0x7f)];
            if length & 0x80 == 0 {
                return std::str::from_utf8(text).expect("digits").parse().expect("digits");
            }
            let mut bits =
                text.iter().flat_map(|byte| (0..8).rev().map(move |bit| u16::from(byte >> bit & 1)));
            let mut take = |count: usize| bits.by_ref().take(count).fold(0, |sum, bit| 2 * sum + bit);
            let mut digit = || match take(5) {
                small @ 0..=2 => small,
                high => (2 * high + take(1)) - 22,
            };
            let (hundreds, tens, ones) = (digit(), digit(), digit());
            100 * hundreds + 10 * tens + ones
        }
        // No status first, which no test expects.
        _ => 0,
    }
}
