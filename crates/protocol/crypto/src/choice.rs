//! Which library does which suite on which CPU: decided once, from the measurements in docs/decisions/002 and 021. AES-GCM, and AES for
//! the masks of headers, are done by tercel's own kernel (`aead`) where the CPU has the instructions, unless a process says otherwise.

use crate::header::HeaderKey;
use crate::library::Library;
use crate::packet::{PacketKey, TAG_LEN};
use crate::suite::Suite;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::LazyLock;

impl Library {
    /// The fastest for the suite on this CPU, or what the process prefers to it. Decided by its features, from the measurements in
    /// docs/decisions/002 and 021; asked once per key.
    pub fn fastest(suite: Suite) -> Library {
        match suite {
            Suite::Aes128Gcm | Suite::Aes256Gcm if *HAS_KERNEL => preferred(),
            Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => Library::AwsLc,
        }
    }
}

/// What a part of the process has asked for, by its place in [`Library::ALL`]: tercel's own kernel, which is the first, if none has.
static PREFERRED: AtomicUsize = AtomicUsize::new(0);

/// What this process's environment and CPU say. The answer stays.
static HAS_KERNEL: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("TERCEL_AEAD").is_none_or(|value| value != "library") && agrees());

/// AES-GCM keys made from now on, in the whole process, are of this library where the CPU permits. The variable `TERCEL_AEAD=library`
/// in the environment permits aws-lc-rs alone.
pub fn prefer(library: Library) {
    let place = Library::ALL.iter().position(|other| *other == library);
    PREFERRED.store(place.unwrap_or(0), Ordering::Relaxed);
}

fn preferred() -> Library {
    Library::ALL.get(PREFERRED.load(Ordering::Relaxed)).copied().unwrap_or(Library::Kernel)
}

/// Whether this CPU has the kernel's instructions, and libraries open what they seal and make the same masks. So a processor, an
/// emulator or a compiler that does them wrongly costs speed, and no connection.
fn agrees() -> bool {
    const HEADER_LEN: usize = 13;
    if aead::Instructions::fastest().is_none() {
        return false;
    }
    [Suite::Aes128Gcm, Suite::Aes256Gcm].into_iter().all(|suite| {
        let key: [u8; 32] = core::array::from_fn(|at| at as u8);
        let [own, other] = [Library::Kernel, Library::AwsLc]
            .map(|library| PacketKey::with_library(library, suite, &key[..suite.key_len()], &[0x5c; 12]));
        // More than a chunk of the widest vectors, and a part of one.
        let plain: [u8; 700] = core::array::from_fn(|at| at as u8);
        let mut packet = plain;
        own.seal(1, &mut packet, HEADER_LEN);
        let mut sealed = packet;
        let end = plain.len() - TAG_LEN;
        let mut sealed_with = plain;
        own.seal_with(1, &mut sealed_with, HEADER_LEN, &plain[HEADER_LEN + 7..end]);
        let opens = |key: &PacketKey, packet: &mut [u8]| {
            key.open(1, packet, HEADER_LEN).is_ok() && packet[..end] == plain[..end]
        };
        let [own_mask, other_mask] = [Library::Kernel, Library::AwsLc].map(|library| {
            HeaderKey::with_library(library, suite, &key[..suite.key_len()]).mask(&[0x3a; 16])
        });
        own_mask == other_mask
            && sealed_with == sealed
            && opens(&other, &mut sealed)
            && opens(&own, &mut packet)
    })
}
