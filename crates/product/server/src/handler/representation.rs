//! What is found for a path and can be sent, and the fields that say so.

use super::{of_content, push_all};
use crate::body::Source;
use crate::compress::Coding;
use crate::conditional::Validators;
use crate::content_type;
use crate::dash_content;
use crate::date::Clock;
use crate::files::cache::Entry;
use crate::generated;
use crate::listing::{self, Listed, View};
use crate::pool::Pool;
use crate::response::{Fields, Value};
use bytes::Bytes;
use std::sync::Arc;

/// A thing that exists and can be sent.
pub(super) struct Representation {
    pub(super) source: Source,
    pub(super) size: u64,
    pub(super) content_type: &'static str,
    pub(super) validators: Arc<Validators>,
    /// The coding of the source's bytes.
    pub(super) coding: Option<Coding>,
    /// Fields beside those that every representation has.
    pub(super) fields: &'static [(&'static str, &'static str)],
    /// The fields of a response with all of it, if responses share them.
    pub(super) whole: Option<Fields>,
}

impl Representation {
    /// A file.
    #[inline]
    pub(super) fn known(entry: &mut Entry, pool: &Arc<Pool>, clock: &Clock) -> Option<Representation> {
        let found = Representation::of(entry, pool)?;
        let whole = Some(entry.fields_of(clock.unix_s(), || found.whole_fields(clock)));
        Some(Representation { whole, ..found })
    }

    fn of(entry: &Entry, pool: &Arc<Pool>) -> Option<Representation> {
        Some(Representation {
            source: entry.source(pool)?,
            size: entry.identity.size(),
            content_type: entry.content_type,
            validators: Arc::clone(&entry.validators),
            coding: None,
            fields: &[],
            whole: None,
        })
    }

    pub(super) fn listing(listed: Listed, view: View) -> Representation {
        Representation {
            size: listed.bytes.len() as u64,
            source: Source::Memory(listed.bytes),
            content_type: view.content_type(),
            validators: Arc::new(Validators::new(listed.etag, None)),
            coding: None,
            fields: listing::FIELDS,
            whole: None,
        }
    }

    /// What no file has to be there for.
    pub(super) fn made_up(path: &[u8]) -> Option<Representation> {
        if let Some(size) = generated::size_of(path) {
            return Some(Representation::generated(size));
        }
        let content_type = content_type::of(path);
        Some(match dash_content::find(path)? {
            dash_content::Part::Media(size) => {
                Representation { content_type, ..Representation::generated(size) }
            }
            dash_content::Part::Manifest(text) => {
                let size = text.len() as u64;
                // Manifests of different segment lengths may be equally long.
                let etag =
                    Value::from(format!("\"film-1-{}\"", String::from_utf8_lossy(path).replace('/', "-")));
                Representation {
                    source: Source::Memory(Bytes::from(text.into_bytes())),
                    content_type,
                    validators: Arc::new(Validators::new(etag, None)),
                    ..Representation::generated(size)
                }
            }
        })
    }

    fn generated(size: u64) -> Representation {
        // The 1 is the version of the pattern.
        let etag = Value::tag("generated-1-", size);
        Representation {
            source: Source::Generated,
            size,
            content_type: content_type::UNKNOWN,
            validators: Arc::new(Validators::new(etag, None)),
            coding: None,
            fields: &[],
            whole: None,
        }
    }

    /// The fields of a response with all of it.
    pub(super) fn whole_fields(&self, clock: &Clock) -> Fields {
        if let Some(fields) = &self.whole {
            return fields.clone();
        }
        let mut fields = of_content(clock, self.size, Value::Static(self.content_type));
        self.push_validators(clock, &mut fields);
        fields
    }

    /// Adds what a response with all of it, or with a part, says of it.
    pub(super) fn push_validators(&self, clock: &Clock, fields: &mut Fields) {
        fields.push("accept-ranges", Value::Static("bytes"));
        fields.push("etag", self.validators.etag.clone());
        if let Some(coding) = self.coding {
            fields.push("content-encoding", Value::Static(coding.name()));
        }
        push_all(fields, self.fields);
        // RFC 9110 §8.8.2.1: never a date in the future.
        let is_past = self.validators.modified_s.is_some_and(|modified| modified <= clock.unix_s());
        if let Some(text) = self.validators.modified_text.as_ref().filter(|_| is_past) {
            fields.push("last-modified", text.clone());
        }
    }
}
