//! How certificates are compressed on their way: brotli and zlib. RFC 8879.
//!
//! rustls has both; its brotli would be a second one beside that of content ([`codec`]).

use rustls::compress::{
    CertCompressor, CertDecompressor, CompressionCache, CompressionFailed, CompressionLevel,
    DecompressionFailed, ZLIB_COMPRESSOR, ZLIB_DECOMPRESSOR,
};
use rustls::{CertificateCompressionAlgorithm, ServerConfig};
use std::sync::Arc;

/// What compresses chains, the preferred one first.
pub(crate) const COMPRESSORS: [&dyn CertCompressor; 2] = [&Brotli, ZLIB_COMPRESSOR];
/// What decompresses chains, the preferred one first.
pub(crate) const DECOMPRESSORS: [&dyn CertDecompressor; 2] = [&Brotli, ZLIB_DECOMPRESSOR];

/// The quality, of 11. The handshake waits for it: two certificates with keys for RSA, 3,422 bytes, take 0.2 ms and become 2,959 bytes,
/// and by the highest quality 6.5 ms and 2,827.
const QUALITY: i32 = 5;
/// Compressed chains that a server keeps, in all algorithms. rustls keeps four by default, so that a server with more names would
/// compress in each handshake.
const KEPT: usize = 64;

/// A server compresses its chains, and takes compressed ones.
pub(crate) fn apply_to(config: &mut ServerConfig) {
    config.cert_compressors = COMPRESSORS.to_vec();
    config.cert_decompressors = DECOMPRESSORS.to_vec();
    config.cert_compression_cache = Arc::new(CompressionCache::new(KEPT));
}

#[derive(Debug)]
struct Brotli;

impl CertCompressor for Brotli {
    fn compress(&self, chain: Vec<u8>, _: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        codec::compress(&chain, QUALITY).map_err(|_| CompressionFailed)
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
