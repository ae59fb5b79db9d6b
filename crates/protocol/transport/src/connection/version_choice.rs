//! How the version of a connection was found, and whether that was honest. Source: RFC 9368.

use crate::error::TransportError;
use crypto::TlsSession;
use wire::error::Code;
use wire::transport_parameters::TransportParameters;
use wire::version::Version;

/// Makes a client's TLS session for a version, from our transport parameters; `None` where TLS refuses.
pub(super) type NewSession = Box<dyn Fn(Version, &[u8]) -> Option<TlsSession> + Send>;

/// How the version in use was found.
pub(super) struct Versions {
    /// What the first flight was in.
    first: Version,
    /// What the client would rather have used, had the server not asked for another version.
    pub(super) refused: Option<Version>,
    /// For a first flight in another version. Gone once that was made.
    pub(super) new_session: Option<NewSession>,
}

impl Versions {
    pub(super) fn new(first: Version) -> Versions {
        Versions { first, refused: None, new_session: None }
    }

    /// A client that may be asked for another version.
    pub(super) fn may_follow(&mut self, new_session: NewSession) {
        self.new_session = Some(new_session);
    }

    /// Holds the version in use against what the peer's authentic parameters say. Source: RFC 9368 §4.
    pub(super) fn check(&self, version: Version, peer: &TransportParameters) -> Result<(), TransportError> {
        let bad = |reason| Err(TransportError::new(Code::VERSION_NEGOTIATION_ERROR, reason));
        let information = peer.version_information.as_ref();
        // RFC 9368 §4: the version in use is the one that both name; a server that has changed it must say so.
        //= rfc9369/4.1#2
        if information.map_or(self.first, |information| information.chosen) != version {
            return bad("chosen version does not match");
        }
        let Some(refused) = self.refused else { return Ok(()) };
        let Some(information) = information.filter(|information| !information.available.is_empty()) else {
            return bad("a server that negotiates does not list its versions");
        };
        // What the client would have chosen from the authentic list.
        let listed = information.available.iter().copied().chain([version]);
        if choose(refused, listed) == Some(version) {
            Ok(())
        } else {
            bad("the server speaks a version that Version Negotiation did not list")
        }
    }
}

/// What a client takes from a server's list: `first`, or else the version that it likes best.
pub(super) fn choose(first: Version, list: impl Iterator<Item = Version> + Clone) -> Option<Version> {
    let mut liked = core::iter::once(first).chain(Version::SUPPORTED);
    liked.find(|version| list.clone().any(|listed| listed == *version))
}
