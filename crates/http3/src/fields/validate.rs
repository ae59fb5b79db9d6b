//! Judges a whole field section before anybody else sees it. RFC 9114 §4.1.2, §4.2, §4.3, §4.4.
//!
//! The three entries differ in the pseudo-header fields they permit; the rules for all other lines are one function.
//! What is wrong is a sentence; the caller makes a stream error H3_MESSAGE_ERROR of it.

use super::characters as chars;
use super::head::{RequestHead, ResponseHead, Trailers};
use super::names::Name;
use crate::priority;
use qpack::{FieldSection, Line};
use transport::Priority;

/// What is wrong with a section.
pub(crate) type Malformed = &'static str;

/// What the ordinary lines of a section say about its message.
#[derive(Default)]
struct Ordinary<'a> {
    content_length: Option<u64>,
    host: Option<&'a [u8]>,
    priority: Option<Priority>,
}

/// Where a section stands: the one line whose rule depends on it is TE.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Request,
    Elsewhere,
}

impl<'a> Ordinary<'a> {
    fn take(&mut self, line: &Line<'a>, name: Name, place: Place) -> Result<(), Malformed> {
        // Names of the static table are in lower case and made of the right characters.
        //= rfc9114/4.2#1
        if line.static_name.is_none() && !chars::is_name(line.name) {
            return Err("field name with characters that it must not have");
        }
        //= rfc9114/10.3#1
        if !chars::is_value(line.value) {
            return Err("field value with characters that it must not have");
        }
        match name {
            Name::Other => {}
            Name::ContentLength => {
                let length = chars::content_length(line.value).ok_or("content-length is not a number")?;
                // RFC 9110 §8.6 permits to merge equal ones. What reads differently to two readers is refused.
                if self.content_length.replace(length).is_some() {
                    return Err("more than one content-length");
                }
            }
            Name::Host => {
                if self.host.replace(line.value).is_some() {
                    return Err("more than one host");
                }
            }
            //= rfc9114/4.2#3
            Name::Te if place == Place::Request && line.value == b"trailers" => {}
            Name::Te => return Err("te with another value than trailers"),
            //= rfc9114/4.2#2
            Name::ConnectionSpecific => return Err("connection-specific field"),
            Name::Priority => self.priority = Some(priority::parse(line.value)),
            // Unreachable: the callers take pseudo-header fields. Refusing is right wherever one should slip through.
            _ => return Err("pseudo-header field after a field"),
        }
        Ok(())
    }
}

/// The pseudo-header fields of a request, each at most once.
#[derive(Default)]
struct RequestPseudo<'a> {
    method: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
}

impl<'a> RequestPseudo<'a> {
    fn take(&mut self, line: &Line<'a>, name: Name) -> Result<(), Malformed> {
        let place = match name {
            Name::Method => &mut self.method,
            Name::Scheme => &mut self.scheme,
            Name::Authority => &mut self.authority,
            Name::Path => &mut self.path,
            Name::Status => return Err("response pseudo-header field in a request"),
            //= rfc9114/4.3#2
            _ => return Err("undefined pseudo-header field"),
        };
        match place.replace(line.value) {
            None => Ok(()),
            //= rfc9114/4.3.1#2
            Some(_) => Err("pseudo-header field occurs twice"),
        }
    }
}

/// Judges the header section of a request.
pub(crate) fn request(section: &FieldSection) -> Result<RequestHead<'_>, Malformed> {
    let mut pseudo = RequestPseudo::default();
    let mut ordinary = Ordinary::default();
    let mut pseudo_lines = 0;
    for (index, line) in section.lines().enumerate() {
        let name = Name::of(&line);
        if !name.is_pseudo() {
            ordinary.take(&line, name, Place::Request)?;
        } else if pseudo_lines == index {
            pseudo_lines += 1;
            pseudo.take(&line, name)?;
        } else {
            //= rfc9114/4.3#1
            return Err("pseudo-header field after a field");
        }
    }
    let method = pseudo.method.ok_or("no :method")?;
    if !chars::is_token(method) {
        return Err("invalid :method");
    }
    let authority = if method == b"CONNECT" {
        connect_target(&pseudo, &ordinary)?
    } else {
        ordinary_target(method, &pseudo, &ordinary)?
    };
    Ok(RequestHead {
        section,
        pseudo_lines,
        method,
        scheme: pseudo.scheme,
        authority,
        path: pseudo.path,
        content_length: ordinary.content_length,
        priority: ordinary.priority,
    })
}

/// RFC 9114 §4.4: an authority with a port, and neither scheme nor path.
fn connect_target<'a>(
    pseudo: &RequestPseudo<'a>,
    ordinary: &Ordinary<'a>,
) -> Result<Option<&'a [u8]>, Malformed> {
    //= rfc9114/4.4#1
    if pseudo.scheme.is_some() || pseudo.path.is_some() {
        return Err("CONNECT with :scheme or :path");
    }
    let authority = pseudo.authority.ok_or("CONNECT without :authority")?;
    if !chars::is_authority(authority) || !chars::has_port(authority) {
        return Err("CONNECT with an invalid :authority");
    }
    if ordinary.host.is_some_and(|host| !host.eq_ignore_ascii_case(authority)) {
        return Err(":authority and host differ");
    }
    Ok(Some(authority))
}

/// RFC 9114 §4.3.1: scheme, path, and for http and https an authority, which may be in :authority, host, or both alike.
fn ordinary_target<'a>(
    method: &[u8],
    pseudo: &RequestPseudo<'a>,
    ordinary: &Ordinary<'a>,
) -> Result<Option<&'a [u8]>, Malformed> {
    let scheme = pseudo.scheme.ok_or("no :scheme")?;
    //= rfc9114/4.3.1#1
    let path = pseudo.path.ok_or("no :path")?;
    if !chars::is_scheme(scheme) {
        return Err("invalid :scheme");
    }
    if let (Some(authority), Some(host)) = (pseudo.authority, ordinary.host) {
        // Hosts are compared without regard to case (RFC 9110 §4.2.3).
        if !authority.eq_ignore_ascii_case(host) {
            return Err(":authority and host differ");
        }
    }
    let authority = pseudo.authority.or(ordinary.host);
    if scheme.eq_ignore_ascii_case(b"https") || scheme.eq_ignore_ascii_case(b"http") {
        //= rfc9114/4.3.1#3
        let authority = authority.ok_or("neither :authority nor host")?;
        //= rfc9114/4.3.1#4
        if !chars::is_authority(authority) {
            return Err("invalid :authority");
        }
        if !chars::is_path(path) || (path == b"*" && method != b"OPTIONS") {
            return Err("invalid :path");
        }
    } else if !chars::is_value(path) || authority.is_some_and(|authority| !chars::is_authority(authority)) {
        return Err("invalid :path or :authority");
    }
    Ok(authority)
}

/// Judges the header section of a response, interim or final.
pub(crate) fn response(section: &FieldSection) -> Result<ResponseHead<'_>, Malformed> {
    let mut status = None;
    let mut ordinary = Ordinary::default();
    for (index, line) in section.lines().enumerate() {
        match Name::of(&line) {
            // There is one, so it is the first line: later it stands after a field or is the second.
            Name::Status if index == 0 => status = Some(parse_status(line.value)?),
            Name::Status => return Err(":status occurs twice or after a field"),
            name if name.is_pseudo() => return Err("undefined or request pseudo-header field in a response"),
            name => ordinary.take(&line, name, Place::Elsewhere)?,
        }
    }
    //= rfc9114/4.3.2#1
    let status = status.ok_or("no :status")?;
    Ok(ResponseHead { section, status, content_length: ordinary.content_length })
}

/// Three digits from 100 to 599 (RFC 9110 §15); 101 has no meaning in HTTP/3 (RFC 9114 §4.5).
fn parse_status(text: &[u8]) -> Result<u16, Malformed> {
    match text {
        //= rfc9114/4.5#1
        b"101" => Err("status 101"),
        [hundreds @ b'1'..=b'5', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            let digit = |byte: u8| u16::from(byte - b'0');
            Ok(digit(*hundreds) * 100 + digit(*tens) * 10 + digit(*ones))
        }
        _ => Err("invalid :status"),
    }
}

/// Judges a trailer section: no pseudo-header fields. RFC 9114 §4.3.
pub(crate) fn trailers(section: &FieldSection) -> Result<Trailers<'_>, Malformed> {
    let mut ordinary = Ordinary::default();
    for line in section.lines() {
        let name = Name::of(&line);
        if name.is_pseudo() {
            //= rfc9114/4.3#3
            return Err("pseudo-header field in trailers");
        }
        ordinary.take(&line, name, Place::Elsewhere)?;
    }
    // RFC 9110 §6.5.1: what frames or routes a message cannot come after it.
    if ordinary.content_length.is_some() || ordinary.host.is_some() {
        return Err("content-length or host in trailers");
    }
    Ok(Trailers { section })
}
