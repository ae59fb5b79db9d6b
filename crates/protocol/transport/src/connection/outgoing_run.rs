//! Packets of a train that are like the one before them: header, one STREAM frame up to the end, tag. In a long transfer nearly all are.
//!
//! A specialisation of assembly for packets of which everything is known beforehand but their numbers and offsets. What plan, fill and
//! seal would find out for each of them is found out once for all, and told once to the streams and to the ledger. Where any packet
//! would differ the run ends in front of it, and the general way (transmit.rs, seal.rs) writes it. The receiving end is in
//! incoming_run.rs; `tests/runs.rs` compares both ways.
//!
//! Packets that are traced go the general way, because a trace reads their plaintext. docs/decisions/025 tells what is gained.

use super::assembly::Assembly;
use super::components;
use super::seal::Departure;
use crate::space::SpaceId;
use crate::streams::Run;
use crate::without::Technique;
use base::sink::PacketSink;
use crypto::TAG_LEN;
use recovery::packet::{PacketFlags, SentPacket};
use wire::frame::stream_header;
use wire::packet::{Spin, write_short};
use wire::packet_number;
use wire::varint;
use wire::writer::Writer;

/// Room for what is in front of the data: first byte, connection ID, packet number, frame type, stream ID, offset.
const HEAD: usize = 64;

const _: () = assert!(1 + wire::cid::MAX_LEN + 4 + 1 + 2 * varint::MAX_SIZE <= HEAD);

/// What the packets of a run have in common.
struct Alike {
    /// The number of the first.
    pn: u64,
    pn_len: usize,
    run: Run,
}

impl Assembly<'_> {
    /// Goes on with a train whose last packet was full: writes the packets that follow if they are alike, at most `most` of `size`
    /// bytes. Returns how many; `most` or fewer, of which nothing else can be concluded.
    #[inline(never)] // a packet that is alone pays nothing for it
    pub(super) fn send_run(
        &mut self,
        departure: Departure,
        size: usize,
        most: usize,
        sink: &mut impl PacketSink,
    ) -> usize {
        let Some(alike) = self.next_alike(departure, size, most) else { return 0 };
        let Alike { pn, pn_len, run } = alike;
        if !self.write_run(size, &alike, sink) {
            return 0;
        }
        self.components.streams.on_run_sent(&run);
        let space = &mut self.spaces.application;
        let flags = PacketFlags::DATA.with(PacketFlags::of_ecn(departure.ecn));
        let first = SentPacket { pn, sent_at: departure.at, size: size as u16, flags };
        space.ledger.on_run_sent(first, run.count, |index| run.frame(index));
        space.on_run_sent(run.count);
        space.on_ack_eliciting_sent();
        debug_assert_eq!(
            packet_number::encoded_size(pn + run.count - 1, space.ledger.largest_acked()),
            pn_len,
            "the numbers of a run are equally long"
        );
        self.timers.on_ack_eliciting_sent(departure.at);
        self.paths.active_mut().ecn.on_sent(SpaceId::Application, departure.ecn, run.count);
        self.counters.sent_packets += run.count;
        run.count as usize
    }

    /// The packets to come that are alike, if there are any.
    #[inline]
    fn next_alike(&mut self, departure: Departure, size: usize, most: usize) -> Option<Alike> {
        if most == 0 || self.trace.is_some() || self.config.without.has(Technique::Runs) {
            return None;
        }
        let keys = self.keys.one_rtt.as_ref()?;
        let space = &self.spaces.application;
        let (pn, before_skip) = space.next_packet_numbers();
        let largest_acked = space.ledger.largest_acked();
        let pn_len = packet_number::encoded_size(pn, largest_acked);
        let numbers = packet_number::equally_long(pn, largest_acked).min(before_skip);
        let most = numbers.min(keys.fresh_for(self.config)).min(most as u64);
        let room = size.checked_sub(1 + self.components.peer_cids.active().len() + pn_len + TAG_LEN)?;
        let run = self.components.streams.next_run(room, most)?;
        components::only_data_waits(self.components, space, departure.at).then_some(Alike { pn, pn_len, run })
    }

    /// Writes and encrypts the packets of a run. Returns whether it has; if not, nothing has changed.
    #[inline]
    fn write_run(&mut self, size: usize, alike: &Alike, sink: &mut impl PacketSink) -> bool {
        let &Alike { pn, pn_len, run } = alike;
        let Some(keys) = &mut self.keys.one_rtt else { return false };
        let mut head = [0; HEAD];
        let mut writer = Writer::new(&mut head);
        let dcid = self.components.peer_cids.active();
        let pn_offset = write_short(&mut writer, &dcid, Spin::Zero, keys.phase(), pn, pn_len);
        let header_len = writer.position();
        stream_header(&mut writer, run.id.as_u64(), run.offset, false, None);
        let offset_size = varint::size(run.offset);
        let offset_at = writer.position() - offset_size;
        let bytes = self.components.streams.run_bytes(&run);
        if bytes.is_empty() || sink.room().first_chunk::<HEAD>().is_none() {
            return false;
        }
        for (index, data) in (0..).zip(bytes.chunks_exact(run.len)) {
            let (pn, offset) = (pn + index, run.offset_of(index));
            let room = sink.room();
            if let Some(front) = room.first_chunk_mut::<HEAD>() {
                // Behind the frame's header it is overwritten. Number and offset are written into the copy: a head that has just been changed
                // could not be read before these writes have left the CPU's buffer.
                *front = head;
                packet_number::write(
                    &mut Writer::new(front.get_mut(pn_offset..).unwrap_or(&mut [])),
                    pn,
                    pn_len,
                );
                Writer::new(front.get_mut(offset_at..).unwrap_or(&mut []))
                    .varint_with_size(offset, offset_size);
            }
            keys.seal(pn, room, header_len, data);
            sink.push(size);
        }
        true
    }
}
