//! Packets with the keys of one end and contents of the test's choice: what an honest end never sends.

use super::*;
use crate::space::SpaceId;
use wire::cid::ConnectionId;
use wire::packet::{LongHeader, LongType, Spin, patch_length, write_short};
use wire::writer::Writer;

/// A packet with the keys of one end.
pub(super) struct Forged<'a> {
    pub(super) pn: u64,
    /// Another source than its own, in a long header.
    pub(super) scid: Option<ConnectionId>,
    /// What an Initial carries as its token.
    pub(super) token: &'a [u8],
    /// Bits of the first byte that are turned over before the packet is sealed.
    pub(super) bits: u8,
    pub(super) payload: &'a [u8],
}

impl Default for Forged<'_> {
    /// A PING whose number is far from those in use and near enough to be read.
    fn default() -> Self {
        Forged { pn: 1_000, scid: None, token: &[], bits: 0, payload: &[0x01] }
    }
}

impl Forged<'_> {
    /// An Initial or Handshake packet of 1,200 bytes, filled up with PADDING.
    pub(super) fn long(&self, from: &Connection, space: SpaceId) -> Vec<u8> {
        let ty = if space == SpaceId::Initial { LongType::Initial } else { LongType::Handshake };
        let keys = from.keys.long(space).expect("keys");
        let mut packet = vec![0; 1_200];
        let mut writer = Writer::new(&mut packet);
        let (dcid, scid) =
            (from.components.peer_cids.active(), self.scid.unwrap_or(from.components.local_cids.first()));
        let header = LongHeader { ty, version: from.handshake.version, dcid, scid, token: self.token };
        let mark = header.write(&mut writer, self.pn, 2);
        writer.bytes(self.payload);
        let end = packet.len();
        patch_length(&mut packet, mark, end);
        packet[0] ^= self.bits;
        keys.local.packet.seal(self.pn, &mut packet, mark.pn_offset + 2);
        let mask = keys.local.header.mask(packet[mark.pn_offset + 4..].first_chunk().expect("a sample"));
        protect(&mut packet, mark.pn_offset, mask, 0x0f);
        packet
    }

    /// A 1-RTT packet of 100 bytes.
    pub(super) fn short(&self, from: &mut Connection) -> Vec<u8> {
        let dcid = from.components.peer_cids.active();
        let keys = from.keys.one_rtt.as_mut().expect("keys");
        let mut packet = vec![0; 100];
        let mut writer = Writer::new(&mut packet);
        let pn_offset = write_short(&mut writer, &dcid, Spin::Zero, keys.phase(), self.pn, 2);
        writer.bytes(self.payload);
        packet[0] ^= self.bits;
        keys.seal(self.pn, &mut packet, pn_offset + 2, &[]);
        let mask = keys.local_header.mask(packet[pn_offset + 4..].first_chunk().expect("a sample"));
        protect(&mut packet, pn_offset, mask, 0x1f);
        packet
    }
}

fn protect(packet: &mut [u8], pn_offset: usize, mask: [u8; 5], bits: u8) {
    packet[0] ^= mask[0] & bits;
    packet[pn_offset] ^= mask[1];
    packet[pn_offset + 1] ^= mask[2];
}

impl Pair {
    /// A datagram reaches the server's connection, past its endpoint.
    pub(super) fn hand_to_server(&mut self, datagram: &[u8]) {
        let (now, mut bytes) = (self.now, datagram.to_vec());
        let train = Train {
            segment_size: bytes.len(),
            bytes: &mut bytes,
            addresses: addresses(2, 1),
            ecn: Ecn::Ect0,
        };
        let End { connection, sink, .. } = &mut self.server;
        connection.as_mut().expect("server").receive(now, train, sink);
    }

    /// What the server said to the end of the connection, if it closed because of the client.
    pub(super) fn refusal(&mut self) -> Option<wire::error::Code> {
        self.server.send(self.now);
        self.server.events.iter().find_map(|event| match event {
            Event::Closed(CloseReason::Violation(error)) => Some(error.code),
            _ => None,
        })
    }
}
