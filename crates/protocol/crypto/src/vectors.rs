//! The examples of RFC 9001 appendix A and RFC 9369 appendix A, read from `testdata`.

use std::collections::HashMap;
use wire::Version;

/// The connection ID of all examples.
pub(crate) const DCID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

/// The values of one RFC, by name.
pub(crate) struct Vectors {
    pub(crate) version: Version,
    values: HashMap<&'static str, Vec<u8>>,
}

/// The values of both RFCs.
pub(crate) fn both() -> [Vectors; 2] {
    [
        Vectors::read(Version::V1, include_str!("../testdata/rfc9001.txt")),
        Vectors::read(Version::V2, include_str!("../testdata/rfc9369.txt")),
    ]
}

impl Vectors {
    fn read(version: Version, text: &'static str) -> Vectors {
        let mut values: HashMap<&str, Vec<u8>> = HashMap::new();
        let mut name = "";
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix("  ") {
                Some(digits) => values.entry(name).or_default().extend(from_hex(digits)),
                None => name = line,
            }
        }
        Vectors { version, values }
    }

    /// The bytes of that name.
    pub(crate) fn of(&self, name: &str) -> &[u8] {
        &self.values[name]
    }

    /// The same, as an array.
    pub(crate) fn array<const N: usize>(&self, name: &str) -> [u8; N] {
        self.of(name).try_into().unwrap()
    }
}

fn from_hex(digits: &str) -> impl Iterator<Item = u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
}
