//! What is kept in the state folder: accounts, certificates with their keys, failures.
//!
//! ```text
//! STATE/acme/HOST-DIGEST/              an authority, by the URL of its directory
//!     account.json                     the account's key and URL
//!     NAME-DIGEST.pem                  key and chain, by all names and the kind of key
//!     NAME-DIGEST.failures             how often attempts have failed, and when the next one may begin
//!     lock                             held by the server that orders
//! ```
//!
//! Folders have mode 0700, files 0600, and each is replaced by a rename. Nothing is made before the first order: `tercel check`
//! writes nothing.

use crate::settings::{Authority, Order};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use server::certificate::{self, Identity};
use server::date::unix_now;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// An account is some hundred bytes.
const LONGEST_ACCOUNT: u64 = 64 << 10;

/// The folder in which accounts and certificates are kept.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// The right to order. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock ends with the descriptor")] File);

/// Attempts of before that have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// In a row.
    pub(crate) count: u32,
    /// When the next attempt may begin, in seconds since 1970.
    pub(crate) next_s: u64,
}

impl Store {
    /// In this state folder.
    pub fn at(state: &Path) -> Store {
        Store { folder: state.join("acme") }
    }

    /// The file of a certificate and its key, which may not be there yet.
    pub fn certificate(&self, order: &Order) -> PathBuf {
        let mut names = order.names.clone();
        names.sort();
        let first = order.names.first().map_or("", String::as_str);
        let digest = digest(&format!("{} {}", order.key.name(), names.join(" ")));
        self.authority(&order.authority).join(format!("{first}-{digest}.pem"))
    }

    /// The certificate of an order, if there is one that is for all its names. It may have expired.
    pub fn load(&self, order: &Order) -> Option<crypto::Identity> {
        let path = self.certificate(order);
        let identity = Identity::load(&path, &path).ok()?;
        let chain = identity.chain.iter().map(|certificate| certificate.to_vec()).collect();
        let identity = crypto::Identity::from_der(chain, identity.key.secret_der().to_vec()).ok()?;
        order.names.iter().all(|name| identity.is_for(name)).then_some(identity)
    }

    /// The same for what it says of itself.
    pub(crate) fn certificate_of(&self, order: &Order) -> Option<Identity> {
        self.load(order)?;
        let path = self.certificate(order);
        Identity::load(&path, &path).ok()
    }

    /// Keeps a certificate. `pem`: the key and the chain.
    pub(crate) fn keep(&self, order: &Order, pem: &str) -> io::Result<()> {
        certificate::replace_file(&self.certificate(order), pem, 0o600)
    }

    /// Makes the folder of an authority, and takes the right to order from it; `None` while another server has it.
    pub(crate) fn lock(&self, authority: &Authority) -> io::Result<Option<Lock>> {
        let folder = self.authority(authority);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(folder.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The account at an authority, with the contact that it was told, if there is one.
    pub(crate) fn account(&self, authority: &Authority) -> Option<(Value, Vec<String>)> {
        let mut text = Vec::new();
        let file = File::open(self.authority(authority).join("account.json")).ok()?;
        file.take(LONGEST_ACCOUNT).read_to_end(&mut text).ok()?;
        let mut kept: Value = serde_json::from_slice(&text).ok()?;
        let contact = serde_json::from_value(kept.get_mut("contact")?.take()).ok()?;
        Some((kept.get_mut("credentials")?.take(), contact))
    }

    pub(crate) fn keep_account(&self, authority: &Authority, credentials: &Value) -> io::Result<()> {
        let text = json!({ "contact": authority.contact, "credentials": credentials }).to_string();
        certificate::replace_file(&self.authority(authority).join("account.json"), &text, 0o600)
    }

    /// The account is none any more.
    pub(crate) fn forget_account(&self, authority: &Authority) -> io::Result<()> {
        std::fs::remove_file(self.authority(authority).join("account.json"))
    }

    /// The failures of before. A process that is started again and again must not ask an authority each time.
    pub(crate) fn failures(&self, order: &Order, longest_s: u64) -> Failures {
        let text = std::fs::read_to_string(self.failures_file(order)).unwrap_or_default();
        let mut numbers = text.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (count, next_s) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        // The clock may have been wrong.
        let next_s = next_s.min(unix_now().saturating_add(longest_s));
        Failures { count: u32::try_from(count).unwrap_or(u32::MAX), next_s }
    }

    /// Notes failures, or that there are none any more.
    pub(crate) fn note_failures(&self, order: &Order, failures: Failures) -> io::Result<()> {
        let path = self.failures_file(order);
        if failures == Failures::default() {
            return match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        certificate::replace_file(&path, &format!("{} {}\n", failures.count, failures.next_s), 0o600)
    }

    fn failures_file(&self, order: &Order) -> PathBuf {
        self.certificate(order).with_extension("failures")
    }

    fn authority(&self, authority: &Authority) -> PathBuf {
        let host: String = authority.host().chars().filter(|letter| is_plain(*letter)).collect();
        self.folder.join(format!("{host}-{}", digest(&authority.directory)))
    }
}

/// Whether a letter of a host may be one of a file's name.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-')
}

/// The first half of a digest, for names of files.
fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(16).fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Challenge, KeyKind};
    use std::os::unix::fs::PermissionsExt as _;

    fn order(names: &[&str]) -> Order {
        let authority = Authority {
            directory: "https://ca.example:14000/dir/../..".into(),
            contact: vec!["a@example.org".into()],
            roots: None,
            external: None,
        };
        Order {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            authority,
            challenge: Challenge::default(),
            key: KeyKind::default(),
            profile: None,
        }
    }

    fn pem(names: &[&str]) -> String {
        let made = rcgen::generate_simple_self_signed(
            names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),
        );
        let made = made.unwrap();
        made.signing_key.serialize_pem() + &made.cert.pem()
    }

    /// Deleted, a server could serve a certificate for other names, or another user read its key.
    #[test]
    fn certificates_are_kept_by_their_names_and_for_their_owner_alone() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::at(state.path());
        let order = order(&["a.example", "b.example"]);
        assert!(store.load(&order).is_none());
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "a look writes nothing");
        let lock = store.lock(&order.authority).unwrap();
        assert!(lock.is_some() && store.lock(&order.authority).unwrap().is_none());
        drop(lock);
        assert!(store.lock(&order.authority).unwrap().is_some());
        store.keep(&order, &pem(&["a.example"])).unwrap();
        assert!(store.load(&order).is_none(), "it is not for all names");
        store.keep(&order, &pem(&["a.example", "b.example"])).unwrap();
        assert!(store.load(&order).is_some() && store.certificate_of(&order).is_some());
        let path = store.certificate(&order);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert!(path.starts_with(state.path()), "whatever the directory's URL is");
        let turned = Order { names: order.names.iter().rev().cloned().collect(), ..order.clone() };
        assert_eq!(
            path.file_stem().map(|stem| stem.len()),
            store.certificate(&turned).file_stem().map(|stem| stem.len())
        );
        assert_ne!(path, store.certificate(&Order { key: KeyKind::EcdsaP384, ..order }));
    }

    #[test]
    fn accounts_and_failures_are_kept_and_damage_is_as_if_there_were_none() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::at(state.path());
        let order = order(&["a.example"]);
        assert!(store.account(&order.authority).is_none());
        drop(store.lock(&order.authority).unwrap());
        store.keep_account(&order.authority, &json!({ "id": "x" })).unwrap();
        assert_eq!(
            store.account(&order.authority),
            Some((json!({ "id": "x" }), order.authority.contact.clone()))
        );
        store.forget_account(&order.authority).unwrap();
        assert!(store.account(&order.authority).is_none());

        let failures = Failures { count: 3, next_s: unix_now() + 50 };
        store.note_failures(&order, failures).unwrap();
        assert_eq!(store.failures(&order, 100), failures);
        assert!(store.failures(&order, 10).next_s <= unix_now() + 10, "the clock was wrong");
        std::fs::write(store.certificate(&order).with_extension("failures"), "x y").unwrap();
        assert_eq!(store.failures(&order, 100), Failures::default());
        store.note_failures(&order, Failures::default()).unwrap();
        store.note_failures(&order, Failures::default()).unwrap();
    }
}
