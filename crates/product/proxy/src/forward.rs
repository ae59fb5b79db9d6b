//! Heads on their way: what is left out, and what is said of the client. RFC 9110 §7.6, RFC 7239.

use crate::settings::Settings;
use bytes::Bytes;
use http::header::{self, Entry, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Uri, Version};
use server::ConnectionInfo;
use std::net::IpAddr;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

pub(crate) const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
pub(crate) const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// The fields that are added to a request: those of [`tell`] and [`via`], and the host.
const ADDED: usize = 6;

/// The field Forwarded of a client is not longer than this, without its host, in bytes.
const TOLD: usize = 96;

/// What a proxy says of its client. Only those that are trusted may.
const TOLD_BY_PROXIES: [&str; 10] = [
    "x-forwarded-method",
    "x-forwarded-uri",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-server",
    "x-real-ip",
    "forwarded",
];

/// Whether a field concerns one connection. RFC 9110 §7.6.1, §11.7.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "transfer-encoding"
            | "upgrade"
            | "te"
            | "proxy-authenticate"
            | "proxy-authorization"
            | KEEP_ALIVE
            | "proxy-connection"
            | "http2-settings"
    )
}

const KEEP_ALIVE: &str = "keep-alive";

/// Makes the head of a request that of the request to an upstream. `None`: it has no path.
pub(crate) fn request(parts: &mut Parts, info: &ConnectionInfo, settings: &Settings) -> Option<()> {
    let fields = &mut parts.headers;
    fields.reserve(ADDED);
    let peer = info.peer.ip().to_canonical();
    let is_trusted = settings.trusted.iter().any(|network| network.has(peer));
    remove_hop_by_hop(fields, |name| {
        // The server tells clients to go on when the upstream takes content.
        *name == header::EXPECT
            || !is_trusted && TOLD_BY_PROXIES.contains(&name.as_str())
            || looks_alike(name.as_str())
    });
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let sent = if authority.is_none() { fields.get(header::HOST).cloned() } else { None };
    let host = tell(fields, peer, authority.or(sent.as_ref().map(HeaderValue::as_bytes)));
    via(fields, info.alpn);
    if let Some(host) = settings.host.clone().or(host) {
        fields.insert(header::HOST, host);
    }
    settings.edit.apply(fields);
    parts.uri = Uri::from(parts.uri.path_and_query()?.clone());
    parts.version = Version::HTTP_11;
    Some(())
}

/// Removes from a response what concerned the connection to the upstream, and what only this server knows of itself.
pub(crate) fn response(fields: &mut HeaderMap) {
    remove_hop_by_hop(fields, |name| *name == header::ALT_SVC);
}

/// Removes fields that concern one connection, and those of which `is_more` says so. One look at each name: to look up the names that may
/// not be there costs several times as much.
fn remove_hop_by_hop(fields: &mut HeaderMap, is_more: impl Fn(&HeaderName) -> bool) {
    // Not in the list, which has no memory while it is empty: most upstreams send this field alone.
    let mut has_connection = false;
    let goes = |name: &&HeaderName| is_hop_by_hop(name) || is_more(name);
    let mut found: Vec<HeaderName> = Vec::new();
    for name in fields.keys().filter(goes) {
        if *name == header::CONNECTION { has_connection = true } else { found.push(name.clone()) }
    }
    if found.contains(&header::TRANSFER_ENCODING) {
        // RFC 9112 §6.3: the length by chunks counts, so the other one must not go on.
        found.push(header::CONTENT_LENGTH);
    }
    if has_connection {
        found.extend(nominated(fields));
        fields.remove(header::CONNECTION);
    }
    found.iter().for_each(|name| _ = fields.remove(name));
}

/// The fields that a field connection names, but those that are known to concern a connection.
fn nominated(fields: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    let options = fields.get_all(header::CONNECTION).iter();
    let options = options.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let options = options.map(<[u8]>::trim_ascii).filter(|name| *name != KEEP_ALIVE.as_bytes());
    // How content is framed is not a question of options.
    options
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .filter(|name| *name != header::CONTENT_LENGTH)
}

/// Whether an application behind CGI takes a name, which has underscores, for one of [`TOLD_BY_PROXIES`].
fn looks_alike(name: &str) -> bool {
    name.contains('_') && TOLD_BY_PROXIES.contains(&&*name.replace('_', "-"))
}

/// Tells the upstream of the client, after what trusted proxies have told. Returns the host as a value. All values share one text.
fn tell(fields: &mut HeaderMap, peer: IpAddr, host: Option<&[u8]>) -> Option<HeaderValue> {
    // RFC 7239 §6: an address of IPv6 has brackets and quotes.
    let (before, after): (&[u8], &[u8]) = match peer {
        IpAddr::V4(_) => (b"for=", b""),
        IpAddr::V6(_) => (b"for=\"[", b"]\""),
    };
    let mut text = Vec::with_capacity(TOLD + host.map_or(0, <[u8]>::len));
    text.extend_from_slice(before);
    write_address(&mut text, peer);
    let address = before.len()..text.len();
    text.extend_from_slice(after);
    let is_quotable = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    let quoted = host.filter(|host| host.iter().all(is_quotable)).map(|host| {
        text.extend_from_slice(b";host=\"");
        let start = text.len();
        text.extend_from_slice(host);
        text.push(b'"');
        start..start + host.len()
    });
    text.extend_from_slice(b";proto=https");
    let text = Bytes::from(text);
    append(fields, X_FORWARDED_FOR, text.slice(address));
    fields.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static("https"));
    let host = match quoted {
        Some(place) => HeaderValue::from_maybe_shared(text.slice(place)).ok(),
        None => host.and_then(|host| HeaderValue::from_bytes(host).ok()),
    };
    if let Some(host) = &host {
        fields.entry(X_FORWARDED_HOST).or_insert_with(|| host.clone());
    }
    append(fields, header::FORWARDED, text);
    host
}

/// The text of an address. One of IPv4 is written by hand, at a tenth of the formatter's cost.
fn write_address(text: &mut Vec<u8>, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        return text.extend_from_slice(address.to_string().as_bytes());
    };
    for (number, byte) in address.octets().into_iter().enumerate() {
        if number > 0 {
            text.push(b'.');
        }
        let digits = [byte / 100, byte / 10 % 10, byte % 10].map(|digit| b'0' + digit);
        let zeros = match byte {
            0..10 => 2,
            10..100 => 1,
            100.. => 0,
        };
        text.extend(digits.iter().skip(zeros));
    }
}

/// RFC 9110 §7.6.3.
fn via(fields: &mut HeaderMap, alpn: &str) {
    let own = match alpn {
        "h3" => "3 tercel",
        "h2" => "2 tercel",
        _ => "1.1 tercel",
    };
    append(fields, header::VIA, Bytes::from_static(own.as_bytes()));
}

/// Adds to the list that a field is.
fn append(fields: &mut HeaderMap, name: HeaderName, text: Bytes) {
    match fields.entry(name) {
        Entry::Vacant(place) => {
            if let Ok(value) = HeaderValue::from_maybe_shared(text) {
                place.insert(value);
            }
        }
        Entry::Occupied(mut place) => {
            let before: Vec<&[u8]> = place.iter().map(HeaderValue::as_bytes).collect();
            if let Ok(value) =
                HeaderValue::from_bytes(&[&before.join(&b", "[..]), &text[..]].join(&b", "[..]))
            {
                place.insert_mult(value);
            }
        }
    }
}
