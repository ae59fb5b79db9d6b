//! Header-protection masks of the packets of a train, [`PASS`] at a time: AES takes as long for so many blocks as for one. They are made
//! where they are used, and none is kept: memory of a connection that has not been looked at for a while is in no cache.
//! Source: RFC 9001 §5.4.

use crate::without::{Technique, Without};
use crypto::{HeaderKey, SAMPLE_LEN};

/// Packets whose masks are computed in one pass.
pub(super) const PASS: usize = 8;

/// A mask for each of them.
pub(super) type Masks = [[u8; 5]; PASS];

/// The masks of the first `count` packets, at most [`PASS`], of which `sample` gives the samples; one without a sample gets a mask that
/// means nothing.
#[inline]
pub(super) fn masks_of(
    key: &HeaderKey,
    count: usize,
    without: Without,
    mut sample: impl FnMut(usize) -> Option<[u8; SAMPLE_LEN]>,
) -> Masks {
    let mut samples = [[0; SAMPLE_LEN]; PASS];
    let mut masks = [[0; 5]; PASS];
    let count = count.min(PASS);
    for (index, place) in samples.iter_mut().take(count).enumerate() {
        *place = sample(index).unwrap_or_default();
    }
    let pass = if without.has(Technique::TrainMasks) { 1 } else { PASS };
    for (samples, masks) in samples[..count].chunks(pass).zip(masks[..count].chunks_mut(pass)) {
        key.masks(samples, masks);
    }
    masks
}
