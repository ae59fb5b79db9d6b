//! What the arithmetic of a handshake costs a server with nothing around it: the key exchange, which a resumed handshake makes as well
//! (RFC 8446 §2.2, psk_dhe_ke), and the signature, which it spares.

use std::hint::black_box;
use std::io;

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{kx_group, sign};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{Error, SignatureScheme};
use serde::Serialize;

use super::row::Exchange;
use crate::contestants::TestSite;

/// What each costs one core, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Floor {
    /// The server's part of X25519MLKEM768: an X25519 key, an X25519 agreement, an ML-KEM-768 encapsulation.
    pub(super) hybrid_us: f64,
    /// The server's part of X25519.
    pub(super) classic_us: f64,
    /// A signature by ECDSA on P-256, over as many bytes as a CertificateVerify signs.
    pub(super) signature_us: f64,
}

impl Floor {
    /// The key exchange in question, in microseconds.
    pub(super) fn exchange_us(&self, exchange: Exchange) -> f64 {
        match exchange {
            Exchange::Hybrid => self.hybrid_us,
            Exchange::Classic => self.classic_us,
        }
    }

    /// Measures on this thread; each figure is the least mean of five series of `repetitions`.
    ///
    /// # Errors
    /// The library refuses.
    pub(super) fn measure(ground: &TestSite, repetitions: u32) -> io::Result<Floor> {
        let key = PrivateKeyDer::from_pem_file(ground.key()).map_err(io::Error::other)?;
        let key = sign::any_supported_type(&key).map_err(io::Error::other)?;
        let signer = key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]);
        let signer = signer.ok_or_else(|| io::Error::other("the key is not for ECDSA on P-256"))?;
        // 64 spaces, 33 bytes of context, a zero, a hash. Source: RFC 8446 §4.4.3.
        let signed = [0x20; 64 + 33 + 1 + 32];
        Ok(Floor {
            hybrid_us: exchange(kx_group::X25519MLKEM768, repetitions)?,
            classic_us: exchange(kx_group::X25519, repetitions)?,
            signature_us: least_us(repetitions, || signer.sign(black_box(&signed)).map(drop))?,
        })
    }
}

fn exchange(group: &'static dyn SupportedKxGroup, repetitions: u32) -> io::Result<f64> {
    let client = group.start().map_err(io::Error::other)?;
    let share = client.pub_key().to_vec();
    least_us(repetitions, || group.start_and_complete(black_box(&share)).map(drop))
}

/// The least mean time of one call, in microseconds: what disturbs a series only lengthens it.
fn least_us(repetitions: u32, mut call: impl FnMut() -> Result<(), Error>) -> io::Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let began = cpu::clock_seconds();
        for _ in 0..repetitions {
            call().map_err(io::Error::other)?;
        }
        least = least.min((cpu::clock_seconds() - began) * 1e6 / f64::from(repetitions));
    }
    Ok(least)
}
