//! The `alt-svc` field of a response: where else an origin is served. RFC 7838 §3.

use std::time::Duration;

/// How long an alternative is valid that does not say. RFC 7838 §3.1.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// So many alternatives of a field are looked at.
const MAX_ALTERNATIVES: usize = 8;

/// A place where HTTP/3 is spoken for an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alternative {
    /// `None`: the host of the origin.
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
    pub(crate) max_age: Duration,
}

/// What a response says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Announcement {
    /// All alternatives are void.
    Clear,
    /// These replace what was announced before, in the server's order of preference. Only those of HTTP/3.
    Alternatives(Vec<Alternative>),
}

/// Reads the values of all `alt-svc` fields of a response; `None` without any. What cannot be read is left out.
pub(crate) fn parse<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<Announcement> {
    let mut values = values.into_iter().peekable();
    values.peek()?;
    let mut found = Vec::new();
    for value in values {
        for entry in split(value, ',') {
            if entry == "clear" {
                return Some(Announcement::Clear);
            }
            found.extend(alternative(entry).filter(|_| found.len() < MAX_ALTERNATIVES));
        }
    }
    Some(Announcement::Alternatives(found))
}

/// `h3="host:port"; ma=seconds`
fn alternative(entry: &str) -> Option<Alternative> {
    let mut parts = split(entry, ';');
    let authority = parts.next()?.strip_prefix("h3=")?.strip_prefix('"')?.strip_suffix('"')?;
    let (host, port) = authority.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let mut max_age = MAX_AGE;
    for part in parts {
        if let Some(seconds) = part.strip_prefix("ma=") {
            let seconds = seconds.trim_matches('"');
            max_age = Duration::from_secs(seconds.parse().ok()?);
        }
    }
    let host = (!host.is_empty()).then(|| host.to_owned());
    Some(Alternative { host, port: port.parse().ok().filter(|port| *port > 0)?, max_age })
}

/// The parts between separators that are not quoted, without blanks around them.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |letter| {
        is_quoted ^= letter == '"';
        letter == separator && !is_quoted
    })
    .map(|part| part.trim_matches([' ', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[&str]) -> Vec<(Option<String>, u16, u64)> {
        match parse(values.iter().copied()) {
            Some(Announcement::Alternatives(found)) => {
                found.into_iter().map(|each| (each.host, each.port, each.max_age.as_secs())).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn alternatives_as_servers_announce_them() {
        assert_eq!(found(&[r#"h3=":443"; ma=86400"#]), [(None, 443, 86_400)]);
        assert_eq!(
            found(&[r#"h2=":8000", h3="alt.example:8443";ma="60"; persist=1"#, r#"h3-29=":1",h3="[::1]:9""#]),
            [(Some("alt.example".into()), 8_443, 60), (Some("::1".into()), 9, 86_400)]
        );
        assert_eq!(parse(["clear"]), Some(Announcement::Clear));
        assert_eq!(parse([]), None);
        for unusable in
            ["", "h3", r#"h3="x""#, r#"h3=":0""#, r#"h3=":443"; ma=-1"#, r#"h3=":70000""#, r#"h3=""#]
        {
            assert_eq!(found(&[unusable]), [], "{unusable}");
        }
        let many = vec![r#"h3=":1""#; 50].join(",");
        assert_eq!(found(&[&many]).len(), MAX_ALTERNATIVES);
    }
}
