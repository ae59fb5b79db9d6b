//! Fields of responses as hyper takes them, remembered like [`crate::heads`] remembers encoded ones: the map of a file that is
//! asked for again in the same second is cloned, which copies no value.
//!
//! Bounded by its size. A map is used again only when status and fields are the same.

use crate::heads;
use crate::low::FieldLines as _;
use crate::response::{Fields, Value};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// How many maps are remembered for each listener of a thread. A power of two.
const PLACES: usize = 64;

/// The value of Alt-Svc that announces HTTP/3 at `port` of the same host for so long. RFC 7838 §3.
pub fn alt_svc(port: u16, max_age: std::time::Duration) -> String {
    format!("h3=\":{port}\"; ma={}", max_age.as_secs())
}

/// Maps that were made, each in the place that its response chooses.
#[derive(Debug)]
pub(super) struct Maps {
    places: Vec<Option<CachedMap>>,
    /// What every response says beside its own fields.
    alt_svc: Option<HeaderValue>,
}

#[derive(Debug)]
struct CachedMap {
    status: u16,
    fields: Fields,
    map: HeaderMap,
}

impl Maps {
    /// None yet; all of them will say `alt_svc`.
    pub(super) fn new(alt_svc: Option<HeaderValue>) -> Maps {
        Maps { places: Vec::new(), alt_svc }
    }

    /// What every response says beside its own fields.
    pub(super) fn alt_svc(&self) -> Option<&HeaderValue> {
        self.alt_svc.as_ref()
    }

    /// The fields of a response with this status.
    pub(super) fn map(&mut self, status: u16, fields: Fields) -> HeaderMap {
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        let at = heads::place(status, fields.measure(), 0) % PLACES;
        let Some(place) = self.places.get_mut(at) else { return make(&fields, self.alt_svc.as_ref()) };
        match place {
            Some(known) if known.status == status && known.fields == fields => known.map.clone(),
            _ => {
                let map = make(&fields, self.alt_svc.as_ref());
                *place = Some(CachedMap { status, fields, map: map.clone() });
                map
            }
        }
    }
}

fn make(fields: &Fields, alt_svc: Option<&HeaderValue>) -> HeaderMap {
    // Room for Alt-Svc and one more: hyper asks for the entry of content-length, and a map that is full grows then, in each clone.
    let mut map = HeaderMap::with_capacity(fields.iter().len() + 2);
    for (name, value) in fields.entries() {
        // All values are ours or escaped by us; one that could not be sent is left out rather than sent in part.
        if let Some(value) = value_of(value) {
            map.append(HeaderName::from_static(name), value);
        }
    }
    if let Some(value) = alt_svc {
        map.insert(header::ALT_SVC, value.clone());
    }
    map
}

fn value_of(value: &Value) -> Option<HeaderValue> {
    match value {
        Value::Static(text) => HeaderValue::from_maybe_shared(Bytes::from_static(text.as_bytes())).ok(),
        Value::Shared(bytes) => HeaderValue::from_maybe_shared(bytes.clone()).ok(),
        Value::Inline { .. } => HeaderValue::from_maybe_shared(Bytes::copy_from_slice(value.as_bytes())).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(tag: &str) -> Fields {
        let mut fields = Fields::default();
        fields.push("content-type", Value::Static("text/plain"));
        fields.push("etag", Value::copied(tag.as_bytes()));
        fields
    }

    /// Deleted, one file's fields could be sent for another.
    #[test]
    fn what_is_remembered_is_what_would_be_made() {
        let mut maps = Maps::new(Some(HeaderValue::from_static("h3=\":1\"")));
        for number in 0..1_000_u32 {
            let tag = format!("\"{}\"", number % 90);
            let map = maps.map(200 + (number % 2) as u16 * 6, fields(&tag));
            assert_eq!(map["etag"], tag.as_str());
            assert_eq!((map.len(), &map["alt-svc"]), (3, &HeaderValue::from_static("h3=\":1\"")));
        }
        assert_eq!(maps.places.len(), PLACES);
    }
}
