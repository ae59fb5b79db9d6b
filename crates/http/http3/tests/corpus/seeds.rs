//! Inputs that reach far into the state machines.

use qpack::encode;

/// Target, name, bytes.
pub(crate) fn all() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let server = |steps: &[Vec<u8>]| [&[0][..], &steps.concat()].concat();
    let client = |steps: &[Vec<u8>]| [&[1][..], &steps.concat()].concat();
    let settings = data(OPEN, uni(0), &[0x00, 0x04, 0x04, 0x06, 0x44, 0x00, 0x21]);
    let get = headers(&request("GET"));
    let post = headers(&[&request("POST")[..], &[("content-length", "3")]].concat());
    let ok = headers(&[(":status", "200"), ("content-length", "2")]);
    let early = headers(&[(":status", "103"), ("link", "</a>")]);
    let trailers = headers(&[("x-sum", "1")]);
    let target = "http3_connection";
    vec![
        (target, "get", server(&[settings.clone(), data(END, bidi(0), &get)])),
        (
            target,
            "post",
            server(&[
                data(OPEN, bidi(0), &[&post[..], &[0x00, 0x03, b'a']].concat()),
                data(OPEN, bidi(0), b"b"),
                data(END, bidi(0), &[&b"c"[..], &[0x21, 0x01, 0xff], &trailers].concat()),
            ]),
        ),
        (target, "short", server(&[data(END, bidi(0), &post)])),
        (
            target,
            "critical",
            server(&[
                settings.clone(),
                data(OPEN, uni(1), &[0x02, 0x20]),
                data(OPEN, uni(2), &[0x40, 0x03, 0x48]),
                data(OPEN, uni(3), &[0x21, 1, 2]),
                data(OPEN, uni(0), &[0x07, 0x01, 0x00, 0x0d, 0x01, 0x05]),
                data(OPEN, uni(4), &[0x00]),
            ]),
        ),
        (
            target,
            "withdrawn",
            server(&[
                data(OPEN, bidi(2), &get),
                vec![7, bidi(2), 12],
                vec![6, bidi(1), 12],
                vec![7, uni(5), 0],
            ]),
        ),
        (target, "bomb", server(&[data(END, bidi(0), &bomb())])),
        (
            target,
            "responses",
            client(&[
                settings,
                data(OPEN, bidi(0), &early),
                data(END, bidi(0), &[&ok[..], &[0x00, 0x02, b'o', b'k']].concat()),
                data(OPEN, bidi(1), &ok),
                data(OPEN, uni(0), &[0x07, 0x01, 0x08]),
                data(OPEN, bidi(1), &[0x05, 0x01, 0x00]),
            ]),
        ),
    ]
}

const OPEN: u8 = 0;
const END: u8 = 4;

fn bidi(index: u8) -> u8 {
    index << 1
}

fn uni(index: u8) -> u8 {
    index << 1 | 1
}

fn data(what: u8, which: u8, bytes: &[u8]) -> Vec<u8> {
    [&[what, which, bytes.len() as u8][..], bytes].concat()
}

fn request(method: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![(":method", method), (":scheme", "https"), (":authority", "a.example"), (":path", "/")]
}

fn headers(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    encode(lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut section);
    [&[0x01, section.len() as u8][..], &section].concat()
}

/// One byte a line: small to send, large to decode.
fn bomb() -> Vec<u8> {
    let mut frame = vec![0x01, 0x40, 0xd2, 0x00, 0x00];
    frame.extend([0xc0 | 58; 208]);
    frame
}
