//! What sealing, opening and masking a packet costs with each library: the measurement behind docs/decisions/002.
//!
//! `cargo bench -p tercel-crypto --bench aead`; pinned to a core (`taskset -c 1`) it is steadier. One sample is a train of
//! packets in contiguous memory of about 64 KiB, as one system call carries it. Libraries take turns, sample by sample, so
//! that a change of the CPU's clock meets all of them alike. Printed is the median, in nanoseconds per packet.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::expect_used, reason = "a benchmark may stop")]

use aes_gcm::aead::{AeadInOut, KeyInit};
use crypto::{HeaderKey, Library, PacketKey, Suite, TAG_LEN};
use std::hint::black_box;
use std::time::Instant;

const HEADER_LEN: usize = 12;
const TRAIN_LEN: usize = 64_000;
const SIZES: [usize; 3] = [1_200, 1_452, 8_900];
const SAMPLES: usize = 2_000;
const KEY: [u8; 32] = [0x42; 32];

/// A key of some library. The virtual call costs each of them the same.
trait Contender {
    fn name(&self) -> &'static str;
    fn seal(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]);
    fn open(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &[u8; TAG_LEN]) -> bool;
}

struct Ring(ring::aead::LessSafeKey);

impl Contender for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn seal(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        use ring::aead::{Aad, Nonce};
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let sealed = self.0.seal_in_place_separate_tag(nonce, Aad::from(aad), payload);
        tag.copy_from_slice(sealed.expect("short payload").as_ref());
    }

    fn open(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        use ring::aead::{Aad, Nonce};
        let nonce = Nonce::assume_unique_for_key(*nonce);
        self.0.open_in_place_separate_tag(nonce, Aad::from(aad), (*tag).into(), payload, 0..).is_ok()
    }
}

struct AwsLc(aws_lc_rs::aead::LessSafeKey);

impl Contender for AwsLc {
    fn name(&self) -> &'static str {
        "aws-lc-rs"
    }

    fn seal(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        use aws_lc_rs::aead::{Aad, Nonce};
        let nonce = Nonce::assume_unique_for_key(*nonce);
        self.0.seal_in_place_scatter(nonce, Aad::from(aad), payload, &[], tag).expect("short payload");
    }

    fn open(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        use aws_lc_rs::aead::{Aad, Nonce};
        let nonce = Nonce::assume_unique_for_key(*nonce);
        self.0.open_in_place_separate_tag(nonce, Aad::from(aad), tag, payload).is_ok()
    }
}

struct RustCrypto<K>(K);

impl<K> Contender for RustCrypto<K>
where
    K: AeadInOut<NonceSize = aes_gcm::aead::consts::U12, TagSize = aes_gcm::aead::consts::U16>,
{
    fn name(&self) -> &'static str {
        "RustCrypto"
    }

    fn seal(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        let sealed = self.0.encrypt_inout_detached(&(*nonce).into(), aad, payload.into());
        tag.copy_from_slice(&sealed.expect("short payload"));
    }

    fn open(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        self.0.decrypt_inout_detached(&(*nonce).into(), aad, payload.into(), &(*tag).into()).is_ok()
    }
}

struct GraviolaAes(graviola::aead::AesGcm);

impl Contender for GraviolaAes {
    fn name(&self) -> &'static str {
        "graviola"
    }

    fn seal(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        self.0.encrypt(nonce, aad, payload, tag);
    }

    fn open(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        self.0.decrypt(nonce, aad, payload, tag).is_ok()
    }
}

struct GraviolaChaCha(graviola::aead::ChaCha20Poly1305);

impl Contender for GraviolaChaCha {
    fn name(&self) -> &'static str {
        "graviola"
    }

    fn seal(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        self.0.encrypt(nonce, aad, payload, tag);
    }

    fn open(&self, nonce: &[u8; 12], aad: &[u8], payload: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        self.0.decrypt(nonce, aad, payload, tag).is_ok()
    }
}

fn contenders(suite: Suite) -> Vec<Box<dyn Contender>> {
    let key = &KEY[..suite.key_len()];
    let (of_ring, of_aws_lc) = match suite {
        Suite::Aes128Gcm => (&ring::aead::AES_128_GCM, &aws_lc_rs::aead::AES_128_GCM),
        Suite::Aes256Gcm => (&ring::aead::AES_256_GCM, &aws_lc_rs::aead::AES_256_GCM),
        Suite::ChaCha20Poly1305 => (&ring::aead::CHACHA20_POLY1305, &aws_lc_rs::aead::CHACHA20_POLY1305),
    };
    let of_ring = ring::aead::UnboundKey::new(of_ring, key).expect("key length");
    let of_aws_lc = aws_lc_rs::aead::UnboundKey::new(of_aws_lc, key).expect("key length");
    let mut all: Vec<Box<dyn Contender>> = vec![
        Box::new(Ring(ring::aead::LessSafeKey::new(of_ring))),
        Box::new(AwsLc(aws_lc_rs::aead::LessSafeKey::new(of_aws_lc))),
    ];
    match suite {
        Suite::Aes128Gcm => {
            all.push(Box::new(RustCrypto(aes_gcm::Aes128Gcm::new_from_slice(key).expect("key length"))));
            all.push(Box::new(GraviolaAes(graviola::aead::AesGcm::new(key))));
        }
        Suite::Aes256Gcm => {
            all.push(Box::new(RustCrypto(aes_gcm::Aes256Gcm::new_from_slice(key).expect("key length"))));
            all.push(Box::new(GraviolaAes(graviola::aead::AesGcm::new(key))));
        }
        Suite::ChaCha20Poly1305 => {
            let cipher = chacha20poly1305::ChaCha20Poly1305::new_from_slice(key).expect("key length");
            all.push(Box::new(RustCrypto(cipher)));
            all.push(Box::new(GraviolaChaCha(graviola::aead::ChaCha20Poly1305::new(KEY))));
        }
    }
    all
}

/// Seals or opens a train of packets of `size` bytes.
fn each_packet(
    train: &mut [u8],
    size: usize,
    mut act: impl FnMut([u8; 12], &[u8], &mut [u8], &mut [u8; TAG_LEN]),
) {
    for (pn, packet) in train.chunks_exact_mut(size).enumerate() {
        let mut nonce = [7; 12];
        nonce[4..].copy_from_slice(&(pn as u64).to_be_bytes());
        let (header, rest) = packet.split_at_mut(HEADER_LEN);
        let (payload, tag) = rest.split_last_chunk_mut().expect("room");
        act(nonce, header, payload, tag);
    }
}

/// Runs `work` for each of `count` contenders in turn, `prepare` before each, and returns the medians in ns.
fn medians(count: usize, mut prepare: impl FnMut(usize), mut work: impl FnMut(usize)) -> Vec<f64> {
    let mut samples = vec![Vec::with_capacity(SAMPLES); count];
    for round in 0..SAMPLES + SAMPLES / 10 {
        for (index, samples) in samples.iter_mut().enumerate() {
            prepare(index);
            let begin = Instant::now();
            work(index);
            let spent = begin.elapsed();
            if round >= SAMPLES / 10 {
                samples.push(spent.as_nanos() as f64);
            }
        }
    }
    samples
        .iter_mut()
        .map(|samples| {
            samples.sort_by(f64::total_cmp);
            samples[samples.len() / 2]
        })
        .collect()
}

fn row(cells: impl IntoIterator<Item = String>) {
    println!("| {} |", cells.into_iter().collect::<Vec<_>>().join(" | "));
}

fn packets() {
    println!("\nSealing / opening, ns per packet\n");
    let mut head = vec!["suite".to_owned(), "library".to_owned()];
    head.extend(SIZES.map(|size| format!("{size} B")));
    row(head.clone());
    row(head.iter().map(|_| "---".to_owned()));
    for suite in Suite::ALL {
        let all = contenders(suite);
        let ours: Vec<_> = Library::ALL
            .into_iter()
            .map(|library| PacketKey::with_library(library, suite, &KEY[..suite.key_len()], &[7; 12]))
            .collect();
        let cells: Vec<Vec<String>> = SIZES.map(|size| measure_packets(size, &all, &ours)).to_vec();
        let names = all.iter().map(|contender| contender.name().to_owned());
        let own = Library::ALL.into_iter().map(|library| format!("our PacketKey over {library:?}"));
        for (index, name) in names.chain(own).enumerate().take(cells[0].len()) {
            let cells = cells.iter().map(|column| column[index].clone());
            row([suite.to_string(), name].into_iter().chain(cells));
        }
    }
}

/// One column of the table for one suite: `seal / open` of each contender.
fn measure_packets(size: usize, all: &[Box<dyn Contender>], ours: &[PacketKey]) -> Vec<String> {
    let len = TRAIN_LEN / size * size;
    let count = (len / size) as f64;
    let plain: Vec<u8> = (0..len).map(|at| at as u8).collect();
    let mut train = plain.clone();
    each_packet(&mut train, size, |nonce, aad, payload, tag| all[0].seal(&nonce, aad, payload, tag));
    let sealed = train.clone();
    let train = std::cell::RefCell::new(train);
    let contenders = all.len() + ours.len();
    let seal = medians(
        contenders,
        |_| train.borrow_mut().copy_from_slice(&plain),
        |index| {
            let train = &mut *train.borrow_mut();
            match all.get(index) {
                Some(key) => {
                    each_packet(train, size, |nonce, aad, payload, tag| key.seal(&nonce, aad, payload, tag))
                }
                None => {
                    for (pn, packet) in train.chunks_exact_mut(size).enumerate() {
                        ours[index - all.len()].seal(pn as u64, packet, HEADER_LEN);
                    }
                }
            }
            black_box(train);
        },
    );
    let open = medians(
        contenders,
        |_| train.borrow_mut().copy_from_slice(&sealed),
        |index| {
            let train = &mut *train.borrow_mut();
            match all.get(index) {
                Some(key) => each_packet(train, size, |nonce, aad, payload, tag| {
                    assert!(key.open(&nonce, aad, payload, tag), "{}", key.name());
                }),
                None => {
                    let key = &ours[index - all.len()];
                    // The nonces of the others, so that the same ciphertext opens.
                    for (pn, packet) in train.chunks_exact_mut(size).enumerate() {
                        let pn = pn as u64 ^ 0x0707_0707_0707_0707;
                        assert!(key.open(pn, packet, HEADER_LEN).is_ok());
                    }
                }
            }
            black_box(train);
        },
    );
    seal.iter().zip(&open).map(|(seal, open)| format!("{:.0} / {:.0}", seal / count, open / count)).collect()
}

fn headers() {
    const COUNT: usize = 44;
    println!("\nHeader protection masks, ns per packet, trains of {COUNT}\n");
    row(["suite", "ring, one by one", "aws-lc-rs, one by one", "ours, one by one", "ours, batch"]
        .map(str::to_owned));
    row(["---"; 5].map(str::to_owned));
    for suite in Suite::ALL {
        let key = &KEY[..suite.key_len()];
        let (of_ring, of_aws_lc) = match suite {
            Suite::Aes128Gcm => (&ring::aead::quic::AES_128, &aws_lc_rs::aead::quic::AES_128),
            Suite::Aes256Gcm => (&ring::aead::quic::AES_256, &aws_lc_rs::aead::quic::AES_256),
            Suite::ChaCha20Poly1305 => (&ring::aead::quic::CHACHA20, &aws_lc_rs::aead::quic::CHACHA20),
        };
        let of_ring = ring::aead::quic::HeaderProtectionKey::new(of_ring, key).expect("key length");
        let of_aws_lc = aws_lc_rs::aead::quic::HeaderProtectionKey::new(of_aws_lc, key).expect("key length");
        let ours = HeaderKey::with_library(Library::fastest(suite), suite, key);
        let samples: [[u8; 16]; COUNT] = std::array::from_fn(|at| [at as u8; 16]);
        let mut masks = [[0; 5]; COUNT];
        // Twenty trains at a time: one is too short for the clock.
        let medians = medians(
            4,
            |_| (),
            |index| {
                for _ in 0..20 {
                    let samples = black_box(&samples);
                    let pairs = masks.iter_mut().zip(samples);
                    match index {
                        0 => {
                            pairs.for_each(|(mask, sample)| *mask = of_ring.new_mask(sample).expect("length"))
                        }
                        1 => pairs
                            .for_each(|(mask, sample)| *mask = of_aws_lc.new_mask(sample).expect("length")),
                        2 => pairs.for_each(|(mask, sample)| *mask = ours.mask(sample)),
                        _ => ours.masks(samples, &mut masks),
                    }
                    black_box(&mut masks);
                }
            },
        );
        let cells = medians.iter().map(|ns| format!("{:.1}", ns / (20 * COUNT) as f64));
        row([suite.to_string()].into_iter().chain(cells));
    }
}

fn main() {
    // The ordinary test run starts benchmarks with `--test`, to see that they work.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    packets();
    headers();
}
