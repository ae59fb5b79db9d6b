use super::*;
use crate::varint;
use crate::writer::Writer;
use proptest::prelude::*;

/// RFC 9000 appendix A.1: the five published examples.
#[test]
fn published_varints() {
    for (bytes, value) in [
        (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (&[0x7b, 0xbd], 15_293),
        (&[0x25], 37),
        (&[0x40, 0x25], 37),
    ] {
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.varint(), Ok(value));
        assert!(reader.is_empty());
        assert_eq!(varint::size_from_first_byte(bytes[0]), bytes.len());
    }
}

#[test]
fn shortest_size_changes_at_the_powers() {
    for (value, size) in
        [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), ((1 << 30) - 1, 4), (1 << 30, 8)]
    {
        assert_eq!(varint::size(value), size, "{value}");
    }
    assert_eq!(varint::end_of(varint::MAX - 3, 3), Ok(varint::MAX));
    assert!(varint::end_of(varint::MAX - 3, 4).is_err());
    assert!(varint::end_of(u64::MAX, 1).is_err());
}

/// A failed read must not eat bytes: callers look at `position` and `peek` afterwards.
#[test]
fn failed_reads_move_nothing() {
    let bytes = [0xc0, 1, 2];
    let mut reader = Reader::new(&bytes);
    assert!(reader.varint().is_err() && reader.u32().is_err() && reader.u64().is_err());
    assert!(reader.bytes(4).is_err() && reader.array::<4>().is_err() && reader.varint_bytes().is_err());
    assert_eq!((reader.position(), reader.peek()), (0, &bytes[..]));
    assert_eq!(Reader::new(&[3, 1, 2]).varint_bytes(), Err(ENDS_EARLY));
    // A length near 2^62 must fail, not overflow.
    assert_eq!(Reader::new(&[0xff; 9]).varint_bytes(), Err(ENDS_EARLY));
}

#[test]
fn reads_what_is_there() {
    let bytes = [1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 9, 9];
    let mut reader = Reader::new(&bytes);
    assert_eq!((reader.u8(), reader.u16(), reader.u32(), reader.u64()), (Ok(1), Ok(2), Ok(3), Ok(4)));
    assert_eq!((reader.position(), reader.remaining()), (15, 2));
    assert_eq!((reader.rest(), reader.rest(), reader.is_empty()), (&[9, 9][..], &[][..], true));
}

/// Zeros are passed over sixteen at a time; the count must be right at every length and stop at the first other byte.
#[test]
fn skips_zeros_exactly() {
    for count in 0..70 {
        let mut bytes = vec![0; count];
        assert_eq!(Reader::new(&bytes).skip_zeros(), count);
        bytes.extend([7, 0, 0]);
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.skip_zeros(), reader.u8()), (count, Ok(7)));
    }
}

/// A write that does not fit is a bug of ours, so it asserts where assertions are on and is flagged where they are not.
#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "does not fit"))]
fn overflow_is_noticed() {
    let mut buffer = [0; 3];
    let mut writer = Writer::new(&mut buffer);
    writer.u32(1);
    assert!(writer.overflowed());
    assert_eq!(writer.position(), 0);
}

#[test]
fn patches_and_rewinds() {
    let mut buffer = [0; 8];
    let mut writer = Writer::new(&mut buffer);
    writer.u8(1);
    writer.varint_with_size(0, 2);
    writer.zeros(2);
    writer.patch_varint2(1, 5);
    writer.patch_u8(0, 9);
    assert_eq!(writer.written(), [9, 0x40, 5, 0, 0]);
    writer.room(2).unwrap().copy_from_slice(&[6, 7]);
    writer.advance(2);
    assert_eq!((writer.position(), writer.remaining(), writer.fits(1), writer.fits(2)), (7, 1, true, false));
    assert!(writer.room(2).is_none());
    writer.rewind(1);
    writer.rewind(5);
    assert_eq!((writer.written(), writer.overflowed()), (&[9][..], false));
}

proptest! {
    /// Every value in every size that can hold it comes back, and takes as many bytes as promised.
    #[test]
    fn varints_roundtrip(raw: u64, shift in 2u32..64) {
        let value = raw >> shift;
        let mut appended = Vec::new();
        varint::append(&mut appended, value);
        prop_assert_eq!(appended.len(), varint::size(value));
        prop_assert_eq!(Reader::new(&appended).varint(), Ok(value));
        for size in [1, 2, 4, 8].into_iter().filter(|&size| size >= varint::size(value)) {
            let mut buffer = [0; 8];
            let mut writer = Writer::new(&mut buffer);
            writer.varint_with_size(value, size);
            prop_assert_eq!(writer.position(), size);
            if size == varint::size(value) {
                prop_assert_eq!(writer.written(), &appended[..]);
            }
            let mut reader = Reader::new(writer.written());
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert!(reader.is_empty());
        }
    }
}
