//! A batch must give what single packets give, at every size around the number of lanes.

use super::*;

fn samples(count: usize) -> Vec<[u8; SAMPLE_LEN]> {
    (0..count).map(|at| core::array::from_fn(|byte| (at * 31 + byte * 7) as u8)).collect()
}

#[test]
fn batches_give_what_single_masks_give() {
    for (suite, library) in
        Suite::ALL.into_iter().flat_map(|suite| Library::ALL.map(|library| (suite, library)))
    {
        let key = HeaderKey::with_library(library, suite, &vec![3; suite.key_len()]);
        for count in [0, 1, 2, 7, 8, 9, 15, 16, 17, 43, 64] {
            let samples = samples(count);
            let mut masks = vec![[0; 5]; count];
            key.masks(&samples, &mut masks);
            let single: Vec<_> = samples.iter().map(|sample| key.mask(sample)).collect();
            assert_eq!(masks, single, "{suite}, {library:?}, {count} packets");
        }
    }
}

/// Against an independent implementation. RUSTSEC-2025-0009: ring's masks could panic on a counter that wraps; a sample of
/// all ones is that counter.
#[test]
fn masks_agree_with_ring() {
    use ring::aead::quic;
    for (suite, algorithm) in [
        (Suite::Aes128Gcm, &quic::AES_128),
        (Suite::Aes256Gcm, &quic::AES_256),
        (Suite::ChaCha20Poly1305, &quic::CHACHA20),
    ] {
        let bytes = vec![0x42; suite.key_len()];
        let ours = Library::ALL.map(|library| HeaderKey::with_library(library, suite, &bytes));
        let theirs = quic::HeaderProtectionKey::new(algorithm, &bytes).unwrap();
        for sample in samples(40).into_iter().chain([[0; 16], [0xff; 16]]) {
            let mask = theirs.new_mask(&sample).unwrap();
            assert_eq!(ours.each_ref().map(|ours| ours.mask(&sample)), [mask; Library::ALL.len()], "{suite}");
        }
    }
}
