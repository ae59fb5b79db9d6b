//! What packets carry: a table with one row per component, most urgent first.
//!
//! A row says in which packets the component writes, what may hold it back, whether it has something to send, how many bytes
//! of content wait, and how it writes. Everything that needs the list reads this table: whether a space is worth a packet and
//! what waits beside probes (plan.rs), the order of the frames in a packet, and whether the application limits the
//! connection (transmit.rs). What a component's frames meet, acknowledgement or loss, it learns through [`FrameOwners`].
//!
//! A new component is a field of [`Components`] and a row of [`COMPONENTS`], and a line of [`FrameOwners`] if it repeats frames.
//!
//! Invariant: a component that wants writes at least one frame into an empty packet, or wants no longer.
//!
//! Path challenges, MTU probes and CONNECTION_CLOSE share no packet with others: they are plans of their own (plan.rs).

mod ack_frequency;
mod control_frames;
mod datagrams;
mod timestamps;

pub(super) use ack_frequency::{AckFrequency, Wanted};
pub(crate) use control_frames::ControlFrames;
pub(super) use datagrams::Datagrams;
pub use datagrams::{DatagramError, DatagramRoom};
pub(super) use timestamps::{Acked, Timestamps};

use super::lanes::Lanes;
use crate::builder::PacketBuilder;
use crate::cid::{LocalCids, PeerCids};
use crate::config::{Switch, TransportConfig};
use crate::crypto_stream::CryptoStream;
use crate::lane_id::LaneId;
use crate::sent::SentFrame;
use crate::space::{Space, SpaceId, Spaces};
use crate::stream_id::StreamId;
use crate::streams::Streams;
use crate::without::{Technique, Without};
use base::time::Instant;
use core::ops::Range;
use recovery::ack::{AckTracker, AckUrgency};
use recovery::ledger::Ledger;
use wire::Side;

/// The components that own what frames of 1-RTT packets say.
pub(super) struct Components {
    pub(super) streams: Streams,
    pub(super) datagrams: Datagrams,
    pub(super) local_cids: LocalCids,
    pub(super) peer_cids: PeerCids,
    pub(super) control_frames: ControlFrames,
    pub(super) ack_frequency: AckFrequency,
    /// Of a connection that offers them.
    pub(super) timestamps: Option<Box<Timestamps>>,
    /// Of a connection that can use several paths at once.
    pub(super) lanes: Option<Box<Lanes>>,
}

impl Components {
    pub(super) fn new(
        side: Side,
        config: &TransportConfig,
        local_cids: LocalCids,
        peer_cids: PeerCids,
    ) -> Components {
        Components {
            streams: Streams::new(side, &config.streams),
            datagrams: Datagrams::new(config.max_datagram_frame_size),
            local_cids,
            peer_cids,
            control_frames: ControlFrames::default(),
            ack_frequency: AckFrequency::new(config),
            timestamps: (config.timestamps == Switch::On).then(Box::default),
            lanes: None,
        }
    }

    /// The peer can use several paths at once, and so can we.
    pub(super) fn begin_lanes(&mut self, peer_max: u32) {
        self.lanes = Some(Box::new(Lanes::new(peer_max, &mut self.local_cids)));
    }

    /// The connection IDs by which the peer reaches us on a lane.
    pub(super) fn local_cids_of(&mut self, id: LaneId) -> Option<&mut LocalCids> {
        match &mut self.lanes {
            Some(lanes) if lanes.current != id => lanes.parked_mut(id).map(|parked| &mut parked.local_cids),
            None if id != LaneId::FIRST => None,
            _ => Some(&mut self.local_cids),
        }
    }

    /// The connection IDs by which we reach the peer on a lane, if it has given any.
    pub(super) fn peer_cids_of(&mut self, id: LaneId) -> Option<&mut PeerCids> {
        match &mut self.lanes {
            Some(lanes) if lanes.current != id => lanes.parked_mut(id)?.peer_cids.as_mut(),
            None if id != LaneId::FIRST => None,
            _ => Some(&mut self.peer_cids),
        }
    }
}

/// The components that a plan permits to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    /// All.
    All,
    /// Those without a limit: congestion control or pacing hold the others back.
    AckOnly,
    /// The same, and what a timeout asks for: a PING where data goes on other lanes.
    Probe,
}

/// The packets that may carry a component's frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packets {
    Any,
    /// 0-RTT and 1-RTT packets.
    Application,
    OneRtt,
}

/// What may hold a component's frames back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// Nothing. The component is asked to write into every packet, even when it does not ask for a packet of its own.
    None,
    /// Congestion control and pacing.
    Congestion,
    /// The same, but the component is asked to write into every packet that they permit.
    //= rfc9002/7#1
    CongestionOfAll,
}

type Wants = fn(&Components, &Space, Instant) -> bool;
type Write = fn(&mut Components, &mut Space, Instant, &mut PacketBuilder<'_>);

/// How a component writes its frames into the packets of a space.
#[derive(Clone, Copy)]
pub(super) struct Row {
    #[cfg(test)]
    pub(super) name: &'static str,
    packets: Packets,
    limit: Limit,
    /// Whether something waits to be sent in the space.
    pub(super) wants: Wants,
    /// Writes what waits, as far as the packet has room.
    pub(super) write: Write,
    /// The bytes of content that wait; 0 where they never are many.
    unsent: fn(&Components) -> u64,
}

/// A row of the table. The name is for tests.
#[cfg_attr(not(test), expect(unused_variables, reason = "only tests name a component"))]
const fn row(name: &'static str, packets: Packets, limit: Limit, wants: Wants, write: Write) -> Row {
    Row {
        #[cfg(test)]
        name,
        packets,
        limit,
        wants,
        write,
        unsent: |_| 0,
    }
}

/// A component that writes into 1-RTT packets only, or into 0-RTT packets as well.
macro_rules! field {
    ($name:literal, $field:ident, $wants:ident, $write:ident) => {
        field!($name, OneRtt, $field, $wants, $write)
    };
    ($name:literal, $packets:ident, $field:ident, $wants:ident, $write:ident) => {
        row(
            $name,
            Packets::$packets,
            Limit::Congestion,
            |components, _, _| components.$field.$wants(),
            |components, _, _, packet| components.$field.$write(packet),
        )
    };
}

/// All components, most urgent first.
pub(super) const COMPONENTS: [Row; 13] = [
    row("ACK", Packets::Any, Limit::None, wants_ack, write_ack),
    row("TIMESTAMP", Packets::OneRtt, Limit::None, |_, _, _| false, write_timestamp),
    row("CRYPTO", Packets::Any, Limit::Congestion, wants_crypto, write_crypto),
    row("IMMEDIATE_ACK", Packets::OneRtt, Limit::Congestion, wants_immediate_ack, write_immediate_ack),
    field!("HANDSHAKE_DONE, NEW_TOKEN, PING", control_frames, wants, write),
    field!("ACK_FREQUENCY", ack_frequency, wants, write),
    field!("RETIRE_CONNECTION_ID", peer_cids, wants, write),
    field!("NEW_CONNECTION_ID", local_cids, wants, write),
    row("lanes", Packets::OneRtt, Limit::Congestion, lanes_want, write_lanes),
    field!("stream control", Application, streams, wants_control, write_control),
    Row {
        unsent: |components| components.datagrams.unsent(),
        ..field!("DATAGRAM", Application, datagrams, wants, write)
    },
    Row {
        unsent: |components| components.streams.unsent(),
        ..field!("STREAM", Application, streams, wants_data, write_data)
    },
    row("probe", Packets::Any, Limit::CongestionOfAll, wants_probe, settle_probe),
];

impl Row {
    /// Whether a packet of the space may carry its frames.
    #[inline]
    fn may_write(&self, space: SpaceId, permission: Permission) -> bool {
        //= rfc9000/12.5#1
        (self.packets == Packets::Any || space == SpaceId::Application)
            && match permission {
                Permission::All => true,
                Permission::AckOnly => self.limit == Limit::None,
                Permission::Probe => self.limit != Limit::Congestion,
            }
    }
}

/// Whether any component has something to send in a packet of the space that may go.
#[inline]
pub(super) fn wants(
    components: &Components,
    spaces: &Spaces,
    now: Instant,
    id: SpaceId,
    permission: Permission,
) -> bool {
    let Some(space) = spaces.space(id) else { return false };
    // Data waits most often: where it does, no other component is looked at.
    let rows = COMPONENTS[DATA..=DATA].iter().chain(&COMPONENTS);
    let mut permitted = rows.filter(|row| row.may_write(id, permission));
    permitted.any(|row| (row.wants)(components, space, now))
}

/// Calls a function for one row after the other. Each row is known when it is compiled, so that a component which has nothing
/// to send costs a packet a comparison and no call.
macro_rules! each_row {
    ($do:ident $arguments:tt) => {
        each_row!($do $arguments 0 1 2 3 4 5 6 7 8 9 10 11 12)
    };
    ($do:ident $arguments:tt $($row:literal)+) => {
        const { assert!([$($row),+].len() == COMPONENTS.len(), "a row is missing") };
        $($do::<$row> $arguments;)+
    };
}

/// The row of the streams' data.
const DATA: usize = 11;

#[cfg(test)]
const _: () = assert!(matches!(COMPONENTS[DATA].name.as_bytes(), b"STREAM"));

/// Whether nothing but data of streams would be written into a packet.
#[inline]
pub(super) fn only_data_waits(components: &Components, space: &Space, now: Instant) -> bool {
    let mut others = false;
    each_row!(note_other(components, space, now, &mut others));
    // An ACK frame goes along wherever there is anything to acknowledge.
    !others && space.acks.urgency(now) == AckUrgency::None
}

/// Notes whether the component of one row wants to write, but for the streams' data.
#[inline]
fn note_other<const ROW: usize>(components: &Components, space: &Space, now: Instant, others: &mut bool) {
    if ROW != DATA
        && let Some(row) = COMPONENTS.get(ROW)
    {
        *others |= (row.wants)(components, space, now);
    }
}

/// Bytes of content that wait in all components.
#[inline]
pub(super) fn unsent(components: &Components) -> u64 {
    COMPONENTS.iter().map(|row| (row.unsent)(components)).sum()
}

/// The packet that components write into, as far as they need to know it.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) now: Instant,
    pub(super) space: SpaceId,
    pub(super) permission: Permission,
}

/// Lets the components write into a packet, most urgent first.
#[inline]
pub(super) fn fill(
    components: &mut Components,
    spaces: &mut Spaces,
    target: Target,
    packet: &mut PacketBuilder<'_>,
) {
    let Some(space) = spaces.space_mut(target.space) else { return };
    each_row!(fill_from(components, space, target, packet));
}

/// The same for a 0-RTT packet: only what may stand there, and PING. Source: RFC 9000 §12.4, table 3.
#[cold]
pub(super) fn fill_early(
    components: &mut Components,
    spaces: &mut Spaces,
    target: Target,
    packet: &mut PacketBuilder<'_>,
) {
    let Some(space) = spaces.space_mut(target.space) else { return };
    let is_probe = |row: &&Row| row.limit == Limit::CongestionOfAll;
    for row in COMPONENTS.iter().filter(|row| row.packets == Packets::Application || is_probe(row)) {
        let may_write = row.may_write(target.space, target.permission);
        if may_write && (is_probe(&row) || (row.wants)(components, space, target.now)) {
            (row.write)(components, space, target.now, packet);
        }
    }
}

/// Lets those that want write into a packet once more: what is to go again came to light when it was filled.
pub(super) fn fill_again(
    components: &mut Components,
    spaces: &mut Spaces,
    target: Target,
    packet: &mut PacketBuilder<'_>,
) {
    let Some(space) = spaces.space_mut(target.space) else { return };
    for row in COMPONENTS.iter().filter(|row| row.limit == Limit::Congestion) {
        if row.may_write(target.space, target.permission) && (row.wants)(components, space, target.now) {
            (row.write)(components, space, target.now, packet);
        }
    }
}

/// Lets the component of one row write.
#[inline]
fn fill_from<const ROW: usize>(
    components: &mut Components,
    space: &mut Space,
    target: Target,
    packet: &mut PacketBuilder<'_>,
) {
    let Some(row) = COMPONENTS.get(ROW) else { return };
    if row.may_write(target.space, target.permission)
        && (row.limit != Limit::Congestion || (row.wants)(components, space, target.now))
    {
        (row.write)(components, space, target.now, packet);
    }
}

#[inline]
fn wants_ack(_: &Components, space: &Space, now: Instant) -> bool {
    space.acks.urgency(now) == AckUrgency::Immediate
}

#[inline]
fn write_ack(_: &mut Components, space: &mut Space, now: Instant, packet: &mut PacketBuilder<'_>) {
    space.write_ack(now, packet);
}

/// Behind the ACK, whose delay it completes.
#[inline]
fn write_timestamp(components: &mut Components, _: &mut Space, now: Instant, packet: &mut PacketBuilder<'_>) {
    if let Some(timestamps) = &mut components.timestamps {
        timestamps.write(now, packet);
    }
}

#[inline]
fn lanes_want(components: &Components, _: &Space, _: Instant) -> bool {
    components.lanes.as_ref().is_some_and(|lanes| lanes.wants())
}

fn write_lanes(components: &mut Components, _: &mut Space, _: Instant, packet: &mut PacketBuilder<'_>) {
    if let Some(lanes) = &mut components.lanes {
        lanes.write(packet);
    }
}

#[inline]
fn wants_crypto(_: &Components, space: &Space, _: Instant) -> bool {
    space.crypto.wants()
}

fn write_crypto(_: &mut Components, space: &mut Space, _: Instant, packet: &mut PacketBuilder<'_>) {
    space.crypto.write(packet);
}

/// A probe asks for an acknowledgement at once, if the peer understands that.
#[inline]
fn wants_immediate_ack(components: &Components, space: &Space, _: Instant) -> bool {
    space.owes_probe() && components.ack_frequency.may_ask()
}

fn write_immediate_ack(
    components: &mut Components,
    _: &mut Space,
    _: Instant,
    packet: &mut PacketBuilder<'_>,
) {
    components.ack_frequency.write_immediate_ack(packet);
}

#[inline]
fn wants_probe(_: &Components, space: &Space, _: Instant) -> bool {
    space.owes_probe()
}

/// Last, because a probe is a PING only where nothing else asks for an acknowledgement. RFC 9002 §7: a packet that leaves
/// although the window is full has no PING.
#[inline]
fn settle_probe(_: &mut Components, space: &mut Space, _: Instant, packet: &mut PacketBuilder<'_>) {
    space.settle_probe(packet);
}

/// The owners of the frames of a packet, who hear of its fate: the components, and those that each space has of its own.
pub(super) struct FrameOwners<'a> {
    components: &'a mut Components,
    crypto: &'a mut CryptoStream,
    acks: &'a mut AckTracker,
    /// Adjacent acknowledged data of one stream, before the stream hears of it.
    run: Option<(StreamId, Range<u64>)>,
    merges: bool,
}

/// The ledger of a space, and the owners of the frames that it remembers; `None` if the space is gone.
#[inline]
pub(super) fn ledger_and_owners<'a>(
    components: &'a mut Components,
    spaces: &'a mut Spaces,
    id: SpaceId,
    without: Without,
) -> Option<(&'a mut Ledger<SentFrame>, FrameOwners<'a>)> {
    let Space { ledger, crypto, acks, .. } = spaces.space_mut(id)?;
    let merges = !without.has(Technique::MergedAcks);
    Some((ledger, FrameOwners { components, crypto, acks, run: None, merges }))
}

impl FrameOwners<'_> {
    /// Frames of packets that follow each other were acknowledged.
    #[inline]
    pub(super) fn on_all_acked(&mut self, frames: &[SentFrame]) {
        let mut rest = frames;
        while let [frame, others @ ..] = rest {
            self.on_acked(frame);
            rest = others;
            let Some((id, run)) = self.run.as_mut().filter(|_| self.merges) else { continue };
            // Nearly always the others go on with the stream.
            while let [SentFrame::Stream { id: other, offset, len, fin: false }, others @ ..] = rest
                && other == id
                && *offset == run.end
            {
                run.end += u64::from(*len);
                rest = others;
            }
        }
    }

    #[inline]
    pub(super) fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream { id, offset, len, fin: false } => {
                let range = offset..offset + u64::from(len);
                match &mut self.run {
                    Some((run_id, run)) if *run_id == id && run.end == range.start && self.merges => {
                        run.end = range.end;
                    }
                    _ => {
                        self.settle_run();
                        self.run = Some((id, range));
                    }
                }
            }
            SentFrame::Stream { id, offset, len, fin: true } => {
                self.on_end_acked(id, offset..offset + u64::from(len));
            }
            SentFrame::Ack { largest } => self.acks.on_ack_of_ack(largest),
            SentFrame::Crypto { offset, len } => self.crypto.on_acked(offset, len),
            SentFrame::NewConnectionId { lane, .. } => {
                self.components.local_cids_of(lane).into_iter().for_each(|cids| cids.on_acked(frame));
            }
            SentFrame::RetireConnectionId { lane, .. } => {
                self.components.peer_cids_of(lane).into_iter().for_each(|cids| cids.on_acked(frame));
            }
            SentFrame::PathAbandon { .. } | SentFrame::PathStatus { .. } | SentFrame::MaxPathId { .. } => {
                self.components.lanes.iter_mut().for_each(|lanes| lanes.on_acked(frame));
            }
            SentFrame::HandshakeDone | SentFrame::NewToken => self.components.control_frames.on_acked(frame),
            SentFrame::AckFrequency { sequence } => self.components.ack_frequency.on_acked(sequence),
            SentFrame::PathChallenge | SentFrame::Datagram => {}
            _ => self.components.streams.on_frame_acked(frame),
        }
    }

    /// The last data of a stream was acknowledged, perhaps with what is in front of it. Apart, because it is once for each stream.
    #[inline(never)]
    fn on_end_acked(&mut self, id: StreamId, range: Range<u64>) {
        let goes_on = |(run_id, run): &mut (StreamId, Range<u64>)| *run_id == id && run.end == range.start;
        let start = match self.run.take_if(|run| self.merges && goes_on(run)) {
            Some((_, run)) => run.start,
            None => range.start,
        };
        self.settle_run();
        self.components.streams.on_stream_acked(id, start..range.end, true);
    }

    pub(super) fn settle_run(&mut self) {
        if let Some((id, range)) = self.run.take() {
            self.components.streams.on_stream_acked(id, range, false);
        }
    }

    /// What these frames say goes again, as if they were lost. Returns whether there is any such frame.
    pub(super) fn repeat(&mut self, frames: &[SentFrame]) -> bool {
        frames.iter().for_each(|frame| self.on_lost(frame));
        frames.iter().any(SentFrame::is_repeated)
    }

    pub(super) fn on_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Crypto { offset, len } => self.crypto.on_lost(offset, len),
            SentFrame::NewConnectionId { lane, .. } => {
                self.components.local_cids_of(lane).into_iter().for_each(|cids| cids.on_lost(frame));
            }
            SentFrame::RetireConnectionId { lane, .. } => {
                self.components.peer_cids_of(lane).into_iter().for_each(|cids| cids.on_lost(frame));
            }
            SentFrame::PathAbandon { .. } | SentFrame::PathStatus { .. } | SentFrame::MaxPathId { .. } => {
                self.components.lanes.iter_mut().for_each(|lanes| lanes.on_lost(frame));
            }
            SentFrame::HandshakeDone | SentFrame::NewToken => self.components.control_frames.on_lost(frame),
            SentFrame::AckFrequency { sequence } => self.components.ack_frequency.on_lost(sequence),
            //= rfc9000/13.3#3
            SentFrame::Ack { .. } | SentFrame::PathChallenge | SentFrame::Datagram => {}
            //= rfc9000/13.3#1
            _ => self.components.streams.on_frame_lost(frame),
        }
    }
}
