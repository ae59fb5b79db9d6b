//! One question and its whole answer, over a netlink socket that lives as long as the call.
//!
//! A reply belongs to us if its sequence number is ours; the socket is in no multicast group, so nothing else comes.
//! A dump ends with DONE, an order with its acknowledgement, a question about one thing with the one message. What the
//! library cannot decode inside a dump (an attribute newer than it) is left out, so that one exotic interface does not
//! hide all others; it is an error only if nothing else came.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use std::io;

/// Sequence number of every request: a socket carries one.
const SEQUENCE: u32 = 1;

/// What a request wants back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// All objects of a kind, until DONE.
    Dump,
    /// One message that answers the question.
    Answer,
    /// The kernel's word that it is done.
    Acknowledgement,
}

/// Asks for all objects of a kind.
pub(crate) fn dump<M>(protocol: isize, message: M) -> io::Result<Vec<M>>
where
    M: NetlinkSerializable + NetlinkDeserializable,
{
    converse(protocol, message, NLM_F_DUMP, Wanted::Dump)
}

/// Asks for one object.
pub(crate) fn ask<M>(protocol: isize, message: M) -> io::Result<M>
where
    M: NetlinkSerializable + NetlinkDeserializable,
{
    let answers = converse(protocol, message, 0, Wanted::Answer)?;
    answers.into_iter().next().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

/// Gives an order and waits until the kernel has carried it out.
pub(crate) fn order<M>(protocol: isize, message: M, flags: u16) -> io::Result<()>
where
    M: NetlinkSerializable + NetlinkDeserializable,
{
    converse(protocol, message, flags | NLM_F_ACK, Wanted::Acknowledgement).map(drop)
}

fn converse<M>(protocol: isize, message: M, flags: u16, wanted: Wanted) -> io::Result<Vec<M>>
where
    M: NetlinkSerializable + NetlinkDeserializable,
{
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut request = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
    request.header.flags = NLM_F_REQUEST | flags;
    request.header.sequence_number = SEQUENCE;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send(&bytes, 0)?;

    let mut answer = Answer { wanted, messages: Vec::new(), undecoded: None };
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        if answer.take(&datagram)? {
            return answer.finish();
        }
    }
}

/// What has come back so far.
struct Answer<M> {
    wanted: Wanted,
    messages: Vec<M>,
    undecoded: Option<String>,
}

impl<M: NetlinkDeserializable> Answer<M> {
    /// Takes the messages of one datagram; true once the answer is complete.
    fn take(&mut self, mut datagram: &[u8]) -> io::Result<bool> {
        while let Some(length) = datagram.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes) as usize)
        {
            let Some(bytes) = datagram.get(..length).filter(|bytes| bytes.len() >= 16) else { break };
            match NetlinkMessage::<M>::deserialize(bytes) {
                Ok(message) if message.header.sequence_number != SEQUENCE => {}
                Ok(message) => {
                    if self.take_one(message.payload)? {
                        return Ok(true);
                    }
                }
                Err(error) if self.wanted == Wanted::Dump => self.undecoded = Some(error.to_string()),
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error.to_string())),
            }
            // messages are aligned to four bytes
            datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(false)
    }

    fn take_one(&mut self, payload: NetlinkPayload<M>) -> io::Result<bool> {
        match payload {
            NetlinkPayload::InnerMessage(message) => {
                self.messages.push(message);
                Ok(self.wanted == Wanted::Answer)
            }
            NetlinkPayload::Done(done) if done.code < 0 => Err(io::Error::from_raw_os_error(-done.code)),
            NetlinkPayload::Done(_) => Ok(true),
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            // an error of zero is the acknowledgement
            NetlinkPayload::Error(_) => Ok(true),
            NetlinkPayload::Overrun(_) => Err(io::Error::other("the kernel's answer was cut short")),
            _ => Ok(false),
        }
    }

    fn finish(self) -> io::Result<Vec<M>> {
        match self.undecoded {
            Some(error) if self.messages.is_empty() => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            _ => Ok(self.messages),
        }
    }
}
