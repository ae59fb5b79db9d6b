//! Hashes of passwords: Argon2 in the PHC string format. RFC 9106.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use std::fmt;
use subtle::ConstantTimeEq as _;

/// What a hash may cost: memory in KiB, passes, lanes. More would let one request take the machine.
const MOST: [u32; 3] = [1 << 20, 64, 16];
/// How long salts and outputs are, in bytes.
const LENGTHS: core::ops::RangeInclusive<usize> = 8..=64;
/// Of a new hash, in bytes.
const OUTPUT: usize = 32;
const SALT: usize = 16;

/// The hash of a password.
#[derive(Clone)]
pub struct PasswordHash {
    algorithm: Algorithm,
    version: Version,
    params: Params,
    salt: Vec<u8>,
    output: Vec<u8>,
}

/// What is no hash of a password. The text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordHashError {
    /// It is none of Argon2 in the PHC string format.
    Malformed,
    /// It takes more memory or time than a request may.
    Costly,
    /// There is no randomness or memory to make one.
    System,
}

impl fmt::Display for PasswordHashError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            PasswordHashError::Malformed => {
                "this is no hash of a password: write what tercel hash-password prints ($argon2id$…)"
            }
            PasswordHashError::Costly => {
                "this hash takes more than 1 GiB, 64 passes or 16 lanes: make one by tercel hash-password"
            }
            PasswordHashError::System => "there is no memory or randomness for a hash: try again",
        })
    }
}

impl std::error::Error for PasswordHashError {}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PasswordHash")
    }
}

impl PasswordHash {
    /// `$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH`.
    ///
    /// # Errors
    /// It is none, or costs too much.
    pub fn parse(text: &str) -> Result<PasswordHash, PasswordHashError> {
        PasswordHash::parts(text).ok_or(PasswordHashError::Malformed).and_then(|hash| {
            let costs = [hash.params.m_cost(), hash.params.t_cost(), hash.params.p_cost()];
            if costs.iter().zip(MOST).all(|(cost, most)| *cost <= most) {
                Ok(hash)
            } else {
                Err(PasswordHashError::Costly)
            }
        })
    }

    fn parts(text: &str) -> Option<PasswordHash> {
        let mut parts = text.strip_prefix('$')?.split('$');
        let algorithm = match parts.next()? {
            "argon2id" => Algorithm::Argon2id,
            "argon2i" => Algorithm::Argon2i,
            "argon2d" => Algorithm::Argon2d,
            _ => return None,
        };
        let version = match parts.next()? {
            "v=19" => Version::V0x13,
            "v=16" => Version::V0x10,
            _ => return None,
        };
        let mut costs = parts.next()?.split(',');
        let mut cost = |name: &str| costs.next()?.strip_prefix(name)?.strip_prefix('=')?.parse::<u32>().ok();
        let (memory, passes, lanes) = (cost("m")?, cost("t")?, cost("p")?);
        if costs.next().is_some() {
            return None;
        }
        let mut bytes = || {
            let bytes = BASE64_STANDARD_NO_PAD.decode(parts.next()?).ok()?;
            LENGTHS.contains(&bytes.len()).then_some(bytes)
        };
        let (salt, output) = (bytes()?, bytes()?);
        let params = Params::new(memory, passes, lanes, Some(output.len())).ok()?;
        parts.next().is_none().then_some(PasswordHash { algorithm, version, params, salt, output })
    }

    /// The hash of `password` with a new salt, as costly as is usual: 19 MiB, two passes.
    ///
    /// # Errors
    /// There is no randomness or memory.
    pub fn make(password: &[u8]) -> Result<PasswordHash, PasswordHashError> {
        let mut salt = [0; SALT];
        getrandom::fill(&mut salt).map_err(|_| PasswordHashError::System)?;
        PasswordHash::of(password, Params::default(), &salt)
    }

    fn of(password: &[u8], params: Params, salt: &[u8]) -> Result<PasswordHash, PasswordHashError> {
        let (algorithm, version) = (Algorithm::Argon2id, Version::V0x13);
        let mut hash =
            PasswordHash { algorithm, version, params, salt: salt.to_vec(), output: vec![0; OUTPUT] };
        hash.output = hash.computed(password).ok_or(PasswordHashError::System)?;
        Ok(hash)
    }

    /// One with the cost of this one, which is that of no password: its output is random.
    pub(super) fn of_no_password(&self, random: &[u8]) -> PasswordHash {
        let (salt, output) = random.split_at(random.len() / 2);
        let take = |bytes: &[u8], len: usize| bytes.iter().copied().cycle().take(len).collect();
        PasswordHash {
            salt: take(salt, self.salt.len()),
            output: take(output, self.output.len()),
            ..self.clone()
        }
    }

    /// Work: memory times passes.
    pub(super) fn cost(&self) -> u64 {
        u64::from(self.params.m_cost()) * u64::from(self.params.t_cost())
    }

    /// Whether it is that of `password`. Takes long.
    pub(super) fn verify(&self, password: &[u8]) -> bool {
        self.computed(password).is_some_and(|output| bool::from(output.ct_eq(&self.output)))
    }

    fn computed(&self, password: &[u8]) -> Option<Vec<u8>> {
        let mut output = vec![0; self.output.len()];
        let argon2 = Argon2::new(self.algorithm, self.version, self.params.clone());
        argon2.hash_password_into(password, &self.salt, &mut output).ok()?;
        Some(output)
    }
}

impl fmt::Display for PasswordHash {
    /// As [`PasswordHash::parse`] takes it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [algorithm, salt, output] = [
            self.algorithm.as_str().to_owned(),
            BASE64_STANDARD_NO_PAD.encode(&self.salt),
            BASE64_STANDARD_NO_PAD.encode(&self.output),
        ];
        let (version, params) = (self.version as u32, &self.params);
        let (memory, passes, lanes) = (params.m_cost(), params.t_cost(), params.p_cost());
        write!(out, "${algorithm}$v={version}$m={memory},t={passes},p={lanes}${salt}${output}")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A hash that costs little.
    pub(in crate::access) fn cheap(password: &str) -> PasswordHash {
        PasswordHash::of(password.as_bytes(), Params::new(16, 1, 1, Some(OUTPUT)).unwrap(), &[7; SALT])
            .unwrap()
    }

    #[test]
    fn a_hash_is_that_of_its_password_and_reads_as_it_is_written() {
        let made = PasswordHash::make(b"secret").unwrap();
        let text = made.to_string();
        assert!(text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
        let read = PasswordHash::parse(&text).unwrap();
        assert!(read.verify(b"secret") && !read.verify(b"Secret") && !read.verify(b""));
        assert_eq!(read.to_string(), text);
        assert_ne!(PasswordHash::make(b"secret").unwrap().to_string(), text, "salts differ");
        assert!(!format!("{made:?}").contains('$'));
    }

    /// From another program: the reference implementation's test vectors (RFC 9106's author's `argon2` command).
    #[test]
    fn hashes_of_other_programs_are_read() {
        for text in [
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA",
        ] {
            let hash = PasswordHash::parse(text).unwrap();
            assert!(hash.verify(b"password") && !hash.verify(b"passwore"), "{text}");
        }
    }

    #[test]
    fn what_is_none_or_costs_too_much_is_told() {
        let good = cheap("x").to_string();
        assert!(PasswordHash::parse(&good).is_ok());
        for text in [
            "",
            "secret",
            "$2y$10$abcdefghijklmnopqrstuv",
            "$argon2id$m=16,t=1,p=1$BwcHBwcHBwcHBwcHBwcHBw$AAAAAAAAAAAAAAAA",
            &good[1..],
            &format!("{good}$"),
            &good.replace("m=16", "m=0"),
            &good.replace("p=1", "p=1,x=1"),
            &good.replace("v=19", "v=18"),
            &good.replace("BwcHBwcHBwcHBwcHBwcHBw", "Bw"),
            &good.replace("BwcHBwcHBwcHBwcHBwcHBw", "****"),
        ] {
            assert_eq!(PasswordHash::parse(text).map(drop), Err(PasswordHashError::Malformed), "{text}");
        }
        for costly in ["m=2000000,t=1,p=1", "m=16,t=65,p=1", "m=1024,t=1,p=17"] {
            let text = good.replace("m=16,t=1,p=1", costly);
            assert_eq!(PasswordHash::parse(&text).map(drop), Err(PasswordHashError::Costly), "{costly}");
        }
    }
}
