//! The keys of one encryption level, and the secrets from which the next 1-RTT keys come. RFC 9001 §5, §6.

use crate::derived::DerivedKey;
use crate::header::HeaderKey;
use crate::library::Library;
use crate::packet::PacketKey;
use crate::secret::{RawKey, Secret};
use crate::suite::Suite;
use core::fmt;
use wire::{Side, Version};

/// Keys for packets that we send and for packets that the peer sent.
#[derive(Debug)]
pub struct Keys {
    /// For what we send.
    pub local: DirectionalKeys,
    /// For what we receive.
    pub peer: DirectionalKeys,
}

/// Keys of one direction.
#[derive(Debug)]
pub struct DirectionalKeys {
    /// Masks headers; stays the same through key updates.
    pub header: HeaderKey,
    /// Seals or opens packets.
    pub packet: PacketKey,
}

impl Keys {
    pub(crate) fn new(version: Version, local: &Secret, peer: &Secret) -> Keys {
        Keys { local: DirectionalKeys::new(version, local), peer: DirectionalKeys::new(version, peer) }
    }
}

impl DirectionalKeys {
    pub(crate) fn new(version: Version, secret: &Secret) -> DirectionalKeys {
        DirectionalKeys {
            header: header_key(secret.suite(), &secret.header_key(version)),
            packet: DerivedKey::new(version, secret).expand(0),
        }
    }
}

fn header_key(suite: Suite, key: &RawKey) -> HeaderKey {
    HeaderKey::with_library(Library::fastest(suite), suite, &key[..suite.key_len()])
}

/// The keys of Initial packets, which follow from the destination connection ID of the client's first Initial packet (after
/// a Retry, of the Initial that answers it). RFC 9001 §5.2. A version that is not supported gets the keys of version 1.
pub fn initial_keys(version: Version, dcid: &[u8], side: Side) -> Keys {
    let (client, server) = Secret::initial(version, dcid);
    match side {
        Side::Client => Keys::new(version, &client, &server),
        Side::Server => Keys::new(version, &server, &client),
    }
}

/// What 1-RTT keys are made of, those in use and those of the next key phases. RFC 9001 §6.1.
///
/// It is a fifth of the keys themselves: a connection that is idle keeps no more than this.
pub struct OneRttSecrets {
    version: Version,
    /// The path whose packets the keys are for. draft-ietf-quic-multipath §2.4.
    path: u32,
    local: DirectionSecrets,
    peer: DirectionSecrets,
    /// The keys of the next phase, derived ahead unless they are not used for a while.
    next: Option<Box<NextKeys>>,
}

/// The same of one direction.
struct DirectionSecrets {
    header: RawKey,
    in_use: DerivedKey,
    /// The secret of the next key.
    secret: Secret,
}

/// The keys of the next phase, of either side.
struct NextKeys {
    local: DerivedKey,
    peer: DerivedKey,
}

impl DirectionSecrets {
    fn new(version: Version, mut secret: Secret) -> DirectionSecrets {
        let (header, in_use) = (secret.header_key(version), DerivedKey::new(version, &secret));
        //= rfc9001/6.1#3
        secret.update(version);
        DirectionSecrets { header, in_use, secret }
    }

    fn next(&self, version: Version) -> DerivedKey {
        DerivedKey::new(version, &self.secret)
    }

    fn advance(&mut self, version: Version, next: DerivedKey) {
        self.secret.update(version);
        self.in_use = next;
    }

    fn keys(&self, path: u32) -> DirectionalKeys {
        DirectionalKeys {
            header: header_key(self.secret.suite(), &self.header),
            packet: self.in_use.expand(path),
        }
    }
}

impl OneRttSecrets {
    /// The secrets of the first generation.
    pub(crate) fn new(version: Version, local: Secret, peer: Secret) -> OneRttSecrets {
        let [local, peer] = [local, peer].map(|secret| DirectionSecrets::new(version, secret));
        let mut secrets = OneRttSecrets { version, path: 0, local, peer, next: None };
        secrets.derive_ahead();
        secrets
    }

    /// Derives the keys of the next phase, if they are not there: a key update then takes little longer than any other packet.
    /// RFC 9001 §9.5.
    pub fn derive_ahead(&mut self) {
        if self.next.is_none() {
            let (local, peer) = (self.local.next(self.version), self.peer.next(self.version));
            self.next = Some(Box::new(NextKeys { local, peer }));
        }
    }

    /// Forgets what [`OneRttSecrets::derive_ahead`] makes again.
    pub fn release_memory(&mut self) {
        self.next = None;
    }

    /// The keys in use.
    pub fn keys(&self) -> Keys {
        Keys { local: self.local.keys(self.path), peer: self.peer.keys(self.path) }
    }

    /// The packet keys in use: the local side's, then the peer's.
    pub fn packet_keys(&self) -> (PacketKey, PacketKey) {
        (self.local.in_use.expand(self.path), self.peer.in_use.expand(self.path))
    }

    /// The packet key of the peer's next key phase.
    pub fn next_peer(&self) -> PacketKey {
        match &self.next {
            Some(next) => next.peer.expand(self.path),
            None => self.peer.next(self.version).expand(self.path),
        }
    }

    /// Moves on by one key phase. Header keys stay.
    pub fn advance(&mut self) {
        self.derive_ahead();
        if let Some(next) = self.next.take() {
            self.local.advance(self.version, next.local);
            self.peer.advance(self.version, next.peer);
        }
        self.derive_ahead();
    }

    /// Keys made from now on are for packets of path `to`; of path 0 at first.
    pub fn set_path(&mut self, to: u32) {
        self.path = to;
    }
}

impl fmt::Debug for OneRttSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneRttSecrets")
    }
}

#[cfg(test)]
mod tests;
