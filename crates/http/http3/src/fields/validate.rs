//! Judges a whole field section before the application sees it. RFC 9114 §4.1.2, §4.2, §4.3, §4.4.
//!
//! The three entries differ in the pseudo-header fields they permit; the rules for all other lines are one function.
//! What is wrong is a sentence; the caller makes a stream error H3_MESSAGE_ERROR of it.

use super::characters as chars;
use super::head::{Judgement, RequestHead, ResponseHead, Trailers};
use super::names::Name;
use super::target::{ExtendedConnect, Malformed, Target};
use crate::priority;
use qpack::{FieldSection, Line};
use transport::Priority;

/// What the ordinary lines of a section say about its message.
#[derive(Default)]
struct RegularFields<'a> {
    content_length: Option<u64>,
    host: Option<&'a [u8]>,
    priority: Option<Priority>,
}

/// Where a section stands: the one line whose rule depends on it is TE.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SectionKind {
    Request,
    Elsewhere,
}

impl<'a> RegularFields<'a> {
    fn take(&mut self, line: &Line<'a>, name: Name, place: SectionKind) -> Result<(), Malformed> {
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
            Name::Te if place == SectionKind::Request && line.value == b"trailers" => {}
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
    protocol: Option<&'a [u8]>,
}

impl<'a> RequestPseudo<'a> {
    fn take(&mut self, line: &Line<'a>, name: Name, extended: ExtendedConnect) -> Result<(), Malformed> {
        let place = match name {
            Name::Method => &mut self.method,
            Name::Scheme => &mut self.scheme,
            Name::Authority => &mut self.authority,
            Name::Path => &mut self.path,
            //= rfc8441/3#1
            Name::Protocol if extended == ExtendedConnect::Announced => &mut self.protocol,
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
pub(crate) fn request(
    section: &FieldSection,
    extended: ExtendedConnect,
) -> Result<RequestHead<'_>, Malformed> {
    let mut pseudo = RequestPseudo::default();
    let mut ordinary = RegularFields::default();
    let mut pseudo_lines = 0;
    for (index, line) in section.lines().enumerate() {
        let name = Name::of(&line);
        if !name.is_pseudo() {
            ordinary.take(&line, name, SectionKind::Request)?;
        } else if pseudo_lines == index {
            pseudo_lines += 1;
            pseudo.take(&line, name, extended)?;
        } else {
            //= rfc9114/4.3#1
            return Err("pseudo-header field after a field");
        }
    }
    let method = pseudo.method.ok_or("no :method")?;
    let RequestPseudo { scheme, authority, path, protocol, .. } = pseudo;
    let target = Target { method, scheme, authority, host: ordinary.host, path, protocol };
    Ok(RequestHead {
        section,
        judgement: Judgement {
            pseudo_lines,
            content_length: ordinary.content_length,
            priority: ordinary.priority,
            is_as_get: false,
        },
        method,
        scheme,
        authority: target.judge()?,
        path,
        protocol,
    })
}

/// The head in a section whose lines were judged before, and were valid.
pub(crate) fn judged(section: &FieldSection, judgement: Judgement) -> RequestHead<'_> {
    let mut pseudo = RequestPseudo::default();
    for line in section.lines().take(judgement.pseudo_lines) {
        // It is one of the five, and the first of its kind.
        let taken = pseudo.take(&line, Name::of(&line), ExtendedConnect::Announced);
        debug_assert_eq!(taken, Ok(()));
    }
    let RequestPseudo { method, scheme, authority, path, protocol } = pseudo;
    let host = || section.lines_from(judgement.pseudo_lines).find(|line| Name::of(line) == Name::Host);
    let head = RequestHead {
        section,
        judgement,
        method: method.unwrap_or_default(),
        scheme,
        authority: authority.or_else(|| host().map(|line| line.value)),
        path,
        protocol,
    };
    if judgement.is_as_get { head.as_get() } else { head }
}

/// Judges the header section of a response, interim or final.
pub(crate) fn response(section: &FieldSection) -> Result<ResponseHead<'_>, Malformed> {
    let mut status = None;
    let mut ordinary = RegularFields::default();
    for (index, line) in section.lines().enumerate() {
        match Name::of(&line) {
            // There is one, so it is the first line: later it stands after a field or is the second.
            Name::Status if index == 0 => status = Some(parse_status(line.value)?),
            Name::Status => return Err(":status occurs twice or after a field"),
            name if name.is_pseudo() => return Err("undefined or request pseudo-header field in a response"),
            name => ordinary.take(&line, name, SectionKind::Elsewhere)?,
        }
    }
    //= rfc9114/4.3.2#1
    let status = status.ok_or("no :status")?;
    Ok(ResponseHead { section, status, content_length: ordinary.content_length })
}

/// Three digits from 100 on; 101 has no meaning in HTTP/3 (RFC 9114 §4.5). RFC 9110 §15: what lies above 599 is not valid,
/// and is still taken for a 5xx.
fn parse_status(text: &[u8]) -> Result<u16, Malformed> {
    match text {
        //= rfc9114/4.5#1
        b"101" => Err("status 101"),
        [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            let digit = |byte: u8| u16::from(byte - b'0');
            Ok(digit(*hundreds) * 100 + digit(*tens) * 10 + digit(*ones))
        }
        _ => Err("invalid :status"),
    }
}

/// Judges a trailer section: no pseudo-header fields. RFC 9114 §4.3.
pub(crate) fn trailers(section: &FieldSection) -> Result<Trailers<'_>, Malformed> {
    let mut ordinary = RegularFields::default();
    for line in section.lines() {
        let name = Name::of(&line);
        if name.is_pseudo() {
            //= rfc9114/4.3#3
            return Err("pseudo-header field in trailers");
        }
        ordinary.take(&line, name, SectionKind::Elsewhere)?;
    }
    // RFC 9110 §6.5.1: what frames or routes a message cannot come after it.
    if ordinary.content_length.is_some() || ordinary.host.is_some() {
        return Err("content-length or host in trailers");
    }
    Ok(Trailers { section })
}
