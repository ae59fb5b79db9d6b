//! Heads of responses as they go on the wire, remembered: a file that is asked for again within the second of its `date`
//! field is answered by the bytes that answered before, which costs a comparison instead of an encoding.
//!
//! Data structure: a table of [`PLACES`] heads, each in the place that its length, status and validators choose; a newer one
//! takes an older one's place. A head is used again only when status, fields and length are all the same, so a place that
//! two files share costs encodings and never a wrong answer. Bounded by its size: heads that are longer than [`LONGEST`] are
//! encoded and not kept. Rejected: encoding in the handler's cache of files, which knows no HTTP version.

use crate::low::{FieldLines, Measure};
use http3::{BodyLength, EncodedHead};

/// How many heads are remembered by a worker. A power of two.
const PLACES: usize = 64;
/// Fields that are longer together, in bytes, are not kept.
const LONGEST: usize = 1_024;

/// What a head was encoded from, and the result.
struct CachedHead<F: FieldLines> {
    status: u16,
    fields: F::Kept,
    length: BodyLength,
    encoded: EncodedHead,
}

/// Whether heads are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadCache {
    /// Those of [`PLACES`] responses.
    #[default]
    On,
    /// Each is encoded anew, for experiments that ask what the memory is worth.
    Off,
}

/// The table.
pub(crate) struct Heads<F: FieldLines> {
    /// Heads whose fields are this long together, or longer, are not kept. 0 keeps none.
    too_long: usize,
    places: Vec<CachedHead<F>>,
    /// One that is not kept.
    passing: Option<EncodedHead>,
}

impl<F: FieldLines> Heads<F> {
    pub(crate) fn new(cache: HeadCache) -> Heads<F> {
        let too_long = match cache {
            HeadCache::On => LONGEST + 1,
            HeadCache::Off => 0,
        };
        Heads { too_long, places: Vec::new(), passing: None }
    }

    /// The head, encoded now or before.
    pub(crate) fn encoded(&mut self, status: u16, fields: F, length: BodyLength) -> &EncodedHead {
        let encode = |fields: &F| EncodedHead::response(status, fields.lines(), length);
        let measure = fields.measure();
        if measure.bytes >= self.too_long || !fields.is_kept() {
            return self.passing.insert(encode(&fields));
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, CachedHead::nothing);
        }
        let bytes = match length {
            BodyLength::Known(bytes) => bytes,
            BodyLength::Empty | BodyLength::Unknown => 0,
        };
        let at = place(status, measure, bytes) % PLACES;
        let Some(known) = self.places.get_mut(at) else { return self.passing.insert(encode(&fields)) };
        if (known.status, known.length) != (status, length) || !fields.is(&known.fields) {
            known.encoded = encode(&fields);
            (known.status, known.length) = (status, length);
            fields.keep(&mut known.fields);
        }
        &known.encoded
    }
}

impl<F: FieldLines> CachedHead<F> {
    /// An empty place: no response has status 0.
    fn nothing() -> CachedHead<F> {
        let encoded = EncodedHead::response(0, [], BodyLength::Empty);
        CachedHead { status: 0, fields: F::Kept::default(), length: BodyLength::Empty, encoded }
    }
}

/// Mixes what differs between files. A client that makes all files collide gains one encoding per request.
pub(crate) fn place(status: u16, fields: Measure, length: u64) -> usize {
    let size = fields.bytes as u64;
    let mixed = (fields.key ^ length ^ size ^ u64::from(status) << 32).wrapping_mul(0x0100_0000_01b3);
    (mixed ^ mixed >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::{Fields, Value};
    use http::HeaderMap;

    fn fields(tag: &str, date: &str) -> Fields {
        let mut fields = Fields::default();
        fields.push("date", Value::copied(date.as_bytes()));
        fields.push("etag", Value::copied(tag.as_bytes()));
        fields
    }

    fn fresh(status: u16, fields: &Fields, length: BodyLength) -> String {
        let lines = fields.iter().map(|(name, value)| -> (&[u8], &[u8]) { (name, value) });
        format!("{:?}", EncodedHead::response(status, lines, length))
    }

    /// Deleted, a head that was encoded for another second, file or length could be sent.
    #[test]
    fn what_is_remembered_is_what_would_be_encoded() {
        let mut heads = Heads::new(HeadCache::On);
        let lengths = [BodyLength::Empty, BodyLength::Known(1), BodyLength::Known(65)];
        for round in 0..3 {
            for number in 0..300 {
                let fields = fields(&format!("\"{}\"", number % 90), &format!("second {}", round / 2));
                let (status, length) = (200 + (number % 2) * 104, lengths[number as usize % 3]);
                let expected = fresh(status, &fields, length);
                assert_eq!(format!("{:?}", heads.encoded(status, fields, length)), expected);
            }
        }
        assert_eq!(heads.places.len(), PLACES);
    }

    #[test]
    fn the_same_head_is_encoded_once_and_a_long_one_is_not_kept() {
        let mut heads = Heads::new(HeadCache::On);
        let first = core::ptr::from_ref(heads.encoded(200, fields("\"a\"", "now"), BodyLength::Known(7)));
        let again = core::ptr::from_ref(heads.encoded(200, fields("\"a\"", "now"), BodyLength::Known(7)));
        assert_eq!(first, again);
        let long = "x".repeat(LONGEST + 1);
        heads.encoded(200, fields(&long, "now"), BodyLength::Empty);
        assert_eq!(heads.places.iter().filter(|known| known.status > 0).count(), 1);
        assert!(heads.passing.is_some());
    }

    /// Deleted, the fields of a service's response could be taken for those of another, or be pinned by the cache.
    #[test]
    fn a_map_is_known_by_names_values_and_order_and_not_kept_itself() {
        let map = |fields: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            fields.iter().for_each(|(name, value)| _ = map.append(*name, value.parse().unwrap()));
            map
        };
        let mut heads = Heads::new(HeadCache::On);
        let sets: [&[(&str, &str)]; 8] = [
            &[("a", "1"), ("b", "2")],
            &[("b", "2"), ("a", "1")],
            &[("a", "1"), ("a", "2")],
            &[("a", "1:2")],
            &[("a", "1b:2")],
            &[("a", "1")],
            &[("a", "1"), ("b", "2"), ("c", "")],
            &[],
        ];
        for set in sets.into_iter().chain(sets.into_iter().rev()).cycle().take(64) {
            let encoded = format!("{:?}", heads.encoded(200, map(set), BodyLength::Empty));
            let lines = set.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            assert_eq!(
                encoded,
                format!("{:?}", EncodedHead::response(200, lines, BodyLength::Empty)),
                "{set:?}"
            );
        }
        let shared = bytes::Bytes::from(vec![b'x'; 99]);
        let mut pinning = HeaderMap::new();
        pinning.insert("a", http::HeaderValue::from_maybe_shared(shared.slice(3..5)).unwrap());
        heads.encoded(200, pinning, BodyLength::Empty);
        assert!(shared.is_unique());
    }

    #[test]
    fn without_the_cache_nothing_is_kept() {
        let mut heads = Heads::new(HeadCache::Off);
        let encoded = format!("{:?}", heads.encoded(200, fields("\"a\"", "now"), BodyLength::Known(7)));
        assert_eq!(encoded, fresh(200, &fields("\"a\"", "now"), BodyLength::Known(7)));
        assert!(heads.places.is_empty());
    }
}
