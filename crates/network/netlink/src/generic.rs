//! Generic netlink: messages of families that the kernel numbers when it starts, as plain attributes.
//!
//! The library's encoder does attributes; this adds the four-byte header (command, version) and the question which
//! number a family has.

use crate::conversation;
use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, NetlinkDeserializable, NetlinkHeader,
    NetlinkSerializable, NlasIterator,
};
use netlink_sys::protocols::NETLINK_GENERIC;
use std::io;

const HEADER: usize = 4;
/// The family that knows the others: GENL_ID_CTRL, its command CTRL_CMD_GETFAMILY and two attributes.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// An attribute: a number and bytes.
pub(crate) type Attribute = DefaultNla;

/// A message of some family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) family: u16,
    pub(crate) command: u8,
    pub(crate) attributes: Vec<Attribute>,
}

/// An attribute that holds attributes.
pub(crate) fn nested(kind: u16, inside: &[Attribute]) -> Attribute {
    let mut bytes = vec![0; inside.buffer_len()];
    inside.emit(&mut bytes);
    Attribute::new(kind | NLA_F_NESTED, bytes)
}

/// An attribute that holds a name, ended by a zero.
pub(crate) fn text(kind: u16, name: &str) -> Attribute {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    Attribute::new(kind, bytes)
}

/// The attributes that lie in `bytes`, with their numbers; what follows a broken one is left out.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, Vec<u8>)> {
    NlasIterator::new(bytes).map_while(Result::ok).map(|found| (found.kind(), found.value().to_vec()))
}

/// The bytes of the first attribute of this number.
pub(crate) fn find(bytes: &[u8], wanted: u16) -> Option<Vec<u8>> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// Four bytes in this machine's order.
pub(crate) fn number(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

/// The number that the kernel gave to the family of this name.
///
/// # Errors
/// `Unsupported` if the kernel has no such family; else the kernel's.
pub(crate) fn family(name: &str) -> io::Result<u16> {
    let question =
        Message { family: CONTROLLER, command: GET_FAMILY, attributes: vec![text(FAMILY_NAME, name)] };
    let answer = match ask(question) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("this kernel has no {name} netlink"),
            ));
        }
        answer => answer?,
    };
    let id = find(&answer, FAMILY_ID).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    id.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// Asks one thing; the attributes of the answer, undecoded.
pub(crate) fn ask(question: Message) -> io::Result<Vec<u8>> {
    let answer = conversation::ask(NETLINK_GENERIC, Packet::Question(question))?;
    match answer {
        Packet::Answer(bytes) => Ok(bytes),
        Packet::Question(_) => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// Gives an order.
pub(crate) fn order(order: Message) -> io::Result<()> {
    conversation::order(NETLINK_GENERIC, Packet::Question(order), 0)
}

/// What travels: ours is built of attributes, the kernel's is kept as it came.
enum Packet {
    Question(Message),
    Answer(Vec<u8>),
}

impl NetlinkSerializable for Packet {
    fn message_type(&self) -> u16 {
        match self {
            Packet::Question(message) => message.family,
            Packet::Answer(_) => 0,
        }
    }

    fn buffer_len(&self) -> usize {
        match self {
            Packet::Question(message) => HEADER + message.attributes.as_slice().buffer_len(),
            Packet::Answer(bytes) => HEADER + bytes.len(),
        }
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let Packet::Question(message) = self else { return };
        if let Some((header, rest)) = buffer.split_first_chunk_mut::<HEADER>() {
            *header = [message.command, 1, 0, 0];
            message.attributes.as_slice().emit(rest);
        }
    }
}

impl NetlinkDeserializable for Packet {
    type Error = DecodeError;

    fn deserialize(_: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let attributes = payload.get(HEADER..).ok_or(DecodeError::from("no generic netlink header"))?;
        Ok(Packet::Answer(attributes.to_vec()))
    }
}
