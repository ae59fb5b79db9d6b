//! The receiving part of a stream. Source: RFC 9000 §3.2, §3.5, §4.5.
//!
//! Data at the read offset is lent to the application straight from the packet; the reassembly buffer sees only what
//! comes too early or what the application did not take. `read` is what the application took (or gave up), and the
//! only thing that earns the peer credit; `highest` is what the peer has used of its limits, which never goes back.
//!
//! ```text
//! Recv ── FIN ──> SizeKnown ── all taken ──> DataRead
//!   ├── RESET_STREAM ──┼─────────────────> ResetRecvd
//!   └─ RESET_STREAM_AT ┴─> ResetAt ── all that is reliable taken ──> ResetRecvd
//! ```

use crate::announce::Announce;
use crate::error::TransportError;
use crate::event::{Fin, StreamSink};
use crate::flow::{Step, Window, WindowAtRest};
use crate::reassembly::{BufferedBytes, Reassembly, TooManyPieces};
use crate::stream_id::StreamId;
use wire::error::Code;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecvState {
    /// Only we send on this stream.
    Absent,
    Recv,
    /// RFC 9000 "Size Known" and "Data Recvd".
    SizeKnown {
        final_size: u64,
    },
    /// The same, but the stream ends by a reset as soon as the application has taken the first `reliable_size` bytes.
    ResetAt {
        final_size: u64,
        reliable_size: u64,
    },
    /// The application took everything, or gave up and the final size is known.
    DataRead {
        final_size: u64,
    },
    ResetRecvd {
        final_size: u64,
    },
}

/// Whether the application takes data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Running,
    /// The application left bytes: they wait for `deliver`.
    Paused,
    /// The application gave up: data is discarded.
    Stopped,
}

/// How far the application is.
#[derive(Debug)]
struct ReadState {
    state: RecvState,
    flow: Flow,
    read: u64,
}

impl ReadState {
    fn final_size(&self) -> Option<u64> {
        match self.state {
            RecvState::Absent | RecvState::Recv => None,
            RecvState::SizeKnown { final_size }
            | RecvState::ResetAt { final_size, .. }
            | RecvState::DataRead { final_size }
            | RecvState::ResetRecvd { final_size } => Some(final_size),
        }
    }

    /// Where the stream ends in good order, if it does.
    #[inline]
    fn end(&self) -> Option<u64> {
        match self.state {
            RecvState::SizeKnown { final_size } => Some(final_size),
            _ => None,
        }
    }

    /// Lends the bytes at the read offset. Returns how many were taken.
    #[inline]
    fn lend(&mut self, id: StreamId, bytes: &[u8], sink: &mut impl StreamSink) -> usize {
        let end = self.read + bytes.len() as u64;
        let fin = if self.end() == Some(end) { Fin::End } else { Fin::Open };
        if bytes.is_empty() && fin == Fin::Open {
            return 0;
        }
        let taken = sink.on_stream_data(id, bytes, fin).min(bytes.len());
        self.read += taken as u64;
        if taken < bytes.len() {
            self.flow = Flow::Paused;
        } else if fin == Fin::End {
            self.state = RecvState::DataRead { final_size: end };
        }
        taken
    }
}

/// The receiving part of a stream.
#[derive(Debug)]
pub(super) struct RecvStream {
    reading: ReadState,
    highest: u64,
    pub(super) window: Window,
    pub(super) stop: Announce<u64>,
    buffer: Reassembly,
}

impl RecvStream {
    pub(super) fn new() -> RecvStream {
        RecvStream {
            reading: ReadState { state: RecvState::Absent, flow: Flow::Running, read: 0 },
            highest: 0,
            window: Window::new(0, 0, Step::Quarter),
            stop: Announce::Idle,
            buffer: Reassembly::default(),
        }
    }

    /// Makes it the part of a new stream.
    pub(super) fn open(&mut self, window: Window) {
        self.reading = ReadState { state: RecvState::Recv, flow: Flow::Running, read: 0 };
        self.highest = 0;
        self.window = window;
        self.stop = Announce::Idle;
    }

    /// All that there is to know of a part whose bytes so far the application has taken.
    pub(super) fn at_rest(&self) -> Option<WindowAtRest> {
        let ReadState { state, flow, read } = &self.reading;
        let is_at_rest = *state == RecvState::Recv
            && *flow == Flow::Running
            && *read == self.highest
            && *read == self.window.consumed()
            && self.stop == Announce::Idle
            && self.buffer.is_empty();
        self.window.at_rest().filter(|_| is_at_rest)
    }

    /// Makes it, which is new, the part that was at rest.
    pub(super) fn wake(&mut self, window: WindowAtRest) {
        self.open(window.into());
        self.highest = self.window.consumed();
        self.reading.read = self.highest;
    }

    /// Makes it ready for the next stream.
    pub(super) fn recycle(&mut self) {
        self.reading.state = RecvState::Absent;
        self.window.close();
        self.stop.cancel();
        self.buffer.clear();
    }

    pub(super) fn is_absent(&self) -> bool {
        self.reading.state == RecvState::Absent
    }

    /// Whether nothing is left to do here.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        !matches!(
            self.reading.state,
            RecvState::Recv | RecvState::SizeKnown { .. } | RecvState::ResetAt { .. }
        )
    }

    /// Whether nothing is left to do here, or a reset waits for bytes to be taken.
    #[inline]
    pub(super) fn is_ending(&self) -> bool {
        !matches!(self.reading.state, RecvState::Recv | RecvState::SizeKnown { .. })
    }

    /// Whether the stream was reset but for its first bytes, which are not all taken.
    pub(super) fn is_reset_at(&self) -> bool {
        matches!(self.reading.state, RecvState::ResetAt { .. })
    }

    /// The peer gave up at a final size that was admitted, but for the first bytes.
    pub(super) fn on_reset_at(&mut self, reliable: u64) {
        match self.reading.state {
            //= reliable-stream-reset/6#1
            RecvState::SizeKnown { final_size } => {
                self.reading.state = RecvState::ResetAt { final_size, reliable_size: reliable };
            }
            //= reliable-stream-reset/5.2#4
            RecvState::ResetAt { final_size, reliable_size } => {
                self.reading.state =
                    RecvState::ResetAt { final_size, reliable_size: reliable.min(reliable_size) };
            }
            _ => {}
        }
    }

    /// Whether the application has taken all that a reset has promised it, or wants none of it.
    pub(super) fn is_reset_due(&self) -> bool {
        let RecvState::ResetAt { reliable_size, .. } = self.reading.state else { return false };
        self.reading.read >= reliable_size || self.is_stopped()
    }

    /// Whether the peer may need more credit on this stream.
    #[inline]
    pub(super) fn wants_credit(&self) -> bool {
        self.reading.state == RecvState::Recv && self.reading.flow != Flow::Stopped
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.reading.flow == Flow::Stopped
    }

    /// What the reassembly buffer holds.
    #[inline]
    pub(super) fn held(&self) -> BufferedBytes {
        self.buffer.held()
    }

    /// Checks what a STREAM or RESET_STREAM frame claims: that the stream reaches to `end`, and ends there for
    /// `Fin::End`. Returns by how much the stream grew, which counts against the connection's limit.
    #[inline]
    pub(super) fn admit(&mut self, end: u64, fin: Fin, connection_room: u64) -> Result<u64, TransportError> {
        match self.reading.final_size() {
            // RFC 9000 §4.5: nothing lies beyond the final size, and it never changes.
            //= rfc9000/4.5#1
            Some(size) if end > size || (fin == Fin::End && end < size) => return Err(FINAL_SIZE),
            None if fin == Fin::End && end < self.highest => return Err(FINAL_SIZE),
            _ => {}
        }
        let growth = end.saturating_sub(self.highest);
        // RFC 9000 §4.1, and §4.5 for a final size.
        //= rfc9000/4.1#1
        if growth > 0 && (end > self.window.limit() || growth > connection_room) {
            return Err(TransportError::new(Code::FLOW_CONTROL_ERROR, "data beyond the flow control limit"));
        }
        self.highest += growth;
        if fin == Fin::End && self.reading.state == RecvState::Recv {
            self.reading.state = RecvState::SizeKnown { final_size: end };
            self.window.close();
        }
        Ok(growth)
    }

    /// Whether all of these bytes were taken, or all of the stream. An empty frame may tell the stream's end, which is new.
    #[inline]
    pub(super) fn has_come(&self, offset: u64, end: u64) -> bool {
        self.is_over() || (offset < end && end <= self.reading.read)
    }

    /// Takes in data that was admitted: lends what is in order, keeps what is not. Returns how many bytes are
    /// consumed.
    #[inline]
    pub(super) fn on_data(
        &mut self,
        id: StreamId,
        offset: u64,
        data: &[u8],
        sink: &mut impl StreamSink,
    ) -> Result<u64, TooManyPieces> {
        let read = self.reading.read;
        if self.is_over() {
            return Ok(0);
        }
        match self.reading.flow {
            //= rfc9000/2.2#1
            Flow::Running if offset <= read => {
                let fresh = data.get((read - offset) as usize..).unwrap_or(&[]);
                let taken = self.reading.lend(id, fresh, sink);
                if taken < fresh.len() {
                    self.buffer.insert(self.reading.read, fresh.get(taken..).unwrap_or(&[]))?;
                } else if !self.buffer.is_empty() {
                    self.drain(id, sink);
                }
            }
            Flow::Running | Flow::Paused => {
                let known = usize::try_from(read.saturating_sub(offset)).unwrap_or(usize::MAX);
                if let Some(fresh) = data.get(known..) {
                    self.buffer.insert(offset.max(read), fresh)?;
                }
            }
            Flow::Stopped => self.discard(),
        }
        Ok(self.reading.read - read)
    }

    /// Where the data begins that comes next, if it would be lent and nothing else: nothing waits, and no end is known.
    #[inline]
    pub(super) fn next_in_order(&self) -> Option<u64> {
        let ReadState { state, flow, read } = &self.reading;
        let is_plain = *state == RecvState::Recv && *flow == Flow::Running && *read == self.highest;
        (is_plain && self.buffer.is_empty()).then_some(*read)
    }

    /// Lends data that comes next and is not admitted yet. Returns how many bytes were taken.
    #[inline]
    pub(super) fn lend(&mut self, id: StreamId, data: &[u8], sink: &mut impl StreamSink) -> usize {
        self.reading.lend(id, data, sink)
    }

    /// Admits data that was lent, and taken.
    #[inline]
    pub(super) fn on_lent(&mut self, bytes: u64) {
        self.highest += bytes;
    }

    /// All of its state but the bytes that it holds.
    #[cfg(test)]
    pub(super) fn summary(&self) -> String {
        format!("{:?} {} {:?} {:?}", self.reading, self.highest, self.window, self.held())
    }

    /// Keeps what was lent and not taken.
    pub(super) fn keep(&mut self, rest: &[u8]) -> Result<(), TooManyPieces> {
        self.buffer.insert(self.reading.read, rest)
    }

    /// Lends what the buffer holds in order.
    fn drain(&mut self, id: StreamId, sink: &mut impl StreamSink) {
        while self.reading.flow == Flow::Running {
            let Some(piece) = self.buffer.next_piece(self.reading.read) else { break };
            self.reading.lend(id, piece, sink);
        }
        self.buffer.discard_below(self.reading.read);
    }

    /// The application can take data again. Returns how many bytes it took.
    pub(super) fn deliver(&mut self, id: StreamId, sink: &mut impl StreamSink) -> u64 {
        let read = self.reading.read;
        if self.reading.flow == Flow::Paused && !self.is_over() {
            self.reading.flow = Flow::Running;
            self.drain(id, sink);
        }
        self.reading.read - read
    }

    /// The application wants no more: what is here and what comes is discarded. Returns how many bytes count as
    /// consumed now, for the connection only: nothing is held for them.
    pub(super) fn stop(&mut self, code: u64) -> u64 {
        let read = self.reading.read;
        if self.is_over() || self.is_stopped() {
            return 0;
        }
        //= rfc9000/3.5#2
        if self.reading.state == RecvState::Recv {
            self.stop.request(code);
        }
        self.reading.flow = Flow::Stopped;
        self.window.close();
        self.discard();
        self.reading.read - read
    }

    /// Gives up everything up to the highest offset; once the final size is known that is all there will be.
    fn discard(&mut self) {
        self.buffer.clear();
        self.reading.read = self.highest;
        if let RecvState::SizeKnown { final_size } | RecvState::ResetAt { final_size, .. } =
            self.reading.state
        {
            self.reading.state = RecvState::DataRead { final_size };
            self.stop.cancel();
        }
    }

    /// The peer gave up at a final size that was admitted. Returns how many bytes count as consumed now for the
    /// connection; `None` if the stream was over already, which a repeated reset finds.
    pub(super) fn on_reset(&mut self) -> Option<u64> {
        let (RecvState::SizeKnown { final_size } | RecvState::ResetAt { final_size, .. }) =
            self.reading.state
        else {
            return None;
        };
        let read = core::mem::replace(&mut self.reading.read, final_size);
        self.reading.state = RecvState::ResetRecvd { final_size };
        self.stop.cancel();
        self.window.close();
        self.buffer.clear();
        Some(final_size - read)
    }
}

const FINAL_SIZE: TransportError = TransportError::new(Code::FINAL_SIZE_ERROR, "contradicts the final size");
