//! Two sets of streams that exchange real frames. What would break without these tests: a byte lost, doubled or
//! swapped under some order of losses and acknowledgements; memory or credit that a peer can bend.

mod ahead;
mod behaviour;
mod endings;
mod limits;
mod model;
mod reset_at;

use super::*;
use crate::builder::PacketBuilder;
use crate::event::{Event, Fin, StreamSink};
use crate::sent::SentFrame;
use base::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use wire::Frame;
use wire::writer::Writer;

const RTT: Duration = Duration::from_millis(10);

/// The application of one end: verifies and counts what it is lent.
#[derive(Default)]
struct Reader {
    taken: BTreeMap<StreamId, u64>,
    ended: BTreeSet<StreamId>,
    paused: BTreeSet<StreamId>,
    /// How many bytes are taken of each loan, in turn; empty: all.
    appetite: Vec<usize>,
    loans: usize,
}

/// Byte `offset` of stream `id`, when the tests write it.
fn byte_at(id: StreamId, offset: u64) -> u8 {
    (id.as_u64().wrapping_mul(37) ^ offset ^ (offset >> 8).wrapping_mul(11)) as u8
}

fn bytes_of(id: StreamId, start: u64, len: usize) -> Vec<u8> {
    (start..start + len as u64).map(|offset| byte_at(id, offset)).collect()
}

impl StreamSink for Reader {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        assert!(!self.ended.contains(&id), "data behind the end of {id:?}");
        assert!(!self.paused.contains(&id), "data on {id:?}, which is paused");
        let read = self.taken.entry(id).or_default();
        assert_eq!(bytes, bytes_of(id, *read, bytes.len()), "{id:?} at {read}");
        self.loans += 1;
        let most = if self.appetite.is_empty() {
            usize::MAX
        } else {
            self.appetite[self.loans % self.appetite.len()]
        };
        let taken = bytes.len().min(most);
        *read += taken as u64;
        if taken < bytes.len() {
            self.paused.insert(id);
        } else if fin == Fin::End {
            self.ended.insert(id);
        }
        taken
    }
}

impl Streams {
    /// What receiving has changed, and the credit for sending.
    pub(crate) fn summary(&self) -> String {
        let parts: Vec<_> = self.slots.all().map(|slot| &self.slots[slot]).collect();
        let parts: Vec<_> =
            parts.iter().map(|stream| (stream.id, stream.recv.summary(), &stream.send.credit)).collect();
        format!(
            "{:?} {:?} {} {:?} {} {parts:?}",
            self.window, self.credit, self.received, self.held, self.connection_control
        )
    }
}

/// One end of a connection.
struct End {
    streams: Streams,
    reader: Reader,
    events: Vec<Event>,
    now: Instant,
}

/// What left an end.
#[derive(Clone, Debug)]
struct Sent {
    bytes: Vec<u8>,
    frames: Vec<SentFrame>,
}

impl End {
    fn new(side: Side, config: &StreamConfig) -> End {
        End {
            streams: Streams::new(side, config),
            reader: Reader::default(),
            events: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// The next packet with at most `size` bytes of frames.
    fn packet(&mut self, size: usize) -> Option<Sent> {
        let (mut bytes, mut frames) = (vec![0xff; size], Vec::new());
        let mut builder = PacketBuilder::new(Writer::new(&mut bytes), &mut frames);
        builder.allow_rest();
        self.streams.write_control(&mut builder);
        self.streams.write_data(&mut builder);
        let (len, rest) = (builder.writer.position(), builder.rest());
        bytes.truncate(len);
        if let Some(rest) = rest {
            let place = &mut bytes[len - rest.len..];
            assert!(place.iter().all(|byte| *byte == 0xff), "what sealing reads elsewhere is not copied");
            place.copy_from_slice(self.streams.rest(&rest).expect("the bytes of the rest"));
        }
        (len > 0).then_some(Sent { bytes, frames })
    }

    fn receive(&mut self, frame: &Frame<'_>) -> Result<(), TransportError> {
        let streams = &mut self.streams;
        match frame {
            Frame::Stream(frame) => streams.on_stream(frame, self.now, RTT, &mut self.reader),
            Frame::ResetStream(frame) => streams.on_reset_stream(frame),
            Frame::ResetStreamAt(frame) => streams.on_reset_stream_at(frame),
            Frame::StopSending(frame) => streams.on_stop_sending(frame),
            Frame::MaxData(frame) => streams.on_max_data(frame),
            Frame::MaxStreamData(frame) => streams.on_max_stream_data(frame),
            Frame::MaxStreams(frame) => streams.on_max_streams(frame),
            Frame::DataBlocked(frame) => streams.on_data_blocked(frame),
            Frame::StreamDataBlocked(frame) => streams.on_stream_data_blocked(frame),
            Frame::StreamsBlocked(frame) => streams.on_streams_blocked(frame),
            other => panic!("not a frame of streams: {other:?}"),
        }
    }

    fn receive_packet(&mut self, sent: &Sent) {
        let mut reader = wire::Reader::new(&sent.bytes);
        while !reader.is_empty() {
            let frame = Frame::parse_next(&mut reader).unwrap();
            self.receive(&frame).unwrap_or_else(|error| panic!("{frame:?}: {error}"));
        }
    }

    /// A STREAM frame with the bytes that belong there.
    fn receive_data(
        &mut self,
        id: StreamId,
        range: core::ops::Range<u64>,
        fin: bool,
    ) -> Result<(), TransportError> {
        let data = bytes_of(id, range.start, (range.end - range.start) as usize);
        self.receive(&Frame::Stream(wire::frame::Stream {
            id: id.as_u64(),
            offset: range.start,
            fin,
            data: &data,
        }))
    }

    fn receive_reset(&mut self, id: StreamId, final_size: u64) -> Result<(), TransportError> {
        self.receive(&Frame::ResetStream(wire::frame::ResetStream { id: id.as_u64(), code: 7, final_size }))
    }

    fn write(&mut self, id: StreamId, start: u64, len: usize) {
        self.streams.write(id, bytes_of(id, start, len).into()).unwrap();
    }

    fn take_events(&mut self) -> Vec<Event> {
        let before = self.events.len();
        self.events.extend(core::iter::from_fn(|| self.streams.next_event()));
        self.events[before..].to_vec()
    }

    fn deliver(&mut self, id: StreamId) {
        self.reader.paused.remove(&id);
        self.streams.deliver(id, self.now, RTT, &mut self.reader);
    }
}

/// A client and a server that know each other's limits.
fn pair(config: &StreamConfig) -> [End; 2] {
    let mut ends = [End::new(Side::Client, config), End::new(Side::Server, config)];
    let mut parameters = TransportParameters::default();
    ends[1].streams.fill_parameters(&mut parameters);
    ends[0].streams.on_peer_parameters(&parameters);
    ends[0].streams.fill_parameters(&mut parameters);
    ends[1].streams.on_peer_parameters(&parameters);
    ends
}

/// Everything that `from` wants to say reaches `to` and is acknowledged. Returns how many packets it took.
fn exchange(from: &mut End, to: &mut End, size: usize) -> usize {
    let mut count = 0;
    while let Some(sent) = from.packet(size) {
        to.receive_packet(&sent);
        sent.frames.iter().for_each(|frame| from.streams.on_frame_acked(frame));
        count += 1;
    }
    count
}

/// Both ends talk until neither has anything to say.
fn settle(ends: &mut [End; 2]) {
    let [client, server] = ends;
    while exchange(client, server, 1_000) + exchange(server, client, 1_000) > 0 {}
}

fn client_stream(dir: Dir, index: u64) -> StreamId {
    StreamId::new(Side::Client, dir, index)
}
