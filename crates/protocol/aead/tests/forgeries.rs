//! What is not authentic does not open, and nothing of it is released.

mod common;

use aead::{Instructions, Key, MAX_PACKET_LEN, OpenError, TAG_LEN};
use common::{Random, kernels};

const HEADER_LEN: usize = 11;
const SIZE: usize = if cfg!(miri) { 100 } else { 1_452 };
const COUNT: usize = if cfg!(miri) { 3 } else { 44 };

fn nonce(at: usize) -> [u8; 12] {
    let mut nonce = [3; 12];
    nonce[11] = at as u8;
    nonce
}

/// A packet that is damaged, at each position of a train: that one fails, its payload is zero, its header and tag are untouched, and
/// all others open.
#[test]
fn at_each_position_of_a_train() {
    let mut plain = vec![0; COUNT * SIZE];
    Random::new(7).fill(&mut plain);
    let keys = kernels(&[9; 16]);
    for key in &keys {
        let mut sealed = plain.clone();
        for (at, packet) in sealed.chunks_mut(SIZE).enumerate() {
            key.seal(nonce(at), packet, HEADER_LEN);
        }
        for forged in 0..COUNT {
            let mut train = sealed.clone();
            let bit = forged * 131 % SIZE;
            train[forged * SIZE + bit] ^= 0x10;
            let damaged = train[forged * SIZE..][..SIZE].to_vec();
            for (at, packet) in train.chunks_mut(SIZE).enumerate() {
                let opened = key.open(nonce(at), packet, HEADER_LEN);
                let payload = HEADER_LEN..SIZE - TAG_LEN;
                if at == forged {
                    assert_eq!(opened, Err(OpenError), "{key:?}");
                    assert_eq!(
                        packet[payload.clone()],
                        vec![0; payload.len()],
                        "{key:?}: the payload is wiped"
                    );
                    assert_eq!(packet[..HEADER_LEN], damaged[..HEADER_LEN], "{key:?}: the header stays");
                    assert_eq!(packet[payload.end..], damaged[payload.end..], "{key:?}: the tag stays");
                } else {
                    assert_eq!(opened, Ok(payload.len()), "{key:?}");
                    assert_eq!(packet[payload.clone()], plain[at * SIZE..][payload], "{key:?}");
                }
            }
        }
    }
    assert_eq!(keys.is_empty(), Instructions::fastest().is_none());
}

/// Each bit of a packet, and of its nonce, counts.
#[test]
fn each_bit_counts() {
    let len = if cfg!(miri) { 40 } else { 333 };
    let keys = kernels(&[1; 32]);
    for key in &keys {
        let mut sealed = vec![0x5a; len];
        key.seal(nonce(0), &mut sealed, HEADER_LEN);
        let step = if cfg!(miri) { 37 } else { 1 };
        for bit in (0..len * 8).step_by(step) {
            let mut packet = sealed.clone();
            packet[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open(nonce(0), &mut packet, HEADER_LEN), Err(OpenError), "{key:?}: bit {bit}");
        }
        for bit in (0..96).step_by(step) {
            let mut nonce = nonce(0);
            nonce[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                key.open(nonce, &mut sealed.clone(), HEADER_LEN),
                Err(OpenError),
                "{key:?}: bit {bit}"
            );
        }
        assert_eq!(key.open(nonce(0), &mut sealed, HEADER_LEN), Ok(len - HEADER_LEN - TAG_LEN), "{key:?}");
    }
    assert_eq!(keys.is_empty(), Instructions::fastest().is_none());
}

/// What is too short or too long for a packet is refused as it is.
#[test]
fn impossible_lengths() {
    let keys = kernels(&[1; 16]);
    for key in &keys {
        for len in 0..HEADER_LEN + TAG_LEN {
            let mut packet = vec![7; len];
            assert_eq!(key.open(nonce(0), &mut packet, HEADER_LEN), Err(OpenError), "{key:?}: {len}");
            assert_eq!(packet, vec![7; len], "{key:?}");
        }
        let mut packet = vec![7; MAX_PACKET_LEN + 1];
        assert_eq!(key.open(nonce(0), &mut packet, HEADER_LEN), Err(OpenError), "{key:?}");
        assert_eq!(key.open(nonce(0), &mut packet[..40], usize::MAX), Err(OpenError), "{key:?}");
        if !cfg!(miri) {
            key.seal(nonce(0), &mut packet[1..], HEADER_LEN);
            assert!(key.open(nonce(0), &mut packet[1..], HEADER_LEN).is_ok(), "{key:?}: the longest");
        }
    }
    assert_eq!(keys.is_empty(), Instructions::fastest().is_none());
}

/// Keys have 16 or 32 bytes, and exist for instructions that the CPU has.
#[test]
fn keys_that_do_not_exist() {
    for len in [0, 15, 17, 24, 31, 33] {
        assert!(Key::new(&vec![1; len]).is_none(), "{len}");
    }
    for instructions in Instructions::ALL {
        let key = Key::with_instructions(instructions, &[1; 16]);
        assert_eq!(key.is_some(), instructions.are_available(), "{instructions:?}");
    }
}
