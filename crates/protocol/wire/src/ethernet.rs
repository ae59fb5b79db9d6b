//! The Ethernet header, with up to two VLAN tags. IEEE 802.3 §3, IEEE 802.1Q §9.
//!
//! ```text
//! destination (6)  source (6)  [ 0x8100 or 0x88a8, control (2) ] × 0..=2  type (2)
//! ```

use crate::error::Malformed;
use crate::reader::Reader;
use crate::writer::Writer;

/// The type of IPv4.
pub const IPV4: u16 = 0x0800;
/// The type of IPv6.
pub const IPV6: u16 = 0x86dd;
/// The type of a customer's VLAN tag.
pub const VLAN: u16 = 0x8100;
/// The type of a provider's VLAN tag, around the customer's.
pub const PROVIDER_VLAN: u16 = 0x88a8;

/// The largest header in bytes: two tags.
pub const MAX_SIZE: usize = 22;

/// A VLAN tag: its type, and priority and VLAN number as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// [`VLAN`] or [`PROVIDER_VLAN`].
    pub kind: u16,
    /// Priority (3 bits), drop eligibility (1 bit), VLAN number (12 bits).
    pub control: u16,
}

impl Tag {
    /// A customer's tag of VLAN `number`, of which the low 12 bits count.
    pub const fn vlan(number: u16) -> Tag {
        Tag { kind: VLAN, control: number & 0x0fff }
    }
}

/// What an Ethernet header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ethernet {
    /// Whom it is for.
    pub destination: [u8; 6],
    /// Who sent it.
    pub source: [u8; 6],
    /// The tags, outermost first.
    pub tags: [Option<Tag>; 2],
    /// What follows: [`IPV4`], [`IPV6`] or something else.
    pub kind: u16,
}

impl Ethernet {
    /// Reads a header. Of more than two tags, the type of the third is what follows.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Result<Ethernet, Malformed> {
        let (destination, source) = (reader.array()?, reader.array()?);
        let mut tags = [None; 2];
        let mut kind = reader.u16()?;
        for tag in &mut tags {
            if kind != VLAN && kind != PROVIDER_VLAN {
                break;
            }
            *tag = Some(Tag { kind, control: reader.u16()? });
            kind = reader.u16()?;
        }
        Ok(Ethernet { destination, source, tags, kind })
    }

    /// Writes the header: [`Ethernet::size`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(&self.destination);
        writer.bytes(&self.source);
        for tag in self.tags.iter().flatten() {
            writer.u16(tag.kind);
            writer.u16(tag.control);
        }
        writer.u16(self.kind);
    }

    /// How many bytes the header takes.
    pub fn size(&self) -> usize {
        match self.tags {
            [None, None] => 14,
            [Some(_), Some(_)] => MAX_SIZE,
            _ => 18,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tag() -> impl Strategy<Value = Tag> {
        (prop_oneof![Just(VLAN), Just(PROVIDER_VLAN)], any::<u16>())
            .prop_map(|(kind, control)| Tag { kind, control })
    }

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(
            destination: [u8; 6],
            source: [u8; 6],
            tags in proptest::collection::vec(tag(), 0..3),
            is_ipv4: bool,
        ) {
            let kind = if is_ipv4 { IPV4 } else { IPV6 };
            let tags = [tags.first().copied(), tags.get(1).copied()];
            let header = Ethernet { destination, source, tags, kind };
            let mut buffer = [0; MAX_SIZE];
            let mut writer = Writer::new(&mut buffer);
            header.write(&mut writer);
            prop_assert_eq!(writer.position(), header.size());
            let mut reader = Reader::new(writer.written());
            prop_assert_eq!(Ethernet::read(&mut reader), Ok(header));
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_tag_lies_where_the_standard_puts_it() {
        let header =
            Ethernet { destination: [1; 6], source: [2; 6], tags: [Some(Tag::vlan(100)), None], kind: IPV6 };
        let mut buffer = [0; MAX_SIZE];
        let mut writer = Writer::new(&mut buffer);
        header.write(&mut writer);
        assert_eq!(writer.written(), [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0x81, 0, 0, 100, 0x86, 0xdd]);
    }

    #[test]
    fn a_header_that_ends_early_is_malformed() {
        let bytes = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 1, 8];
        for len in 0..bytes.len() {
            assert!(Ethernet::read(&mut Reader::new(&bytes[..len])).is_err());
        }
    }
}
