//! What a request for a listing asks for: `?sort=name|size|time&order=asc|desc`, and `?json` or `Accept: application/json`.
//!
//! Anything else in the query is ignored. Folders come first in every order.

use super::read::Item;
use crate::files::path;
use crate::request::{Head, Name};
use core::cmp::Ordering;

/// What entries are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    #[default]
    Name,
    Size,
    Time,
}

/// Which end comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    #[default]
    Ascending,
    Descending,
}

/// The order of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    pub(crate) key: Key,
    pub(crate) direction: Direction,
}

/// How a listing is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    #[default]
    Page,
    Json,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) order: Order,
    pub(crate) format: Format,
}

impl View {
    /// The view that `head` asks for.
    pub(crate) fn of(head: &Head) -> View {
        let mut view = View::default();
        if head.value(Name::Accept).is_some_and(prefers_json) {
            view.format = Format::Json;
        }
        for part in path::query(head.target()).unwrap_or_default().split(|byte| *byte == b'&') {
            match part {
                b"json" | b"json=" | b"json=1" => view.format = Format::Json,
                b"sort=name" => view.order.key = Key::Name,
                b"sort=size" => view.order.key = Key::Size,
                b"sort=time" => view.order.key = Key::Time,
                b"order=asc" => view.order.direction = Direction::Ascending,
                b"order=desc" => view.order.direction = Direction::Descending,
                _ => {}
            }
        }
        view
    }

    /// The media type of its listings.
    pub(crate) fn content_type(self) -> &'static str {
        match self.format {
            Format::Page => "text/html; charset=utf-8",
            Format::Json => "application/json",
        }
    }
}

impl Order {
    /// The query that asks for this order, with its question mark; empty for the default one.
    pub(super) fn query(self) -> &'static str {
        use Direction::{Ascending, Descending};
        match (self.key, self.direction) {
            (Key::Name, Ascending) => "",
            (Key::Name, Descending) => "?sort=name&amp;order=desc",
            (Key::Size, Ascending) => "?sort=size&amp;order=asc",
            (Key::Size, Descending) => "?sort=size&amp;order=desc",
            (Key::Time, Ascending) => "?sort=time&amp;order=asc",
            (Key::Time, Descending) => "?sort=time&amp;order=desc",
        }
    }

    pub(super) fn sort(self, items: &mut [Item]) {
        let by_key = |a: &Item, b: &Item| match self.key {
            Key::Name => Ordering::Equal,
            Key::Size => a.size.cmp(&b.size),
            Key::Time => a.modified_s.cmp(&b.modified_s),
        };
        items.sort_unstable_by(|a, b| {
            let order = by_key(a, b).then_with(|| by_name(&a.name, &b.name));
            let directed = match self.direction {
                Direction::Ascending => order,
                Direction::Descending => order.reverse(),
            };
            a.kind.cmp(&b.kind).then(directed)
        });
    }
}

/// People's order: upper and lower case alike, numbers by their value. Names that differ are never equal.
fn by_name(a: &[u8], b: &[u8]) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (Some(&x), Some(&y)) = (left.first(), right.first()) else {
            return left.len().cmp(&right.len()).then_with(|| a.cmp(b));
        };
        let order = if x.is_ascii_digit() && y.is_ascii_digit() {
            by_number(&mut left, &mut right)
        } else {
            (left, right) = (left.get(1..).unwrap_or_default(), right.get(1..).unwrap_or_default());
            x.to_ascii_lowercase().cmp(&y.to_ascii_lowercase())
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Takes the number at the front of each, and compares them.
fn by_number(left: &mut &[u8], right: &mut &[u8]) -> Ordering {
    let (left, right) = (take_number(left), take_number(right));
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// Takes the digits at the front of `text`. Returns them without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(len).unwrap_or_default();
    *text = rest;
    let zeros = number.iter().take_while(|byte| **byte == b'0').count();
    number.get(zeros..).unwrap_or_default()
}

/// Whether `accept` prefers application/json to text/html. A range that names a type beats a wildcard of the same weight.
/// RFC 9110 §12.5.1.
fn prefers_json(accept: &[u8]) -> bool {
    let (mut json, mut html) = (Preference::default(), Preference::default());
    for range in accept.split(|byte| *byte == b',') {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix(b"q=")).map_or(1_000, weight);
        match name.as_slice() {
            b"application/json" => json = json.max(Preference { precision: 3, weight }),
            b"text/html" => html = html.max(Preference { precision: 3, weight }),
            b"application/*" => json = json.max(Preference { precision: 2, weight }),
            b"text/*" => html = html.max(Preference { precision: 2, weight }),
            b"*/*" => {
                json = json.max(Preference { precision: 1, weight });
                html = html.max(Preference { precision: 1, weight });
            }
            _ => {}
        }
    }
    json.weight > 0 && (json.weight, json.precision) > (html.weight, html.precision)
}

/// What a request says of a media type. The most precise range counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    precision: u8,
    /// In thousandths.
    weight: u16,
}

/// A weight in thousandths; 1,000 for what does not parse. RFC 9110 §12.4.2.
fn weight(text: &[u8]) -> u16 {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f32>().ok());
    parsed.filter(|weight| (0.0..=1.0).contains(weight)).map_or(1_000, |weight| (weight * 1_000.0) as u16)
}
