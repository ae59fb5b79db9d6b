//! Judges a whole field section before the application sees it. RFC 9114 §4.1.2, §4.2, §4.3, §4.4.
//!
//! The three entries differ in the pseudo-header fields they permit; the rules for all other lines are one function. The characters of
//! lines that were found right before (reader.rs) are not looked at again.
//! What is wrong is a sentence; the caller makes a stream error H3_MESSAGE_ERROR of it.

use super::characters as chars;
use super::head::{Judgement, LineNumber};
use super::names::Name;
use super::target::{ExtendedConnect, Malformed, Target};
use crate::priority;
use core::ops::Range;
use qpack::{FieldSection, Line};
use transport::Priority;

/// What the ordinary lines of a section say about its message.
#[derive(Default)]
struct RegularFields {
    content_length: Option<u64>,
    host: LineNumber,
    priority: Option<Priority>,
}

/// Where a section stands: the one line whose rule depends on it is TE.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SectionKind {
    Request,
    Elsewhere,
}

/// Whether name and value of a line are made of the right characters.
fn judge_characters(line: &Line<'_>) -> Result<(), Malformed> {
    // Names of the static table are in lower case and made of the right characters.
    //= rfc9114/4.2#1
    if line.static_name.is_none() && !chars::is_name(line.name) {
        return Err("field name with characters that it must not have");
    }
    //= rfc9114/10.3#1
    if !chars::is_value(line.value) {
        return Err("field value with characters that it must not have");
    }
    Ok(())
}

impl RegularFields {
    #[inline]
    fn take(
        &mut self,
        (number, line): (usize, &Line<'_>),
        name: Name,
        place: SectionKind,
    ) -> Result<(), Malformed> {
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
                if self.host.0.replace(number as u32).is_some() {
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

/// Notes that line `number` is a pseudo-header field of a request. Each is at most once.
#[inline]
fn take_pseudo(
    head: &mut Judgement,
    number: usize,
    name: Name,
    extended: ExtendedConnect,
) -> Result<(), Malformed> {
    let place = match name {
        Name::Method => &mut head.method,
        Name::Scheme => &mut head.scheme,
        Name::Authority => &mut head.authority,
        Name::Path => &mut head.path,
        //= rfc8441/3#1
        Name::Protocol if extended == ExtendedConnect::Announced => &mut head.protocol,
        Name::Status => return Err("response pseudo-header field in a request"),
        //= rfc9114/4.3#2
        _ => return Err("undefined pseudo-header field"),
    };
    match place.0.replace(number as u32) {
        None => Ok(()),
        //= rfc9114/4.3.1#2
        Some(_) => Err("pseudo-header field occurs twice"),
    }
}

/// Judges the header section of a request. Lines outside of `fresh` were found right in another section.
pub(super) fn request(
    section: &FieldSection,
    fresh: Range<usize>,
    extended: ExtendedConnect,
) -> Result<Judgement, Malformed> {
    let mut head = Judgement::default();
    let mut ordinary = RegularFields::default();
    for (number, line) in section.lines().enumerate() {
        let name = Name::of(&line);
        if !name.is_pseudo() {
            if fresh.contains(&number) {
                judge_characters(&line)?;
            }
            ordinary.take((number, &line), name, SectionKind::Request)?;
        } else if head.pseudo_lines == number {
            head.pseudo_lines += 1;
            take_pseudo(&mut head, number, name, extended)?;
        } else {
            //= rfc9114/4.3#1
            return Err("pseudo-header field after a field");
        }
    }
    let target = Target {
        method: head.method.value_in(section).ok_or("no :method")?,
        scheme: head.scheme.value_in(section),
        authority: head.authority.value_in(section),
        host: ordinary.host.value_in(section),
        path: head.path.value_in(section),
        protocol: head.protocol.value_in(section),
    };
    target.judge()?;
    let RegularFields { content_length, host, priority } = ordinary;
    let authority = LineNumber(head.authority.0.or(host.0));
    Ok(Judgement { authority, content_length, priority, ..head })
}

/// Judges the header section of a response, interim or final. Returns its status, and the length of its content if it says so. Lines
/// outside of `fresh` were found right in another section.
pub(super) fn response(section: &FieldSection, fresh: Range<usize>) -> Result<(u16, Option<u64>), Malformed> {
    let mut status = None;
    let mut ordinary = RegularFields::default();
    for (number, line) in section.lines().enumerate() {
        match Name::of(&line) {
            // There is one, so it is the first line: later it stands after a field or is the second.
            Name::Status if number == 0 => status = Some(parse_status(line.value)?),
            Name::Status => return Err(":status occurs twice or after a field"),
            name if name.is_pseudo() => return Err("undefined or request pseudo-header field in a response"),
            name => {
                if fresh.contains(&number) {
                    judge_characters(&line)?;
                }
                ordinary.take((number, &line), name, SectionKind::Elsewhere)?;
            }
        }
    }
    //= rfc9114/4.3.2#1
    let status = status.ok_or("no :status")?;
    Ok((status, ordinary.content_length))
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

/// Judges a trailer section: no pseudo-header fields. RFC 9114 §4.3. Lines outside of `fresh` were found right in another section.
pub(super) fn trailers(section: &FieldSection, fresh: Range<usize>) -> Result<(), Malformed> {
    let mut ordinary = RegularFields::default();
    for (number, line) in section.lines().enumerate() {
        let name = Name::of(&line);
        if name.is_pseudo() {
            //= rfc9114/4.3#3
            return Err("pseudo-header field in trailers");
        }
        if fresh.contains(&number) {
            judge_characters(&line)?;
        }
        ordinary.take((number, &line), name, SectionKind::Elsewhere)?;
    }
    // RFC 9110 §6.5.1: what frames or routes a message cannot come after it.
    if ordinary.content_length.is_some() || ordinary.host.0.is_some() {
        return Err("content-length or host in trailers");
    }
    Ok(())
}
