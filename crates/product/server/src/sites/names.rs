//! From the host of a request to its site. Source: RFC 9110 §4.2.3 and §7.2.

use rustls_pki_types::DnsName;
use std::collections::HashMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a site is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostName {
    /// A name, or an address as it is in URLs, in lower case.
    Exact(String),
    /// `*.example.org`: every name with one label more than this one, which is in lower case.
    Below(String),
    /// `*`: every host that no site names.
    Any,
}

impl fmt::Display for HostName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostName::Exact(name) => out.write_str(name),
            HostName::Below(parent) => write!(out, "*.{parent}"),
            HostName::Any => out.write_str("*"),
        }
    }
}

/// What is no name of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostNameError(&'static str);

impl fmt::Display for HostNameError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for HostNameError {}

impl HostName {
    /// `example.org`, `*.example.org`, `192.0.2.1`, `[2001:db8::1]` or `*`. Case does not matter.
    ///
    /// # Errors
    /// It is none of these; the text says what to write.
    pub fn parse(text: &str) -> Result<HostName, HostNameError> {
        let text = text.to_ascii_lowercase();
        if text == "*" {
            return Ok(HostName::Any);
        }
        if text.contains("://") || text.contains('/') {
            return Err(HostNameError("a host is no URL: write example.org"));
        }
        let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if let Some(address) = inside.map(str::parse::<Ipv6Addr>) {
            let address = address.map_err(|_| HostNameError("this is no IPv6 address"))?;
            return Ok(HostName::Exact(format!("[{address}]")));
        }
        if text.parse::<Ipv6Addr>().is_ok() {
            return Err(HostNameError("write an IPv6 address in brackets, as in URLs"));
        }
        if text.contains([' ', ',']) {
            return Err(HostNameError("several names are an array: [\"example.org\", \"www.example.org\"]"));
        }
        if text == "_" {
            return Err(HostNameError("this is nginx's word for all hosts: write *"));
        }
        if text.strip_suffix('.').is_some_and(|name| DnsName::try_from(name).is_ok()) {
            return Err(HostNameError("leave the dot at the end out: with and without it is the same host"));
        }
        if text.contains(':') {
            return Err(HostNameError(
                "a host has no port here: the key \"listen\" says where the server listens",
            ));
        }
        if text.parse::<Ipv4Addr>().is_ok() {
            return Ok(HostName::Exact(text));
        }
        let (plain, make): (&str, fn(String) -> HostName) = match text.strip_prefix("*.") {
            Some(parent) => (parent, HostName::Below),
            None => (&text, HostName::Exact),
        };
        if plain.contains('*') {
            return Err(HostNameError("* stands for the first label alone: write *.example.org"));
        }
        if !plain.is_ascii() {
            return Err(HostNameError("write a name in other letters as clients send it: xn--…"));
        }
        if DnsName::try_from(plain).is_err() {
            return Err(HostNameError("this is no host name: write example.org or *.example.org"));
        }
        Ok(make(plain.to_owned()))
    }

    /// The name for which a certificate is shown, if clients can ask for one. RFC 6066 §3.
    pub fn server_name(&self) -> Option<String> {
        match self {
            HostName::Exact(name) if name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok() => None,
            HostName::Exact(name) => Some(name.clone()),
            HostName::Below(parent) => Some(format!("*.{parent}")),
            HostName::Any => None,
        }
    }
}

/// Sites by their names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    exact: HashMap<Box<[u8]>, usize>,
    below: HashMap<Box<[u8]>, usize>,
    any: Option<usize>,
}

impl Names {
    /// The first site of a name has it.
    pub(crate) fn insert(&mut self, name: &HostName, site: usize) {
        match name {
            HostName::Exact(name) => *self.exact.entry(name.as_bytes().into()).or_insert(site),
            HostName::Below(name) => *self.below.entry(name.as_bytes().into()).or_insert(site),
            HostName::Any => *self.any.get_or_insert(site),
        };
    }

    /// The site of `authority`, a host with or without a port: that of the host, else that of all hosts beside it, else that of any.
    /// `host` is memory for it.
    pub(crate) fn find(&self, authority: &[u8], host: &mut Vec<u8>) -> Option<usize> {
        host.clear();
        host.extend_from_slice(without_port(authority));
        host.make_ascii_lowercase();
        let parent = host.iter().position(|byte| *byte == b'.').and_then(|dot| host.get(dot + 1..));
        let found = self.exact.get(host.as_slice()).or_else(|| self.below.get(parent?));
        found.copied().or(self.any)
    }
}

/// The host at hand. The next request is mostly for the same one, which is not looked up again.
#[derive(Debug, Default)]
pub(crate) struct LastHost {
    authority: Vec<u8>,
    host: Vec<u8>,
    /// `None`: nothing was found yet.
    site: Option<Option<usize>>,
}

impl LastHost {
    /// As [`Names::find`]; always of the same names until [`LastHost::forget`].
    pub(crate) fn find(&mut self, names: &Names, authority: &[u8]) -> Option<usize> {
        match self.site.filter(|_| self.authority == authority) {
            Some(site) => site,
            None => {
                self.authority.clear();
                self.authority.extend_from_slice(authority);
                *self.site.insert(names.find(authority, &mut self.host))
            }
        }
    }

    /// The host of the authority, without its port and in lower case.
    pub(crate) fn name(&self) -> &[u8] {
        &self.host
    }

    /// Other names have taken the place of those.
    pub(crate) fn forget(&mut self) {
        self.site = None;
    }
}

/// The host of an authority. The dot of the root at its end is not part of it: clients send `example.org.`, too.
fn without_port(authority: &[u8]) -> &[u8] {
    let end = match authority.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(at) if authority.get(at) == Some(&b':') => at,
        _ => authority.len(),
    };
    let host = authority.get(..end).unwrap_or(authority);
    host.strip_suffix(b".").unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_the_site_of_its_name_then_of_its_parent_then_any() {
        let mut names = Names::default();
        let last = std::cell::RefCell::new(LastHost::default());
        let find = |names: &Names, host: &str| {
            let mut left = b"left over".to_vec();
            let found = names.find(host.as_bytes(), &mut left);
            let mut last = last.borrow_mut();
            for _ in 0..2 {
                assert_eq!((last.find(names, host.as_bytes()), last.name()), (found, &left[..]), "{host}");
            }
            found
        };
        let list = ["Example.org", "*.example.org", "192.0.2.1", "[2001:DB8::1]"];
        for (site, name) in list.into_iter().enumerate() {
            names.insert(&HostName::parse(name).unwrap(), site);
        }
        for (host, site) in [
            ("example.org", Some(0)),
            ("EXAMPLE.org:8443", Some(0)),
            ("example.org.", Some(0)),
            ("a.example.org", Some(1)),
            ("a.example.org:1", Some(1)),
            ("a.b.example.org", None),
            ("192.0.2.1:443", Some(2)),
            ("[2001:db8::1]", Some(3)),
            ("[2001:db8::1]:443", Some(3)),
            ("example.com", None),
            ("org", None),
            ("", None),
        ] {
            assert_eq!(find(&names, host), site, "{host}");
        }
        last.borrow_mut().forget();
        names.insert(&HostName::Any, 4);
        names.insert(&HostName::Exact("example.org".into()), 5);
        assert_eq!(
            (find(&names, "example.com"), find(&names, ""), find(&names, "example.org")),
            (Some(4), Some(4), Some(0))
        );
    }

    #[test]
    fn what_is_no_name_is_refused_with_what_to_write() {
        for (text, what) in [
            ("", "no host name"),
            ("https://example.org", "no URL"),
            ("example.org/a", "no URL"),
            ("example.org:443", "no port"),
            ("a.*.org", "first label"),
            ("**.org", "first label"),
            ("*", ""),
            ("*.", "no host name"),
            ("a!b", "no host name"),
            ("a.org b.org", "several names are an array"),
            ("bücher.example", "xn--"),
            ("a..b", "no host name"),
            ("example.org.", "leave the dot at the end out"),
            ("a.org, b.org", "several names are an array"),
            ("_", "write *"),
            ("2001:db8::1", "brackets"),
            ("[::1", "no port"),
            ("[x]", "no IPv6"),
        ] {
            let told = HostName::parse(text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains(what) && told.is_empty() == what.is_empty(), "{text}: {told}");
        }
        let names = ["a.org", "*.a.org", "*", "192.0.2.1", "[::1]"]
            .map(|name| HostName::parse(name).unwrap().server_name());
        assert_eq!(names, [Some("a.org".into()), Some("*.a.org".into()), None, None, None]);
    }
}
