//! The vectors of the project Wycheproof: nonces of 96 bits, tags of 128, keys of 128 and 256.

#![cfg(not(miri))]

mod common;

use aead::{Instructions, OpenError};
use common::{check, kernels};
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

#[test]
fn vectors() {
    let set = TestSet::load(TestName::AesGcm).expect("the vectors are part of the crate");
    let (mut valid, mut invalid) = (0, 0);
    for group in &set.test_groups {
        if group.nonce_size != 96 || group.tag_size != 128 || group.key_size == 192 {
            continue;
        }
        for test in &group.tests {
            let nonce: [u8; 12] = test.nonce.as_slice().try_into().expect("96 bits");
            let plain = [test.aad.as_slice(), &test.pt, &[0; 16]].concat();
            let sealed = [test.aad.as_slice(), &test.ct, &test.tag].concat();
            for key in kernels(&test.key) {
                if test.result == TestResult::Valid {
                    let mut memory = vec![0; sealed.len() + 48];
                    check(&key, nonce, (&plain, &sealed), test.aad.len(), (&mut memory, 17));
                    valid += 1;
                } else {
                    let opened = key.open(nonce, &mut sealed.clone(), test.aad.len());
                    assert_eq!(opened, Err(OpenError), "{key:?}, test {}: {}", test.tc_id, test.comment);
                    invalid += 1;
                }
            }
        }
    }
    let expected = Instructions::fastest().is_some();
    assert_eq!(
        (valid > 50, invalid > 30),
        (expected, expected),
        "{valid} valid and {invalid} invalid vectors"
    );
}
