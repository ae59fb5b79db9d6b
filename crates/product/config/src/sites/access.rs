//! Which requests are answered: limits, certificates of clients, users.

use super::Builder;
use super::proxies::forward_auth;
use crate::fault::Span;
use crate::read::{Item, Table, Value};
use http::header;
use server::access::{
    Access, BasicAuth, BasicAuthError, ClientRule, Fingerprint, LimitKey, PasswordHash, RateLimit,
};
use server::sites::{RouteService, field_name};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A file of users is not longer, in bytes.
const LONGEST: u64 = 16 << 20;

/// What was made of a key, by its place: the routes that take it over share it.
#[derive(Default)]
pub(super) struct Shared {
    limits: HashMap<usize, Option<Arc<RateLimit>>>,
    clients: HashMap<usize, Option<Arc<ClientRule>>>,
    users: HashMap<usize, Option<Arc<BasicAuth>>>,
    asks: HashMap<usize, Option<Arc<dyn RouteService>>>,
}

/// What the first of `tables` says that says anything; `None` if all requests are answered.
pub(super) fn access(builder: &mut Builder<'_>, tables: &[&Table]) -> Option<Access> {
    let first = |name: &str| tables.iter().find_map(|table| table.get(name)).filter(|item| is_on(item));
    let (limit, client, users) = (first("rate-limit"), first("client-cert"), first("auth"));
    let access = Access {
        limit: limit.and_then(|item| {
            let known = builder.shared.limits.get(&item.span.start).cloned();
            known.unwrap_or_else(|| limit_of(builder, item))
        }),
        client: client.and_then(|item| {
            let known = builder.shared.clients.get(&item.span.start).cloned();
            known.unwrap_or_else(|| client_of(builder, item))
        }),
        basic: users.and_then(|item| {
            let known = builder.shared.users.get(&item.span.start).cloned();
            known.unwrap_or_else(|| users_of(builder, item))
        }),
    };
    (!access.is_empty()).then_some(access)
}

/// The server that the first of `tables` says that says any; `None` if none is asked.
pub(super) fn asks(builder: &mut Builder<'_>, tables: &[&Table]) -> Option<Arc<dyn RouteService>> {
    let first = tables.iter().find_map(|table| table.get("forward-auth"));
    let item = first.filter(|item| is_on(item))?;
    let known = builder.shared.asks.get(&item.span.start).cloned();
    known.unwrap_or_else(|| asks_of(builder, item))
}

fn is_on(item: &Item) -> bool {
    !matches!(item.value, Value::Switch(false))
}

fn limit_of(builder: &mut Builder<'_>, item: &Item) -> Option<Arc<RateLimit>> {
    let limit = match &item.value {
        Value::Table(table) => {
            let number = |name, default| u64::try_from(table.integer(name, default).0).unwrap_or(1);
            let requests = number("requests", 1);
            let burst = number("burst", i64::try_from(requests).unwrap_or(i64::MAX));
            let period = match table.text("per") {
                Some(("minute", _)) => 60,
                Some(("hour", _)) => 3_600,
                _ => 1,
            };
            let key = table.text("by").map_or(LimitKey::Address, |by| limit_key(builder, by));
            Some(Arc::new(RateLimit::new(requests, Duration::from_secs(period), burst, key)))
        }
        _ => {
            let what = "how many? Write rate-limit = { requests = 10, per = \"second\" }";
            builder.note(item.span.clone(), what);
            None
        }
    };
    builder.shared.limits.insert(item.span.start, limit.clone());
    limit
}

/// By what clients are told apart.
fn limit_key(builder: &mut Builder<'_>, (text, span): (&str, Span)) -> LimitKey {
    let name = match text {
        "address" => return LimitKey::Address,
        "authorization" => return LimitKey::Authorization,
        _ => text.strip_prefix("field:").map(|name| field_name(name, &[], "")),
    };
    let what = match name {
        Some(Ok(name)) if name == header::HOST => {
            "a request is of its site's host: limit each site, or name another field".to_owned()
        }
        Some(Ok(name)) => return LimitKey::Field(name),
        Some(Err(error)) => error.to_string(),
        None => format!("\"by\" takes no \"{text}\": give \"address\", \"authorization\" or \"field:NAME\""),
    };
    builder.note(span, what);
    LimitKey::Address
}

fn client_of(builder: &mut Builder<'_>, item: &Item) -> Option<Arc<ClientRule>> {
    let mut rule = ClientRule::default();
    if let Value::Table(table) = &item.value {
        if table.list("names").next().is_none() && table.list("fingerprints").next().is_none() {
            let what = "which certificates? Name names or fingerprints, or write client-cert = true for all of \"client-ca\"";
            builder.note(item.span.clone(), what);
        }
        rule.names = table.list("names").map(|(name, _)| name.to_owned()).collect();
        for (text, span) in table.list("fingerprints") {
            match Fingerprint::parse(text) {
                Some(fingerprint) => rule.fingerprints.push(fingerprint),
                None => builder.note(
                    span,
                    format!("\"{text}\" is no SHA-256 digest: write the 64 digits that openssl x509 -fingerprint -sha256 prints"),
                ),
            }
        }
    }
    builder.settings.client_certificates.push(item.span.clone());
    let rule = Some(Arc::new(rule));
    builder.shared.clients.insert(item.span.start, rule.clone());
    rule
}

fn asks_of(builder: &mut Builder<'_>, item: &Item) -> Option<Arc<dyn RouteService>> {
    let asks = match &item.value {
        Value::Table(table) => forward_auth(builder, table),
        _ => {
            let what = "whom? Write forward-auth = { to = \"http://HOST:PORT\", path = \"/PATH\" }";
            builder.note(item.span.clone(), what);
            None
        }
    };
    builder.shared.asks.insert(item.span.start, asks.clone());
    asks
}

fn users_of(builder: &mut Builder<'_>, item: &Item) -> Option<Arc<BasicAuth>> {
    let auth = users_in(builder, item).map(Arc::new);
    builder.shared.users.insert(item.span.start, auth.clone());
    auth
}

fn users_in(builder: &mut Builder<'_>, item: &Item) -> Option<BasicAuth> {
    let Value::Table(table) = &item.value else {
        builder.note(
            item.span.clone(),
            "whom? Write auth = { users = { NAME = \"HASH\" } } with what tercel hash-password prints",
        );
        return None;
    };
    let (mut hashes, before) = (HashMap::new(), builder.faults.len());
    for entry in table.table("users").into_iter().flat_map(|users| &users.entries) {
        if let Value::Text(text) = &entry.item.value {
            match PasswordHash::parse(text) {
                Ok(hash) => drop(hashes.insert(entry.name.clone(), hash)),
                Err(error) => builder.note(entry.item.span.clone(), error.to_string()),
            }
        }
    }
    if let Some((name, span)) = table.text("users-file") {
        users_file(builder, (name, span), &mut hashes);
    }
    if builder.faults.len() > before {
        return None;
    }
    let (realm, span) = table.text("realm").unwrap_or(("restricted", item.span.clone()));
    match BasicAuth::new(realm, hashes) {
        Ok(auth) => Some(auth),
        Err(error) => {
            let place = if error == BasicAuthError::Realm { span } else { item.span.clone() };
            builder.note(place, error.to_string());
            None
        }
    }
}

fn users_file(
    builder: &mut Builder<'_>,
    (name, span): (&str, Span),
    hashes: &mut HashMap<String, PasswordHash>,
) {
    let path = builder.place.join(name);
    let read = match std::fs::metadata(&path) {
        Ok(file) if file.len() > LONGEST => Err("it is longer than 16 MiB".to_owned()),
        Ok(_) => std::fs::read_to_string(&path).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let text = match read {
        Ok(text) => text,
        Err(why) => {
            let path = path.display();
            return builder.note(
                span,
                format!("cannot read the users in {path}: {why}: give a file with NAME:HASH in each line"),
            );
        }
    };
    for (number, line) in
        (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let Some((user, hash)) = line.split_once(':') else {
            builder.note(span.clone(), format!("{}:{number}: write NAME:HASH in each line", path.display()));
            continue;
        };
        match PasswordHash::parse(hash.trim()) {
            Ok(hash) if hashes.contains_key(user) => {
                drop(hash);
                builder.note(
                    span.clone(),
                    format!("{}:{number}: there is \"{}\" already", path.display(), user.escape_debug()),
                );
            }
            Ok(hash) => drop(hashes.insert(user.to_owned(), hash)),
            Err(error) => builder.note(span.clone(), format!("{}:{number}: {error}", path.display())),
        }
    }
}
