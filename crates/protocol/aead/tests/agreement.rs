//! The kernel says the same as libraries, for all lengths and alignments, and for random packets.

#![cfg(not(miri))]

mod common;

use aead::{Instructions, Key, TAG_LEN};
use common::{Random, check, kernels, libraries, split};
use std::time::{Duration, Instant};

const LONGEST: usize = 16_384;

/// Every length of payload up to 16 KiB, each at another of 64 alignments, and lengths around those of vectors and chunks at all of
/// them. Headers have each length up to 40.
#[test]
fn every_length_and_alignment() {
    let mut random = Random::new(1);
    let mut memory = vec![0; LONGEST + 64 + 64 + TAG_LEN + 64];
    let mut compared = 0;
    for key_len in [16, 32] {
        let key = &random.bytes::<32>()[..key_len];
        let (kernels, [aws_lc, _]) = (kernels(key), libraries::of(key));
        let ends = |len: usize| len.abs_diff((len + 32) / 64 * 64) <= 1;
        for len in 0..=LONGEST {
            let all = len <= 80 || (len <= 1_600 && ends(len));
            let alignments = if all { 0..64 } else { len % 64..len % 64 + 1 };
            for alignment in alignments {
                let header_len = (len + alignment) % 41;
                let mut plain = vec![0; header_len + len + TAG_LEN];
                random.fill(&mut plain);
                let nonce = random.bytes();
                let mut sealed = plain.clone();
                aws_lc.seal(nonce, &mut sealed, header_len);
                // Memory of a vector is aligned to 16 bytes at least; what matters is that all alignments come.
                let start = memory.as_ptr().align_offset(64) + alignment;
                for key in &kernels {
                    check(key, nonce, (&plain, &sealed), header_len, (&mut memory, start));
                    compared += 1;
                }
            }
        }
    }
    assert!(Instructions::fastest().is_none() || compared > 2 * LONGEST, "{compared} packets were compared");
}

/// Random trains of random packets by random instructions, half of them with payloads that are partly elsewhere: equal to one library or the other, and each packet with a flipped bit is
/// refused. `AEAD_PACKETS` is how many, a million if it is not set; `AEAD_SEED` the first seed.
#[test]
fn random_trains() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let most = number("AEAD_PACKETS").unwrap_or(1_000_000);
    let mut random = Random::new(number("AEAD_SEED").unwrap_or(2));
    let mut compared = 0;
    let begin = now();
    while compared < most && Instructions::fastest().is_some() {
        compared += random_train(&mut random);
        if number("AEAD_PACKETS").is_none() && begin.elapsed() > Duration::from_secs(90) {
            println!("after 90 s only {compared} packets were compared: this machine is slow");
            break;
        }
    }
    assert!(compared > 10_000 || Instructions::fastest().is_none(), "{compared} packets were compared");
}

#[expect(clippy::disallowed_methods, reason = "a test that is bounded in time")]
fn now() -> Instant {
    Instant::now()
}

/// Seals a packet whose payload goes on elsewhere from some byte on, where the packet has something else.
fn seal_with(key: &Key, nonce: [u8; 12], packet: &mut [u8], header_len: usize, random: &mut Random) {
    let end = packet.len() - TAG_LEN;
    let start = header_len + split(random.bytes(), end - header_len);
    let rest = packet[start..end].to_vec();
    random.fill(&mut packet[start..end]);
    key.seal_with(nonce, packet, header_len, &rest);
}

fn random_train(random: &mut Random) -> u64 {
    let key_len = [16, 32][random.below(2)];
    let key = &random.bytes::<32>()[..key_len];
    let kernels = kernels(key);
    let kernel = &kernels[random.below(kernels.len())];
    let [aws_lc, ring] = libraries::of(key);
    let reference = if random.below(4) == 0 { ring } else { aws_lc };
    let header_len = match random.below(8) {
        0 => random.below(300),
        1 => random.below(17),
        _ => 9 + random.below(16),
    };
    let payload = match random.below(8) {
        0 => random.below(40),
        1 => random.below(9_000),
        2 => 1_100 + random.below(400),
        _ => random.below(1_500),
    };
    let count = 1 + random.below(64.min(1 + 100_000 / (payload + 1)));
    let last = random.below(payload + 1);
    let size = header_len + payload + TAG_LEN;
    let shift = random.below(64);
    let mut plain = vec![0; shift + size * (count - 1) + header_len + last + TAG_LEN];
    random.fill(&mut plain);
    let mut sealed = plain.clone();
    let mut expected = plain.clone();
    let iv: [u8; 12] = random.bytes();
    let first = random.next() >> 2;
    let nonce = |at: usize| {
        let mut nonce = iv;
        let pn = first + at as u64;
        nonce.iter_mut().skip(4).zip(pn.to_be_bytes()).for_each(|(byte, pn)| *byte ^= pn);
        nonce
    };
    for (at, packet) in expected[shift..].chunks_mut(size).enumerate() {
        reference.seal(nonce(at), packet, header_len);
    }
    let is_elsewhere = random.below(2) == 0;
    for (at, packet) in sealed[shift..].chunks_mut(size).enumerate() {
        if is_elsewhere {
            seal_with(kernel, nonce(at), packet, header_len, random);
        } else {
            kernel.seal(nonce(at), packet, header_len);
        }
    }
    assert!(
        sealed == expected,
        "{kernel:?}: {count} packets of {header_len} and {payload} bytes, the last of {last}"
    );
    let forged = random.below(count + 1);
    if forged < count {
        let packet = &mut sealed[shift + forged * size..];
        let len = packet.len().min(size);
        packet[random.below(len)] ^= 1 << random.below(8);
    }
    for (at, packet) in sealed[shift..].chunks_mut(size).enumerate() {
        let opened = kernel.open(nonce(at), packet, header_len);
        assert_eq!(opened.is_ok(), at != forged, "{kernel:?}: packet {at}, {forged} is forged");
        let end = packet.len() - TAG_LEN;
        let before = &plain[shift + at * size..][..end];
        if opened.is_ok() {
            assert!(packet[..end] == *before, "{kernel:?}: packet {at} of {count} opens to something else");
        } else {
            assert!(
                packet[header_len..end].iter().all(|&byte| byte == 0),
                "{kernel:?}: plaintext of a forgery"
            );
        }
    }
    count as u64
}
