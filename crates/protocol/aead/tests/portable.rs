//! The kernel says the same as an implementation without assembly. Miri runs this too, and there the code for all widths, whatever
//! the machine: `cargo xtask miri`.

mod common;

use aead::{Instructions, TAG_LEN};
use common::{Random, Reference, check, kernels, portable};

/// Lengths on both sides of vectors and chunks of all widths.
#[test]
fn lengths_around_vectors_and_chunks() {
    let vectors: Vec<usize> = if cfg!(miri) {
        vec![0, 1, 16, 33, 65, 129, 255, 301, 511, 513, 777]
    } else {
        (0..=1_200).chain([2_047, 2_048, 2_049, 8_900, 16_384]).collect()
    };
    let mut random = Random::new(3);
    let mut memory = vec![0; 17_000];
    let mut compared = 0;
    for key_len in [16, 32] {
        let key = &random.bytes::<32>()[..key_len];
        let (kernels, reference) = (kernels(key), portable::Portable::new(key));
        for (at, &len) in vectors.iter().enumerate() {
            let header_len = [0, 1, 12, 16, 21, 33, 50][at % 7];
            let mut plain = vec![0; header_len + len + TAG_LEN];
            random.fill(&mut plain);
            let nonce = random.bytes();
            let mut sealed = plain.clone();
            reference.seal(nonce, &mut sealed, header_len);
            for key in &kernels {
                check(key, nonce, (&plain, &sealed), header_len, (&mut memory[..plain.len() + 40], at % 24));
                compared += 1;
            }
        }
    }
    assert!(compared > 0 || Instructions::fastest().is_none());
}

/// Under Miri all instructions exist, if it is told so.
#[test]
#[cfg(miri)]
fn all_widths_run() {
    assert_eq!(
        kernels(&[1; 16]).len(),
        Instructions::ALL.len(),
        "target features are missing from RUSTFLAGS"
    );
}
