//! The streams of a connection: their data, their limits, and who sends next. Source: RFC 9000 §2 to §4, RFC 9218.
//!
//! One stream is `stream.rs` (its parts `send.rs` and `recv.rs`, its bytes `buffer.rs`); the set is here. Frames come
//! in through `incoming.rs`, packets go out through `outgoing.rs`, their fate comes back through `fate.rs`, and the
//! application speaks through `api.rs`; streams at rest are kept small by `resting.rs`, early data that was rejected begins anew in `rewind.rs`. Which streams may exist is in `ids.rs`, where they live in `slots.rs`,
//! whose turn it is in `queue.rs`.
//!
//! Invariants: a stream is in `resend` exactly when it has lost data or a bare FIN to send, and in `fresh` exactly
//! when it has new data and stream credit for it, so that "is there anything to send" is two loads; `unsent`,
//! `retained` and `held` are the sums over all streams; a stream's place is free as soon as both its parts are over
//! and the application has taken its events, and only then does the peer get its MAX_STREAMS credit back. What we owe
//! the peer is state of a stream, never a queue of frames.

mod api;
mod buffer;
mod config;
mod credit;
mod fate;
mod id_table;
mod ids;
mod incoming;
mod incoming_run;
mod outgoing;
mod outgoing_run;
mod queue;
mod recv;
mod resting;
mod rewind;
mod send;
mod send_allowance;
mod slots;
mod stream;

#[cfg(test)]
mod tests;

pub use config::{OpenError, Priority, ResetAtError, StreamConfig, WriteError};
pub(crate) use incoming_run::{Intake, Lent};
pub(crate) use outgoing_run::Run;

use crate::error::TransportError;
use crate::flow::{Step, Window};
use crate::reassembly::BufferedBytes;
use crate::stream_id::{Dir, StreamId};
use credit::ConnectionCredit;
use ids::{Admission, LocalStreams, PeerStreams};
use queue::SendQueue;
use send::SendState;
use send_allowance::SendAllowance;
use slots::{Slot, Slots};
use std::collections::VecDeque;
use stream::{Notices, Writer};
use wire::Side;
use wire::error::Code;
use wire::transport_parameters::TransportParameters;

/// Pieces that all reassembly buffers of a connection may hold whatever their bytes.
const MAX_CONNECTION_PIECES: usize = 8 * 1_024;

/// The part of a stream that a frame is about, as we see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Send,
    Recv,
}

/// The peer's first limits for our sending parts.
#[derive(Clone, Copy, Debug, Default)]
struct PeerLimits {
    our_bidi: u64,
    their_bidi: u64,
    our_uni: u64,
}

/// What of the configuration counts for streams to come and for those that are written to, in bytes. See [`StreamConfig`].
#[derive(Clone, Copy, Debug)]
struct StreamLimits {
    initial_window: u64,
    max_window: u64,
    send_buffer: u64,
    connection_send_buffer: u64,
}

impl StreamLimits {
    fn of(config: &StreamConfig) -> StreamLimits {
        StreamLimits {
            initial_window: config.initial_stream_window,
            max_window: config.max_stream_window,
            send_buffer: config.send_buffer,
            connection_send_buffer: config.connection_send_buffer,
        }
    }
}

/// All streams of a connection.
pub(crate) struct Streams {
    side: Side,
    limits: StreamLimits,
    slots: Slots,
    local: [LocalStreams; 2],
    peer: [PeerStreams; 2],
    peer_limits: PeerLimits,
    /// What the peer allows us to send on all streams.
    credit: ConnectionCredit,
    /// What we allow the peer to send on all streams.
    window: Window,
    /// The sum of the highest offsets of all receiving parts, past ones included.
    received: u64,
    /// Frames of the peer whose data had come before. Wraps.
    repeated: u32,
    held: BufferedBytes,
    resend: SendQueue,
    fresh: SendQueue,
    /// Places with control frames to send. A place may have lost its reason since.
    control: VecDeque<Slot>,
    /// A control frame of the connection may be pending.
    connection_control: bool,
    /// Places with events for the application.
    events: VecDeque<Slot>,
    unsent: u64,
    retained: u64,
    /// Bytes of bidirectional streams in acknowledged frames.
    delivered: u64,
    /// Acknowledged ranges that streams have heard of.
    #[cfg(test)]
    pub(crate) acked_ranges: u64,
    /// Packets that were written in runs.
    #[cfg(test)]
    pub(crate) in_runs: u64,
    /// Frames that came in runs.
    #[cfg(test)]
    pub(crate) received_in_runs: u64,
    send_allowance: SendAllowance,
    /// Some streams of ours wait for the peer's permission (rewind.rs).
    has_withheld: bool,
}

impl Streams {
    pub(crate) fn new(side: Side, config: &StreamConfig) -> Streams {
        let window =
            Window::new(config.initial_connection_window, config.max_connection_window, Step::Quarter);
        Streams {
            side,
            slots: Slots::new(),
            local: Default::default(),
            peer: [PeerStreams::new(config.max_bidi_streams), PeerStreams::new(config.max_uni_streams)],
            peer_limits: PeerLimits::default(),
            credit: ConnectionCredit::default(),
            window,
            received: 0,
            repeated: 0,
            held: BufferedBytes::default(),
            resend: SendQueue::new(),
            fresh: SendQueue::new(),
            control: VecDeque::new(),
            connection_control: false,
            events: VecDeque::new(),
            unsent: 0,
            retained: 0,
            delivered: 0,
            #[cfg(test)]
            acked_ranges: 0,
            #[cfg(test)]
            in_runs: 0,
            #[cfg(test)]
            received_in_runs: 0,
            send_allowance: SendAllowance::new(config),
            has_withheld: false,
            limits: StreamLimits::of(config),
        }
    }

    /// Announces our first limits. To be called before anything was received.
    pub(crate) fn fill_parameters(&self, parameters: &mut TransportParameters) {
        let stream_window = self.limits.initial_window.min(wire::varint::MAX);
        parameters.initial_max_data = self.window.limit();
        parameters.initial_max_stream_data_bidi_local = stream_window;
        parameters.initial_max_stream_data_bidi_remote = stream_window;
        parameters.initial_max_stream_data_uni = stream_window;
        parameters.initial_max_streams_bidi = self.peer[Dir::Bidi.index()].window.limit();
        parameters.initial_max_streams_uni = self.peer[Dir::Uni.index()].window.limit();
    }

    /// The peer's first limits are known. Source: RFC 9000 §18.2; the names there are seen from the peer's side.
    pub(crate) fn on_peer_parameters(&mut self, parameters: &TransportParameters) {
        self.peer_limits = PeerLimits {
            our_bidi: parameters.initial_max_stream_data_bidi_remote,
            their_bidi: parameters.initial_max_stream_data_bidi_local,
            our_uni: parameters.initial_max_stream_data_uni,
        };
        self.credit.whole.on_limit(parameters.initial_max_data);
        self.local[Dir::Bidi.index()].on_limit(parameters.initial_max_streams_bidi);
        self.local[Dir::Uni.index()].on_limit(parameters.initial_max_streams_uni);
        self.release_withheld();
        // Streams that were opened on remembered limits, for early data.
        for slot in self.slots.all() {
            let id = self.slots[slot].id;
            if !self.slots[slot].send.is_over() && !self.slots[slot].send.is_withheld() {
                let limit = self.send_limit(id);
                self.slots[slot].send.credit.on_limit(limit);
                self.refresh(slot);
                self.check_writer(slot);
            }
        }
    }

    /// The peer's first limit for our sending part.
    fn send_limit(&self, id: StreamId) -> u64 {
        match (id.initiator() == self.side, id.dir()) {
            (true, Dir::Bidi) => self.peer_limits.our_bidi,
            (false, Dir::Bidi) => self.peer_limits.their_bidi,
            (_, Dir::Uni) => self.peer_limits.our_uni,
        }
    }

    /// Makes stream `id`, which must be new.
    fn create(&mut self, id: StreamId) -> Slot {
        let local = id.initiator() == self.side;
        let limit = self.send_limit(id);
        let slot = self.slots.insert(id);
        self.local[id.dir().index()].open += usize::from(local);
        let stream = &mut self.slots[slot];
        if local || id.dir() == Dir::Bidi {
            stream.send.open(limit);
            self.send_allowance.on_opened(id.dir());
        }
        if !local || id.dir() == Dir::Bidi {
            let StreamLimits { initial_window, max_window, .. } = self.limits;
            stream.recv.open(Window::new(initial_window, max_window, Step::Quarter));
        }
        slot
    }

    /// The one check that every frame naming a stream goes through. `None`: the stream is over and the frame came
    /// late.
    #[inline]
    fn check_stream_id(&mut self, id: u64, part: Part) -> Result<Option<Slot>, TransportError> {
        let Some(slot) = self.slots.find(id) else { return self.admit_stream(StreamId::from_u64(id), part) };
        let stream = &self.slots[slot];
        let absent = match part {
            Part::Send => stream.send.is_absent(),
            Part::Recv => stream.recv.is_absent(),
        };
        if absent { Err(WRONG_DIRECTION) } else { Ok(Some(slot)) }
    }

    fn admit_stream(&mut self, id: StreamId, part: Part) -> Result<Option<Slot>, TransportError> {
        let local = id.initiator() == self.side;
        //= rfc9000/19.4#1
        if id.dir() == Dir::Uni && local == (part == Part::Recv) {
            // RFC 9000 §19.4, §19.5, §19.8, §19.10, §19.13: a part that the stream does not have.
            return Err(WRONG_DIRECTION);
        }
        if local {
            return if self.local[id.dir().index()].was_opened(id.index()) {
                Ok(None)
            } else {
                // RFC 9000 §19.5, §19.8, §19.10: a stream of ours that we have not opened.
                //= rfc9000/19.5#1
                Err(TransportError::new(Code::STREAM_STATE_ERROR, "stream not opened yet"))
            };
        }
        match self.peer[id.dir().index()].admit(id.index()) {
            Admission::New => Ok(Some(self.create(id))),
            Admission::Over => Ok(None),
            // RFC 9000 §4.6.
            Admission::Refused => {
                //= rfc9000/4.6#1
                Err(TransportError::new(Code::STREAM_LIMIT_ERROR, "stream above the limit"))
            }
        }
    }

    /// Puts a stream where its send state belongs, and says who is blocked.
    fn refresh(&mut self, slot: Slot) {
        let stream = &mut self.slots[slot];
        if stream.send.wants_resend() {
            self.resend.push(slot, stream.id, stream.priority);
        } else {
            self.resend.remove(slot);
        }
        let wants_send = stream.send.wants_send();
        if wants_send && stream.send.credit.available() > 0 {
            self.fresh.push(slot, stream.id, stream.priority);
            if !self.has_fresh_credit() {
                self.note_connection_blocked();
            }
        } else {
            self.fresh.remove(slot);
            if (wants_send || stream.writer == Writer::Waiting) && stream.send.credit.note_blocked() {
                self.want_control(slot);
            }
        }
    }

    /// Tells the peer if its limit on the connection keeps data back.
    #[inline]
    fn note_connection_blocked(&mut self) {
        if !self.fresh.is_empty() && !self.has_fresh_credit() {
            self.connection_control |= self.credit.note_blocked(self.fresh.rank());
        } else if self.fresh.is_empty() && self.send_allowance.lacks_credit() {
            // Nothing was written for want of it.
            self.connection_control |= self.credit.note_blocked(u32::from(Priority::default().rank()));
        }
    }

    /// Whether the stream in front of those with new data may use any of the peer's limit on the connection.
    #[inline]
    fn has_fresh_credit(&self) -> bool {
        self.credit.permits(self.fresh.rank())
    }

    /// The stream has a control frame to send.
    fn want_control(&mut self, slot: Slot) {
        if !core::mem::replace(&mut self.slots[slot].in_control, true) {
            self.control.push_back(slot);
        }
    }

    /// The application must hear of something.
    fn notify(&mut self, slot: Slot, notice: Notices) {
        let stream = &mut self.slots[slot];
        stream.notices.add(notice);
        if !core::mem::replace(&mut stream.in_events, true) {
            self.events.push_back(slot);
        }
    }

    /// Gives up sending on the stream. Returns whether there was something to give up.
    fn reset_slot(&mut self, slot: Slot, code: u64) -> bool {
        let stream = &mut self.slots[slot];
        if stream.send.state == SendState::Open {
            self.send_allowance.on_finished(stream.id.dir());
        }
        // An application's code that no frame can carry is cut rather than left to break the packet.
        let Some(dropped) = stream.send.reset(code.min(wire::varint::MAX)) else { return false };
        stream.notices.remove(Notices::WRITABLE);
        self.send_allowance.on_unsent(stream.priority, dropped.unsent, 0);
        self.unsent -= dropped.unsent;
        self.end_waiting(slot);
        self.refresh(slot);
        self.want_control(slot);
        self.on_released(dropped.retained);
        true
    }

    /// Gives up sending on the stream but for the first `reliable_size` bytes.
    fn reset_slot_at(&mut self, slot: Slot, code: u64, reliable_size: u64) {
        let stream = &mut self.slots[slot];
        let was_open = stream.send.state == SendState::Open;
        let before = stream.send.unsent();
        let Some(dropped) = stream.send.reset_at(code.min(wire::varint::MAX), reliable_size) else { return };
        if was_open {
            self.send_allowance.on_finished(stream.id.dir());
        }
        stream.notices.remove(Notices::WRITABLE);
        self.send_allowance.on_unsent(stream.priority, before, before - dropped.unsent);
        self.unsent -= dropped.unsent;
        self.end_waiting(slot);
        self.refresh(slot);
        self.want_control(slot);
        self.on_released(dropped.retained);
    }

    /// Frees the stream's place if it is over.
    fn retire(&mut self, slot: Slot) {
        if !self.slots[slot].is_over() {
            return;
        }
        let id = self.slots[slot].id;
        self.resend.remove(slot);
        self.fresh.remove(slot);
        self.slots.remove(slot);
        if id.initiator() == self.side {
            self.local[id.dir().index()].open -= 1;
        } else {
            self.connection_control |= self.peer[id.dir().index()].on_over();
        }
    }

    /// Gives back what only streams and bytes to come need.
    pub(crate) fn release_memory(&mut self) {
        self.slots.release_memory();
        self.resend.release_memory();
        self.fresh.release_memory();
        self.send_allowance.release_memory();
        self.control.shrink_to_fit();
        self.events.shrink_to_fit();
    }

    /// Whether a bidirectional stream of ours is not over: the peer has been asked something.
    #[inline]
    pub(crate) fn awaits_answers(&self) -> bool {
        self.local[Dir::Bidi.index()].open > 0
    }

    /// The sum of the highest offsets of all receiving parts, past ones included, in bytes.
    #[inline]
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Frames of the peer whose data had come before: it does not know that. Wraps.
    #[inline]
    pub(crate) fn repeated(&self) -> u32 {
        self.repeated
    }

    /// Whether a bidirectional stream has begun to arrive and has not come to its end. Looks at all streams.
    pub(crate) fn awaits_rest(&self) -> bool {
        self.slots
            .all()
            .map(|slot| &self.slots[slot])
            .any(|stream| stream.id.dir() == Dir::Bidi && !stream.recv.is_over())
    }
}

const WRONG_DIRECTION: TransportError =
    TransportError::new(Code::STREAM_STATE_ERROR, "the stream does not go in that direction");

/// Our limit on scattered data is not flow control, so no code fits better than this one.
const TOO_SCATTERED: TransportError =
    TransportError::new(Code::INTERNAL_ERROR, "stream data in too many small pieces");
