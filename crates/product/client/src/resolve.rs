//! From a host name to addresses, in the order in which they are tried: the system's order, but families take turns
//! (RFC 8305 §4), and what the user says by `--resolve` and `--connect-to` comes first.

use crate::error::GetError;
use crate::target::Target;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

/// Which addresses may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// The flag that a detour was given by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// All that apply are used, in their order.
    Resolve,
    /// The first that applies is used.
    ConnectTo,
}

/// Asks another host than the URL's; the URL's name is still the one that the certificate must be for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOverride {
    /// Where it comes from.
    pub flag: Flag,
    /// The URL's host, without brackets; empty means every host.
    pub host: String,
    /// The URL's port; `None` means every port.
    pub port: Option<u16>,
    /// The host or address to ask instead; empty means the URL's.
    pub to_host: String,
    /// The port to ask instead; `None` means the URL's.
    pub to_port: Option<u16>,
}

impl ConnectOverride {
    /// Reads `--resolve HOST:PORT:ADDRESS[,ADDRESS]...`, one detour for each address.
    ///
    /// # Errors
    /// What to write instead.
    pub fn parse_resolve(text: &str) -> Result<Vec<ConnectOverride>, GetError> {
        let wrong = || {
            GetError::Usage(format!(
                "--resolve {text} cannot be used: write HOST:PORT:ADDRESS[,ADDRESS], such as example.org:443:127.0.0.1"
            ))
        };
        let (host, rest) = split_host(text).ok_or_else(wrong)?;
        let (port, addresses) = rest.split_once(':').ok_or_else(wrong)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        if host.is_empty() {
            return Err(wrong());
        }
        let detour = |address: &str| {
            let address: IpAddr = bare(address.trim()).parse().map_err(|_| wrong())?;
            let (flag, to_host) = (Flag::Resolve, address.to_string());
            Ok(ConnectOverride { flag, host: host.into(), port: Some(port), to_host, to_port: None })
        };
        addresses.split(',').map(detour).collect()
    }

    /// Reads `--connect-to HOST1:PORT1:HOST2:PORT2`; each may be empty, which means any, or no change.
    ///
    /// # Errors
    /// What to write instead.
    pub fn parse_connect_to(text: &str) -> Result<ConnectOverride, GetError> {
        let wrong = || {
            GetError::Usage(format!(
                "--connect-to {text} cannot be used: write HOST1:PORT1:HOST2:PORT2, such as example.org:443:localhost:4433"
            ))
        };
        let port = |digits: &str| match digits {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| wrong()),
        };
        let (host, rest) = split_host(text).ok_or_else(wrong)?;
        let (from, rest) = rest.split_once(':').ok_or_else(wrong)?;
        let (to_host, to) = split_host(rest).ok_or_else(wrong)?;
        let (flag, port, to_port) = (Flag::ConnectTo, port(from)?, port(to)?);
        Ok(ConnectOverride { flag, host: host.into(), port, to_host: to_host.into(), to_port })
    }

    fn applies_to(&self, host: &str, port: u16) -> bool {
        (self.host.is_empty() || self.host.eq_ignore_ascii_case(host))
            && self.port.is_none_or(|own| own == port)
    }
}

/// Splits `host:rest`, where the host may be an IPv6 address in brackets.
fn split_host(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']')?;
            Some((host, rest.strip_prefix(':')?))
        }
        None => text.split_once(':'),
    }
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// The addresses of `target`, at least one.
///
/// # Errors
/// The name does not exist, or has no address of the family.
pub fn resolve(
    target: &Target,
    family: Family,
    detours: &[ConnectOverride],
) -> Result<Vec<SocketAddr>, GetError> {
    let (mut host, mut port) = (target.host().to_owned(), target.port());
    let mut applicable = detours.iter().filter(|detour| detour.applies_to(target.host(), target.port()));
    let first = applicable.next();
    if let Some(detour) = first.filter(|detour| detour.flag == Flag::Resolve) {
        let all = [detour].into_iter().chain(applicable.filter(|other| other.flag == Flag::Resolve));
        let found = all.filter_map(|detour| Some(SocketAddr::new(detour.to_host.parse().ok()?, port)));
        // The order is the user's.
        let addresses = of_family(found, family);
        return if addresses.is_empty() { Err(none_of(family, host)) } else { Ok(addresses) };
    }
    if let Some(detour) = first {
        if !detour.to_host.is_empty() {
            host.clone_from(&detour.to_host);
        }
        port = detour.to_port.unwrap_or(port);
    }
    let found: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => (host.as_str(), port)
            .to_socket_addrs()
            .map_err(|error| GetError::Resolve(host.clone(), in_words(&error)))?
            .collect(),
    };
    let addresses = take_turns(of_family(found, family));
    if addresses.is_empty() { Err(none_of(family, host)) } else { Ok(addresses) }
}

/// Those of a family, each once.
fn of_family(addresses: impl IntoIterator<Item = SocketAddr>, family: Family) -> Vec<SocketAddr> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        let is_allowed = match family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        };
        if is_allowed && !all.contains(&address) {
            all.push(address);
        }
    }
    all
}

fn none_of(family: Family, host: String) -> GetError {
    let kind = if family == Family::V4 { "IPv4" } else { "IPv6" };
    GetError::Resolve(host, format!("it has no {kind} address"))
}

/// Lets the families take turns, beginning with that of the first. RFC 8305 §4.
fn take_turns(all: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v4 = all.first().is_some_and(SocketAddr::is_ipv4);
    let (ours, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|each| each.is_ipv4() == first_is_v4);
    let (mut ours, mut others) = (ours.into_iter(), others.into_iter());
    let mut mixed = Vec::new();
    loop {
        let pair = [ours.next(), others.next()];
        if pair == [None, None] {
            return mixed;
        }
        mixed.extend(pair.into_iter().flatten());
    }
}

/// What the resolver says, without its prefix.
fn in_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to lookup address information: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    #[test]
    fn detours_and_families() {
        let to = |url: &str, detour: ConnectOverride| resolve(&target(url), Family::Any, &[detour]).unwrap();
        let resolve_to = |text: &str| ConnectOverride::parse_resolve(text).unwrap().remove(0);
        assert_eq!(
            to("https://nowhere.invalid/", resolve_to("Nowhere.invalid:443:127.0.0.1")),
            ["127.0.0.1:443".parse().unwrap()]
        );
        assert_eq!(to("https://a.invalid:8/", resolve_to("a.invalid:8:[::1]")), ["[::1]:8".parse().unwrap()]);
        assert_eq!(to("https://127.0.0.1/", resolve_to("b:443:[::1]")), ["127.0.0.1:443".parse().unwrap()]);
        let connect = ConnectOverride::parse_connect_to("[::2]:443:127.0.0.9:4433").unwrap();
        assert_eq!(to("https://[::2]/", connect), ["127.0.0.9:4433".parse().unwrap()]);
        let any = ConnectOverride::parse_connect_to("::[::1]:").unwrap();
        assert_eq!(to("https://x.invalid:9/", any), ["[::1]:9".parse().unwrap()]);
        for wrong in ["", "h:1", "h:0:127.0.0.1", "h:1:localhost", ":1:127.0.0.1"] {
            assert_eq!(ConnectOverride::parse_resolve(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
        for wrong in ["", "h:1:h", "h:x:h:1", "[::1]443:h:1"] {
            assert_eq!(ConnectOverride::parse_connect_to(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
        let error = resolve(&target("https://127.0.0.1/"), Family::V6, &[]).unwrap_err();
        assert!(error.exit_code() == 6 && error.to_string().contains("no IPv6 address"), "{error}");
    }

    /// As curl has it. Deleted, a second --resolve could be ignored again.
    #[test]
    fn all_addresses_of_resolve_are_used_in_the_order_that_was_given() {
        let detours = |texts: &[&str]| -> Vec<ConnectOverride> {
            texts.iter().flat_map(|text| ConnectOverride::parse_resolve(text).unwrap()).collect()
        };
        let found = |family, texts: &[&str]| {
            let found = resolve(&target("https://a.invalid/"), family, &detours(texts));
            found.map(|found| found.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>())
        };
        let texts = [
            "a.invalid:443:127.0.0.2,127.0.0.1",
            "b.invalid:443:127.0.0.9",
            "a.invalid:443:[::1], 127.0.0.2",
        ];
        assert_eq!(found(Family::Any, &texts).unwrap(), ["127.0.0.2", "127.0.0.1", "::1"]);
        assert_eq!(found(Family::V6, &texts).unwrap(), ["::1"]);
        assert_eq!(found(Family::V6, &texts[..1]).unwrap_err().exit_code(), 6);
        let mut mixed = vec![ConnectOverride::parse_connect_to("a.invalid:443:127.0.0.7:1").unwrap()];
        mixed.extend(detours(&texts));
        let first = resolve(&target("https://a.invalid/"), Family::Any, &mixed).unwrap();
        assert_eq!(first, ["127.0.0.7:1".parse().unwrap()], "the first that applies decides");
        for wrong in ["a:443:127.0.0.1,", "a:443:127.0.0.1,b"] {
            assert_eq!(ConnectOverride::parse_resolve(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }

    #[test]
    fn families_take_turns() {
        let parse = |text: &str| text.parse::<SocketAddr>().unwrap();
        let given = ["[::1]:1", "[::2]:1", "1.1.1.1:1", "[::1]:1", "[::3]:1", "2.2.2.2:1"].map(parse);
        let expected = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"].map(parse);
        assert_eq!(take_turns(of_family(given, Family::Any)), expected);
    }
}
