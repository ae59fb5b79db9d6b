//! What the tests share: a transport that writes down what it is asked, an application that writes down what it is lent,
//! and frames made by hand.

use crate::error::Code;
use crate::fields::{RequestHead, ResponseHead, Trailers};
use crate::frame;
use crate::quic::QuicConnection;
use crate::sink::{Abort, MessageSink};
use base::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use transport::{Dir, Event, OpenError, Priority, StreamId, StreamSink, WriteError};
use wire::Side;

/// What a stream was told to send.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) bytes: Vec<u8>,
    pub(crate) writes: usize,
    pub(crate) finished: bool,
    pub(crate) reset: Option<Code>,
    pub(crate) stopped: Option<Code>,
    pub(crate) priority: Option<Priority>,
    pub(crate) is_deferred: bool,
}

/// A transport that keeps everything.
#[derive(Debug)]
pub(crate) struct FakeQuic {
    pub(crate) side: Side,
    pub(crate) streams: BTreeMap<StreamId, Sent>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) closed: Option<(Code, String)>,
    /// How many more streams may be opened, by direction.
    pub(crate) credit: [u64; 2],
    opened: [u64; 2],
    /// Of an earlier connection, for early data.
    pub(crate) remembered: Option<Vec<u8>>,
    /// For the next connection.
    pub(crate) kept: Option<Vec<u8>>,
    pub(crate) takes_early_data: bool,
    pub(crate) log: Option<qlog::Trace>,
}

impl FakeQuic {
    pub(crate) fn new(side: Side) -> FakeQuic {
        FakeQuic {
            side,
            streams: BTreeMap::new(),
            events: VecDeque::new(),
            closed: None,
            credit: [1_000_000, 3],
            opened: [0, 0],
            remembered: None,
            kept: None,
            takes_early_data: false,
            log: None,
        }
    }

    pub(crate) fn sent(&mut self, id: StreamId) -> &mut Sent {
        self.streams.entry(id).or_default()
    }

    pub(crate) fn closed_with(&self) -> Option<Code> {
        self.closed.as_ref().map(|(code, _)| *code)
    }
}

impl QuicConnection for FakeQuic {
    fn open(&mut self, dir: Dir) -> Result<StreamId, OpenError> {
        let (credit, opened) = (&mut self.credit[dir.index()], &mut self.opened[dir.index()]);
        *credit = credit.checked_sub(1).ok_or(OpenError::Limit)?;
        let id = StreamId::new(self.side, dir, *opened);
        *opened += 1;
        Ok(id)
    }
    fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), WriteError> {
        let sent = self.sent(id);
        if sent.reset.is_some() {
            return Err(WriteError::Reset);
        }
        assert!(!sent.finished, "write after finish");
        sent.writes += 1;
        sent.bytes.extend_from_slice(&bytes);
        Ok(())
    }
    fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.sent(id).finished = true;
        Ok(())
    }
    fn reset(&mut self, id: StreamId, code: u64) {
        self.sent(id).reset = Some(Code(code));
    }
    fn stop_sending(&mut self, id: StreamId, code: u64) {
        self.sent(id).stopped = Some(Code(code));
    }
    fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.sent(id).priority = Some(priority);
    }
    fn defer(&mut self, id: StreamId) {
        self.sent(id).is_deferred = true;
    }
    fn deliver(&mut self, _now: Instant, _id: StreamId, _sink: &mut impl StreamSink) {}
    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn close(&mut self, _now: Instant, code: u64, reason: &[u8]) {
        assert!(self.closed.is_none(), "closed twice");
        self.closed = Some((Code(code), String::from_utf8_lossy(reason).into_owned()));
    }
    fn remembered(&self) -> Option<Vec<u8>> {
        self.remembered.clone()
    }
    fn remember(&mut self, state: &[u8]) {
        self.kept = Some(state.to_vec());
    }
    fn is_early_data_accepted(&self) -> bool {
        self.takes_early_data
    }
    fn trace(&mut self) -> Option<&mut qlog::Trace> {
        self.log.as_mut()
    }
}

/// What an application heard, one line each, and how much content it takes.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) log: Vec<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) lent: usize,
    pub(crate) takes: usize,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder { log: Vec::new(), body: Vec::new(), lent: 0, takes: usize::MAX }
    }
}

impl Recorder {
    pub(crate) fn take(&mut self) -> Vec<String> {
        core::mem::take(&mut self.log)
    }
}

impl MessageSink for Recorder {
    fn on_request(&mut self, id: StreamId, head: &RequestHead<'_>) {
        let path = head.path().unwrap_or(b"-").escape_ascii();
        self.log.push(format!("{} request {} {path}", id.as_u64(), head.method().escape_ascii()));
    }
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        self.log.push(format!("{} response {}", id.as_u64(), head.status()));
    }
    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        assert!(!bytes.is_empty(), "an empty slice was lent");
        let taken = bytes.len().min(self.takes);
        self.lent += 1;
        self.body.extend_from_slice(&bytes[..taken]);
        if self.log.last().is_none_or(|last| !last.ends_with("body")) && taken > 0 {
            self.log.push(format!("{} body", id.as_u64()));
        }
        taken
    }
    fn on_trailers(&mut self, id: StreamId, trailers: &Trailers<'_>) {
        self.log.push(format!("{} trailers {}", id.as_u64(), trailers.fields().len()));
    }
    fn on_end(&mut self, id: StreamId) {
        self.log.push(format!("{} end", id.as_u64()));
    }
    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        self.log.push(match abort {
            Abort::Peer(code) => format!("{} aborted by peer: {code}", id.as_u64()),
            Abort::Local { code, .. } => format!("{} aborted: {code}", id.as_u64()),
        });
    }
    fn on_stop_sending(&mut self, id: StreamId, code: Code) {
        self.log.push(format!("{} stop: {code}", id.as_u64()));
    }
    fn on_goaway(&mut self) {
        self.log.push("goaway".into());
    }
}

/// A frame of any type.
pub(crate) fn frame(ty: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::append_header(&mut out, ty, payload.len() as u64);
    out.extend_from_slice(payload);
    out
}

/// A HEADERS frame.
pub(crate) fn headers(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    qpack::encode(lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut section);
    frame(frame::ty::HEADERS, &section)
}

/// A DATA frame.
pub(crate) fn data(content: &[u8]) -> Vec<u8> {
    frame(frame::ty::DATA, content)
}

/// A request's head, with more fields.
pub(crate) fn request_head(method: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut lines =
        vec![(":method", method), (":scheme", "https"), (":authority", "a.example"), (":path", "/")];
    lines.extend_from_slice(more);
    headers(&lines)
}

/// All pieces one after the other.
pub(crate) fn concat(pieces: &[&[u8]]) -> Vec<u8> {
    pieces.concat()
}

/// The `index`-th request stream.
pub(crate) fn request_stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bidi, index)
}
