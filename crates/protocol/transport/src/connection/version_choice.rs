//! How the version of a connection was found, and whether that was honest. Source: RFC 9368.

use crate::error::TransportError;
use crypto::TlsSession;
use wire::Side;
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
    /// What a server that prefers another version than the first would say in it. Gone once the version is settled.
    preferred: Option<Box<Preferred>>,
    /// A client has changed to the version in which the server answers: it does not do so again.
    pub(super) has_changed: bool,
}

/// A version to which a server moves a client that offers it.
struct Preferred {
    version: Version,
    /// Ours, in the first version.
    parameters: TransportParameters,
}

impl Versions {
    pub(super) fn new(first: Version) -> Versions {
        Versions { first, refused: None, new_session: None, preferred: None, has_changed: false }
    }

    /// What the first flight was in.
    pub(super) fn first(&self) -> Version {
        self.first
    }

    /// A server with these parameters that prefers a version.
    pub(super) fn may_move(&mut self, preferred: Option<Version>, parameters: TransportParameters) {
        let preferred = preferred.filter(|preferred| *preferred != self.first);
        self.preferred = preferred.map(|version| Box::new(Preferred { version, parameters }));
    }

    /// What a server moves to, and its parameters in that version, encoded; `offered` are those of the client, not authentic yet.
    /// `None` where the client does not offer the version, or where its parameters are damaged. Source: RFC 9368 §2.3.
    pub(super) fn preferred(&mut self, offered: &[u8]) -> Option<(Version, Vec<u8>)> {
        let Preferred { version, mut parameters } = *self.preferred.take()?;
        let client = TransportParameters::parse(offered, Side::Client).ok()?.version_information?;
        //= rfc9368/2.3#1
        if client.chosen != self.first || !client.available.contains(&version) {
            return None;
        }
        if let Some(information) = &mut parameters.version_information {
            information.chosen = version;
        }
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        Some((version, encoded))
    }

    /// A client that may be asked for another version.
    pub(super) fn may_follow(&mut self, new_session: NewSession) {
        self.new_session = Some(new_session);
    }

    /// Holds the version in use against what the peer's authentic parameters say. Source: RFC 9368 §4.
    pub(super) fn check(
        &self,
        side: Side,
        version: Version,
        peer: &TransportParameters,
    ) -> Result<(), TransportError> {
        let bad = |reason| Err(TransportError::new(Code::VERSION_NEGOTIATION_ERROR, reason));
        let information = peer.version_information.as_ref();
        // RFC 9368 §4: a client names the version of its first flight, a server the one in use, and must if it has changed it.
        let named = if side.is_server() { self.first } else { version };
        //= rfc9368/4#1
        //= rfc9369/4.1#2
        //= rfc9369/4.1#3
        if information.map_or(self.first, |information| information.chosen) != named {
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

#[cfg(test)]
mod tests {
    use super::*;
    use wire::transport_parameters::VersionInformation;

    fn parameters(chosen: Version, available: &[Version]) -> TransportParameters {
        let information = VersionInformation { chosen, available: available.to_vec() };
        TransportParameters { version_information: Some(information), ..TransportParameters::default() }
    }

    /// What a server that prefers version 2 makes of a client that has begun with version 1.
    fn moved(client: &TransportParameters) -> Option<Version> {
        let mut versions = Versions::new(Version::V1);
        versions.may_move(Some(Version::V2), parameters(Version::V1, &Version::SUPPORTED));
        let mut offered = Vec::new();
        client.write(&mut offered);
        let (version, encoded) = versions.preferred(&offered)?;
        let said = TransportParameters::parse(&encoded, Side::Server).expect("our own parameters");
        assert_eq!(said.version_information.map(|information| information.chosen), Some(version));
        assert!(versions.preferred(&offered).is_none(), "once");
        Some(version)
    }

    #[test]
    fn a_server_moves_only_clients_that_offer_it() {
        assert_eq!(moved(&parameters(Version::V1, &[Version::V1, Version::V2])), Some(Version::V2));
        assert_eq!(moved(&parameters(Version::V1, &[Version::V1])), None);
        assert_eq!(moved(&parameters(Version::V2, &[Version::V2, Version::V1])), None, "it has not begun so");
        assert_eq!(moved(&TransportParameters::default()), None, "of an old client");
        let mut versions = Versions::new(Version::V1);
        versions.may_move(Some(Version::V2), parameters(Version::V1, &Version::SUPPORTED));
        assert!(versions.preferred(b"\x11\x40").is_none(), "damaged: the handshake ends for it later");
        versions.may_move(Some(Version::V1), parameters(Version::V1, &Version::SUPPORTED));
        assert!(versions.preferred(&[]).is_none(), "it has what it prefers");
    }
}
