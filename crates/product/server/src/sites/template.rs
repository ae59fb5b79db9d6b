//! Targets with parts of the request in them: `https://{host}/new/{rest}{query}`.

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use std::fmt;

/// What no part of a URL is as it is. RFC 3986 §2; `%` stays: what clients send is encoded already.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A target that is filled in for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Host,
    Path,
    Rest,
    Query,
}

/// What is no template. The text says what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError(String);

impl fmt::Display for TemplateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for TemplateError {}

/// The parts of a request that a template can have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captured<'a> {
    /// Without its port, in lower case.
    pub(crate) host: &'a [u8],
    /// As it was sent, without its query.
    pub(crate) path: &'a [u8],
    /// What of the path follows the prefix of the route.
    pub(crate) rest: &'a [u8],
    /// Without its question mark.
    pub(crate) query: Option<&'a [u8]>,
}

impl Template {
    /// A path on the same site, which begins with a slash.
    ///
    /// # Errors
    /// It does not, or names a part that requests do not have.
    pub fn path(text: &str) -> Result<Template, TemplateError> {
        let template = Template::parse(text)?;
        let is_path = match template.0.first() {
            Some(Part::Text(text)) => text.starts_with('/') && !text.starts_with("//"),
            Some(Part::Path) => true,
            _ => false,
        };
        match is_path {
            true => Ok(template),
            false => Err(TemplateError("begin with one slash, or with {path}".to_owned())),
        }
    }

    /// A path on the same site, or a URL with its scheme. Only `{host}` may be in the host of it: a client must not choose where it leads.
    ///
    /// # Errors
    /// It is neither, or names a part that requests do not have.
    pub fn url(text: &str) -> Result<Template, TemplateError> {
        let is_url = text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
        let Some((_, behind)) = is_url else {
            let what = "begin with one slash, {path}, https:// or http://";
            return Template::path(text)
                .map_err(|error| if text.starts_with('/') { error } else { TemplateError(what.to_owned()) });
        };
        let template = Template::parse(text)?;
        // A path begins with a slash, which ends the host.
        let behind = behind.replace("{path}", "/");
        let authority = behind.split('/').next().unwrap_or_default();
        let plain = authority.replace("{host}", "h");
        if plain.is_empty() || plain.contains(['{', '}', '?', '#', '@', '\\', ' ']) {
            return Err(TemplateError(
                "a host and a slash follow https://, and of requests only {host} is in it".to_owned(),
            ));
        }
        Ok(template)
    }

    fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            if !before.is_empty() {
                parts.push(Part::Text(before.into()));
            }
            let (name, behind) = behind
                .split_once('}')
                .ok_or_else(|| TemplateError("the brace { is not closed".to_owned()))?;
            parts.push(match name {
                "host" => Part::Host,
                "path" => Part::Path,
                "rest" => Part::Rest,
                "query" => Part::Query,
                _ => {
                    let what =
                        format!("there is no {{{name}}}: use {{host}}, {{path}}, {{rest}} or {{query}}");
                    return Err(TemplateError(what));
                }
            });
            rest = behind;
        }
        let is_sent = |byte: u8| {
            byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'|' | b'}')
        };
        let texts =
            parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None });
        if !texts.chain([rest]).all(|text| text.bytes().all(is_sent)) {
            return Err(TemplateError("encode what no URL has, such as %20 for a space".to_owned()));
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        Ok(Template(parts))
    }

    /// Whether it is the request's path as it is.
    pub(crate) fn is_path(&self) -> bool {
        self.0 == [Part::Path]
    }

    /// Appends the target for a request.
    pub(crate) fn expand(&self, of: Captured<'_>, out: &mut Vec<u8>) {
        for part in &self.0 {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Host => push(of.host, out),
                Part::Path => push_path(of.path, out),
                Part::Rest => push(of.rest, out),
                Part::Query => {
                    if let Some(query) = of.query {
                        out.push(b'?');
                        push(query, out);
                    }
                }
            }
        }
    }
}

/// A path with one slash at its beginning: with two it would lead to another host.
pub(crate) fn push_path(path: &[u8], out: &mut Vec<u8>) {
    out.push(b'/');
    push(super::prefix::without_slashes(path), out);
}

/// What a client sent, encoded where no URL has it as it is: browsers take a backslash for a slash.
pub(crate) fn push(sent: &[u8], out: &mut Vec<u8>) {
    percent_encode(sent, ENCODED).for_each(|text| out.extend_from_slice(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(template: &str, path: &str, rest: &str) -> String {
        let (path, query) =
            path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query.as_bytes())));
        let of = Captured { host: b"example.org", path: path.as_bytes(), rest: rest.as_bytes(), query };
        let mut out = Vec::new();
        Template::url(template).unwrap().expand(of, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Deleted, a link could lead from the operator's site to any other.
    #[test]
    fn what_a_client_sends_stays_a_part_of_the_path() {
        for (template, path, rest, expected) in [
            ("/new/{rest}", "/old/a/b", "a/b", "/new/a/b"),
            ("/{rest}{query}", "/old/a?b=c", "a", "/a?b=c"),
            ("https://{host}{path}{query}", "/a%20b?c", "a%20b", "https://example.org/a%20b?c"),
            ("https://www.{host}:8443/", "/", "", "https://www.example.org:8443/"),
            ("{path}/", "//evil.example", "evil.example", "/evil.example/"),
            ("/{rest}", "/\\evil.example", "\\evil.example", "/%5Cevil.example"),
            ("/{rest}", "/\"<é>", "\"<é>", "/%22%3C%C3%A9%3E"),
            ("/{query}", "/", "", "/"),
        ] {
            assert_eq!(expanded(template, path, rest), expected, "{template} {path}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused_with_what_to_write() {
        for (text, what) in [
            ("", "begin with"),
            ("new", "begin with"),
            ("//evil.example", "one slash"),
            ("{rest}", "begin with"),
            ("ftp://a/", "https://"),
            ("https://", "a host"),
            ("https://{rest}/", "only {host}"),
            ("https://a{query}", "only {host}"),
            ("https://a@b/", "only {host}"),
            ("/{uri}", "there is no {uri}: use {host}"),
            ("/{rest", "not closed"),
            ("/a b", "%20"),
            ("/}", "%20"),
        ] {
            let told = Template::url(text).unwrap_err().to_string();
            assert!(told.contains(what), "{text}: {told}");
        }
        assert!(Template::path("https://a/").is_err() && Template::path("{path}").unwrap().is_path());
    }
}
