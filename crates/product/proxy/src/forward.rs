//! Heads on their way: what is left out, and what is said of the client. RFC 9110 §7.6, RFC 7239.

use crate::settings::Settings;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Uri, Version};
use server::ConnectionInfo;
use std::net::IpAddr;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

pub(crate) const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
pub(crate) const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// What a proxy says of its client. Only those that are trusted may.
const TOLD_BY_PROXIES: [HeaderName; 10] = [
    X_FORWARDED_METHOD,
    X_FORWARDED_URI,
    X_FORWARDED_FOR,
    X_FORWARDED_PROTO,
    X_FORWARDED_HOST,
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-real-ip"),
    header::FORWARDED,
];

/// Fields that concern one connection. RFC 9110 §7.6.1, §11.7.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Makes the head of a request that of the request to an upstream. `None`: it has no path.
pub(crate) fn request(parts: &mut Parts, info: &ConnectionInfo, settings: &Settings) -> Option<()> {
    let fields = &mut parts.headers;
    if fields.contains_key(header::TRANSFER_ENCODING) {
        fields.remove(header::CONTENT_LENGTH);
    }
    remove_hop_by_hop(fields);
    // The server tells clients to go on when the upstream takes content.
    fields.remove(header::EXPECT);
    let peer = info.peer.ip().to_canonical();
    let is_trusted = settings.trusted.iter().any(|network| network.has(peer));
    if !is_trusted {
        TOLD_BY_PROXIES.iter().for_each(|name| _ = fields.remove(name));
    }
    remove_look_alikes(fields);
    let host = parts.uri.authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    let host = host.and_then(Result::ok).or_else(|| fields.get(header::HOST).cloned());
    tell(fields, peer, host.as_ref());
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
    // RFC 9112 §6.3: the length by chunks counts, so the other one must not go on.
    if fields.contains_key(header::TRANSFER_ENCODING) {
        fields.remove(header::CONTENT_LENGTH);
    }
    remove_hop_by_hop(fields);
    fields.remove(header::ALT_SVC);
}

fn remove_hop_by_hop(fields: &mut HeaderMap) {
    let nominated: Vec<HeaderName> = fields
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        // How content is framed is not a question of options.
        .filter(|name| *name != header::CONTENT_LENGTH)
        .collect();
    nominated.iter().chain(&HOP_BY_HOP).for_each(|name| _ = fields.remove(name));
}

/// Removes names with underscores that an application behind CGI takes for those of [`TOLD_BY_PROXIES`].
fn remove_look_alikes(fields: &mut HeaderMap) {
    let is_one = |name: &HeaderName| {
        let dashed = name.as_str().replace('_', "-");
        name.as_str().contains('_') && TOLD_BY_PROXIES.iter().any(|told| told.as_str() == dashed)
    };
    let found: Vec<HeaderName> = fields.keys().filter(|name| is_one(name)).cloned().collect();
    found.iter().for_each(|name| _ = fields.remove(name));
}

/// Tells the upstream of the client, after what trusted proxies have told.
fn tell(fields: &mut HeaderMap, peer: IpAddr, host: Option<&HeaderValue>) {
    append(fields, &X_FORWARDED_FOR, &peer.to_string());
    fields.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static("https"));
    if let Some(host) = host {
        fields.entry(X_FORWARDED_HOST).or_insert_with(|| host.clone());
    }
    // RFC 7239 §6: an address of IPv6 has brackets and quotes.
    let node = match peer {
        IpAddr::V4(address) => format!("for={address}"),
        IpAddr::V6(address) => format!("for=\"[{address}]\""),
    };
    let host = host.and_then(|host| host.to_str().ok()).filter(|host| !host.contains(['"', '\\']));
    let host = host.map_or_else(String::new, |host| format!(";host=\"{host}\""));
    append(fields, &header::FORWARDED, &format!("{node}{host};proto=https"));
}

/// RFC 9110 §7.6.3.
fn via(fields: &mut HeaderMap, alpn: &str) {
    let version = match alpn {
        "h3" => "3",
        "h2" => "2",
        _ => "1.1",
    };
    append(fields, &header::VIA, &format!("{version} tercel"));
}

/// Adds to the list that a field is.
fn append(fields: &mut HeaderMap, name: &HeaderName, text: &str) {
    let mut list = Vec::new();
    for value in fields.get_all(name) {
        list.extend_from_slice(value.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(text.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&list) {
        fields.insert(name, value);
    }
}
