//! brotli as functions without type parameters, for certificates and for content. RFC 7932.
//!
//! The library is generic, and each crate that calls it compiles an encoder of its own, which takes 4 s of CPU. Here is the only one.
#![forbid(unsafe_code)]

use brotli::enc::{BrotliEncoderParams, StandardAlloc};
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use core::fmt;
use std::io;

/// `content` in brotli. `quality` is 0 to 11: the higher, the smaller the result, and the longer it takes.
///
/// # Errors
/// There is no memory for it.
pub fn compress(content: &[u8], quality: i32) -> io::Result<Vec<u8>> {
    let params = BrotliEncoderParams { quality, size_hint: content.len(), ..BrotliEncoderParams::default() };
    let mut coded = Vec::new();
    brotli::BrotliCompress(&mut &*content, &mut coded, &params)?;
    Ok(coded)
}

/// What was to be decoded is not brotli, or is longer or shorter than it was said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressError;

impl fmt::Display for DecompressError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the bytes are not brotli of the length that was said")
    }
}

impl std::error::Error for DecompressError {}

/// Fills `content` with what `coded` was before it was compressed. A peer that names a length gets no more memory than that.
///
/// # Errors
/// `coded` is not valid, does not end where its content does, or is not that of exactly `content.len()` bytes.
pub fn decompress(coded: &[u8], content: &mut [u8]) -> Result<(), DecompressError> {
    let alloc = StandardAlloc::default;
    let mut state = BrotliState::new_strict(alloc(), alloc(), alloc());
    let (mut coded_left, mut coded_at) = (coded.len(), 0);
    let (mut content_left, mut content_at, mut total) = (content.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut coded_left,
        &mut coded_at,
        coded,
        &mut content_left,
        &mut content_at,
        content,
        &mut total,
        &mut state,
    );
    match result {
        BrotliResult::ResultSuccess if coded_left == 0 && content_left == 0 => Ok(()),
        _ => Err(DecompressError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents() -> [Vec<u8>; 4] {
        let noise = (0..70_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        [vec![], b"a".to_vec(), b"again ".repeat(10_000), noise]
    }

    #[test]
    fn what_is_compressed_is_decompressed_to_the_same() {
        for content in contents() {
            for quality in [0, 4, 6, 11] {
                let coded = compress(&content, quality).unwrap();
                let mut decoded = vec![0xff; content.len()];
                assert_eq!(decompress(&coded, &mut decoded), Ok(()), "{quality} {}", content.len());
                assert!(decoded == content, "{quality} {}", content.len());
            }
        }
    }

    /// The length comes from a peer, and so do the bytes.
    #[test]
    fn another_length_is_refused() {
        for content in contents() {
            let coded = compress(&content, 4).unwrap();
            let more = vec![0; content.len() + 1];
            let less = vec![0; content.len().saturating_sub(1)];
            for mut decoded in [more, less] {
                if decoded.len() != content.len() {
                    assert_eq!(decompress(&coded, &mut decoded), Err(DecompressError));
                }
            }
            let mut decoded = content.clone();
            assert_eq!(decompress(&[&coded[..], &[0]].concat(), &mut decoded), Err(DecompressError));
            assert_eq!(decompress(&coded[..coded.len() - 1], &mut decoded), Err(DecompressError));
        }
        assert_eq!(decompress(&[], &mut []), Err(DecompressError));
        assert_eq!(decompress(&[0xff; 40], &mut [0; 40]), Err(DecompressError));
    }
}
