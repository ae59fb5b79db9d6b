//! The keys of one encryption level, and the secrets from which the next 1-RTT keys come. RFC 9001 §5, §6.

use crate::header::HeaderKey;
use crate::packet::PacketKey;
use crate::secret::Secret;
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
        let header = secret.header_key(version);
        DirectionalKeys {
            header: HeaderKey::new(secret.suite(), &header[..secret.suite().key_len()]),
            packet: packet_key(version, secret),
        }
    }
}

fn packet_key(version: Version, secret: &Secret) -> PacketKey {
    let (key, iv) = secret.packet_key(version);
    PacketKey::new(secret.suite(), &key[..secret.suite().key_len()], &iv)
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

/// Where the next generations of 1-RTT packet keys come from. RFC 9001 §6.1.
#[derive(Debug)]
pub struct OneRttSecrets {
    version: Version,
    local: Secret,
    peer: Secret,
}

impl OneRttSecrets {
    /// The secrets of the generation in use.
    pub(crate) fn new(version: Version, local: Secret, peer: Secret) -> OneRttSecrets {
        OneRttSecrets { version, local, peer }
    }

    /// Moves on by one key phase: the packet keys of the local side, then of the peer. Header keys stay.
    #[expect(
        clippy::should_implement_trait,
        reason = "not an iterator: it never ends and each call costs four HMACs"
    )]
    pub fn next(&mut self) -> (PacketKey, PacketKey) {
        //= rfc9001/6.1#3
        self.local.update(self.version);
        self.peer.update(self.version);
        (packet_key(self.version, &self.local), packet_key(self.version, &self.peer))
    }
}

#[cfg(test)]
mod tests;
