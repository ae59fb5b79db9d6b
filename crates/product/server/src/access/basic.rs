//! Users with passwords. RFC 7617.
//!
//! A password is verified by a slow hash, on threads of their own. What came of it is kept by a digest under a key of this process, so
//! that the next request with the same name and password costs a look-up. Neither the table of results nor the work under way grows
//! without bound: a request that finds too much under way gets 503, and one whose password is known passes.
//!
//! An unknown user costs the verification of a password that none has, so that the time does not tell which users there are.

use super::Refusal;
use super::password::PasswordHash;
use crate::kept_work::{Bounds, KeptWork, Known};
use crate::readers::{ResultWaker, ThreadRule};
use crate::response::Value;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;

/// Names and passwords whose result is kept.
const ENTRIES: usize = 4_096;
/// Passwords that wait to be verified, or are.
const UNDER_WAY: usize = 64;
/// A thread's stack, in bytes. The memory of a hash is on the heap.
const STACK: usize = 512 * 1_024;
/// Longer credentials are wrong, in bytes, decoded.
const LONGEST: usize = 1_024;

/// Why there are no users like these. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BasicAuthError {
    /// A name has a colon or control characters in it, or is empty.
    Name(String),
    /// The realm cannot be sent.
    Realm,
    /// There are none.
    NoUsers,
    /// The operating system gives no randomness.
    Randomness,
}

impl fmt::Display for BasicAuthError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BasicAuthError::Name(name) => {
                write!(
                    out,
                    "\"{}\" is no user's name: it has no colon and no control characters",
                    name.escape_debug()
                )
            }
            BasicAuthError::Realm => {
                out.write_str("a realm has printable ASCII characters, without \" and \\")
            }
            BasicAuthError::NoUsers => out.write_str("there is no user: give users, or users-file"),
            BasicAuthError::Randomness => {
                out.write_str("the operating system gives no randomness: try again")
            }
        }
    }
}

impl std::error::Error for BasicAuthError {}

type Key = [u8; 32];

/// Users with passwords.
pub struct BasicAuth {
    challenge: Value,
    users: Arc<Users>,
    key: Key,
    verified: KeptWork<Key, bool>,
}

struct Users {
    hashes: HashMap<String, PasswordHash>,
    /// That of no password.
    unknown: PasswordHash,
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BasicAuth").field("users", &self.users.hashes.len()).finish_non_exhaustive()
    }
}

impl BasicAuth {
    /// The users of `realm`, with the hashes of their passwords.
    ///
    /// # Errors
    /// A name or the realm is none.
    pub fn new(realm: &str, hashes: HashMap<String, PasswordHash>) -> Result<BasicAuth, BasicAuthError> {
        if !realm.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
            return Err(BasicAuthError::Realm);
        }
        let is_name = |name: &&String| {
            !name.is_empty() && !name.contains(|letter: char| letter == ':' || letter.is_control())
        };
        if let Some(name) = hashes.keys().find(|name| !is_name(name)) {
            return Err(BasicAuthError::Name(name.clone()));
        }
        let mut random = [0; 64];
        getrandom::fill(&mut random).map_err(|_| BasicAuthError::Randomness)?;
        let (key, salt) = random.split_at(32);
        // As costly as the costliest.
        let costliest = hashes.values().max_by_key(|hash| hash.cost()).ok_or(BasicAuthError::NoUsers)?;
        let unknown = costliest.of_no_password(salt);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let rule =
            ThreadRule { name: "password", most: cores.div_ceil(2).min(4), stack: STACK, niceness: 10 };
        let bounds = Bounds { entries: ENTRIES, weight: ENTRIES as u64, weigh: |_| 1, under_way: UNDER_WAY };
        let challenge = Value::from(format!("Basic realm=\"{realm}\", charset=\"UTF-8\""));
        Ok(BasicAuth {
            challenge,
            users: Arc::new(Users { hashes, unknown }),
            key: Sha256::digest(key).into(),
            verified: KeptWork::new(bounds, rule),
        })
    }

    /// Judges `sent`, the value of Authorization.
    pub(super) fn poll(
        &self,
        sent: Option<&[u8]>,
        wake_target: ResultWaker<'_>,
    ) -> Poll<Result<(), Refusal>> {
        let Some((name, password)) = sent.and_then(credentials) else {
            return Poll::Ready(Err(self.refusal()));
        };
        let key = self.digest(&name, &password);
        match self.verified.find(&key) {
            Known::Done(true) => Poll::Ready(Ok(())),
            Known::Done(false) => Poll::Ready(Err(self.refusal())),
            Known::Busy => Poll::Ready(Err(Refusal {
                status: 503,
                what: "too many passwords are being verified",
                field: Some(("retry-after", Value::Static("1"))),
            })),
            Known::Nothing => {
                let users = Arc::clone(&self.users);
                self.verified.ask(key, false, wake_target, move || users.verify(&name, &password));
                Poll::Pending
            }
        }
    }

    /// RFC 9110 §11.6.1.
    fn refusal(&self) -> Refusal {
        Refusal { status: 401, what: "", field: Some(("www-authenticate", self.challenge.clone())) }
    }

    fn digest(&self, name: &str, password: &[u8]) -> Key {
        let mut digest = Sha256::new_with_prefix(self.key);
        digest.update((name.len() as u64).to_be_bytes());
        digest.update(name);
        digest.update(password);
        digest.finalize().into()
    }
}

impl Users {
    fn verify(&self, name: &str, password: &[u8]) -> bool {
        let known = self.hashes.get(name);
        let is_right = known.unwrap_or(&self.unknown).verify(password);
        is_right && known.is_some()
    }
}

/// Name and password. RFC 7617 §2.
fn credentials(sent: &[u8]) -> Option<(String, Vec<u8>)> {
    let (scheme, token) = sent.split_at_checked(b"Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") || token.len() > 2 * LONGEST {
        return None;
    }
    let decoded =
        BASE64_STANDARD.decode(token.trim_ascii()).ok().filter(|decoded| decoded.len() <= LONGEST)?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let (name, password) = decoded.split_at_checked(colon)?;
    Some((String::from_utf8(name.to_vec()).ok()?, password.get(1..)?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::password::tests::cheap;
    use crate::readers;

    fn auth(users: &[(&str, &str)]) -> BasicAuth {
        let hashes = users.iter().map(|(name, password)| ((*name).to_owned(), cheap(password)));
        BasicAuth::new("Staff", hashes.collect()).unwrap()
    }

    fn sent(text: &str) -> Vec<u8> {
        format!("Basic {}", BASE64_STANDARD.encode(text)).into_bytes()
    }

    fn status(auth: &BasicAuth, sent: Option<&[u8]>) -> u16 {
        readers::wait(|wake_target| auth.poll(sent, wake_target)).err().map_or(200, |refusal| refusal.status)
    }

    #[test]
    fn a_user_passes_with_the_password_and_none_other() {
        let auth = auth(&[("alice", "secret:with colon"), ("bob", "é")]);
        // Twice: the second time from memory.
        for _ in 0..2 {
            for (text, expected) in [
                ("alice:secret:with colon", 200),
                ("bob:é", 200),
                ("alice:secret", 401),
                ("alice:", 401),
                ("alice", 401),
                ("Alice:secret:with colon", 401),
                ("bob:secret:with colon", 401),
                ("carol:é", 401),
                (":", 401),
                ("", 401),
            ] {
                assert_eq!(status(&auth, Some(&sent(text))), expected, "{text}");
            }
        }
        let right = sent("bob:é");
        let token = right.strip_prefix(b"Basic ").unwrap();
        assert_eq!(status(&auth, Some(&[b"bASIC ", token].concat())), 200);
        for other in [&b"Bearer x"[..], b"Basic", b"Basic !", token, b"", &[&right[..], b"="].concat()] {
            assert_eq!(status(&auth, Some(other)), 401, "{}", other.escape_ascii());
        }
        assert_eq!(status(&auth, None), 401);
        let long = sent(&format!("alice:{}", "x".repeat(LONGEST)));
        assert_eq!(status(&auth, Some(&long)), 401);
        let refusal = auth.refusal();
        let expected = Value::Static("Basic realm=\"Staff\", charset=\"UTF-8\"");
        assert_eq!(refusal.field, Some(("www-authenticate", expected)));
    }

    /// Deleted, the time of an answer could tell which users there are: an unknown one is verified as others are, and never let in.
    #[test]
    fn an_unknown_user_costs_a_verification_as_costly_as_the_costliest() {
        let auth = auth(&[("alice", "secret")]);
        assert_eq!(auth.users.unknown.cost(), auth.users.hashes["alice"].cost());
        assert!(!auth.users.verify("carol", b"secret") && !auth.users.verify("carol", b""));
    }

    /// Deleted, passwords that are tried could hold up all requests, or fill the memory.
    #[test]
    fn passwords_under_way_and_results_are_bounded() {
        let auth = auth(&[("alice", "secret")]);
        assert_eq!(status(&auth, Some(&sent("alice:secret"))), 200);
        let polls = (0..2 * UNDER_WAY).map(|number| {
            auth.poll(Some(&sent(&format!("alice:{number}"))), &|| Some(std::task::Waker::noop().clone()))
        });
        let busy =
            polls.filter(|poll| matches!(poll, Poll::Ready(Err(refusal)) if refusal.status == 503)).count();
        assert!((1..=UNDER_WAY).contains(&busy), "{busy}");
        assert_eq!(status(&auth, Some(&sent("alice:secret"))), 200, "what is known passes");
    }

    #[test]
    fn what_is_no_name_or_realm_is_refused() {
        let with = |realm: &str, name: &str| {
            BasicAuth::new(realm, HashMap::from([(name.to_owned(), cheap("x"))])).map(drop)
        };
        for name in ["", "a:b", "a\nb"] {
            assert!(matches!(with("", name), Err(BasicAuthError::Name(_))), "{name:?}");
        }
        for realm in ["a\"b", "é", "a\r\nb", "a\\"] {
            assert_eq!(with(realm, "a"), Err(BasicAuthError::Realm));
        }
        assert!(matches!(BasicAuth::new("", HashMap::new()), Err(BasicAuthError::NoUsers)));
    }
}
