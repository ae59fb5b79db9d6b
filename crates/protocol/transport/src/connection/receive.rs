//! From datagrams to frames: unmask, open, dispatch. Source: RFC 9000 §12, RFC 9001 §5.
//!
//! A train of short-header datagrams is the common case: header-protection masks are computed several at a time, then each
//! packet is opened where it lies and its frames are dispatched. Long headers, packets that come before their keys and
//! all other packets take the general path, which handles one packet at a time.

use super::Connection;
use super::arrival::{Arrival, LongPacket};
use super::close::close_period;
use super::early::EarlyPacket;
use super::frames::{self, ZERO_RTT, permission};
use super::incoming_run::{Continued, IncomingRun};
use super::keys::{Arrived, OpenFailure};
use super::masks::{Masks, PASS, masks_of};
use super::trace::Plain;
use super::versions::OtherVersion;
use crate::cid::LOCAL_CID_LEN;
use crate::error::TransportError;
use crate::event::StreamSink;
use crate::path::PathId;
use crate::space::SpaceId;
use crate::streams::Intake;
use crate::without::Technique;
use base::net::{Ecn, Train};
use base::time::Instant;
use crypto::{HandshakeOutcome, SAMPLE_LEN, TAG_LEN};
use recovery::ack::Eliciting;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame;
use wire::packet::{KeyPhase, LongType, Packet, has_fixed_bit, is_long};
use wire::packet_number;

/// Packets that are taken in, or sent, as one train.
pub(super) const BATCH: usize = 64;

/// Before the packet number of a short header: the first byte and our connection ID.
const PN_OFFSET: usize = 1 + LOCAL_CID_LEN;
/// The sample starts where a packet number of four bytes would end (RFC 9001 §5.4.2).
const SAMPLE_OFFSET: usize = PN_OFFSET + 4;
/// Datagrams with an Initial packet are at least so long. Source: RFC 9000 §14.1.
const MIN_INITIAL: usize = 1_200;
/// Shorter datagrams hold no packet that could be opened.
const MIN_SHORT: usize = SAMPLE_OFFSET + SAMPLE_LEN;
/// Shorter datagrams are no stateless resets. Source: RFC 9000 §10.3.
const MIN_RESET: usize = 21;

/// What is known of a datagram before its packets are opened.
#[derive(Clone, Copy)]
struct Context {
    now: Instant,
    /// Earlier than now if the packet waited for its keys.
    arrived: Instant,
    path: PathId,
    ecn: Ecn,
}

/// What the header of an authentic packet said.
#[derive(Clone, Copy)]
struct Header {
    space: SpaceId,
    /// See [`Arrival::packet`].
    packet: u8,
    pn: u64,
    /// Where it was sent to.
    dcid: ConnectionId,
    /// The bytes of the packet, with header and tag.
    len: usize,
}

impl Connection {
    /// Takes in the datagrams of a train, all of the current lane.
    pub(super) fn receive_train<S: StreamSink>(&mut self, now: Instant, train: Train<'_>, sink: &mut S) {
        let segment_size = train.segment_size.max(1);
        let readable = self.readable();
        for chunk in train.bytes.chunks_mut(segment_size * BATCH) {
            if self.lifecycle.is_over() {
                self.on_packet_while_closing();
                return;
            }
            let Some(path) = self.paths.on_datagram(now, train.addresses, chunk.len()) else {
                self.counters.dropped_path += 1;
                continue;
            };
            let context = Context { now, arrived: now, path, ecn: train.ecn };
            self.receive_chunk(context, chunk, segment_size, sink);
        }
        self.replay_readable(now, readable, sink);
    }

    /// Receives what came before its keys did, as long as the handshake comes farther than `readable`.
    fn replay_readable<S: StreamSink>(&mut self, now: Instant, mut readable: SpaceId, sink: &mut S) {
        while self.handshake.has_early() && self.readable() > readable {
            readable = self.readable();
            self.replay_early(now, sink);
        }
    }

    /// How far the handshake has come in giving us packets that we may open. A server has 1-RTT keys long before it may use
    /// them: it must have seen the client's Finished first (RFC 9001 §5.7).
    fn readable(&self) -> SpaceId {
        //= rfc9001/5.7#1
        if self.keys.one_rtt.is_some() && self.handshake.is_complete() {
            SpaceId::Application
        } else if self.keys.has(SpaceId::Handshake) {
            SpaceId::Handshake
        } else {
            SpaceId::Initial
        }
    }

    fn receive_chunk<S: StreamSink>(
        &mut self,
        context: Context,
        chunk: &mut [u8],
        segment_size: usize,
        sink: &mut S,
    ) {
        let mut masked_from = None;
        let mut masks = Masks::default();
        let mut run = None;
        let count = chunk.len().div_ceil(segment_size);
        for index in 0..count {
            let start = index * segment_size;
            let rest = chunk.get(start..).unwrap_or(&[]);
            let begins_pass = match masked_from {
                Some(from) => (index - from) % PASS == 0,
                None => rest.first().is_some_and(|&first| !is_long(first)),
            };
            if begins_pass && let Some(next) = self.masks_of_next(rest, segment_size) {
                masks = next;
                masked_from.get_or_insert(index);
            }
            let end = (start + segment_size).min(chunk.len());
            let Some(datagram) = chunk.get_mut(start..end) else { return };
            self.counters.received_datagrams += 1;
            let outcome = match masked_from {
                Some(from) if !is_long(datagram[0]) => {
                    let mask = masks[(index - from) % PASS];
                    if run.is_none() && index > from {
                        run = self.begin_run(context);
                    }
                    self.receive_short(context, (datagram, mask), &mut run, sink)
                }
                _ => {
                    self.end_run(context, run.take());
                    self.receive_datagram(context, datagram, sink)
                }
            };
            if let Err(error) = outcome {
                self.end_run(context, run.take());
                self.fail(context.now, error);
            }
            if self.lifecycle.is_over() {
                break;
            }
        }
        self.end_run(context, run);
    }

    /// The packets of a train that come next may be alike, and like the one before.
    #[inline]
    fn begin_run(&self, context: Context) -> Option<IncomingRun> {
        let without = self.config.without;
        let is_plain = self.trace.is_none()
            && context.ecn != Ecn::Ce
            && context.path == self.paths.active_id()
            && !(without.has(Technique::Runs) || without.has(Technique::LentData));
        if !is_plain {
            return None;
        }
        IncomingRun::begin(&self.components.streams, &self.spaces.application.acks)
    }

    /// Books the packets of a run.
    #[inline]
    fn end_run(&mut self, context: Context, run: Option<IncomingRun>) {
        let Some(run) = run else { return };
        let Context { now, arrived, ecn, .. } = context;
        let packets = run.packets();
        if packets > 0 {
            self.components.streams.settle_intake(&run.intake, now);
            self.counters.received_packets += packets;
            self.timers.on_authentic_packet(now, Eliciting::Yes);
            self.spaces.application.acks.on_run_received(arrived, packets, ecn);
        }
    }

    /// Takes in a packet that continues a run; `None` if it does not.
    #[inline]
    fn go_on_with_run<S: StreamSink>(
        &mut self,
        context: Context,
        run: &mut Option<IncomingRun>,
        (pn, payload): (u64, &[u8]),
        sink: &mut S,
    ) -> Option<Result<(), TransportError>> {
        let going = run.as_mut()?;
        match going.take(&mut self.components.streams, pn, payload, sink) {
            Continued::Yes => return Some(Ok(())),
            Continued::No => self.end_run(context, run.take()),
            Continued::Last(frame, taken) => {
                let run = run.take()?;
                let intake = run.intake;
                self.end_run(context, Some(run));
                return Some(self.end_packet_of_run(context, pn, &intake, (&frame, taken)));
            }
        }
        None
    }

    /// The last packet of a run, of whose frame the application took so many bytes, and no more.
    #[cold]
    fn end_packet_of_run(
        &mut self,
        context: Context,
        pn: u64,
        intake: &Intake,
        frame: (&frame::Stream<'_>, usize),
    ) -> Result<(), TransportError> {
        let Context { now, arrived, ecn, .. } = context;
        let rtt = self.paths.active().rtt.smoothed();
        let outcome = self.components.streams.on_partly_taken(intake, frame, now, rtt);
        outcome
            .map_err(|error| TransportError { frame: frame::ty::STREAM | frame::ty::STREAM_OFF, ..error })?;
        self.counters.received_packets += 1;
        self.timers.on_authentic_packet(now, Eliciting::Yes);
        self.spaces.application.acks.on_received(arrived, pn, Eliciting::Yes, ecn);
        Ok(())
    }

    /// The masks of the datagrams that come next, as far as they have short headers; `None` when none may be opened yet.
    fn masks_of_next(&self, datagrams: &[u8], segment_size: usize) -> Option<Masks> {
        let is_complete = self.handshake.is_complete();
        let keys = self.keys.one_rtt.as_ref().filter(|_| is_complete)?;
        let count = datagrams.len().div_ceil(segment_size);
        Some(masks_of(&keys.peer_header, count, self.config.without, |index| {
            datagrams.get(index * segment_size + SAMPLE_OFFSET..)?.first_chunk().copied()
        }))
    }

    /// A datagram that is one 1-RTT packet, with its mask at hand.
    #[inline]
    fn receive_short<S: StreamSink>(
        &mut self,
        context: Context,
        (packet, mask): (&mut [u8], [u8; 5]),
        run: &mut Option<IncomingRun>,
        sink: &mut S,
    ) -> Result<(), TransportError> {
        //= rfc9001/5.4.2#2
        if packet.len() < MIN_SHORT {
            self.end_run(context, run.take());
            if packet.len() >= MIN_RESET {
                self.on_unopened(context.now, &stateless_reset_token(packet));
            }
            return Ok(());
        }
        //= rfc9000/17.3.1#1
        if !has_fixed_bit(packet[0]) {
            self.counters.dropped_malformed += 1;
            return Ok(());
        }
        // The reset check reads bytes that opening would spoil.
        let tail = stateless_reset_token(packet);
        packet[0] ^= mask[0] & 0x1f;
        let first = packet[0];
        let pn_len = usize::from(first & 3) + 1;
        for (byte, mask) in packet[PN_OFFSET..PN_OFFSET + pn_len].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        let truncated = packet_number::read(&packet[PN_OFFSET..], pn_len).unwrap_or(0);
        let expected = match run {
            Some(run) => run.next(),
            None => self.spaces.application.next_expected(),
        };
        let pn = packet_number::expand(truncated, pn_len, expected);
        let header_len = PN_OFFSET + pn_len;
        let (paths, components) = (&self.paths, &self.components);
        //= rfc9001/6.5#1
        let keep = || close_period(paths, components);
        let Some(keys) = &mut self.keys.one_rtt else { return Ok(()) };
        let arrived = Arrived { at: context.now, keep };
        let opened = keys.open(arrived, pn, KeyPhase::from_first_byte(first), packet, header_len);
        let len = match opened {
            Ok(len) => {
                self.counters.key_updates = keys.updates();
                len
            }
            Err(OpenFailure::Close(error)) => return Err(error),
            Err(OpenFailure::Drop) => {
                self.end_run(context, run.take());
                self.on_unopened(context.now, &tail);
                return Ok(());
            }
        };
        //= rfc9000/17.3.1#2
        if first & 0x18 != 0 {
            // RFC 9000 §17.3.1: reserved bits are zero once protection is removed.
            return Err(TransportError::new(Code::PROTOCOL_VIOLATION, "reserved header bits set"));
        }
        let payload = &packet[header_len..header_len + len];
        if let Some(outcome) = self.go_on_with_run(context, run, (pn, payload), sink) {
            return outcome;
        }
        let dcid = ConnectionId::new(&packet[1..PN_OFFSET]).unwrap_or(ConnectionId::EMPTY);
        let permitted = const { permission(SpaceId::Application) };
        let header = Header { space: SpaceId::Application, packet: permitted, pn, dcid, len: packet.len() };
        self.on_packet(context, header, payload, sink)
    }

    /// A packet was authentic: its frames, its acknowledgement, its path. Source: RFC 9000 §12.3, §13.1.
    #[inline]
    fn on_packet<S: StreamSink>(
        &mut self,
        context: Context,
        Header { space, packet, pn, dcid, len }: Header,
        payload: &[u8],
        sink: &mut S,
    ) -> Result<(), TransportError> {
        //= rfc9001/9.5#1
        let Some(held) = self.spaces.space(space) else { return Ok(()) };
        // After opening, so that timing tells nothing about the packet number (RFC 9001 §9.5).
        //= rfc9000/12.3#2
        if held.acks.is_duplicate(pn) {
            self.counters.dropped_duplicate += 1;
            return Ok(());
        }
        let is_highest = pn >= held.next_expected();
        if let Some(trace) = &mut self.trace {
            let is_long = packet != const { permission(SpaceId::Application) };
            let long = is_long.then_some(self.handshake.version);
            let key_phase = self.counters.key_updates;
            trace.on_received(context.now, &Plain { space, long, key_phase, pn, dcid, len, payload });
        }
        let rtt = self.paths.active().rtt.smoothed();
        let Context { now, arrived, path, ecn } = context;
        let mut arrival = Arrival {
            now,
            arrived,
            space,
            packet,
            path,
            pn,
            dcid,
            rtt,
            sink,
            eliciting: Eliciting::No,
            non_probing: false,
        };
        frames::dispatch(self, &mut arrival, payload)?;
        let Arrival { eliciting, non_probing, .. } = arrival;
        self.counters.received_packets += 1;
        self.timers.on_authentic_packet(now, eliciting);
        if let Some(space) = self.spaces.space_mut(space) {
            //= rfc9000/13.1#1
            //= rfc9000/13.2.5#2
            space.acks.on_received(arrived, pn, eliciting, ecn);
        }
        //= rfc9000/9.3#1
        if path != self.paths.active_id() && non_probing && is_highest {
            self.on_peer_moved(now, path);
        }
        Ok(())
    }

    /// A datagram with long headers, or one that came before the 1-RTT keys: packet by packet.
    #[cold]
    fn receive_datagram<S: StreamSink>(
        &mut self,
        context: Context,
        datagram: &mut [u8],
        sink: &mut S,
    ) -> Result<(), TransportError> {
        let whole = datagram.len();
        let mut rest = datagram;
        while !rest.is_empty() && !self.lifecycle.is_over() {
            let Ok(packet) = Packet::parse(rest, LOCAL_CID_LEN) else {
                self.counters.dropped_malformed += 1;
                return Ok(());
            };
            let end = match packet {
                Packet::Short(header) if self.components.local_cids.contains(&header.dcid) => {
                    return self.receive_single_short(context, rest, sink);
                }
                Packet::Short(_) => {
                    self.counters.dropped_malformed += 1;
                    return Ok(());
                }
                Packet::Long { ty, version, dcid, scid, token, pn_offset, end } => {
                    //= rfc9000/14.1#3
                    let is_small = ty == LongType::Initial && self.side.is_server() && whole < MIN_INITIAL;
                    //= rfc9000/17.2.2#1
                    if is_small || (self.side.is_client() && !token.is_empty()) {
                        // RFC 9000 §14.1: an Initial in a smaller datagram is dropped; §17.2.2: servers send no token.
                        self.counters.dropped_malformed += 1;
                        return Ok(());
                    }
                    let long = LongPacket { ty, version, dcid, scid, pn_offset };
                    self.receive_long(context, rest.get_mut(..end).unwrap_or(&mut []), long, sink)?;
                    self.advance_handshake(context.now)?;
                    end
                }
                Packet::Retry { version, scid, token, .. } => {
                    self.on_retry(rest, version, scid, token);
                    return Ok(());
                }
                Packet::VersionNegotiation { scid, versions, .. } => {
                    self.on_version_negotiation(context.now, scid, rest.get(versions).unwrap_or(&[]));
                    return Ok(());
                }
                Packet::UnknownVersion { .. } => return Ok(()),
            };
            //= rfc9000/12.2#1
            rest = rest.split_at_mut_checked(end).map_or(&mut [][..], |(_, rest)| rest);
        }
        Ok(())
    }

    /// A 1-RTT packet outside a batch: early ones are kept until the keys are there.
    fn receive_single_short<S: StreamSink>(
        &mut self,
        context: Context,
        packet: &mut [u8],
        sink: &mut S,
    ) -> Result<(), TransportError> {
        let Some([mask, ..]) = self.masks_of_next(packet, packet.len()) else {
            self.handshake.keep_early(context.arrived, context.ecn, packet);
            if self.side.is_server() {
                // The client's Finished is lost, or late.
                self.repeat_handshake(context.now);
            }
            return Ok(());
        };
        self.receive_short(context, (packet, mask), &mut None, sink)
    }

    /// An Initial, 0-RTT or Handshake packet.
    fn receive_long<S: StreamSink>(
        &mut self,
        context: Context,
        packet: &mut [u8],
        long: LongPacket,
        sink: &mut S,
    ) -> Result<(), TransportError> {
        let (space_id, kind) = match long.ty {
            LongType::Initial => (SpaceId::Initial, permission(SpaceId::Initial)),
            LongType::Handshake => (SpaceId::Handshake, permission(SpaceId::Handshake)),
            LongType::ZeroRtt => (SpaceId::Application, ZERO_RTT),
        };
        // RFC 9000 §12.2: later packets of a datagram are for this connection, or are dropped.
        //= rfc9000/12.2#2
        let is_ours = self.components.local_cids.contains(&long.dcid)
            || (self.side.is_server() && self.handshake.is_first_destination(long.dcid, long.ty));
        //= rfc9000/7.2#3
        let is_ours = is_ours && self.handshake.accepts_scid(long.scid, self.side);
        let is_other = long.version != self.handshake.version;
        let other = if is_ours && is_other { self.opening_in(&long, context.now) } else { None };
        if !is_ours || (is_other && other.is_none()) {
            // RFC 9000 §7.2: the peer's source connection ID does not change.
            self.counters.dropped_malformed += 1;
            return Ok(());
        }
        let keys = match self.keys.long(space_id) {
            _ if is_other => other.as_ref().and_then(OtherVersion::keys),
            Some(keys) => Some(&keys.peer),
            //= rfc9001/4.6.2#1
            None if kind == ZERO_RTT && !self.handshake.holds_early_data => self.keys.early.peer(context.now),
            None => None,
        };
        let Some(keys) = keys else {
            self.counters.dropped_no_keys += 1;
            if self.handshake.may_get_keys(long.ty, self.side) {
                self.handshake.keep_early(context.arrived, context.ecn, packet);
                self.repeat_handshake(context.now);
            }
            return Ok(());
        };
        let Some(sample) = packet.get(long.pn_offset + 4..).and_then(|rest| rest.first_chunk::<SAMPLE_LEN>())
        else {
            self.counters.dropped_malformed += 1;
            return Ok(());
        };
        let mask = keys.header.mask(sample);
        packet[0] ^= mask[0] & 0x0f;
        let pn_len = usize::from(packet[0] & 3) + 1;
        let header_len = long.pn_offset + pn_len;
        for (byte, mask) in packet[long.pn_offset..header_len].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        let Some(space) = self.spaces.space(space_id) else { return Ok(()) };
        let truncated = packet_number::read(&packet[long.pn_offset..], pn_len).unwrap_or(0);
        let pn = packet_number::expand(truncated, pn_len, space.next_expected());
        //= rfc9000/5.2#2
        let Ok(len) = keys.packet.open(pn, packet, header_len) else {
            self.counters.dropped_forged += 1;
            return Ok(());
        };
        //= rfc9000/17.2#4
        if packet[0] & 0x0c != 0 {
            return Err(TransportError::new(Code::PROTOCOL_VIOLATION, "reserved header bits set"));
        }
        if let Some(keys) = other.and_then(OtherVersion::into_adopted) {
            self.adopt_version(long.version, keys);
        }
        self.counters.received_early += u64::from(kind == ZERO_RTT);
        self.on_authentic_long(context.path, &long);
        let payload = &packet[header_len..header_len + len];
        let header = Header { space: space_id, packet: kind, pn, dcid: long.dcid, len: packet.len() };
        self.on_packet(context, header, payload, sink)
    }

    /// A packet that could not be opened may be a stateless reset. Source: RFC 9000 §10.3.1.
    #[cold]
    fn on_unopened(&mut self, now: Instant, tail: &[u8; 16]) {
        self.counters.dropped_forged += 1;
        if self.components.is_reset_token(tail) {
            self.on_stateless_reset(now);
        }
    }

    /// Early data waits from now on: for a server whose application is to look at the connection before anything arrives on it.
    /// To be called before the first packet. [`Connection::release_early_data`] ends it.
    pub fn hold_early_data(&mut self) {
        self.handshake.holds_early_data = true;
    }

    /// The application has what it needs to take stream data: early data that waits is lent to `sink`.
    pub fn release_early_data<S: StreamSink>(&mut self, now: Instant, sink: &mut S) {
        self.handshake.holds_early_data = false;
        if self.handshake.has_early() {
            self.replay_early(now, sink);
        }
    }

    /// The handshake goes on with the outcome of a step that [`Connection::take_handshake_work`] has given away; without one, because
    /// no thread took the step, the connection ends. On a connection that has ended meanwhile it does nothing. Stream data that has waited
    /// for it is lent to `sink`.
    pub fn finish_handshake_work<S: StreamSink>(
        &mut self,
        now: Instant,
        outcome: Option<HandshakeOutcome>,
        sink: &mut S,
    ) {
        if self.lifecycle.is_over() {
            return;
        }
        let readable = self.readable();
        let lost = || TransportError::new(Code::INTERNAL_ERROR, "a step of the handshake was not taken");
        match outcome.ok_or_else(lost).and_then(|outcome| self.on_step(now, outcome)) {
            Ok(()) => self.replay_readable(now, readable, sink),
            Err(error) => self.fail(now, error),
        }
    }

    /// Receives what came before its keys did.
    pub(super) fn replay_early<S: StreamSink>(&mut self, now: Instant, sink: &mut S) {
        let path = self.paths.active_id();
        for EarlyPacket { arrived, ecn, mut bytes } in self.handshake.take_early() {
            let context = Context { now, arrived, path, ecn };
            if let Err(error) = self.receive_datagram(context, &mut bytes, sink) {
                self.fail(now, error);
            }
        }
    }
}

fn stateless_reset_token(packet: &[u8]) -> [u8; 16] {
    packet.last_chunk::<TAG_LEN>().copied().unwrap_or_default()
}
