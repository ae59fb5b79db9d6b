//! The secrets that a server keeps from one start to the next: the key of stateless resets and the key of address tokens.
//!
//! A server that was killed knows none of its connections when it runs again. With the reset key of before it can say so, and
//! clients connect again within a round trip instead of waiting for a timeout (RFC 9000 §10.3). With the token key of before,
//! clients that hold a token are spared a Retry (RFC 9000 §8.1.3). Both are derived from one secret of 32 bytes in one file of
//! mode 0600, replaced by rename. Servers that start at once take turns by a lock on the folder, so that all have the same.
//!
//! The reset key is bound to the address of the server: with one key for two servers, one of them would tell an attacker the
//! token that ends connections of the other (RFC 9000 §21.11). A file that is damaged is replaced, and the operator is told:
//! what is lost are resets for connections from before, which is no reason not to serve.

use crate::certificate::{brief, replace_file};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The file's name in the folder.
const FILE: &str = "quic-keys";
/// What the file begins with; the secret follows in hexadecimal.
const HEAD: &str = "tercel keys 1\n";
const SECRET_LEN: usize = 32;

/// Why there are no kept keys. The text says what to do.
#[derive(Debug)]
pub struct KeysError {
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, what) = (self.path.display(), brief(&self.error));
        write!(
            f,
            "cannot keep keys in {path}: {what}; make it readable and writable, or name another folder with --state-dir"
        )
    }
}

impl std::error::Error for KeysError {}

/// The keys of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    secret: [u8; SECRET_LEN],
    /// A damaged file was replaced: connections from before get no resets.
    pub was_damaged: bool,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// Keys that are not kept.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn fresh() -> io::Result<Keys> {
        let mut secret = [0; SECRET_LEN];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        Ok(Keys { secret, was_damaged: false })
    }

    /// The keys kept in `folder`, made if need be.
    ///
    /// # Errors
    /// The folder or the file in it cannot be read or written.
    pub fn load_or_make(folder: &Path) -> Result<Keys, KeysError> {
        Keys::find(folder).map_err(|error| KeysError { path: folder.to_owned(), error })
    }

    fn find(folder: &Path) -> io::Result<Keys> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // Servers that start together must agree. The lock ends with the descriptor.
        let lock = File::open(folder)?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)?;
        let path = folder.join(FILE);
        let kept = match File::open(&path) {
            Ok(file) => Some(read(file)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(Some(secret)) = kept {
            return Ok(Keys { secret, was_damaged: false });
        }
        let keys = Keys { was_damaged: kept.is_some(), ..Keys::fresh()? };
        let digits: String = keys.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        replace_file(&path, &format!("{HEAD}{digits}\n"), 0o600)?;
        Ok(keys)
    }

    /// Those of a process before.
    pub(crate) fn inherited(secret: [u8; SECRET_LEN]) -> Keys {
        Keys { secret, was_damaged: false }
    }

    /// All of them, for [`Keys::inherited`].
    pub(crate) fn secret(&self) -> &[u8; SECRET_LEN] {
        &self.secret
    }

    /// The key of stateless resets of the server at `address`.
    pub fn reset_key(&self, address: SocketAddr) -> [u8; 32] {
        self.derive("stateless reset", &address.to_string())
    }

    /// The key of address tokens.
    pub fn token_key(&self) -> [u8; 32] {
        self.derive("address token", "")
    }

    /// The parts are of fixed length but for the last, so that no two purposes give the same input.
    fn derive(&self, purpose: &str, context: &str) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(self.secret);
        digest.update(Sha256::digest(purpose));
        digest.update(context);
        digest.finalize().into()
    }
}

/// The secret in the file, unless it is damaged.
fn read(file: File) -> io::Result<Option<[u8; SECRET_LEN]>> {
    const LEN: usize = HEAD.len() + 2 * SECRET_LEN + 1;
    // It may have been copied around with looser permissions. If they cannot be mended, reading works all the same.
    let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
    let mut text = Vec::new();
    file.take(LEN as u64 + 1).read_to_end(&mut text)?;
    let digits = text.strip_prefix(HEAD.as_bytes()).and_then(|rest| rest.strip_suffix(b"\n"));
    let Some(digits) = digits.filter(|digits| digits.len() == 2 * SECRET_LEN) else { return Ok(None) };
    let mut secret = [0; SECRET_LEN];
    for (byte, pair) in secret.iter_mut().zip(digits.chunks(2)) {
        let pair =
            core::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(value) => *byte = value,
            None => return Ok(None),
        }
    }
    Ok(Some(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// Fails without it: each start has other keys, so that the connections of a server that was killed are not reset.
    #[test]
    fn keys_are_the_same_after_a_restart_and_of_one_server_only() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data/tercel");
        let first = Keys::load_or_make(&folder).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(FILE))), (0o700, 0o600));
        std::fs::set_permissions(folder.join(FILE), std::fs::Permissions::from_mode(0o644)).unwrap();
        let again = Keys::load_or_make(&folder).unwrap();
        assert_eq!((again == first, again.was_damaged, mode(&folder.join(FILE))), (true, false, 0o600));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no left-overs");
        let [one, other] = ["192.0.2.1:443", "192.0.2.1:444"].map(address);
        assert_eq!(first.reset_key(one), again.reset_key(one));
        assert_eq!(first.token_key(), again.token_key());
        assert_ne!(first.reset_key(one), first.reset_key(other), "RFC 9000 §21.11");
        assert_ne!(first.reset_key(one), first.token_key());
        assert!(first != Keys::fresh().unwrap());
    }

    #[test]
    fn servers_that_start_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let start = || Keys::load_or_make(folder.path()).unwrap().token_key();
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn a_damaged_file_is_replaced_and_an_unusable_folder_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let first = Keys::load_or_make(folder.path()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let longer = text.clone() + "0";
        let signs = format!("{HEAD}{}\n", "+1".repeat(SECRET_LEN));
        for damaged in ["", "garbage", &text[..40], &longer, &text.replace("keys 1", "keys 2"), &signs] {
            std::fs::write(&path, damaged).unwrap();
            let made = Keys::load_or_make(folder.path()).unwrap();
            assert!(made.was_damaged && made.secret != first.secret, "{damaged}");
            assert_eq!(Keys::load_or_make(folder.path()).unwrap().secret, made.secret);
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let line = Keys::load_or_make(folder.path()).unwrap_err().to_string();
        assert!(line.contains("--state-dir") && !line.contains("os error") && !line.contains('\n'), "{line}");
        assert!(Keys::load_or_make(Path::new("/proc/nosuch")).is_err());
    }
}
