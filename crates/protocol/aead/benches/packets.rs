//! What a packet costs by the kernel, and by the libraries: the measurement behind docs/decisions/021.
//!
//! `cargo bench -p tercel-aead`; pinned to a core (`taskset -c 1`) it is steadier. One sample is a train of packets in contiguous
//! memory of about 64 KiB. Contenders take turns, sample by sample, so that a change of the CPU's clock, and other programs, meet
//! all of them alike. Printed are the lowest time and the median, in nanoseconds per packet, and the ratio of each to the faster
//! library.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::expect_used, reason = "a benchmark may stop")]

use aead::{Instructions, Key, TAG_LEN};
use std::hint::black_box;
use std::time::Instant;

const HEADER_LEN: usize = 12;
const TRAIN_LEN: usize = 64_000;
const SIZES: [usize; 4] = [100, 1_200, 1_452, 8_900];
const SAMPLES: usize = 1_000;
const KEY: [u8; 32] = [0x42; 32];

enum Contender {
    Ring(Box<ring::aead::LessSafeKey>),
    AwsLc(Box<aws_lc_rs::aead::LessSafeKey>),
    Kernel(Box<Key>),
}

impl Contender {
    fn all(key_len: usize) -> Vec<(String, Contender)> {
        let key = &KEY[..key_len];
        let of_ring = if key_len == 16 { &ring::aead::AES_128_GCM } else { &ring::aead::AES_256_GCM };
        let of_aws_lc =
            if key_len == 16 { &aws_lc_rs::aead::AES_128_GCM } else { &aws_lc_rs::aead::AES_256_GCM };
        let of_ring = ring::aead::UnboundKey::new(of_ring, key).expect("key length");
        let of_aws_lc = aws_lc_rs::aead::UnboundKey::new(of_aws_lc, key).expect("key length");
        let mut all = vec![
            ("ring".to_owned(), Contender::Ring(Box::new(ring::aead::LessSafeKey::new(of_ring)))),
            (
                "aws-lc-rs".to_owned(),
                Contender::AwsLc(Box::new(aws_lc_rs::aead::LessSafeKey::new(of_aws_lc))),
            ),
        ];
        for instructions in Instructions::ALL {
            let key = Key::with_instructions(instructions, key);
            all.extend(key.map(|key| (format!("{instructions:?}"), Contender::Kernel(Box::new(key)))));
        }
        all
    }

    fn seal(&self, nonce: [u8; 12], packet: &mut [u8]) {
        if let Contender::Kernel(key) = self {
            return key.seal(nonce, packet, HEADER_LEN);
        }
        let (header, rest) = packet.split_at_mut(HEADER_LEN);
        let (payload, tag) = rest.split_last_chunk_mut::<TAG_LEN>().expect("room");
        match self {
            Contender::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(&*header), payload);
                tag.copy_from_slice(sealed.expect("short payload").as_ref());
            }
            Contender::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.seal_in_place_scatter(nonce, Aad::from(&*header), payload, &[], tag)
                    .expect("short payload");
            }
            Contender::Kernel(_) => {}
        }
    }

    fn open(&self, nonce: [u8; 12], packet: &mut [u8]) -> bool {
        if let Contender::Kernel(key) = self {
            return key.open(nonce, packet, HEADER_LEN).is_ok();
        }
        let (header, rest) = packet.split_at_mut(HEADER_LEN);
        let (payload, tag) = rest.split_last_chunk_mut::<TAG_LEN>().expect("room");
        match self {
            Contender::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place_separate_tag(nonce, Aad::from(&*header), (*tag).into(), payload, 0..)
                    .is_ok()
            }
            Contender::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place_separate_tag(nonce, Aad::from(&*header), tag, payload).is_ok()
            }
            Contender::Kernel(_) => false,
        }
    }
}

fn nonce(pn: usize) -> [u8; 12] {
    let mut nonce = [7; 12];
    nonce[4..].copy_from_slice(&(pn as u64).to_be_bytes());
    nonce
}

/// The lowest time and the median of each contender, in ns per train: of sealing, and of opening.
fn measure(all: &[(String, Contender)], size: usize) -> Vec<[[f64; 2]; 2]> {
    let plain: Vec<u8> = (0..TRAIN_LEN / size * size).map(|at| at as u8).collect();
    let mut sealed = plain.clone();
    for (pn, packet) in sealed.chunks_exact_mut(size).enumerate() {
        all[0].1.seal(nonce(pn), packet);
    }
    let mut train = plain.clone();
    let mut samples = vec![[Vec::new(), Vec::new()]; all.len()];
    for _ in 0..SAMPLES {
        for ((_, key), samples) in all.iter().zip(&mut samples) {
            train.copy_from_slice(&plain);
            let begin = Instant::now();
            for (pn, packet) in train.chunks_exact_mut(size).enumerate() {
                key.seal(nonce(pn), packet);
            }
            samples[0].push(begin.elapsed().as_nanos() as f64);
            assert!(train == sealed);
            let begin = Instant::now();
            for (pn, packet) in train.chunks_exact_mut(size).enumerate() {
                assert!(key.open(nonce(pn), packet));
            }
            samples[1].push(begin.elapsed().as_nanos() as f64);
            black_box(&mut train);
        }
    }
    let summary = |samples: &mut Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        [samples[0], samples[samples.len() / 2]]
    };
    samples.iter_mut().map(|[seal, open]| [summary(seal), summary(open)]).collect()
}

fn main() {
    // The ordinary test run starts benchmarks with `--test`, to see that they work.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    for key_len in [16, 32] {
        let all = Contender::all(key_len);
        for size in SIZES {
            let count = (TRAIN_LEN / size) as f64;
            println!("\nAES-{}-GCM, {size} bytes: lowest / median ns, ratio", key_len * 8);
            let figures = measure(&all, size);
            let best = |way: usize, of: usize| figures[0][way][of].min(figures[1][way][of]);
            for ((name, _), ways) in all.iter().zip(&figures) {
                print!("{name:>14}");
                for (way, verb) in ["seal", "open"].into_iter().enumerate() {
                    let [lowest, median] = ways[way];
                    let ratio = lowest / best(way, 0);
                    let ratio_of_medians = median / best(way, 1);
                    print!("   {verb} {:6.0} / {:6.0}", lowest / count, median / count);
                    print!("  {ratio:.2} / {ratio_of_medians:.2}");
                }
                println!();
            }
        }
    }
}
