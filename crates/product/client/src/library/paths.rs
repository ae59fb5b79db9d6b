//! Several paths to a server at once: from where.

use super::error::{Error, Kind};
use crate::migration::LocalPlace;
use std::net::{IpAddr, SocketAddr};
use transport::{Connection, OpenPathError, Scheduler};

/// Paths of a connection at a time. Source: docs/decisions/013.
pub(crate) const MAX_PATHS: usize = 4;

/// What [`Builder::paths`](crate::Builder::paths) asks for.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// A path from each of them, the first one included that the connection begins on.
    pub(crate) from: Vec<LocalPlace>,
    pub(crate) scheduler: Scheduler,
}

/// The local addresses of these places from which `peer` can be reached, one each, no two alike.
///
/// # Errors
/// A place is not one of this machine, or has no address of the peer's family.
pub(crate) fn addresses_towards(from: &[LocalPlace], peer: SocketAddr) -> Result<Vec<IpAddr>, Error> {
    let mut found: Vec<IpAddr> = Vec::new();
    for place in from {
        let all = place.addresses().map_err(|error| Error::new(Kind::Connect, error.to_string()))?;
        let Some(ip) = all.into_iter().find(|ip| ip.is_ipv4() == peer.is_ipv4()) else {
            let family = if peer.is_ipv4() { "IPv4" } else { "IPv6" };
            let text = format!("{place} has no {family} address, and the server is at {}", peer.ip());
            return Err(Error::new(Kind::Connect, text));
        };
        if !found.contains(&ip) {
            found.push(ip);
        }
    }
    Ok(found)
}

/// Opens paths from the addresses that wait, as far as the connection can; those stay that it cannot have yet. Source:
/// draft-ietf-quic-multipath §3.1.
pub(crate) fn open(quic: &mut Connection, now: base::time::Instant, waiting: &mut Vec<IpAddr>) {
    let port = quic.addresses().local.port();
    waiting.retain(|ip| {
        let opened = quic.open_path(now, SocketAddr::new(*ip, port));
        // The server's connection IDs for further paths come after the handshake.
        matches!(opened, Err(OpenPathError::NotConfirmed | OpenPathError::NoConnectionId))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a path could begin from an address of the other family, or two from one.
    #[test]
    fn a_place_without_an_address_of_the_servers_family_is_named() {
        let place = |last: u8| LocalPlace::Address([127, 0, 0, last].into());
        let (v4, v6): (SocketAddr, SocketAddr) =
            (([127, 0, 0, 1], 4433).into(), (std::net::Ipv6Addr::LOCALHOST, 4433).into());
        let found = addresses_towards(&[place(2), place(3), place(2)], v4).unwrap();
        assert_eq!(found, [IpAddr::from([127, 0, 0, 2]), IpAddr::from([127, 0, 0, 3])]);
        let text = addresses_towards(&[place(2)], v6).unwrap_err().to_string();
        assert!(text.contains("127.0.0.2 has no IPv6 address"), "{text}");
        let nowhere = LocalPlace::Interface("none9".to_owned());
        let text = addresses_towards(&[nowhere], v4).unwrap_err().to_string();
        assert!(text.contains("none9 is neither"), "{text}");
    }
}
