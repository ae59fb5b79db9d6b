//! What a request is for: method, scheme, authority, path and protocol, and whether they fit together. RFC 9114 §4.3.1, §4.4, RFC 8441
//! §4.
//!
//! RFC 9113 §8.3.1 has the same rules, and RFC 9112 §3.2 those of the authority, so a server uses this for HTTP/1.1 and 2
//! too: one validation for three versions.

use super::characters as chars;

/// What is wrong with a section.
pub(super) type Malformed = &'static str;

/// The parts of a request's head that say what it is for, as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target<'a> {
    /// The method.
    pub method: &'a [u8],
    /// `:scheme`
    pub scheme: Option<&'a [u8]>,
    /// `:authority`
    pub authority: Option<&'a [u8]>,
    /// The `host` field.
    pub host: Option<&'a [u8]>,
    /// `:path`
    pub path: Option<&'a [u8]>,
    /// `:protocol`
    pub protocol: Option<&'a [u8]>,
}

/// Whether a server has announced that it takes extended CONNECT. Without that `:protocol` is a pseudo-header field like any other
/// that is not defined. RFC 8441 §3, RFC 9220 §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtendedConnect {
    Announced,
    Unknown,
}

impl<'a> Target<'a> {
    /// Whether the parts are valid and fit together. Returns the authority, from `:authority` or else from `host`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn judge(&self) -> Result<Option<&'a [u8]>, Malformed> {
        if !chars::is_token(self.method) {
            return Err("invalid :method");
        }
        match (self.method, self.protocol) {
            (b"CONNECT", None) => self.connect(),
            (b"CONNECT", Some(protocol)) if !chars::is_token(protocol) => Err("invalid :protocol"),
            // RFC 8441 §4: scheme and path are there, and the authority is that of any request.
            //= rfc8441/4#1
            (_, None) | (b"CONNECT", Some(_)) => self.ordinary(),
            //= rfc8441/4#2
            (_, Some(_)) => Err(":protocol without CONNECT"),
        }
    }

    /// RFC 9114 §4.4: an authority with a port, and neither scheme nor path.
    fn connect(&self) -> Result<Option<&'a [u8]>, Malformed> {
        //= rfc9114/4.4#1
        if self.scheme.is_some() || self.path.is_some() {
            return Err("CONNECT with :scheme or :path");
        }
        let authority = self.authority.ok_or("CONNECT without :authority")?;
        if !is_authority(authority) || !chars::has_port(authority) {
            return Err("CONNECT with an invalid :authority");
        }
        if self.host.is_some_and(|host| !host.eq_ignore_ascii_case(authority)) {
            return Err(":authority and host differ");
        }
        Ok(Some(authority))
    }

    /// RFC 9114 §4.3.1: scheme, path, and for http and https an authority, which may be in :authority, host, or both alike.
    fn ordinary(&self) -> Result<Option<&'a [u8]>, Malformed> {
        let scheme = self.scheme.ok_or("no :scheme")?;
        //= rfc9114/4.3.1#1
        let path = self.path.ok_or("no :path")?;
        let is_http = is_http(scheme);
        if !is_http && !chars::is_scheme(scheme) {
            return Err("invalid :scheme");
        }
        if let (Some(authority), Some(host)) = (self.authority, self.host) {
            // Hosts are compared without regard to case (RFC 9110 §4.2.3).
            if !authority.eq_ignore_ascii_case(host) {
                return Err(":authority and host differ");
            }
        }
        let authority = self.authority.or(self.host);
        if is_http {
            //= rfc9114/4.3.1#3
            let authority = authority.ok_or("neither :authority nor host")?;
            //= rfc9114/4.3.1#4
            if !is_authority(authority) {
                let is_host = self.authority.is_none();
                return Err(if is_host { "invalid host" } else { "invalid :authority" });
            }
            if !chars::is_path(path) || (path == b"*" && self.method != b"OPTIONS") {
                return Err("invalid :path");
            }
        } else if !chars::is_value(path) || authority.is_some_and(|authority| !is_authority(authority)) {
            return Err("invalid :path or :authority");
        }
        Ok(authority)
    }
}

/// Mostly in lower case, so that is looked at first.
fn is_http(scheme: &[u8]) -> bool {
    scheme == b"https" || scheme.eq_ignore_ascii_case(b"https") || scheme.eq_ignore_ascii_case(b"http")
}

/// A host and perhaps a port, without user information: an authority, or the value of a `host` field. RFC 3986 §3.2, RFC
/// 9112 §3.2, RFC 9114 §4.3.1.
pub fn is_authority(text: &[u8]) -> bool {
    chars::is_authority(text)
}

/// Whether no blanks stand around a field's value. RFC 9113 §8.2.1, RFC 9114 §10.3.
#[inline]
pub fn is_trimmed(value: &[u8]) -> bool {
    chars::is_trimmed(value)
}
