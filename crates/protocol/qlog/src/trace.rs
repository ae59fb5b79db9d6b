//! One connection's trace: records gather in a chunk, and full chunks go to the output.
//!
//! A trace either streams, or keeps the last chunks in a ring until something triggers it: an error, a stall, losses. What was
//! dropped, because the ring turned, the output refused, or the file has reached its bound, is counted, and the file says so in a
//! `loglevel:warning` event.
//!
//! Invariants: a chunk holds whole records; the first chunk of an output begins with the header; the bytes given to an output stay
//! within the bound but for a last record that tells of the rest.

mod header;
mod triggers;

pub use triggers::Triggers;

use crate::recovery::MetricsUpdated;
use crate::{Event, Object, Pending, RecoveryMetrics, json};
use base::time::{Duration, Instant};
use core::fmt::Debug;
use std::collections::VecDeque;
use wire::Side;

/// A chunk goes to the output when it has this many bytes.
const CHUNK: usize = 16 << 10;
/// And when it was begun this long ago, so that the file of a quiet connection can be read while it grows.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Room for the record that tells what is missing.
const LAST_WORDS: u64 = 256;

/// Decides for each connection whether it is traced, and where its trace goes.
pub trait Tracer: Debug + Send + Sync {
    /// A connection begins; `None` when it is not to be traced.
    fn begin(&self, beginning: &Beginning<'_>) -> Option<Trace>;
}

/// What is known of a connection when it begins.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// When: times in the trace count from here.
    pub now: Instant,
    /// Which end this is.
    pub side: Side,
    /// The destination connection ID of the client's first Initial packet.
    pub original_dcid: &'a [u8],
    /// Milliseconds since 1970, where they are known.
    pub wall_clock_ms: Option<u64>,
}

impl Beginning<'_> {
    /// `client` or `server`.
    pub fn role(&self) -> &'static str {
        if self.side.is_client() { "client" } else { "server" }
    }
}

/// Where the records of one trace go.
pub trait Output: Send {
    /// Takes a chunk of whole records, without waiting. The first one begins with the header of the file.
    ///
    /// # Errors
    /// There is no room for it: it is dropped.
    fn write(&mut self, chunk: Vec<u8>) -> Result<(), Refused>;

    /// Nothing follows but these records, a kilobyte at most, which are never refused. Not called where nothing was written.
    fn finish(&mut self, last: Vec<u8>);
}

/// An output had no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// What of a connection's events is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Bytes given to the output at most.
    pub max_bytes: u64,
    /// `None`: events go to the output as they happen. Otherwise nothing does before one of these.
    pub when: Option<Triggers>,
    /// Bytes of the last events that are kept meanwhile.
    pub ring_bytes: usize,
}

impl Default for Keep {
    /// 64 MiB a trace, from the beginning; a ring of 256 KiB.
    fn default() -> Keep {
        Keep { max_bytes: 64 << 20, when: None, ring_bytes: 256 << 10 }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// In an error.
    pub is_error: bool,
    /// Packets that it sent.
    pub sent_packets: u64,
    /// Packets that were lost.
    pub lost_packets: u64,
}

/// One connection's trace.
pub struct Trace {
    output: Box<dyn Output>,
    origin: Instant,
    /// What the events of now belong to, if not to the first path.
    tuple: Option<String>,
    /// Empty once the output has taken it.
    header: Vec<u8>,
    chunk: Chunk,
    /// Bytes that the output may still get.
    left: u64,
    /// Events that are in no file.
    dropped: u64,
    /// The last chunks, as long as nothing has triggered the trace.
    ring: Option<Ring>,
}

/// Records that belong together.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    events: u64,
    begun_at: Instant,
    last_at: Instant,
}

impl Chunk {
    fn new(now: Instant) -> Chunk {
        Chunk { bytes: Vec::new(), events: 0, begun_at: now, last_at: now }
    }
}

/// The last chunks of a connection that may turn out to be of interest.
#[derive(Debug)]
struct Ring {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    max_bytes: usize,
    when: Triggers,
}

impl Debug for Trace {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Trace")
            .field("left", &self.left)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// A trace that begins now.
    pub fn new(beginning: &Beginning<'_>, keep: Keep, output: Box<dyn Output>) -> Trace {
        let mut header = Vec::new();
        header::write(beginning, &mut header);
        let ring = keep.when.map(|when| Ring {
            chunks: VecDeque::new(),
            bytes: 0,
            max_bytes: keep.ring_bytes.max(2 * CHUNK),
            when,
        });
        let left = keep.max_bytes.saturating_sub(LAST_WORDS);
        let chunk = Chunk::new(beginning.now);
        Trace { output, origin: beginning.now, tuple: None, header, chunk, left, dropped: 0, ring }
    }

    /// Which of several paths the events that follow belong to: the `id` of its [`TupleAssigned`](crate::TupleAssigned), or `None` for
    /// the first one. Source: draft-ietf-quic-qlog-main-schema, common event fields.
    pub fn set_tuple(&mut self, id: Option<u64>) {
        self.tuple = id.map(|id| id.to_string());
    }

    /// Something happened.
    pub fn record<E: Event>(&mut self, now: Instant, event: &E) {
        self.keep(now, E::NAME, |record| {
            record.object("data", |data| event.write(data));
        });
    }

    /// Memory that its events take, in bytes: the chunk that is being filled, and the ring.
    pub fn held_bytes(&self) -> usize {
        self.chunk.bytes.capacity() + self.ring.as_ref().map_or(0, |ring| ring.bytes)
    }

    /// Records what has happened since the last call, as of now.
    pub fn record_pending(&mut self, now: Instant, pending: &mut Pending) {
        let missed = pending.take(|name, data| {
            self.keep(now, name, |record| {
                record.encoded("data", data);
            });
        });
        self.dropped += missed;
    }

    /// An event, whose data `fill` writes.
    fn keep(&mut self, now: Instant, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) {
        if self.left == 0 && self.ring.is_none() {
            self.dropped += 1;
            return;
        }
        self.write(now, name, fill);
        // A ring holds full chunks only: many small ones would hold more memory than it may.
        let is_old = self.ring.is_none() && now.saturating_since(self.chunk.begun_at) >= LONGEST_WAIT;
        if self.chunk.bytes.len() >= CHUNK || is_old {
            self.turn(now);
        }
    }

    /// Recovery is in another state than it was: tells what differs.
    pub fn record_metrics(&mut self, now: Instant, old: &RecoveryMetrics, new: &RecoveryMetrics) {
        if old != new {
            self.record(now, &MetricsUpdated(old, new));
        }
    }

    /// Probe timeouts passed in a row, this many.
    pub fn on_probe_timeouts(&mut self, now: Instant, count: u32) {
        let is_stall = count >= STALL && self.ring.as_ref().is_some_and(|ring| ring.when.stall);
        if is_stall {
            self.trigger(now);
        }
    }

    /// The connection has ended. Later events may follow.
    pub fn on_ended(&mut self, now: Instant, ended: Ended) {
        let Some(Ring { when, .. }) = &self.ring else { return };
        let lost = ended.lost_packets.saturating_mul(1_000);
        let is_lossy =
            when.loss_per_mille.is_some_and(|limit| lost > ended.sent_packets.saturating_mul(limit.into()));
        if (when.error && ended.is_error) || is_lossy {
            self.trigger(now);
        }
    }

    /// From now on the trace streams; what the ring holds goes first.
    fn trigger(&mut self, now: Instant) {
        let Some(ring) = self.ring.take() else { return };
        let recent = core::mem::replace(&mut self.chunk, Chunk::new(now));
        if self.dropped > 0 {
            self.tell_dropped(now, "were too old when the trace was triggered");
        }
        for chunk in ring.chunks.into_iter().chain([recent]) {
            let before = core::mem::replace(&mut self.chunk, chunk);
            self.chunk.bytes.splice(..0, before.bytes);
            self.hand_over(now);
        }
    }

    /// The chunk is full: to the ring, or to the output.
    fn turn(&mut self, now: Instant) {
        let Some(ring) = &mut self.ring else { return self.hand_over(now) };
        let mut chunk = core::mem::replace(&mut self.chunk, Chunk::new(now));
        chunk.bytes.shrink_to_fit();
        ring.bytes += chunk.bytes.len();
        ring.chunks.push_back(chunk);
        while ring.bytes > ring.max_bytes {
            let Some(oldest) = ring.chunks.pop_front() else { break };
            ring.bytes -= oldest.bytes.len();
            self.dropped += oldest.events;
        }
    }

    fn hand_over(&mut self, now: Instant) {
        let Chunk { bytes, events, .. } = core::mem::replace(&mut self.chunk, Chunk::new(now));
        if bytes.is_empty() {
            return;
        }
        let len = (self.header.len() + bytes.len()) as u64;
        if len > self.left {
            // The first chunk that does not fit is the last: no file has a gap because it was full.
            self.dropped += events;
            self.left = 0;
            return;
        }
        let chunk = if self.header.is_empty() { bytes } else { [self.header.as_slice(), &bytes].concat() };
        if self.output.write(chunk).is_ok() {
            self.left -= len;
            self.header.clear();
        } else {
            self.dropped += events;
            self.tell_dropped(now, "were dropped so far, because the queue to the writer was full");
        }
    }

    /// A record that says how many events are missing.
    fn tell_dropped(&mut self, now: Instant, why: &str) {
        let dropped = self.dropped;
        let message = format!("{dropped} events {why}");
        self.write(now, "loglevel:warning", |record| {
            record.object("data", |data| {
                data.number("code", dropped).text("message", &message);
            });
        });
        // It tells of events, and is none.
        self.chunk.events -= 1;
    }

    fn write(&mut self, now: Instant, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) {
        if self.chunk.bytes.is_empty() {
            self.chunk.bytes.reserve(CHUNK + CHUNK / 4);
            self.chunk.begun_at = now;
        }
        self.chunk.last_at = now;
        self.chunk.events += 1;
        let time = now.saturating_since(self.origin);
        record(&mut self.chunk.bytes, |event| {
            event.milliseconds("time", time).text("name", name);
            if let Some(tuple) = &self.tuple {
                event.text("tuple", tuple);
            }
            fill(event);
        });
    }
}

impl Drop for Trace {
    /// What was recorded goes to the output. An untriggered trace leaves nothing.
    fn drop(&mut self) {
        if self.ring.is_some() {
            return;
        }
        let now = self.chunk.last_at;
        self.hand_over(now);
        self.chunk = Chunk::new(now);
        if self.dropped > 0 {
            self.tell_dropped(now, "are not in this file");
        }
        let mut last = core::mem::take(&mut self.chunk.bytes);
        if !last.is_empty() {
            last.splice(..0, self.header.drain(..));
        }
        self.output.finish(last);
    }
}

/// A record of a JSON text sequence: record separator, text, line feed. Source: RFC 7464 §2.2.
fn record(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    out.push(json::RECORD_SEPARATOR);
    json::object(out, fill);
    out.push(b'\n');
}

/// Probe timeouts in a row that count as a stall.
const STALL: u32 = 3;
