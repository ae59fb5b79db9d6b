//! Routes whose requests go on to upstreams.

use super::Builder;
use super::edits::{FieldChange, field_changes};
use crate::read::Table;
use crate::units;
use crypto::Roots;
use http::header::{HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use proxy::{
    Address, Balance, Check, ForwardAuth, MOST, Proxy, RequestEdit, Retries, Scheme, Settings, Timeouts, Tls,
};
use rustls_pki_types::ServerName;
use server::sites::{Action, RouteService, ServiceOf};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The route of the key "proxy"; `None` if it has no upstream that can be used.
pub(super) fn proxy(builder: &mut Builder<'_>, table: &Table) -> Option<Action> {
    let (upstreams, place) = (upstreams(builder, table), builder.place);
    let upstreams: Vec<Address> = upstreams.into_iter().map(|address| placed(address, place)).collect();
    let mut settings = Settings::new(upstreams);
    settings.balance = match table.text("balance") {
        Some(("round-robin", _)) => Balance::RoundRobin,
        Some(("hash-address", _)) => Balance::HashAddress,
        Some(("hash-path", _)) => Balance::HashPath,
        _ => Balance::LeastConnections,
    };
    settings.tls = tls(builder, table, &settings.upstreams);
    settings.host = host(builder, table);
    if let Some(table) = table.table("request-headers") {
        settings.edit = request_edit(builder, table);
    }
    settings.trusted = parsed(builder, table, "trusted-proxies");
    let seconds = |name, default: Duration| match table.integer(name, 0) {
        (0, _) => default,
        (seconds, _) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
    };
    let number = |name, default| usize::try_from(table.integer(name, default).0).unwrap_or_default();
    let Timeouts { connect, response, idle, keep_alive, tunnel } = settings.timeouts;
    settings.timeouts = Timeouts {
        connect: seconds("connect-timeout", connect),
        response: seconds("response-timeout", response),
        idle: seconds("idle-timeout", idle),
        keep_alive: seconds("keep-alive-timeout", keep_alive),
        tunnel: seconds("tunnel-timeout", tunnel),
    };
    settings.retries = Retries {
        attempts: number("retries", 2),
        failures: u32::try_from(number("max-failures", 3)).unwrap_or(u32::MAX),
        cool_down: seconds("cool-down", settings.retries.cool_down),
    };
    settings.proxy_protocol = proxy_protocol(builder, table, &settings.upstreams);
    settings.upgrade = table.switch("upgrade", true);
    settings.connections = number("max-connections", 1_024);
    settings.idle_connections = number("keep-alive", 64);
    settings.check = table.table("health").and_then(|table| check(builder, table));
    if let Some((text, span)) = table.text("max-content") {
        match units::bytes(text) {
            Ok(bytes) => settings.max_content = bytes,
            Err(what) => builder.note(span, format!("\"{text}\": {what}")),
        }
    }
    if settings.upstreams.is_empty() {
        return None;
    }
    let is_below_prefix = table.switch("strip-prefix", false);
    Some(Action::Service(ServiceOf { service: Arc::new(Proxy::new(settings)), is_below_prefix }))
}

/// Whether connections begin with the client's address.
fn proxy_protocol(builder: &mut Builder<'_>, table: &Table, upstreams: &[Address]) -> bool {
    let is_told = table.switch("proxy-protocol", false);
    let is_quic = |address: &Address| matches!(address, Address::Host { scheme: Scheme::H3, .. });
    if is_told && upstreams.iter().any(is_quic) {
        let what = "HTTP/3 has no PROXY protocol: ask the upstreams at h3:// by https://, or leave it out";
        builder.note(table.place("proxy-protocol").unwrap_or_default(), what);
    }
    is_told
}

fn request_edit(builder: &mut Builder<'_>, table: &Table) -> RequestEdit {
    let mut edit = RequestEdit::default();
    field_changes(builder, table, |change| match change {
        FieldChange::Remove(name) => edit.remove(name),
        FieldChange::Set(name, value) => edit.set(name, value),
        FieldChange::Add(name, value) => edit.add(name, value),
    });
    edit
}

/// The server of the key "forward-auth"; `None` if it cannot be asked.
pub(super) fn forward_auth(builder: &mut Builder<'_>, table: &Table) -> Option<Arc<dyn RouteService>> {
    let (upstreams, place) = (upstreams(builder, table), builder.place);
    let mut settings = Settings::new(upstreams.into_iter().map(|address| placed(address, place)).collect());
    settings.tls = tls(builder, table, &settings.upstreams);
    settings.host = host(builder, table);
    settings.trusted = parsed(builder, table, "trusted-proxies");
    let timeout = Duration::from_secs(u64::try_from(table.integer("timeout", 10).0).unwrap_or(10));
    settings.timeouts.connect = timeout.min(settings.timeouts.connect);
    (settings.timeouts.response, settings.timeouts.idle) = (timeout, timeout);
    let path = path(builder, table);
    let mut copied: Vec<HeaderName> = Vec::new();
    for (text, span) in table.list("copy") {
        match proxy::field_name(text) {
            Ok(name) => copied.push(name),
            Err(error) => builder.note(span, error.to_string()),
        }
    }
    let path = path.filter(|_| !settings.upstreams.is_empty())?;
    Some(Arc::new(ForwardAuth::new(settings, path, copied)))
}

/// What is asked for.
fn path(builder: &mut Builder<'_>, table: &Table) -> Option<PathAndQuery> {
    let (text, span) = table.text("path")?;
    let path = text.parse().ok().filter(|_| text.starts_with('/'));
    if path.is_none() {
        builder.note(span, format!("\"{text}\" is no path: write one such as /health"));
    }
    path
}

fn upstreams(builder: &mut Builder<'_>, table: &Table) -> Vec<Address> {
    let mut upstreams = parsed(builder, table, "to");
    if let Some(item) = table.get("to") {
        if table.list("to").next().is_none() {
            builder.note(item.span.clone(), "a proxy has an upstream: write http://HOST:PORT or unix:PATH");
        }
        if upstreams.len() > MOST {
            builder.note(item.span.clone(), format!("a proxy has at most {MOST} upstreams"));
            upstreams.truncate(MOST);
        }
    }
    upstreams
}

/// How upstreams at https:// and h3:// are known; `None` if there are none.
fn tls(builder: &mut Builder<'_>, table: &Table, upstreams: &[Address]) -> Option<Tls> {
    if !upstreams.iter().any(Address::is_secure) {
        for name in ["tls-ca", "tls-name"] {
            if let Some(span) = table.place(name) {
                builder.note(
                    span,
                    format!("\"{name}\" is for upstreams at https:// and h3://, and there are none"),
                );
            }
        }
        return None;
    }
    let name = table.text("tls-name").and_then(|(text, span)| match ServerName::try_from(text.to_owned()) {
        Ok(name) => Some(name),
        Err(_) => {
            builder.note(span, format!("\"{text}\" is no name that a certificate can have"));
            None
        }
    });
    let (roots, span) = match table.text("tls-ca") {
        Some((file, span)) => {
            let path = builder.place.join(file);
            match std::fs::read(&path) {
                Ok(text) => (Roots::Pem(text), span),
                Err(why) => {
                    let path = path.display();
                    builder.note(
                        span,
                        format!(
                            "cannot read {path}: {why}: give \"tls-ca\" a PEM file that this user may read"
                        ),
                    );
                    return None;
                }
            }
        }
        None => (Roots::System, table.place("to").unwrap_or_default()),
    };
    Tls::new(upstreams, &roots, name).unwrap_or_else(|error| {
        builder.note(span, error.to_string());
        None
    })
}

/// How upstreams are checked; `None` if what is asked for is wrong.
fn check(builder: &mut Builder<'_>, table: &Table) -> Option<Check> {
    let mut check = Check::new(path(builder, table)?);
    check.host = host(builder, table);
    let seconds = |name, default: Duration| match table.integer(name, 0) {
        (0, _) => default,
        (seconds, _) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
    };
    check.interval = seconds("interval", check.interval);
    check.timeout = seconds("timeout", check.timeout);
    let number = |name, default: u32| u32::try_from(table.integer(name, default.into()).0).unwrap_or(default);
    (check.rises, check.falls) = (number("rises", check.rises), number("falls", check.falls));
    if table.get("status").is_some() {
        check.statuses.clear();
    }
    for (text, span) in table.list("status") {
        match statuses(text) {
            Some(statuses) => check.statuses.push(statuses),
            None => builder.note(
                span,
                format!("\"{text}\" is no status: write one such as \"204\", or several as \"200-299\""),
            ),
        }
    }
    Some(check)
}

/// A status, or those from one to another.
fn statuses(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let status =
        |text: &str| text.parse().ok().filter(|status| (200..=599).contains(status) && text.len() == 3);
    Some(status(first)?..=status(last)?).filter(|range| !range.is_empty())
}

/// A socket's path is relative to the folder of the file.
fn placed(address: Address, place: &Path) -> Address {
    match address {
        Address::Unix(path) => Address::Unix(place.join(path)),
        other => other,
    }
}

fn host(builder: &mut Builder<'_>, table: &Table) -> Option<HeaderValue> {
    let (text, span) = table.text("host")?;
    let is_host = text.parse::<http::uri::Authority>().is_ok_and(|host| !host.as_str().contains('@'));
    match HeaderValue::from_str(text) {
        Ok(value) if is_host => Some(value),
        _ => {
            builder.note(
                span,
                format!("\"{text}\" is no host: write one such as app.internal or app.internal:8080"),
            );
            None
        }
    }
}

/// The values in the list `name`, each once.
fn parsed<T: FromStr<Err: Display> + PartialEq>(
    builder: &mut Builder<'_>,
    table: &Table,
    name: &str,
) -> Vec<T> {
    let mut all = Vec::new();
    for (text, span) in table.list(name) {
        match text.parse() {
            Ok(value) if all.contains(&value) => {
                builder.note(span, format!("there is \"{text}\" already: name each once"));
            }
            Ok(value) => all.push(value),
            Err(error) => builder.note(span, format!("\"{text}\": {error}")),
        }
    }
    all
}
