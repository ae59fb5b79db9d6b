//! Decoding the sections of one sender, one after the other.
//!
//! Most of a request's lines are those of the request before: user agent, cookies, what is accepted. Without a dynamic table equal bytes
//! mean equal lines, so what a section has in common with the one before, at its beginning and at its end, is copied, and only the
//! lines between are decoded. Huffman codes are what makes that worth it: they take some twenty instructions for each character.
//!
//! Two sections take turns: one is built from pieces of the other.

use super::{Fault, Input, Limits, MOST};
use crate::error::DecodeError;
use crate::section::FieldSection;
use core::ops::Range;

/// Sections that are longer, in encoded bytes, are not compared.
const MAX_COMPARED: usize = 1024;

/// Decodes the field sections of one sender. Memory: two sections, and the bytes of those of at most 1,024.
#[derive(Clone, Debug)]
pub struct SectionDecoder {
    limits: Limits,
    last: Decoded,
    before: Decoded,
}

/// What of a section was not in the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing: it is the same section.
    Nothing,
    /// No lines but these; others may be gone.
    Lines(Range<usize>),
}

/// A section, and what it was decoded from.
#[derive(Clone, Debug, Default)]
struct Decoded {
    section: FieldSection,
    /// Empty if the next section is not compared with this one.
    encoded: Vec<u8>,
    /// Where the first line begins, and where each line ends.
    bounds: Vec<Bound>,
    /// Lines that the section before did not have.
    fresh: Range<usize>,
    state: State,
}

/// What the application makes of a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It is still to be judged.
    #[default]
    Unjudged,
    /// It was accepted.
    Accepted,
    /// It was accepted, and came again.
    Repeated,
}

/// A place between two lines, in bytes from the beginning.
#[derive(Clone, Copy, Debug)]
struct Bound {
    encoded: u16,
    /// In the section's text.
    text: u16,
}

impl SectionDecoder {
    /// Nothing has been decoded. All sections have these limits.
    pub fn new(limits: Limits) -> SectionDecoder {
        SectionDecoder { limits, last: Decoded::default(), before: Decoded::default() }
    }

    /// Decodes the next section.
    ///
    /// # Errors
    /// As [`FieldSection::decode`]. [`SectionDecoder::section`] means nothing then.
    #[inline]
    pub fn decode(&mut self, encoded: &[u8]) -> Result<(), DecodeError> {
        if !encoded.is_empty() && self.last.encoded == encoded {
            if self.last.state == State::Accepted {
                self.last.state = State::Repeated;
            }
            return Ok(());
        }
        core::mem::swap(&mut self.last, &mut self.before);
        self.last.clear();
        if encoded.len() <= MAX_COMPARED {
            if self.last.build(encoded, &self.before, &self.limits).is_ok() {
                return Ok(());
            }
            // What is wrong, or that nothing is where a line was taken for two, is found by reading all of it.
            self.last.clear();
        }
        self.last.section.decode(encoded, &self.limits)?;
        self.last.fresh = 0..self.last.section.len();
        Ok(())
    }

    /// What of the section that was decoded last was not in the one before it, which was accepted. If that was not, all is new.
    #[inline]
    pub fn news(&self) -> News {
        match self.last.state {
            State::Repeated => News::Nothing,
            State::Accepted | State::Unjudged => News::Lines(self.last.fresh.clone()),
        }
    }

    /// The section that was decoded last is one whose lines need not be judged again.
    #[inline]
    pub fn accept(&mut self) {
        if self.last.state == State::Unjudged {
            self.last.state = State::Accepted;
        }
    }

    /// The section that was decoded last.
    pub fn section(&self) -> &FieldSection {
        &self.last.section
    }

    /// Bytes that it holds.
    pub fn memory(&self) -> usize {
        self.last.memory() + self.before.memory()
    }
}

impl Decoded {
    fn clear(&mut self) {
        self.section.clear();
        self.encoded.clear();
        self.bounds.clear();
        self.fresh = 0..0;
        self.state = State::Unjudged;
    }

    fn memory(&self) -> usize {
        self.section.memory() + self.encoded.capacity() + self.bounds.capacity() * size_of::<Bound>()
    }

    /// Decodes `encoded`, which has at most [`MAX_COMPARED`] bytes, into this section, which is empty.
    ///
    /// # Errors
    /// Something is wrong with the section, or what looked like the end of `before` begins in the middle of a line.
    fn build(&mut self, encoded: &[u8], before: &Decoded, limits: &Limits) -> Result<(), Fault> {
        let Common { head, between, tail } = before.common_with(encoded);
        let (head_lines, tail_lines) = (head.len(), tail.len());
        let end = between.end;
        let budget = limits.max_field_section_size.min(MOST) as usize;
        let mut input = Input { rest: encoded.get(between.clone()).unwrap_or(&[]), budget };
        if between.start == 0 {
            input.prefix()?;
            self.push_bound(end - input.rest.len());
        } else {
            self.bounds.extend(before.bounds.first());
        }
        self.copy(before, head, &mut input, limits)?;
        while let Some((&first, rest)) = input.rest.split_first() {
            input.rest = rest;
            if self.section.len() >= limits.max_lines {
                return Err(Fault::TooLarge);
            }
            self.section.decode_line(first, &mut input)?;
            self.push_bound(end - input.rest.len());
        }
        self.copy(before, tail, &mut input, limits)?;
        self.section.set_size(budget - input.budget);
        self.encoded.extend_from_slice(encoded);
        let len = self.section.len();
        self.fresh = if before.state == State::Unjudged { 0..len } else { head_lines..len - tail_lines };
        Ok(())
    }

    /// What of this section is at the beginning and at the end of `encoded`.
    fn common_with(&self, encoded: &[u8]) -> Common {
        let prefix = common_prefix(&self.encoded, encoded);
        let lines = self.bounds.len().saturating_sub(1);
        let reached = self.bounds.iter().take_while(|bound| usize::from(bound.encoded) <= prefix).count();
        let head = reached.saturating_sub(1);
        let start = if reached == 0 { 0 } else { self.at(head) };
        let after = |bytes: &[u8]| bytes.len() - start;
        let suffix = common_suffix(&self.encoded, encoded).min(after(&self.encoded)).min(after(encoded));
        let left = |line: usize| self.encoded.len() - self.at(line);
        let tail = (head..lines).find(|line| left(*line) <= suffix).unwrap_or(lines);
        Common { head: 0..head, between: start..encoded.len() - left(tail), tail: tail..lines }
    }

    /// Where line `line` begins, in encoded bytes.
    fn at(&self, line: usize) -> usize {
        self.bounds.get(line).map_or(0, |bound| usize::from(bound.encoded))
    }

    /// 16 bits are enough: 1,024 bytes are at most 1,638 characters.
    fn push_bound(&mut self, encoded: usize) {
        self.bounds.push(Bound { encoded: encoded as u16, text: self.section.text_mut().len() as u16 });
    }

    /// Adds these lines of `from` at the end.
    fn copy(
        &mut self,
        from: &Decoded,
        lines: Range<usize>,
        input: &mut Input<'_>,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let bounds = from.bounds.get(lines.start..=lines.end).unwrap_or(&[]);
        let ([first, .., last], Some(here)) = (bounds, self.bounds.last().copied()) else { return Ok(()) };
        let text = usize::from(first.text)..usize::from(last.text);
        input.spend(self.section.append(&from.section, lines, text))?;
        if self.section.len() > limits.max_lines {
            return Err(Fault::TooLarge);
        }
        self.bounds.extend(bounds.iter().skip(1).map(|bound| Bound {
            encoded: bound.encoded - first.encoded + here.encoded,
            text: bound.text - first.text + here.text,
        }));
        Ok(())
    }
}

/// What a section has in common with another one.
struct Common {
    /// Lines at the beginning.
    head: Range<usize>,
    /// Bytes that are to be decoded.
    between: Range<usize>,
    /// Lines at the end.
    tail: Range<usize>,
}

/// How many bytes at the beginning are the same.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let chunks = one.as_chunks::<16>().0.iter().zip(other.as_chunks::<16>().0);
    let whole = 16 * chunks.take_while(|(one, other)| one == other).count();
    let pairs = one.get(whole..).unwrap_or(&[]).iter().zip(other.get(whole..).unwrap_or(&[]));
    whole + pairs.take_while(|(one, other)| one == other).count()
}

/// How many bytes at the end are the same.
fn common_suffix(one: &[u8], other: &[u8]) -> usize {
    let chunks = one.as_rchunks::<16>().1.iter().rev().zip(other.as_rchunks::<16>().1.iter().rev());
    let whole = 16 * chunks.take_while(|(one, other)| one == other).count();
    let rest = |bytes: &[u8]| bytes.len() - whole;
    let (one, other) = (one.get(..rest(one)), other.get(..rest(other)));
    let pairs = one.unwrap_or(&[]).iter().rev().zip(other.unwrap_or(&[]).iter().rev());
    whole + pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests;
