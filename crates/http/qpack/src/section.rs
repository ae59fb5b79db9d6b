//! A decoded field section: one text and a list of spans into it, both reused from section to section.
//!
//! Lines that the static table knows are spans into the table's own text and cost no copy. Rejected: a list of slices,
//! whose lifetime would forbid to keep the list's memory; a visitor, since a section must be judged whole before its
//! lines are used.

use crate::static_table::{self, Index};
use core::ops::Range;

/// Texts kept beyond this many bytes are given back after use: one large section must not cost memory for ever.
const KEPT_TEXT: usize = 16 * 1024;
/// The same for lines.
const KEPT_LINES: usize = 256;

/// Where a piece of text is: in the section's text or, with [`STATIC`] set, in the static table's.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
}

const STATIC: u32 = 1 << 31;

impl From<static_table::Span> for Span {
    #[inline]
    fn from(span: static_table::Span) -> Span {
        Span { start: u32::from(span.start) | STATIC, len: u32::from(span.len) }
    }
}

#[derive(Clone, Copy, Debug)]
struct FieldSpans {
    name: Span,
    value: Span,
    static_name: Option<Index>,
    never_indexed: bool,
}

/// One field line of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The name, pseudo-header fields with their colon.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The static table's entry that gave the name: the name is then known without looking at it. `None` says nothing,
    /// a peer may spell any name out.
    #[doc(hidden)]
    pub static_name: Option<Index>,
    /// The sender forbids that an intermediary puts the line into a dynamic table. RFC 9204 §7.1.3.
    pub never_indexed: bool,
}

/// The lines of a field section in their order.
#[derive(Clone, Debug, Default)]
pub struct FieldSection {
    text: Vec<u8>,
    entries: Vec<FieldSpans>,
    size: u64,
}

/// What a line costs beside its name and value. RFC 9114 §4.2.2.
pub(crate) const LINE_OVERHEAD: usize = 32;

impl FieldSection {
    /// A section without lines.
    pub fn new() -> FieldSection {
        FieldSection::default()
    }

    /// Has the lines of `other`, in memory that is used again.
    pub fn copy(&mut self, other: &FieldSection) {
        self.clear();
        self.text.extend_from_slice(&other.text);
        self.entries.extend_from_slice(&other.entries);
        self.size = other.size;
    }

    /// Adds these lines of `other` at the end, whose text lies there. Returns their size, as RFC 9114 §4.2.2 counts it.
    pub(crate) fn append(&mut self, other: &FieldSection, lines: Range<usize>, text: Range<usize>) -> usize {
        let (from, here) = (text.start as u32, self.text.len() as u32);
        self.text.extend_from_slice(other.text.get(text).unwrap_or(&[]));
        let moved = |span: Span| match span.start & STATIC {
            0 => Span { start: span.start.saturating_sub(from) + here, len: span.len },
            _ => span,
        };
        let mut size = 0;
        self.entries.extend(other.entries.get(lines).unwrap_or(&[]).iter().map(|entry| {
            size += entry.name.len as usize + entry.value.len as usize + LINE_OVERHEAD;
            FieldSpans { name: moved(entry.name), value: moved(entry.value), ..*entry }
        }));
        size
    }

    /// Bytes that it holds.
    pub fn memory(&self) -> usize {
        self.text.capacity() + self.entries.capacity() * size_of::<FieldSpans>()
    }

    /// Forgets the lines and keeps the memory, unless it is much.
    pub fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
        self.size = 0;
        if self.text.capacity() > KEPT_TEXT {
            self.text.shrink_to(KEPT_TEXT);
        }
        if self.entries.capacity() > KEPT_LINES {
            self.entries.shrink_to(KEPT_LINES);
        }
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The size as RFC 9114 §4.2.2 counts it: names, values and 32 bytes for each line.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a line at the end, as if it had been decoded.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        let name = self.span_from(start);
        let start = self.text.len();
        self.text.extend_from_slice(value);
        let value = self.span_from(start);
        self.size += (name.len as usize + value.len as usize + LINE_OVERHEAD) as u64;
        self.push_entry(name, value, Flags { static_name: None, never_indexed: false });
    }

    /// The lines in their order.
    #[inline]
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line<'_>> + Clone {
        self.lines_from(0)
    }

    /// The lines in their order, from line `first` on, counted from 0.
    #[inline]
    pub fn lines_from(&self, first: usize) -> impl ExactSizeIterator<Item = Line<'_>> + Clone {
        self.entries.get(first..).unwrap_or_default().iter().map(|entry| self.line(entry))
    }

    /// Line `index`, counted from 0.
    #[inline]
    pub fn line_at(&self, index: usize) -> Option<Line<'_>> {
        self.entries.get(index).map(|entry| self.line(entry))
    }

    #[inline]
    fn line(&self, entry: &FieldSpans) -> Line<'_> {
        Line {
            name: self.piece(entry.name),
            value: self.piece(entry.value),
            static_name: entry.static_name,
            never_indexed: entry.never_indexed,
        }
    }

    #[inline]
    fn piece(&self, span: Span) -> &[u8] {
        let text = if span.start & STATIC != 0 { &static_table::TEXT[..] } else { &self.text[..] };
        let start = (span.start & !STATIC) as usize;
        text.get(start..start + span.len as usize).unwrap_or(&[])
    }

    /// The size of all lines, which the decoder counts.
    #[inline]
    pub(crate) fn set_size(&mut self, size: usize) {
        self.size = size as u64;
    }

    /// The text, for the decoder to append to.
    #[inline]
    pub(crate) fn text_mut(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    #[inline]
    fn span_from(&self, start: usize) -> Span {
        // The decoder keeps the text below 2^30 bytes.
        debug_assert!(self.text.len() < STATIC as usize);
        Span { start: start as u32, len: (self.text.len() - start) as u32 }
    }

    #[inline]
    fn push_entry(&mut self, name: Span, value: Span, flags: Flags) {
        let Flags { static_name, never_indexed } = flags;
        self.entries.push(FieldSpans { name, value, static_name, never_indexed });
    }

    /// Adds an entry of the static table.
    #[inline]
    pub(crate) fn push_static(&mut self, index: Index) {
        let (name, value) = index.spans();
        self.push_entry(name.into(), value.into(), Flags { static_name: Some(index), never_indexed: false });
    }

    /// Adds a line whose name is in the static table and whose value is the text from `start`.
    #[inline]
    pub(crate) fn push_value(&mut self, start: usize, flags: Flags) {
        let name = flags.static_name.map_or(Span { start: 0, len: 0 }, |index| index.spans().0.into());
        let value = self.span_from(start);
        self.push_entry(name, value, flags);
    }

    /// Adds a line whose name is the text from `start` to `middle` and whose value follows.
    #[inline]
    pub(crate) fn push_literal(&mut self, start: usize, middle: usize, flags: Flags) {
        let name = Span { start: start as u32, len: (middle - start) as u32 };
        let value = self.span_from(middle);
        self.push_entry(name, value, flags);
    }
}

/// What a representation says beside name and value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    pub(crate) static_name: Option<Index>,
    pub(crate) never_indexed: bool,
}
