//! What is changed of a response's fields: some are set, added or removed.
//!
//! Nothing is copied for a request: the response's own fields and the shared lines of the edit go out one after the other.

use super::cache_control::{CacheRule, NamePattern, rule_of};
use super::field::{FieldError, field_name, field_value};
use crate::low::{FieldLines, Measure};
use crate::response::Fields;
use crate::service::ServiceFields;
use http::HeaderMap;
use std::sync::Arc;

/// Fields that tell how a message is sent, or that the server answers for. RFC 9110 §7.6.1, §8.6, §6.6.1, RFC 7838.
const OWN: [&str; 10] = [
    "alt-svc",
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const CACHE_CONTROL: &str = "cache-control";

type Line = (Box<str>, Box<str>);

/// Changes of a response's fields. Names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// Fields of the response that do not go out.
    removed: Vec<Box<str>>,
    /// Lines of every response.
    lines: Vec<Line>,
    /// Of responses with a status below 400.
    cache_rules: Vec<CacheRule>,
}

impl Edit {
    /// The field has this value, in place of any that the response has, and of what was set or added before.
    ///
    /// # Errors
    /// The name or the value is none, or the field is the server's own.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), FieldError> {
        self.remove(name)?;
        self.add(name, value)
    }

    /// The field has this value, besides those that the response has.
    ///
    /// # Errors
    /// As [`Edit::set`].
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), FieldError> {
        let line = (own_name(name)?, checked(value)?);
        self.lines.push(line);
        Ok(())
    }

    /// The field is not sent.
    ///
    /// # Errors
    /// The name is none, or the field is the server's own.
    pub fn remove(&mut self, name: &str) -> Result<(), FieldError> {
        let name = own_name(name)?;
        self.lines.retain(|(other, _)| *other != name);
        if &*name == CACHE_CONTROL {
            self.cache_rules.clear();
        }
        if !self.removed.contains(&name) {
            self.removed.push(name);
        }
        Ok(())
    }

    /// Responses with a status below 400 whose names are like one of `patterns` (none: all) have this value of cache-control, in place of
    /// any other. Rules that are there hold for other names.
    ///
    /// # Errors
    /// The value is none.
    pub fn cache_control(&mut self, patterns: Vec<NamePattern>, value: &str) -> Result<(), FieldError> {
        let value = checked(value)?;
        self.cache_rules.insert(0, CacheRule { patterns, value });
        Ok(())
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Edit::default()
    }

    fn removes(&self, name: &[u8]) -> bool {
        self.removed.iter().any(|removed| removed.as_bytes() == name)
    }
}

fn own_name(name: &str) -> Result<Box<str>, FieldError> {
    Ok(field_name(name, &OWN, "the server")?.as_str().into())
}

fn checked(value: &str) -> Result<Box<str>, FieldError> {
    field_value(value).map(|_| value.into())
}

/// A response's fields, edited.
#[derive(Default)]
pub struct EditedFields {
    fields: Fields,
    /// Those of a service's response, instead.
    of_service: Option<Box<ServiceFields>>,
    edit: Option<Arc<Edit>>,
    /// The rule that says its cache-control.
    cache_rule: Option<usize>,
}

impl EditedFields {
    /// The fields of a response with `status` to a request for `target`, edited.
    pub(crate) fn new(fields: Fields, status: u16, edit: Option<Arc<Edit>>, target: &[u8]) -> EditedFields {
        let edit_of_success = edit.as_ref().filter(|_| status < 400);
        let cache_rule = edit_of_success.and_then(|edit| rule_of(&edit.cache_rules, target));
        EditedFields { fields, of_service: None, edit, cache_rule }
    }

    /// The fields of a service's response, edited.
    pub(crate) fn of_service(
        fields: ServiceFields,
        status: u16,
        edit: Option<Arc<Edit>>,
        target: &[u8],
    ) -> EditedFields {
        let of_service = Some(Box::new(fields));
        EditedFields { of_service, ..EditedFields::new(Fields::default(), status, edit, target) }
    }
}

impl FieldLines for EditedFields {
    type Kept = EditedFields;

    const REPEATS: bool = true;

    /// Those of a service pin memory of its own, and are rarely the same again.
    #[inline]
    fn is_kept(&self) -> bool {
        self.of_service.is_none()
    }

    fn is(&self, kept: &EditedFields) -> bool {
        let edit = |fields: &EditedFields| fields.edit.as_ref().map(Arc::as_ptr);
        edit(self) == edit(kept) && self.cache_rule == kept.cache_rule && self.fields == kept.fields
    }

    fn keep(self, kept: &mut EditedFields) {
        *kept = self;
    }

    fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let edit = self.edit.as_deref();
        let rule = edit.and_then(|edit| edit.cache_rules.get(self.cache_rule?));
        let is_replaced = move |name: &[u8]| rule.is_some() && name == CACHE_CONTROL.as_bytes();
        let of_service = self.of_service.as_deref().into_iter().flat_map(FieldLines::lines);
        let own = self.fields.iter().map(|(name, value)| -> (&[u8], &[u8]) { (name, value) });
        let own = own.chain(of_service);
        let own = own.filter(move |(name, _)| !edit.is_some_and(|edit| edit.removes(name)));
        let lines = edit.into_iter().flat_map(|edit| &edit.lines);
        let lines = lines.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let cache_control = rule.map(|rule| (CACHE_CONTROL.as_bytes(), rule.value.as_bytes()));
        own.chain(lines).filter(move |(name, _)| !is_replaced(name)).chain(cache_control)
    }

    fn key(&self) -> &[u8] {
        self.fields.value("etag").unwrap_or_default()
    }

    fn measure(&self) -> Measure {
        match (&self.of_service, &self.edit) {
            (None, None) => self.fields.measure(),
            _ => Measure::of(self),
        }
    }

    /// Those of a service's response that nothing changes.
    fn into_map(mut self) -> Result<HeaderMap, EditedFields> {
        match self.of_service.take_if(|_| self.edit.is_none()) {
            Some(fields) => fields.into_map().map_err(|fields| EditedFields {
                of_service: Some(Box::new(fields)),
                ..EditedFields::default()
            }),
            None => Err(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Value;

    fn lines(edit: &Edit, status: u16) -> String {
        let mut fields = Fields::default();
        fields.push("content-type", Value::Static("text/plain"));
        fields.push("etag", Value::Static("\"1\""));
        let edited = EditedFields::new(fields, status, Some(Arc::new(edit.clone())), b"/a.css");
        let line =
            |(name, value)| format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        edited.lines().map(line).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn fields_are_set_added_and_removed() {
        let mut edit = Edit::default();
        edit.set("Content-Type", "text/html").unwrap();
        edit.add("link", "</a>").unwrap();
        edit.add("link", "</b>").unwrap();
        edit.remove("etag").unwrap();
        edit.cache_control(Vec::new(), "no-store").unwrap();
        assert_eq!(
            lines(&edit, 200),
            "content-type: text/html; link: </a>; link: </b>; cache-control: no-store"
        );
        assert_eq!(lines(&edit, 404), "content-type: text/html; link: </a>; link: </b>");
        edit.remove("link").unwrap();
        edit.set("cache-control", "private").unwrap();
        assert_eq!(lines(&edit, 200), "content-type: text/html; cache-control: private");
        let css = || vec![NamePattern::parse("*.css").unwrap()];
        edit.cache_control(css(), "no-cache").unwrap();
        edit.cache_control(css(), "immutable").unwrap();
        assert_eq!(lines(&edit, 200), "content-type: text/html; cache-control: immutable");
        assert_eq!(lines(&edit, 404), "content-type: text/html; cache-control: private");
        edit.cache_control(vec![NamePattern::parse("*.js").unwrap()], "no-store").unwrap();
        assert_eq!(lines(&edit, 200), "content-type: text/html; cache-control: immutable");
        assert_eq!(lines(&Edit::default(), 200), "content-type: text/plain; etag: \"1\"");
    }

    #[test]
    fn what_is_no_field_or_the_servers_own_is_refused() {
        let mut edit = Edit::default();
        for name in ["", "a b", "a:", "é", "Content-Length", "connection", "date", "Alt-Svc"] {
            assert!(edit.set(name, "x").is_err() && edit.remove(name).is_err(), "{name}");
        }
        for value in ["a\r\nb", "é", " a", "a\0"] {
            assert!(edit.add("x", value).is_err(), "{value:?}");
        }
    }

    /// Deleted, a response of a service could go out without the changes of its route, or without its date.
    #[test]
    fn only_fields_that_nothing_changes_are_a_map() {
        const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        let of_service = |edit: Option<Edit>| {
            let map = HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("\"1\""))]);
            let fields = ServiceFields { map, date: DATE.as_bytes().try_into().ok() };
            EditedFields::of_service(fields, 200, edit.map(Arc::new), b"/")
        };
        let lines = |fields: &EditedFields| fields.lines().map(|(name, _)| name.len()).collect::<Vec<_>>();
        let map = of_service(None).into_map().ok().unwrap();
        assert_eq!((map.len(), map["date"].as_bytes()), (2, DATE.as_bytes()));
        let mut edit = Edit::default();
        edit.remove("etag").unwrap();
        let kept = of_service(Some(edit)).into_map().err().unwrap();
        assert_eq!(lines(&kept), ["date".len()]);
        assert!(EditedFields::default().into_map().is_err(), "fields of files are none");
    }

    /// Deleted, a response could go out with the head of another route.
    #[test]
    fn the_same_fields_with_another_edit_are_others() {
        let of = |edit: Option<&Arc<Edit>>, status| {
            EditedFields::new(Fields::default(), status, edit.cloned(), b"/")
        };
        let [one, other] = [Arc::new(Edit::default()), Arc::new(Edit::default())];
        assert!(of(Some(&one), 200).is(&of(Some(&one), 204)));
        assert!(!of(Some(&one), 200).is(&of(Some(&other), 200)));
        assert!(!of(None, 200).is(&of(Some(&one), 200)));
        let mut rules = Edit::default();
        rules.cache_control(Vec::new(), "no-store").unwrap();
        let rules = Arc::new(rules);
        assert!(!of(Some(&rules), 200).is(&of(Some(&rules), 404)));
    }
}
