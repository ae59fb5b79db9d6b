//! How certificates are compressed on their way: brotli and zlib. RFC 8879.
//!
//! rustls has both; its brotli would be a second one beside that of content ([`codec`]).

use rustls::CertificateCompressionAlgorithm;
use rustls::compress::{
    CertCompressor, CertDecompressor, CompressionFailed, CompressionLevel, DecompressionFailed,
    ZLIB_COMPRESSOR, ZLIB_DECOMPRESSOR,
};

/// What compresses chains, the preferred one first.
pub(crate) const COMPRESSORS: [&dyn CertCompressor; 2] = [&Brotli, ZLIB_COMPRESSOR];
/// What decompresses chains, the preferred one first.
pub(crate) const DECOMPRESSORS: [&dyn CertDecompressor; 2] = [&Brotli, ZLIB_DECOMPRESSOR];

/// The quality of a chain that is compressed for one handshake.
const FAST: i32 = 4;
/// The quality of a chain that is kept.
const SMALL: i32 = 11;

#[derive(Debug)]
struct Brotli;

impl CertCompressor for Brotli {
    fn compress(&self, chain: Vec<u8>, level: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let quality = match level {
            CompressionLevel::Interactive => FAST,
            CompressionLevel::Amortized => SMALL,
        };
        codec::compress(&chain, quality).map_err(|_| CompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Brotli
    }
}

impl CertDecompressor for Brotli {
    fn decompress(&self, compressed: &[u8], chain: &mut [u8]) -> Result<(), DecompressionFailed> {
        codec::decompress(compressed, chain).map_err(|_| DecompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Brotli
    }
}
