//! Where connections of HTTP/3 shall move: `ADDRESS` or `INTERFACE`, and when.

use std::fmt;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// Another place to send from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalPlace {
    /// An address of this machine.
    Address(IpAddr),
    /// An interface by its name: its first address of each family.
    Interface(String),
}

impl fmt::Display for LocalPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocalPlace::Address(ip) => ip.fmt(out),
            LocalPlace::Interface(name) => name.fmt(out),
        }
    }
}

impl LocalPlace {
    /// Reads an address, or the name of an interface.
    pub fn parse(text: &str) -> LocalPlace {
        text.parse().map_or_else(|_| LocalPlace::Interface(text.to_owned()), LocalPlace::Address)
    }

    /// The addresses, at least one.
    ///
    /// # Errors
    /// The address is not one of this machine, there is no such interface, or it has no address.
    pub fn addresses(&self) -> io::Result<Vec<IpAddr>> {
        match self {
            LocalPlace::Address(ip) => {
                UdpSocket::bind((*ip, 0))
                    .map_err(|error| named(error.kind(), format!("{ip} is no address of this machine")))?;
                Ok(vec![*ip])
            }
            LocalPlace::Interface(name) => {
                let no_link = |error: io::Error| {
                    named(
                        error.kind(),
                        format!("{name} is neither an address nor an interface of this machine"),
                    )
                };
                let link = netlink::link_by_name(name).map_err(no_link)?;
                let all = netlink::addresses(link.index)?;
                let is_global = |ip: &IpAddr| match ip {
                    IpAddr::V4(_) => true,
                    IpAddr::V6(ip) => !ip.is_unicast_link_local(),
                };
                let first = |is_v6| {
                    all.iter().map(|address| address.ip).find(|ip| ip.is_ipv6() == is_v6 && is_global(ip))
                };
                let found: Vec<IpAddr> = [first(false), first(true)].into_iter().flatten().collect();
                if found.is_empty() {
                    return Err(named(
                        io::ErrorKind::AddrNotAvailable,
                        format!("the interface {name} has no address"),
                    ));
                }
                Ok(found)
            }
        }
    }
}

fn named(kind: io::ErrorKind, text: String) -> io::Error {
    io::Error::new(kind, text)
}

/// A move at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMove {
    /// Where to.
    pub to: LocalPlace,
    /// Counted from the beginning of the run.
    pub after: Duration,
}

impl PlannedMove {
    /// Reads `ADDRESS@SECONDS` or `INTERFACE@SECONDS`; an IPv6 address may stand in brackets.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<PlannedMove, String> {
        let malformed = || {
            format!("'{text}' is not ADDRESS@SECONDS or INTERFACE@SECONDS, such as 192.0.2.7@1.5 or wlan0@10")
        };
        let (place, seconds) = text.rsplit_once('@').ok_or_else(malformed)?;
        let seconds: f64 = seconds.parse().map_err(|_| malformed())?;
        let after = Duration::try_from_secs_f64(seconds).map_err(|_| malformed())?;
        let place = place.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(place);
        if place.is_empty() {
            return Err(malformed());
        }
        Ok(PlannedMove { to: LocalPlace::parse(place), after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_a_place_and_a_time() {
        let planned = |text| PlannedMove::parse(text).map(|planned| (planned.to, planned.after));
        let address = |text: &str| LocalPlace::Address(text.parse().unwrap());
        assert_eq!(planned("192.0.2.7@1.5"), Ok((address("192.0.2.7"), Duration::from_millis(1_500))));
        assert_eq!(planned("[2001:db8::1]@0"), Ok((address("2001:db8::1"), Duration::ZERO)));
        assert_eq!(planned("2001:db8::1@0"), Ok((address("2001:db8::1"), Duration::ZERO)));
        assert_eq!(
            planned("wlan0@10"),
            Ok((LocalPlace::Interface("wlan0".to_owned()), Duration::from_secs(10)))
        );
        for wrong in ["", "wlan0", "wlan0@", "@3", "wlan0@-1", "wlan0@x", "wlan0@1e30", "wlan0@nan"] {
            assert!(planned(wrong).is_err_and(|error| error.contains("SECONDS")), "{wrong}");
        }
    }

    #[test]
    fn a_place_that_is_not_there_is_named() {
        let fault = |place: LocalPlace| place.addresses().unwrap_err().to_string();
        assert!(fault(LocalPlace::Address([192, 0, 2, 99].into())).contains("192.0.2.99 is no address"));
        assert!(fault(LocalPlace::Interface("none9".to_owned())).contains("none9 is neither"));
        assert_eq!(
            LocalPlace::Address([127, 0, 0, 2].into()).addresses().unwrap(),
            [IpAddr::from([127, 0, 0, 2])]
        );
        assert!(
            LocalPlace::Interface("lo".to_owned())
                .addresses()
                .unwrap()
                .contains(&IpAddr::from([127, 0, 0, 1]))
        );
    }
}
