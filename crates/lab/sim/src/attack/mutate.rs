//! Changes to datagrams that know nothing of what they change, and some that know the shape of a header.

use base::rng::Rng;

/// Longest datagram made.
const LONGEST: u64 = 1_500;

/// A datagram out of nothing, with or without a first byte that makes sense.
pub(super) fn made_up(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.below(LONGEST) as usize + 1];
    rng.fill(&mut bytes);
    let shape = rng.below(4);
    if let Some(first) = bytes.first_mut() {
        match shape {
            0 => *first |= 0xc0,
            1 => *first = *first & 0x3f | 0x40,
            _ => {}
        }
    }
    if shape == 0 {
        put(&mut bytes, 1, &interesting_version(rng));
    }
    bytes
}

/// `one`, changed one to four times; `other` may lend a part of itself.
pub(super) fn changed(rng: &mut Rng, mut one: Vec<u8>, other: &[u8]) -> Vec<u8> {
    for _ in 0..=rng.below(4) {
        change(rng, &mut one, other);
    }
    if one.is_empty() {
        one.push(rng.below(256) as u8);
    }
    one
}

fn change(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let place = rng.below(bytes.len() as u64) as usize;
    // Most of what is told apart is in front.
    let front = rng.below(bytes.len().min(64) as u64) as usize;
    match rng.below(12) {
        0 | 1 => flip(bytes, place, 1 << rng.below(8)),
        2 | 3 => flip(bytes, front, 1 + rng.below(255) as u8),
        4 => bytes.truncate(place),
        5 => bytes.truncate(front),
        6 => {
            let len = rng.below(200) as usize;
            bytes.extend((0..len).map(|_| rng.below(256) as u8));
        }
        7 => {
            // A second packet in the same datagram.
            let from = rng.below(other.len() as u64 + 1) as usize;
            bytes.extend_from_slice(other.get(from..).unwrap_or(&[]));
        }
        8 => {
            // The head of one, the body of another.
            bytes.truncate(front);
            bytes.extend_from_slice(other.get(front..).unwrap_or(&[]));
        }
        9 => put(bytes, 1, &interesting_version(rng)),
        10 => put(bytes, 5, &[interesting_byte(rng)]),
        _ => put(bytes, front, &[interesting_byte(rng), interesting_byte(rng)]),
    }
    bytes.truncate(65_000);
}

fn flip(bytes: &mut [u8], place: usize, bits: u8) {
    if let Some(byte) = bytes.get_mut(place) {
        *byte ^= bits;
    }
}

fn put(bytes: &mut [u8], place: usize, new: &[u8]) {
    if let Some(room) = bytes.get_mut(place..place + new.len()) {
        room.copy_from_slice(new);
    }
}

/// Lengths of connection IDs and their neighbours, and the ends of what a variable-length integer's first byte says.
fn interesting_byte(rng: &mut Rng) -> u8 {
    const BYTES: [u8; 12] = [0, 1, 7, 8, 20, 21, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff];
    BYTES.get(rng.below(BYTES.len() as u64) as usize).copied().unwrap_or(0)
}

fn interesting_version(rng: &mut Rng) -> [u8; 4] {
    match rng.below(5) {
        0 => [0; 4],
        1 => [0, 0, 0, 1],
        2 => [0x6b, 0x33, 0x43, 0xcf],
        3 => [0x1a, 0x2a, 0x3a, 0x4a],
        _ => rng.bytes(),
    }
}
