//! Content codings: their names, and how content is coded. RFC 9110 §8.4.1, RFC 7932, RFC 8878.

use std::io::{self, Write as _};

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `zstd`. RFC 8878.
    Zstd,
    /// `br`. RFC 7932.
    Brotli,
    /// `gzip`. RFC 1952.
    Gzip,
}

/// Results are kept, so that a file is coded once: levels are those behind which more time makes little smaller.
const ZSTD_LEVEL: i32 = 12;
const BROTLI_QUALITY: i32 = 6;
const GZIP_LEVEL: u32 = 7;

impl Coding {
    /// All of them, the one that makes content smallest for its time first.
    pub const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    /// Its name in HTTP.
    pub const fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// What the name of a file in this coding ends with.
    pub const fn suffix(self) -> &'static str {
        match self {
            Coding::Zstd => ".zst",
            Coding::Brotli => ".br",
            Coding::Gzip => ".gz",
        }
    }

    /// The coding of this name, in any case. `x-gzip` is gzip. RFC 9110 §8.4.1.3.
    pub(crate) fn of_name(name: &[u8]) -> Option<Coding> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        Coding::ALL
            .into_iter()
            .find(|coding| is(coding.name()))
            .or_else(|| is("x-gzip").then_some(Coding::Gzip))
    }

    /// `content` in this coding.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn encode(self, content: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Coding::Zstd => zstd::bulk::compress(content, ZSTD_LEVEL),
            Coding::Brotli => codec::compress(content, BROTLI_QUALITY),
            Coding::Gzip => {
                let mut encoder =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
                encoder.write_all(content)?;
                encoder.finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn decode(coding: Coding, coded: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        match coding {
            Coding::Zstd => content = zstd::stream::decode_all(coded).unwrap(),
            Coding::Brotli => {
                brotli::BrotliDecompress(&mut &*coded, &mut content).unwrap();
            }
            Coding::Gzip => {
                flate2::read::GzDecoder::new(coded).read_to_end(&mut content).unwrap();
            }
        }
        content
    }

    #[test]
    fn what_is_coded_is_decoded_to_the_same() {
        for content in [vec![], b"a".to_vec(), b"again ".repeat(100_000), base::pattern::at(0).to_vec()] {
            for coding in Coding::ALL {
                let coded = coding.encode(&content).unwrap();
                assert!(decode(coding, &coded) == content, "{coding:?} {}", content.len());
                assert!(content.len() < 500_000 || coded.len() < content.len() / 100, "{coding:?}");
            }
        }
    }

    #[test]
    fn names() {
        for coding in Coding::ALL {
            assert_eq!(Coding::of_name(coding.name().to_ascii_uppercase().as_bytes()), Some(coding));
        }
        assert_eq!(Coding::of_name(b"x-gzip"), Some(Coding::Gzip));
        for other in [&b""[..], b"*", b"deflate", b"identity", b"gzip "] {
            assert_eq!(Coding::of_name(other), None);
        }
    }
}
