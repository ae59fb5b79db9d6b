//! What one signature of a server's key costs, by the kind of the key: docs/decisions/030.
//!
//! `cargo bench -p tercel-crypto --bench signatures`. Medians of rounds that alternate between the kinds, in microseconds of the thread's CPU
//! time.

#![expect(clippy::unwrap_used, reason = "a benchmark may stop")]

use rcgen::{KeyPair, RsaKeySize};
use rustix::time::{ClockId, clock_gettime};
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::Signer;
use std::hint::black_box;

const ROUNDS: usize = 200;
/// How long a round of one kind takes at least.
const ROUND_US: f64 = 2_000.0;
/// What CertificateVerify signs in TLS 1.3 with SHA-256: 64 spaces, a context, a zero, a hash. RFC 8446 §4.4.3.
const MESSAGE: [u8; 130] = [0x20; 130];

/// As rustls signs for a client that can check all of these.
const SCHEMES: [SignatureScheme; 8] = [
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP521_SHA512,
    SignatureScheme::ED25519,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::ML_DSA_44,
    SignatureScheme::ML_DSA_65,
];

fn signer(key: &KeyPair) -> Box<dyn Signer> {
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    any_supported_type(&der).unwrap().choose_scheme(&SCHEMES).unwrap()
}

/// CPU time of this thread, in microseconds.
fn cpu_us() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as f64 * 1e6 + used.tv_nsec as f64 / 1e3
}

/// The mean time of a signature over a round, in microseconds.
fn round(signer: &dyn Signer) -> f64 {
    let (began, mut count) = (cpu_us(), 0);
    while cpu_us() - began < ROUND_US {
        black_box(signer.sign(black_box(&MESSAGE)).unwrap());
        count += 1;
    }
    (cpu_us() - began) / f64::from(count)
}

fn main() {
    let rsa = |size| KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size).unwrap();
    let kinds = [
        ("ECDSA P-256", KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap()),
        ("Ed25519", KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap()),
        ("ECDSA P-384", KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap()),
        ("ECDSA P-521", KeyPair::generate_for(&rcgen::PKCS_ECDSA_P521_SHA512).unwrap()),
        ("RSA 2048", rsa(RsaKeySize::_2048)),
        ("RSA 3072", rsa(RsaKeySize::_3072)),
        ("RSA 4096", rsa(RsaKeySize::_4096)),
    ];
    let signers: Vec<_> = kinds.iter().map(|(name, key)| (name, signer(key))).collect();
    let mut times = vec![Vec::with_capacity(ROUNDS); signers.len()];
    for _ in 0..ROUNDS {
        for ((_, signer), times) in signers.iter().zip(&mut times) {
            times.push(round(signer.as_ref()));
        }
    }
    for ((name, _), mut times) in signers.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
        println!("{name:12} {:8.1} µs (a tenth below {:.1}, a tenth above {:.1})", at(50), at(10), at(90));
    }
}
