//! Other protocols than HTTP, such as WebSocket: a request offers one, and an upstream that answers 101 speaks it (RFC 9110 §7.8), or one
//! that answers an extended CONNECT by 2xx (RFC 8441, RFC 9220).
//!
//! Nothing that the client sends reaches the upstream before it has agreed, so that what follows a refusal is a request to this server and
//! to no other. What is said from there on is tunnel.rs's.

use crate::content::Sent;
use crate::tunnel::{Gate, Opener};
use crate::websocket::{SentKey, answer_to};
use body::Body;
use http::header::{self, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use http::{HeaderMap, Method, Request, StatusCode, response};
use server::sites::{OfferedBy, UpgradeOffer};
use std::io;

/// The protocol that an extended CONNECT is sent for.
const WEBSOCKET: &str = "websocket";

/// Protocols that no proxy may pass on: other versions of HTTP, in which requests would pass that were not judged, and TLS. Without
/// their versions, in lower case.
const REFUSED: [&[u8]; 4] = [b"h2c", b"h2", b"http", b"tls"];

/// What a request offers, and what the client sends by it.
pub(crate) struct Offered {
    pub(crate) protocols: HeaderValue,
    pub(crate) content: Body,
    by: OfferedBy,
    /// The key of the proxy's own, where the client has sent none.
    key: Option<SentKey>,
}

impl Offered {
    /// What goes on of an offer; `None` if nothing does.
    pub(crate) fn new(offer: &UpgradeOffer) -> Option<Offered> {
        let (protocols, by) = (permitted(offer.protocols())?, offer.by());
        Some(Offered { protocols, content: offer.content(), by, key: None })
    }

    /// Says in the head of a request what is offered.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn say(&mut self, fields: &mut HeaderMap) -> io::Result<()> {
        name(fields, self.protocols.clone());
        if self.by == OfferedBy::Connect {
            self.key = Some(SentKey::add(fields)?);
        }
        Ok(())
    }

    /// The protocol that the fields of a response 101 agree to, and what the client sends by it. `None` if they do not agree.
    pub(crate) fn agreed(self, fields: &mut HeaderMap) -> Option<(HeaderValue, Body)> {
        let protocol = agreed(fields, &self.protocols)?;
        let is_accepted = self.key.is_none_or(|key| key.take_answer(fields));
        is_accepted.then_some((protocol, self.content))
    }

    /// Whether `request`, which says this offer, can be an extended CONNECT: it is one for a WebSocket as RFC 6455 §4.1 has it.
    pub(crate) fn may_connect<B>(&self, request: &Request<B>) -> bool {
        let mut protocols = self.protocols.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        protocols.any(|protocol| protocol.eq_ignore_ascii_case(WEBSOCKET.as_bytes()))
            && request.method() == Method::GET
            && request.headers().get_all(SEC_WEBSOCKET_KEY).iter().count() == 1
    }

    /// Makes `request` an extended CONNECT, in which a WebSocket has no key (RFC 8441 §5).
    pub(crate) fn connect(&self, request: &mut Request<Sent>) -> Connecting {
        let key = request.headers_mut().remove(SEC_WEBSOCKET_KEY);
        let answer = key.filter(|_| self.by == OfferedBy::Upgrade).and_then(|key| answer_to(&key));
        request.headers_mut().remove(header::CONTENT_LENGTH);
        *request.method_mut() = Method::CONNECT;
        // Each version has its own.
        request.extensions_mut().insert(h2::ext::Protocol::from_static(WEBSOCKET));
        request.extensions_mut().insert(client::Protocol(WEBSOCKET));
        let (opener, content) = Gate::shut();
        (*request.body_mut(), _) = Sent::new(content, u64::MAX);
        Connecting { opener, answer }
    }
}

/// An extended CONNECT that an upstream is asked.
pub(crate) struct Connecting {
    opener: Opener,
    /// What the client's own key demands, if it has sent one.
    answer: Option<HeaderValue>,
}

impl Connecting {
    /// Makes the head of a response of 2xx the one that agrees to a WebSocket. Returns what lets the client's bytes go.
    pub(crate) fn agree(self, head: &mut response::Parts) -> Opener {
        head.status = StatusCode::SWITCHING_PROTOCOLS;
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers.remove(SEC_WEBSOCKET_ACCEPT);
        name(&mut head.headers, HeaderValue::from_static(WEBSOCKET));
        self.answer.into_iter().for_each(|answer| _ = head.headers.insert(SEC_WEBSOCKET_ACCEPT, answer));
        self.opener
    }
}

/// The protocols of the field Upgrade that may go on; `None` if there are none.
fn permitted(offered: &HeaderValue) -> Option<HeaderValue> {
    let all = offered.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let may_pass = |protocol: &&[u8]| {
        let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
        !name.is_empty() && !REFUSED.iter().any(|refused| refused.eq_ignore_ascii_case(name))
    };
    let kept: Vec<&[u8]> = all.filter(may_pass).collect();
    if kept.is_empty() { None } else { HeaderValue::from_bytes(&kept.join(&b", "[..])).ok() }
}

/// The protocol that a response 101 agrees to, if it is one of those that were `offered`.
fn agreed(fields: &HeaderMap, offered: &HeaderValue) -> Option<HeaderValue> {
    let mut named = fields.get_all(header::UPGRADE).iter();
    let (Some(protocol), None) = (named.next(), named.next()) else { return None };
    let mut all = offered.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    all.any(|one| one.eq_ignore_ascii_case(protocol.as_bytes().trim_ascii())).then(|| protocol.clone())
}

/// Says in a head that it is about `protocols`.
pub(crate) fn name(fields: &mut HeaderMap, protocols: HeaderValue) {
    fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(header::UPGRADE, protocols);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).unwrap()
    }

    /// Deleted, a client could speak HTTP/2 with an upstream, past all that this server judges.
    #[test]
    fn other_versions_of_http_are_not_passed_on() {
        for text in ["h2c", "H2C", "h2", "HTTP/2.0", "http/3", "TLS/1.0", "", " , ,"] {
            assert_eq!(permitted(&value(text)), None, "{text}");
        }
        assert_eq!(permitted(&value("h2c, websocket")), Some(value("websocket")));
        assert_eq!(permitted(&value("WebSocket")), Some(value("WebSocket")));
        assert_eq!(permitted(&value("SPDY/3.1,tcp")), Some(value("SPDY/3.1, tcp")));
    }

    /// Deleted, an upstream could speak what no client has asked for.
    #[test]
    fn an_upstream_agrees_to_one_of_the_protocols_that_were_offered() {
        let agreed = |named: &[&str], offered| {
            let mut fields = HeaderMap::new();
            named.iter().for_each(|named| _ = fields.append(header::UPGRADE, value(named)));
            super::agreed(&fields, &value(offered))
        };
        assert_eq!(agreed(&["websocket"], "a, WebSocket"), Some(value("websocket")));
        assert_eq!(agreed(&["a"], "websocket"), None);
        assert_eq!(agreed(&["h2c"], "websocket"), None);
        assert_eq!(agreed(&["a", "a"], "a"), None);
        assert_eq!(agreed(&["a, b"], "a, b"), None);
        assert_eq!(agreed(&[], "a"), None);
    }
}
