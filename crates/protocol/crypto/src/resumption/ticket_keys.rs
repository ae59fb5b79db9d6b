//! The keys that seal a server's tickets. RFC 5077 §4, RFC 8446 §4.6.1.
//!
//! A ticket is the name of its key, a random nonce, and the time of issue and the session, sealed with AES-256-GCM-SIV. What it
//! is bound to (issued.rs) is authenticated with it and not in it.
//!
//! There are three keys: one seals, the one before it still opens, the next one is known before it seals, so that servers that share
//! a file have it in time (key_set.rs). A key seals for one period, which is the lifetime of a ticket, and opens for one more. After
//! that the tickets that it has sealed stay sealed, and so does the early data that came with them.
//!
//! Invariant: bytes that do not authenticate are no ticket, and cost a full handshake.

use super::key_file::{KeyFile, TicketFileError};
use super::key_set::{KeySet, NAME_LEN, SECRET_LEN, TicketKey, random};
use aws_lc_rs::aead::{Aad, Nonce};
use core::fmt;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use zeroize::Zeroizing;

const NONCE_LEN: usize = 12;
const TAG_LEN: usize = 16;
const ISSUED_LEN: usize = 8;
/// What a ticket has more than the session in it.
const OVERHEAD: usize = NAME_LEN + NONCE_LEN + ISSUED_LEN + TAG_LEN;

/// The longest lifetime of a ticket, in seconds. Source: RFC 8446 §4.6.1.
const MAX_LIFETIME_S: u32 = 7 * 24 * 60 * 60;

/// A ticket that was opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// When it was sealed, in seconds since 1970.
    pub(super) issued_s: u64,
    /// How long ago that is.
    pub(super) age_s: u64,
    /// What was sealed.
    pub(super) session: Zeroizing<Vec<u8>>,
}

/// The keys that seal a server's tickets. They rotate: in memory by themselves, those of a file by [`TicketKeys::refresh`].
pub struct TicketKeys {
    held: RwLock<Arc<KeySet>>,
    lifetime_s: u32,
    /// When the keys were made or read, in seconds since 1970.
    begun_s: u64,
    time: Arc<dyn TimeProvider>,
    file: Option<KeyFile>,
    /// Another process has the keys too.
    is_inherited: bool,
}

/// The length of a key as [`TicketKeys::bequeath`] writes it: its name, when it begins to seal, its secret.
const BEQUEATHED_LEN: usize = NAME_LEN + size_of::<u64>() + SECRET_LEN;

impl TicketKeys {
    /// How long tickets are good for unless told otherwise, in seconds: 12 hours.
    pub const DEFAULT_LIFETIME_S: u32 = 12 * 60 * 60;

    /// Keys of this process alone. Tickets are good for `lifetime_s` seconds, between a minute and 7 days.
    pub fn in_memory(lifetime_s: u32) -> TicketKeys {
        TicketKeys::with_time(lifetime_s, None, Arc::new(DefaultTimeProvider))
    }

    /// The keys in a file, for several servers; it is made if there is none. `lifetime_s` should be the same for all.
    ///
    /// # Errors
    /// The file cannot be read or made, is no file of ticket keys or a torn one, or is open to all users.
    pub fn in_file(path: &Path, lifetime_s: u32) -> Result<TicketKeys, TicketFileError> {
        let keys = TicketKeys::with_time(lifetime_s, Some(KeyFile::new(path)), Arc::new(DefaultTimeProvider));
        keys.refresh()?;
        Ok(keys)
    }

    /// The keys of [`TicketKeys::bequeath`], for a process that takes the place of another. From then on both rotate for themselves.
    /// Bytes that are no keys are none, and fresh ones are made. Outside semver.
    #[doc(hidden)]
    pub fn inherited(keys: &[u8], lifetime_s: u32) -> TicketKeys {
        let mut inherited = TicketKeys::in_memory(lifetime_s);
        inherited.is_inherited = true;
        let (keys, _) = keys.as_chunks::<BEQUEATHED_LEN>();
        let read = |key: &[u8; BEQUEATHED_LEN]| {
            let (name, rest) = key.split_first_chunk()?;
            let (from_s, secret) = rest.split_first_chunk()?;
            let secret = secret.first_chunk()?;
            Some(Arc::new(TicketKey::new(*name, u64::from_be_bytes(*from_s), *secret)))
        };
        inherited.hold(KeySet(keys.iter().filter_map(read).collect()));
        inherited
    }

    /// The keys, secret, for [`TicketKeys::inherited`]. Outside semver.
    #[doc(hidden)]
    pub fn bequeath(&self) -> Zeroizing<Vec<u8>> {
        let keys = self.current(self.now_s());
        let mut bytes = Zeroizing::new(Vec::with_capacity(keys.0.len() * BEQUEATHED_LEN));
        for key in &keys.0 {
            bytes.extend_from_slice(&key.name);
            bytes.extend_from_slice(&key.from_s.to_be_bytes());
            bytes.extend_from_slice(&*key.secret);
        }
        bytes
    }

    pub(super) fn with_time(
        lifetime_s: u32,
        file: Option<KeyFile>,
        time: Arc<dyn TimeProvider>,
    ) -> TicketKeys {
        let begun_s = now_s(&*time);
        let lifetime_s = lifetime_s.clamp(60, MAX_LIFETIME_S);
        TicketKeys { held: RwLock::default(), lifetime_s, begun_s, time, file, is_inherited: false }
    }

    /// Reads the file again, and rotates the keys in it if that is due. To be called every few seconds by a thread that may wait for
    /// a disk. Without a file there is nothing to do.
    ///
    /// # Errors
    /// As [`TicketKeys::in_file`]. The keys in use stay in use.
    pub fn refresh(&self) -> Result<(), TicketFileError> {
        let Some(file) = &self.file else { return Ok(()) };
        let (now_s, period_s) = (self.now_s(), u64::from(self.lifetime_s));
        let mut found = match file.read() {
            Ok(found) => found,
            Err(error) if error.is_missing() && self.held().0.is_empty() => {
                let fresh = KeySet::default().rotated(now_s, period_s).unwrap_or_default();
                file.create(&fresh)?
            }
            Err(error) => return Err(error),
        };
        if let Some(rotated) = found.rotated(now_s, period_s) {
            // Of two servers that do this at the same time one wins. The key of the other has not sealed anything.
            file.replace(&rotated)?;
            found = rotated;
        }
        self.hold(found);
        Ok(())
    }

    /// How long a ticket is good for, in seconds.
    pub fn lifetime_s(&self) -> u32 {
        self.lifetime_s
    }

    /// Whether an earlier process, or another one, may have issued the tickets that these keys open.
    pub(super) fn are_shared(&self) -> bool {
        self.file.is_some() || self.is_inherited
    }

    pub(super) fn begun_s(&self) -> u64 {
        self.begun_s
    }

    pub(super) fn now_s(&self) -> u64 {
        now_s(&*self.time)
    }

    fn held(&self) -> Arc<KeySet> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn hold(&self, keys: KeySet) {
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// The keys as they should be now.
    fn current(&self, now_s: u64) -> Arc<KeySet> {
        let held = self.held();
        if self.file.is_some() {
            return held;
        }
        let Some(rotated) = held.rotated(now_s, self.lifetime_s.into()) else { return held };
        let mut place = self.held.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been faster.
        if Arc::ptr_eq(&place, &held) {
            *place = Arc::new(rotated);
        }
        Arc::clone(&place)
    }

    /// Seals a session, bound to `context`.
    pub(super) fn seal(&self, context: &[u8], session: &[u8]) -> Option<Vec<u8>> {
        let now_s = self.now_s();
        let keys = self.current(now_s);
        let key = keys.sealing(now_s)?;
        let nonce: [u8; NONCE_LEN] = random();
        let mut ticket = Vec::with_capacity(session.len() + OVERHEAD);
        ticket.extend_from_slice(&key.name);
        ticket.extend_from_slice(&nonce);
        let mut body = Zeroizing::new(Vec::with_capacity(ISSUED_LEN + session.len()));
        body.extend_from_slice(&now_s.to_be_bytes());
        body.extend_from_slice(session);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key.aead.seal_in_place_separate_tag(nonce, Aad::from(context), &mut body).ok()?;
        ticket.extend_from_slice(&body);
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    /// Opens a ticket that was sealed for the same `context`, and is not too old.
    pub(super) fn open(&self, context: &[u8], ticket: &[u8]) -> Option<Opened> {
        let now_s = self.now_s();
        let keys = self.current(now_s);
        let (name, rest) = ticket.split_first_chunk::<NAME_LEN>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let key = keys.0.iter().find(|key| key.name == *name)?;
        let mut body = Zeroizing::new(sealed.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key.aead.open_in_place(nonce, Aad::from(context), &mut body).ok()?;
        let (issued, session) = opened.split_first_chunk::<ISSUED_LEN>()?;
        let issued_s = u64::from_be_bytes(*issued);
        // A ticket of a server whose clock is ahead is as good as one from now.
        let age_s = now_s.saturating_sub(issued_s);
        let session = Zeroizing::new(session.to_vec());
        (age_s <= u64::from(self.lifetime_s)).then_some(Opened { issued_s, age_s, session })
    }
}

/// What tells a ticket from all others: its nonce.
pub(super) fn fingerprint(ticket: &[u8]) -> Option<u64> {
    ticket.get(NAME_LEN..)?.first_chunk().map(|nonce| u64::from_be_bytes(*nonce))
}

fn now_s(time: &dyn TimeProvider) -> u64 {
    time.current_time().map_or(0, |now| now.as_secs())
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys").field("lifetime_s", &self.lifetime_s).finish_non_exhaustive()
    }
}
