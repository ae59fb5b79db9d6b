//! Byte ranges: from a Range field and a size to the parts that are sent. RFC 9110 §14.
//!
//! All arithmetic is on `u64` and saturates: a position beyond `u64` is a position beyond every file. Ranges that overlap,
//! touch or lie closer together than a part's own header are merged, so that what is sent is never more than the file and a
//! few headers. Parts are sent in the order asked for (RFC 9110 §15.3.7.2). More than [`MAX_RANGES`] ranges are ignored altogether: no honest client needs them, and
//! the answer 200 is always allowed.

use core::ops::Range;

/// More ranges than this in one request are not served as ranges.
pub(crate) const MAX_RANGES: usize = 16;

/// Gaps up to this many bytes cost less than the header of another part.
const WORTHLESS_GAP: u64 = 80;

/// What a Range field selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Everything: the field is malformed, in another unit, or not worth it.
    Whole,
    /// These parts: not empty, in the order asked for, apart from each other, all within the size.
    Parts(Vec<Range<u64>>),
    /// Nothing of what there is: 416.
    Unsatisfiable,
}

/// Applies the value of a Range field to a representation of `size` bytes.
pub(crate) fn select(value: &[u8], size: u64) -> Selection {
    let Some(equals) = value.iter().position(|byte| *byte == b'=') else { return Selection::Whole };
    let (unit, list) = (value.get(..equals).unwrap_or(b""), value.get(equals + 1..).unwrap_or(b""));
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return Selection::Whole;
    }
    let mut parts = Vec::new();
    let mut specs = 0;
    for spec in list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|spec| !spec.is_empty()) {
        specs += 1;
        if specs > MAX_RANGES {
            return Selection::Whole;
        }
        match resolve(spec, size) {
            Resolved::Malformed | Resolved::Whole => return Selection::Whole,
            Resolved::Part(part) => parts.push(part),
            Resolved::Outside => {}
        }
    }
    match (specs, parts.is_empty()) {
        (0, _) => Selection::Whole,
        (_, true) => Selection::Unsatisfiable,
        _ => Selection::Parts(merge(parts)),
    }
}

enum Resolved {
    Malformed,
    /// The end of nothing, which cannot be said in a Content-Range.
    Whole,
    Part(Range<u64>),
    Outside,
}

fn resolve(spec: &[u8], size: u64) -> Resolved {
    let Some(dash) = spec.iter().position(|byte| *byte == b'-') else { return Resolved::Malformed };
    let (first, last) = (spec.get(..dash).unwrap_or(b""), spec.get(dash + 1..).unwrap_or(b""));
    let range = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Some(first), None) if last.is_empty() => first..size,
        (None, Some(0)) if first.is_empty() => return Resolved::Outside,
        (None, Some(_)) if first.is_empty() && size == 0 => return Resolved::Whole,
        (None, Some(suffix)) if first.is_empty() => size.saturating_sub(suffix)..size,
        _ => return Resolved::Malformed,
    };
    if range.is_empty() { Resolved::Outside } else { Resolved::Part(range) }
}

/// A number of any length, capped; `None` for what is not one or more digits.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, add))
}

/// RFC 9110 §15.3.7.2: parts that are merged stand where the first of them was asked for.
fn merge(parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut asked: Vec<(usize, Range<u64>)> = parts.into_iter().enumerate().collect();
    asked.sort_unstable_by_key(|(_, part)| part.start);
    let mut merged: Vec<(usize, Range<u64>)> = Vec::with_capacity(asked.len());
    for (place, part) in asked {
        match merged.last_mut() {
            Some((first, last)) if part.start <= last.end.saturating_add(WORTHLESS_GAP) => {
                *first = place.min(*first);
                last.end = last.end.max(part.end);
            }
            _ => merged.push((place, part)),
        }
    }
    merged.sort_unstable_by_key(|(place, _)| *place);
    merged.into_iter().map(|(_, part)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(range: Range<u64>) -> Selection {
        Selection::Parts(std::iter::once(range).collect())
    }

    fn parts(ranges: &[Range<u64>]) -> Selection {
        Selection::Parts(ranges.to_vec())
    }

    #[test]
    fn one_range_each() {
        let max = u64::MAX;
        let table = [
            ("bytes=0-499".to_string(), one(0..500)),
            ("BYTES=500-".to_string(), one(500..1_000)),
            ("bytes=-1".to_string(), one(999..1_000)),
            ("bytes=-5000".to_string(), one(0..1_000)),
            ("bytes=999-999".to_string(), one(999..1_000)),
            ("bytes=0-999999".to_string(), one(0..1_000)),
            ("bytes= 0-0 ,, ".to_string(), one(0..1)),
            // CVE-2017-7529: sums of these must not wrap around.
            (format!("bytes=0-{max}"), one(0..1_000)),
            ("bytes=0-99999999999999999999999999".to_string(), one(0..1_000)),
            ("bytes=-99999999999999999999999999".to_string(), one(0..1_000)),
            (format!("bytes=-{}", max - 100), one(0..1_000)),
            (format!("bytes=-{},-9223372036854774591", max / 2), one(0..1_000)),
            (format!("bytes={max}-{max}"), Selection::Unsatisfiable),
            ("bytes=99999999999999999999999999-".to_string(), Selection::Unsatisfiable),
            ("bytes=1000-".to_string(), Selection::Unsatisfiable),
            ("bytes=-0".to_string(), Selection::Unsatisfiable),
            ("bytes=-0,1000-1001".to_string(), Selection::Unsatisfiable),
            ("bytes=-0,7-7".to_string(), one(7..8)),
        ];
        for (value, selection) in table {
            assert_eq!(select(value.as_bytes(), 1_000), selection, "{value}");
        }
    }

    #[test]
    fn what_is_malformed_is_ignored() {
        let malformed = [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=--1",
            "bytes=5-4",
            "bytes=a-b",
            "bytes=1-2-3",
            "bytes=0x1-2",
            "bytes=1 -2",
            "bytes=+1-2",
            "items=0-1",
            "bytes 0-1",
            "bytes=0-1, x",
        ];
        for value in malformed {
            assert_eq!(select(value.as_bytes(), 1_000), Selection::Whole, "{value}");
        }
    }

    #[test]
    fn nothing_has_no_ranges() {
        assert_eq!(select(b"bytes=0-", 0), Selection::Unsatisfiable);
        assert_eq!(select(b"bytes=-5", 0), Selection::Whole);
    }

    /// The "Apache Killer" asked for a thousand overlapping ranges of one file.
    #[test]
    fn many_or_overlapping_ranges_cost_no_more_than_the_file() {
        assert_eq!(select(b"bytes=500-600,0-10,5-20,100-200,150-160", 1_000), parts(&[500..601, 0..201]));
        let killer: Vec<_> = (0..1_300).map(|end| format!("5-{end}")).collect();
        assert_eq!(select(format!("bytes=0-,{}", killer.join(",")).as_bytes(), 1_000), Selection::Whole);
        let sixteen: Vec<_> = (0..16).map(|index| format!("{0}-{0}", index * 200)).collect();
        let Selection::Parts(sixteen) = select(format!("bytes={}", sixteen.join(",")).as_bytes(), 10_000)
        else {
            panic!("sixteen ranges are served");
        };
        assert_eq!(sixteen.len(), 16);
    }

    /// RFC 9110 §15.3.7.2: the order asked for; what is merged stands where the first of it was asked for.
    #[test]
    fn parts_come_in_the_order_asked_for() {
        let table: [(&str, &[Range<u64>]); 4] = [
            ("bytes=900-909,0-9,400-409", &[900..910, 0..10, 400..410]),
            ("bytes=-1,0-0", &[999..1_000, 0..1]),
            ("bytes=500-510,0-9,505-520,5-20", &[500..521, 0..21]),
            ("bytes=700-709,2000-,300-309", &[700..710, 300..310]),
        ];
        for (value, right) in table {
            assert_eq!(select(value.as_bytes(), 1_000), parts(right), "{value}");
        }
    }

    proptest! {
        /// Whatever is asked for, the parts lie inside and do not touch.
        #[test]
        fn parts_are_sane(value in "bytes=([0-9]{0,21}-[0-9]{0,21},?){0,18}", size in any::<u64>()) {
            if let Selection::Parts(mut parts) = select(value.as_bytes(), size) {
                parts.sort_unstable_by_key(|part| part.start);
                prop_assert!(!parts.is_empty() && parts.len() <= MAX_RANGES);
                prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= size));
                prop_assert!(parts.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }

        #[test]
        fn no_bytes_panic(value in prop::collection::vec(any::<u8>(), 0..64), size in any::<u64>()) {
            select(&value, size);
        }
    }
}
