//! ACK frames. RFC 9000 §19.3.
//!
//! The view keeps the ranges as the bytes they came in and walks them again when asked, so that parsing neither allocates
//! nor copies. Parsing walks them once to prove that no range goes below packet number 0; the iterator relies on it.

use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::varint;
use crate::writer::Writer;
use core::ops::{Range, RangeInclusive};

/// The most ranges [`write_ack`] puts into a frame: the count of those behind the first then takes one byte.
pub const MAX_RANGES_WRITTEN: usize = 64;

/// How many packets were received with each mark, per packet-number space. RFC 9000 §19.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets with ECT(0).
    pub ect0: u64,
    /// Packets with ECT(1).
    pub ect1: u64,
    /// Packets with ECN-CE.
    pub ce: u64,
}

impl EcnCounts {
    fn parse(reader: &mut Reader<'_>) -> Result<EcnCounts, Malformed> {
        Ok(EcnCounts { ect0: reader.varint()?, ect1: reader.varint()?, ce: reader.varint()? })
    }

    fn size(&self) -> usize {
        [self.ect0, self.ect1, self.ce].into_iter().map(varint::size).fold(0, usize::saturating_add)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.varint(self.ect0);
        writer.varint(self.ect1);
        writer.varint(self.ce);
    }
}

/// An ACK frame whose ranges are valid: descending, disjoint, none below 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    largest: u64,
    delay: u64,
    first_range: u64,
    range_count: u64,
    ranges_raw: &'a [u8],
    ecn: Option<EcnCounts>,
}

impl<'a> Ack<'a> {
    /// Reads the frame behind its type `ty` (0x02 or 0x03).
    #[inline]
    pub fn parse(ty: u64, reader: &mut Reader<'a>) -> Result<Ack<'a>, Malformed> {
        let largest = reader.varint()?;
        let delay = reader.varint()?;
        let range_count = reader.varint()?;
        let first_range = reader.varint()?;
        let smallest = largest.checked_sub(first_range).ok_or(BELOW_ZERO)?;
        let behind = reader.peek();
        if range_count > 0 {
            check_ranges(smallest, range_count, reader)?;
        }
        let taken = behind.len().saturating_sub(reader.remaining());
        let ranges_raw = behind.get(..taken).unwrap_or(&[]);
        let ecn = if ty == ty::ACK_ECN { Some(EcnCounts::parse(reader)?) } else { None };
        Ok(Ack { largest, delay, first_range, range_count, ranges_raw, ecn })
    }

    /// The largest packet number acknowledged.
    #[inline]
    pub const fn largest(&self) -> u64 {
        self.largest
    }

    /// The ACK Delay field, to be scaled by the peer's ack_delay_exponent: `delay << exponent` microseconds.
    #[inline]
    pub const fn delay(&self) -> u64 {
        self.delay
    }

    /// How many ranges there are, at least 1.
    #[inline]
    pub const fn range_count(&self) -> u64 {
        self.range_count.saturating_add(1)
    }

    /// The ECN counts, if the frame has them.
    #[inline]
    pub const fn ecn(&self) -> Option<EcnCounts> {
        self.ecn
    }

    /// The acknowledged packet numbers: disjoint ranges, the highest first.
    #[inline]
    pub fn ranges(&self) -> Ranges<'a> {
        let first = (self.largest.saturating_sub(self.first_range), self.largest);
        Ranges { next: Some(first), raw: Reader::new(self.ranges_raw) }
    }

    /// How many bytes [`Ack::write`] takes.
    pub fn size(&self) -> usize {
        [self.largest, self.delay, self.range_count, self.first_range]
            .into_iter()
            .map(varint::size)
            .fold(1, usize::saturating_add)
            .saturating_add(self.ranges_raw.len())
            .saturating_add(self.ecn.map_or(0, |ecn| ecn.size()))
    }

    /// Writes the frame as it was read.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.varint(if self.ecn.is_some() { ty::ACK_ECN } else { ty::ACK });
        self.write_fields(writer);
    }

    pub(super) fn write_fields(&self, writer: &mut Writer<'_>) {
        writer.varint(self.largest);
        writer.varint(self.delay);
        writer.varint(self.range_count);
        writer.varint(self.first_range);
        writer.bytes(self.ranges_raw);
        if let Some(ecn) = self.ecn {
            ecn.write(writer);
        }
    }
}

const BELOW_ZERO: Malformed = Malformed("ACK range below packet number 0");

/// Walks `count` pairs of gap and length below `smallest`. Ends at the first that is wrong, so a huge count costs nothing.
fn check_ranges(mut smallest: u64, count: u64, reader: &mut Reader<'_>) -> Result<(), Malformed> {
    for _ in 0..count {
        (smallest, _) = next_range(smallest, reader)?;
    }
    Ok(())
}

/// Reads the range below one that ends at `smallest`, as its smallest and largest number.
#[inline]
fn next_range(smallest: u64, reader: &mut Reader<'_>) -> Result<(u64, u64), Malformed> {
    let gap = reader.varint()?;
    let length = reader.varint()?;
    // RFC 9000 §19.3.1: largest = previous smallest - gap - 2; a negative number is a FRAME_ENCODING_ERROR.
    //= rfc9000/19.3.1#1
    let largest = smallest.checked_sub(gap.saturating_add(2)).ok_or(BELOW_ZERO)?;
    let smallest = largest.checked_sub(length).ok_or(BELOW_ZERO)?;
    Ok((smallest, largest))
}

/// The ranges of an [`Ack`], highest first.
#[derive(Clone, Debug)]
pub struct Ranges<'a> {
    next: Option<(u64, u64)>,
    raw: Reader<'a>,
}

impl Iterator for Ranges<'_> {
    type Item = RangeInclusive<u64>;

    #[inline]
    fn next(&mut self) -> Option<RangeInclusive<u64>> {
        let (smallest, largest) = self.next?;
        // Parsing has proved the ranges, so the only error left is that the bytes are used up.
        self.next = if self.raw.is_empty() { None } else { next_range(smallest, &mut self.raw).ok() };
        Some(smallest..=largest)
    }
}

/// Writes an ACK frame of `ranges`: half-open, descending, disjoint, not adjacent, not empty. Stops at
/// [`MAX_RANGES_WRITTEN`] or before the room of `writer` is used up, the highest ranges being the ones that matter. Returns
/// how many ranges it wrote; 0 means that not even one fits (or there is none) and nothing was written.
pub fn write_ack(
    writer: &mut Writer<'_>,
    ranges: impl IntoIterator<Item = Range<u64>>,
    delay_raw: u64,
    ecn: Option<EcnCounts>,
) -> usize {
    write_ack_of(writer, None, ranges, delay_raw, ecn)
}

/// As [`write_ack`], a PATH_ACK frame for the packets of `path`. draft-ietf-quic-multipath §4.1.
pub fn write_path_ack(
    writer: &mut Writer<'_>,
    path: u64,
    ranges: impl IntoIterator<Item = Range<u64>>,
    delay_raw: u64,
    ecn: Option<EcnCounts>,
) -> usize {
    write_ack_of(writer, Some(path), ranges, delay_raw, ecn)
}

#[inline]
fn write_ack_of(
    writer: &mut Writer<'_>,
    path: Option<u64>,
    ranges: impl IntoIterator<Item = Range<u64>>,
    delay_raw: u64,
    ecn: Option<EcnCounts>,
) -> usize {
    let mut ranges = ranges.into_iter().filter(|range| !range.is_empty());
    let Some(first) = ranges.next() else { return 0 };
    let largest = first.end.saturating_sub(1);
    let first_range = largest.saturating_sub(first.start);
    let ecn_size = ecn.map_or(0, |ecn| ecn.size());
    // Type and count are one byte each.
    let head = [largest, delay_raw, first_range].into_iter().map(varint::size).fold(2, usize::saturating_add);
    let path_size = path.map_or(0, varint::size);
    if !writer.fits(head.saturating_add(ecn_size).saturating_add(path_size)) {
        return 0;
    }
    match path {
        None => writer.u8(if ecn.is_some() { ty::ACK_ECN } else { ty::ACK } as u8),
        Some(path) => {
            writer.u8(if ecn.is_some() { ty::PATH_ACK_ECN } else { ty::PATH_ACK } as u8);
            writer.varint(path);
        }
    }
    writer.varint(largest);
    writer.varint(delay_raw);
    let count_position = writer.position();
    writer.u8(0);
    writer.varint(first_range);
    let mut smallest = first.start;
    let mut written: usize = 1;
    for range in ranges.take(MAX_RANGES_WRITTEN.saturating_sub(1)) {
        debug_assert!(range.end < smallest, "ranges must descend and not touch");
        let Some(gap) = smallest.checked_sub(range.end.saturating_add(1)) else { break };
        let length = range.end.saturating_sub(1).saturating_sub(range.start);
        let size = varint::size(gap).saturating_add(varint::size(length));
        if !writer.fits(size.saturating_add(ecn_size)) {
            break;
        }
        writer.varint(gap);
        writer.varint(length);
        smallest = range.start;
        written = written.saturating_add(1);
    }
    writer.patch_u8(count_position, written.saturating_sub(1) as u8);
    if let Some(ecn) = ecn {
        ecn.write(writer);
    }
    written
}
