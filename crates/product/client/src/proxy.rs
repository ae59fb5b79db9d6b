//! Proxies that the environment names. Clients here connect directly, and say so where a user may expect something else.
//!
//! The variables are those that curl reads: `https_proxy`, `all_proxy`, the same in upper case, and `no_proxy`.

use crate::target::Target;
use std::net::IpAddr;

/// The name of the variable that sets a proxy for one of `targets`; `None` if there is none or `no_proxy` excepts them all.
/// `env` looks up an environment variable.
pub fn ignored(env: impl Fn(&str) -> Option<String>, targets: &[Target]) -> Option<&'static str> {
    let is_set = |name: &&str| env(name).is_some_and(|value| !value.trim().is_empty());
    let name = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].into_iter().find(is_set)?;
    let exceptions = env("no_proxy").or_else(|| env("NO_PROXY")).unwrap_or_default();
    targets.iter().any(|target| !excepts(&exceptions, target.host())).then_some(name)
}

/// Whether `no_proxy` excepts a host: `*`, a name, a domain with all below it, an address or a network.
fn excepts(exceptions: &str, host: &str) -> bool {
    let ip: Option<IpAddr> = host.parse().ok();
    exceptions.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        let entry = entry.strip_prefix('[').and_then(|entry| entry.strip_suffix(']')).unwrap_or(entry);
        match (entry, ip) {
            ("*", _) => true,
            (entry, Some(ip)) => contains(entry, ip),
            (entry, None) => is_below(host, entry.trim_start_matches('.')),
        }
    })
}

/// Whether `host` is `domain` or ends with a dot and `domain`.
fn is_below(host: &str, domain: &str) -> bool {
    let (host, domain) = (host.trim_end_matches('.'), domain.trim_end_matches('.'));
    let Some(start) = host.len().checked_sub(domain.len()) else { return false };
    let is_same = host.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(domain));
    is_same && (start == 0 || host.get(..start).is_some_and(|rest| rest.ends_with('.')))
}

/// Whether `entry`, an address or `ADDRESS/BITS`, contains `ip`.
fn contains(entry: &str, ip: IpAddr) -> bool {
    let (network, bits) = match entry.split_once('/') {
        Some((network, bits)) => (network, bits.parse().ok()),
        None => (entry, Some(128)),
    };
    match (network.parse::<IpAddr>(), ip, bits) {
        (Ok(IpAddr::V4(network)), IpAddr::V4(ip), Some(bits)) => {
            let differing = network.to_bits() ^ ip.to_bits();
            differing.leading_zeros() >= bits.min(32)
        }
        (Ok(IpAddr::V6(network)), IpAddr::V6(ip), Some(bits)) => {
            let differing = network.to_bits() ^ ip.to_bits();
            differing.leading_zeros() >= bits.min(128)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)], urls: &[&str]) -> Option<&'static str> {
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let targets: Vec<Target> = urls.iter().map(|url| Target::parse(url).unwrap()).collect();
        ignored(env, &targets)
    }

    #[test]
    fn a_proxy_is_told_unless_no_proxy_excepts_every_host() {
        let proxy = ("https_proxy", "http://proxy:3128");
        let url = ["https://www.example.org/"];
        assert_eq!(found(&[proxy], &url), Some("https_proxy"));
        assert_eq!(found(&[("ALL_PROXY", "socks5://x")], &url), Some("ALL_PROXY"));
        assert_eq!(found(&[("https_proxy", "")], &url), None);
        assert_eq!(found(&[("http_proxy", "x")], &url), None);
        let table = [
            ("*", "https://a/", true),
            ("example.org", "https://www.example.org/", true),
            (".example.org", "https://www.Example.org/", true),
            ("example.org", "https://example.org/", true),
            ("example.org", "https://notexample.org/", false),
            ("localhost, 127.0.0.1", "https://127.0.0.1/", true),
            ("localhost 127.0.0.0/8", "https://127.1.2.3/", true),
            ("127.0.0.0/8", "https://128.0.0.1/", false),
            ("10.0.0.0/x", "https://10.0.0.0/", false),
            ("[::1]", "https://[::1]/", true),
            ("fd00::/8", "https://[fd12::1]/", true),
            ("127.0.0.1", "https://127.0.0.11/", false),
            ("", "https://a/", false),
        ];
        for (exceptions, url, excepted) in table {
            let told = found(&[proxy, ("no_proxy", exceptions)], &[url]);
            assert_eq!(told.is_none(), excepted, "{exceptions} {url}");
        }
        let both = ["https://localhost/", "https://example.org/"];
        assert_eq!(found(&[proxy, ("NO_PROXY", "localhost")], &both), Some("https_proxy"));
    }
}
