//! The static table, RFC 9204 §3.1 and appendix A, and the two ways into it: by index and by content.
//!
//! By index it is a text with spans into it, so that decoded lines from the table look like all others. By content it is
//! two perfect hash tables, filled at compile time: one from a name to the first entry with that name, one from such an
//! entry and a value to the entry with both. A key is made of the length and four bytes; one multiplication gives the
//! place, one comparison confirms it. A seed that collides does not compile. Rejected: a `match` on strings, which the
//! compiler turns into a chain of length and memory comparisons several times as slow.

mod entries;

use entries::ENTRIES;

/// How many entries there are.
pub const LEN: usize = ENTRIES.len();

/// An index into the static table, below [`LEN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index(u8);

impl Index {
    /// The entry `index`, if there is one.
    #[inline]
    pub const fn new(index: u64) -> Option<Index> {
        if index < LEN as u64 { Some(Index(index as u8)) } else { None }
    }

    /// The number.
    #[inline]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }

    /// The entry's name.
    #[inline]
    pub fn name(self) -> &'static [u8] {
        let (name, _) = self.spans();
        name.of(&TEXT)
    }

    /// The entry's value, which may be empty.
    #[inline]
    pub fn value(self) -> &'static [u8] {
        let (_, value) = self.spans();
        value.of(&TEXT)
    }

    #[inline]
    pub(crate) fn spans(self) -> (Span, Span) {
        const NOWHERE: (Span, Span) = (Span { start: 0, len: 0 }, Span { start: 0, len: 0 });
        SPANS.get(self.as_usize()).copied().unwrap_or(NOWHERE)
    }
}

/// Part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u16,
    pub(crate) len: u16,
}

impl Span {
    #[inline]
    fn of(self, text: &[u8]) -> &[u8] {
        let start = usize::from(self.start);
        text.get(start..start + usize::from(self.len)).unwrap_or(&[])
    }
}

/// What the table knows about a field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// An entry has this name and this value.
    Line(Index),
    /// The first entry with this name; its value differs.
    Name(Index),
    /// No entry has this name.
    None,
}

/// Looks a field line up.
#[inline]
pub fn find(name: &[u8], value: &[u8]) -> Match {
    let Some(first) = find_name(name) else { return Match::None };
    let slot = VALUE_SLOTS.get(value_slot(first.0, value)).copied().unwrap_or(EMPTY);
    match Index::new(u64::from(slot)) {
        Some(entry) if first_with_name(entry) == first.0 && entry.value() == value => Match::Line(entry),
        _ => Match::Name(first),
    }
}

/// The first entry with this name.
#[inline]
pub fn find_name(name: &[u8]) -> Option<Index> {
    let slot = NAME_SLOTS.get(name_slot(name)).copied().unwrap_or(EMPTY);
    Index::new(u64::from(slot)).filter(|first| first.name() == name)
}

#[inline]
fn first_with_name(entry: Index) -> u8 {
    FIRST_WITH_NAME.get(entry.as_usize()).copied().unwrap_or(EMPTY)
}

/// A free place of a hash table. Not an index.
const EMPTY: u8 = 0xff;

const NAME_BITS: u32 = 8;
const NAME_SEED: u64 = 0x5ec5_0631_bd45_0233;
const VALUE_BITS: u32 = 10;
const VALUE_SEED: u64 = 0x38f9_c638_1a3b_72a9;

#[inline]
const fn name_slot(name: &[u8]) -> usize {
    (key(0, name, name.len() - name.len() / 4).wrapping_mul(NAME_SEED) >> (64 - NAME_BITS)) as usize
}

#[inline]
const fn value_slot(first: u8, value: &[u8]) -> usize {
    (key(first, value, value.len() / 4).wrapping_mul(VALUE_SEED) >> (64 - VALUE_BITS)) as usize
}

/// What a text is told apart by: its length, its first, middle and last byte, and the one at `fourth`. All entries of the
/// table differ in these.
#[inline]
const fn key(tag: u8, text: &[u8], fourth: usize) -> u64 {
    let (Some(first), Some(last)) = (text.first(), text.last()) else { return tag as u64 };
    #[expect(
        clippy::indexing_slicing,
        reason = "len / 2 is below len, and min keeps the other so; the text is not empty"
    )]
    let (middle, fourth) = (text[text.len() / 2], text[if fourth < text.len() { fourth } else { 0 }]);
    tag as u64
        | (text.len() as u64 & 0xff) << 8
        | (*first as u64) << 16
        | (*last as u64) << 24
        | (middle as u64) << 32
        | (fourth as u64) << 40
}

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a wrong index does not compile"
)]
const TEXT_LEN: usize = {
    let mut len = 0;
    let mut index = 0;
    while index < LEN {
        len += ENTRIES[index].0.len() + ENTRIES[index].1.len();
        index += 1;
    }
    len
};

struct Tables {
    text: [u8; TEXT_LEN],
    spans: [(Span, Span); LEN],
    first_with_name: [u8; LEN],
    name_slots: [u8; 1 << NAME_BITS],
    value_slots: [u8; 1 << VALUE_BITS],
}

const TABLES: Tables = tables();
pub(crate) static TEXT: [u8; TEXT_LEN] = TABLES.text;
static SPANS: [(Span, Span); LEN] = TABLES.spans;
static FIRST_WITH_NAME: [u8; LEN] = TABLES.first_with_name;
static NAME_SLOTS: [u8; 1 << NAME_BITS] = TABLES.name_slots;
static VALUE_SLOTS: [u8; 1 << VALUE_BITS] = TABLES.value_slots;

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a wrong index does not compile"
)]
const fn tables() -> Tables {
    const NOWHERE: Span = Span { start: 0, len: 0 };
    let mut tables = Tables {
        text: [0; TEXT_LEN],
        spans: [(NOWHERE, NOWHERE); LEN],
        first_with_name: [EMPTY; LEN],
        name_slots: [EMPTY; 1 << NAME_BITS],
        value_slots: [EMPTY; 1 << VALUE_BITS],
    };
    let mut end = 0;
    let mut index = 0;
    while index < LEN {
        let (name, value) = (ENTRIES[index].0.as_bytes(), ENTRIES[index].1.as_bytes());
        tables.spans[index].0 = Span { start: end as u16, len: name.len() as u16 };
        end = copy(&mut tables.text, end, name);
        tables.spans[index].1 = Span { start: end as u16, len: value.len() as u16 };
        end = copy(&mut tables.text, end, value);

        let slot = &mut tables.name_slots[name_slot(name)];
        if *slot == EMPTY {
            *slot = index as u8;
        }
        assert!(
            same(ENTRIES[*slot as usize].0.as_bytes(), name),
            "two names share a place: choose another seed"
        );
        tables.first_with_name[index] = *slot;

        let slot = &mut tables.value_slots[value_slot(*slot, value)];
        assert!(*slot == EMPTY, "two values share a place: choose another seed");
        *slot = index as u8;
        index += 1;
    }
    tables
}

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a wrong index does not compile"
)]
const fn copy(text: &mut [u8; TEXT_LEN], mut end: usize, piece: &[u8]) -> usize {
    let mut index = 0;
    while index < piece.len() {
        text[end] = piece[index];
        end += 1;
        index += 1;
    }
    end
}

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a wrong index does not compile"
)]
const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Each line of appendix A must be found again as itself, and by name as the first of its name.
    #[test]
    fn every_entry_is_found() {
        for (number, (name, value)) in ENTRIES.iter().enumerate() {
            let index = Index::new(number as u64).unwrap();
            assert_eq!((index.name(), index.value()), (name.as_bytes(), value.as_bytes()));
            assert_eq!(find(name.as_bytes(), value.as_bytes()), Match::Line(index));
            let first = ENTRIES.iter().position(|(other, _)| other == name).unwrap();
            assert_eq!(find(name.as_bytes(), b"no such value"), Match::Name(Index(first as u8)));
        }
        assert_eq!(Index::new(99), None);
        assert_eq!(Index::new(u64::MAX), None);
    }

    proptest! {
        /// The hash decides where to look, never what is found.
        #[test]
        fn unknown_lines_are_not_found(number in 0..LEN, at in 0_usize..40, byte: u8) {
            let (name, value) = ENTRIES[number];
            let (mut name, mut value) = (name.as_bytes().to_vec(), value.as_bytes().to_vec());
            if let Some(place) = name.get_mut(at) { *place = byte; } else { value.push(byte); }
            let expected = ENTRIES.iter().position(|(n, v)| n.as_bytes() == name && v.as_bytes() == value);
            match find(&name, &value) {
                Match::Line(index) => prop_assert_eq!(Some(index.as_usize()), expected),
                Match::Name(index) => {
                    prop_assert_eq!(index.name(), &name[..]);
                    prop_assert_eq!(expected, None);
                }
                Match::None => prop_assert!(ENTRIES.iter().all(|(n, _)| n.as_bytes() != name)),
            }
        }

        #[test]
        fn any_bytes_can_be_looked_up(name: Vec<u8>, value: Vec<u8>) {
            let found = find(&name, &value);
            prop_assert!(found == Match::None || ENTRIES.iter().any(|(n, _)| n.as_bytes() == name));
        }
    }
}
