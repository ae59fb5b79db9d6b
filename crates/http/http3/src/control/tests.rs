//! The control stream as a table: which frames, from whom, when. RFC 9114 §6.2.1, §7.2.

use super::*;
use crate::testing::{concat, frame};
use proptest::prelude::*;

/// Everything that a peer's control stream says, or the code of the error it ends in.
fn read(peer: Side, bytes: &[u8]) -> Result<Vec<ControlFrame>, Code> {
    let mut stream = ControlStream::new(peer);
    let mut input = bytes;
    let mut frames = Vec::new();
    while let Some(frame) = stream.next_frame(&mut input, None).map_err(|error| error.code)? {
        frames.push(frame);
    }
    assert!(input.is_empty());
    Ok(frames)
}

fn integer(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint::append(&mut out, value);
    out
}

#[test]
fn streams_of_frames() {
    let settings = frame(0x04, &[]);
    let goaway = |id: u64| frame(0x07, &integer(id));
    let max_push = |id: u64| frame(0x0d, &integer(id));
    let update = |id: u64, text: &[u8]| frame(0x0f_0700, &concat(&[&integer(id), text]));
    let after = |frames: &[&[u8]]| concat(&[&settings, &frames.concat()]);
    use Side::{Client, Server};
    let ok = [
        (Client, after(&[])),
        (Client, after(&[&frame(0x21, b"xyz"), &frame(0x0c, b"")])),
        (Client, after(&[&goaway(7), &goaway(7), &goaway(0)])),
        (Server, after(&[&goaway(varint::MAX - 3), &goaway(8), &goaway(8)])),
        (Client, after(&[&max_push(0), &max_push(5), &max_push(5)])),
        (Client, after(&[&update(0, b"u=1"), &update(400, b"\xff\xff")])),
    ];
    for (peer, bytes) in ok {
        assert!(read(peer, &bytes).is_ok(), "{peer:?} {bytes:x?}");
    }
    let bad = [
        (Client, frame(0x21, b""), Code::MISSING_SETTINGS),
        (Client, goaway(0), Code::MISSING_SETTINGS),
        (Client, frame(0x00, b""), Code::MISSING_SETTINGS),
        (Client, after(&[&settings]), Code::FRAME_UNEXPECTED),
        (Client, after(&[&frame(0x00, b"a")]), Code::FRAME_UNEXPECTED),
        (Client, after(&[&frame(0x01, b"a")]), Code::FRAME_UNEXPECTED),
        (Client, after(&[&frame(0x05, b"a")]), Code::FRAME_UNEXPECTED),
        (Server, after(&[&frame(0x05, b"a")]), Code::FRAME_UNEXPECTED),
        (Client, after(&[&frame(0x02, b"")]), Code::FRAME_UNEXPECTED),
        (Client, after(&[&frame(0x06, b"")]), Code::FRAME_UNEXPECTED),
        (Client, after(&[&frame(0x08, b"")]), Code::FRAME_UNEXPECTED),
        (Client, after(&[&frame(0x09, b"")]), Code::FRAME_UNEXPECTED),
        (Client, after(&[&goaway(4), &goaway(8)]), Code::ID_ERROR),
        (Server, after(&[&goaway(4), &goaway(8)]), Code::ID_ERROR),
        (Server, after(&[&goaway(1)]), Code::ID_ERROR),
        (Server, after(&[&goaway(2)]), Code::ID_ERROR),
        (Server, after(&[&goaway(7)]), Code::ID_ERROR),
        (Client, after(&[&frame(0x07, b"")]), Code::FRAME_ERROR),
        (Client, after(&[&frame(0x07, &[0, 0])]), Code::FRAME_ERROR),
        (Client, after(&[&frame(0x07, &[0; 9])]), Code::FRAME_ERROR),
        (Client, after(&[&frame(0x07, &[0x40])]), Code::FRAME_ERROR),
        (Client, after(&[&max_push(5), &max_push(4)]), Code::ID_ERROR),
        (Server, after(&[&max_push(5)]), Code::FRAME_UNEXPECTED),
        (Client, after(&[&frame(0x03, &[0])]), Code::ID_ERROR),
        (Server, after(&[&frame(0x03, &[0])]), Code::ID_ERROR),
        (Client, after(&[&frame(0x03, &[])]), Code::FRAME_ERROR),
        (Client, after(&[&update(1, b"u=1")]), Code::ID_ERROR),
        (Client, after(&[&frame(0x0f_0700, b"")]), Code::FRAME_ERROR),
        (Client, after(&[&update(0, &[b'u'; 300])]), Code::EXCESSIVE_LOAD),
        (Client, after(&[&frame(0x0f_0701, &[0])]), Code::ID_ERROR),
        (Server, after(&[&update(0, b"u=1")]), Code::FRAME_UNEXPECTED),
        (Client, frame(0x04, &[0x06]), Code::FRAME_ERROR),
        (Client, frame(0x04, &[0x02, 0x00]), Code::SETTINGS_ERROR),
        (Client, frame(0x04, &[0; 2_000]), Code::EXCESSIVE_LOAD),
    ];
    for (peer, bytes, code) in bad {
        assert_eq!(read(peer, &bytes), Err(code), "{peer:?} {:x?}", &bytes[..bytes.len().min(40)]);
    }
}

/// A length that is announced and never sent must not be waited for in memory.
#[test]
fn huge_lengths_cost_nothing() {
    let mut stream = ControlStream::new(Side::Client);
    let mut bytes = frame(0x04, &[]);
    crate::frame::append_header(&mut bytes, 0x21, varint::MAX);
    let mut input = &bytes[..];
    while stream.next_frame(&mut input, None).unwrap().is_some() {}
    for _ in 0..1_000 {
        let mut input = &[0; 1_000][..];
        assert_eq!(stream.next_frame(&mut input, None), Ok(None));
    }
    assert_eq!(stream.partial.as_ref().map(|partial| partial.payload.capacity()), Some(0));
}

proptest! {
    /// Any bytes, cut anywhere, say the same as in one piece.
    #[test]
    fn cuts_do_not_matter(
        frames in proptest::collection::vec((prop_oneof![0_u64..16, Just(0x21), Just(0x0f_0700)], proptest::collection::vec(any::<u8>(), 0..12)), 0..6),
        tail: Vec<u8>,
        client: bool,
    ) {
        let peer = if client { Side::Client } else { Side::Server };
        let mut bytes = frame(0x04, &[]);
        frames.iter().for_each(|(ty, payload)| bytes.extend(frame(*ty, payload)));
        bytes.extend(tail);
        let whole = read(peer, &bytes);
        let mut stream = ControlStream::new(peer);
        let mut pieces = Vec::new();
        let mut error = None;
        'bytes: for byte in &bytes {
            let mut input = &[*byte][..];
            loop {
                match stream.next_frame(&mut input, None) {
                    Ok(Some(frame)) => pieces.push(frame),
                    Ok(None) => break,
                    Err(found) => {
                        error = Some(found.code);
                        break 'bytes;
                    }
                }
            }
        }
        prop_assert_eq!(whole, error.map_or(Ok(pieces), Err));
        prop_assert!(stream.partial.as_ref().is_none_or(|partial| partial.payload.len() <= 1_024));
    }
}
