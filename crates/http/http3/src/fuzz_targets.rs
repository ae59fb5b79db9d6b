//! One function per fuzz target: any bytes in, an assertion fails if the crate breaks a promise. Not part of the API.
//!
//! The fuzzer (`fuzz/`) and the ordinary test run, which replays `fuzz/corpus/` and changes it, call the same functions.

use crate::config::Config;
use crate::connection::Connection;
use crate::error::Code;
use crate::fields::{RequestHead, ResponseHead, Trailers};
use crate::outgoing::BodyLength;
use crate::quic::QuicConnection;
use crate::sink::{Abort, MessageSink};
use base::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use transport::{Dir, Event, Fin, OpenError, Priority, StreamId, StreamSink, WriteError};
use wire::Side;

/// A fuzz target: its name, which is also that of its corpus folder, and its harness.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[("http3_connection", connection)];

/// A whole connection of either side. The first byte is the side; then come steps of three bytes each: what happens (stream
/// data, with or without its end, a reset, a STOP_SENDING), on which stream, and the length of the data that follows.
///
/// Run twice, with the data as it is and byte by byte, it must end the same; the application is told things in order; and
/// what is kept has a bound.
pub fn connection(bytes: &[u8]) {
    let Some((&first, script)) = bytes.split_first() else { return };
    let side = if first & 1 == 0 { Side::Server } else { Side::Client };
    let whole = run(side, script, usize::MAX);
    let pieces = run(side, script, 1);
    assert_eq!(whole, pieces);
}

/// What is left to see of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    streams: BTreeMap<StreamId, StreamLog>,
    closed: Option<Code>,
    asked: Vec<(StreamId, &'static str, u64)>,
    exchanges: usize,
}

fn run(side: Side, script: &[u8], most: usize) -> Outcome {
    let mut connection = Connection::new(side, Arc::new(Config::server()), Instant::ZERO);
    let mut quic = Script::default();
    let mut sink = RecordingSink::default();
    if side.is_client() {
        let head = http::Request::get("https://a.example/").body(()).map(|request| request.into_parts().0);
        for _ in 0..4 {
            let _ = head.as_ref().map(|head| connection.request(&mut quic, head, BodyLength::Empty));
        }
    }
    // What the transport sees to: nothing on a stream after its end, or after its reset.
    let mut ended = BTreeMap::new();
    let mut rest = script;
    while let Some((&[what, which, len], after)) = rest.split_first_chunk::<3>() {
        let (data, after) = after.split_at_checked(usize::from(len)).unwrap_or((after, &[]));
        rest = after;
        let dir = if which & 1 == 0 { Dir::Bidi } else { Dir::Uni };
        let initiator = if dir == Dir::Bidi { Side::Client } else { side.other() };
        // A client has opened four streams.
        let most_streams = if side.is_client() && dir == Dir::Bidi { 3 } else { 31 };
        let id = StreamId::new(initiator, dir, u64::from(which >> 1 & most_streams));
        let code = u64::from(len);
        match what % 8 {
            6 if side.is_server() || dir == Dir::Bidi => {
                quic.events.push_back(Event::StopSending { id, code });
            }
            _ if ended.contains_key(&id) => {}
            7 => {
                ended.insert(id, ());
                quic.events.push_back(Event::StreamReset { id, code });
            }
            fin @ (0..=5) => {
                let fin = if fin > 3 { Fin::End } else { Fin::Open };
                lend(&mut connection, &mut sink, id, (data, fin), most);
                if fin == Fin::End {
                    ended.insert(id, ());
                }
            }
            _ => {}
        }
        connection.on_turn(&mut quic, &mut sink, Instant::ZERO);
        assert!(connection.open_exchanges() <= 32);
    }
    // A stream of unknown type is asked to stop, unless it has ended by then.
    quic.asked.retain(|(id, what, _)| id.dir() == Dir::Bidi || *what != "stop sending");
    Outcome {
        streams: sink.streams,
        closed: quic.closed,
        asked: quic.asked,
        exchanges: connection.open_exchanges(),
    }
}

fn lend(
    connection: &mut Connection,
    sink: &mut RecordingSink,
    id: StreamId,
    (data, fin): (&[u8], Fin),
    most: usize,
) {
    let mut rest = data;
    loop {
        let (piece, after) = rest.split_at_checked(most).unwrap_or((rest, &[]));
        let fin = if after.is_empty() { fin } else { Fin::Open };
        let taken = connection.on_stream_data(sink, id, piece, fin);
        assert_eq!(taken, piece.len(), "the application took everything");
        rest = after;
        if rest.is_empty() {
            return;
        }
    }
}

/// What the application heard of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct StreamLog {
    heads: Vec<Vec<u8>>,
    body: Vec<u8>,
    trailers: usize,
    ended: bool,
    aborted: Option<Abort>,
}

#[derive(Default)]
struct RecordingSink {
    streams: BTreeMap<StreamId, StreamLog>,
}

impl RecordingSink {
    /// The stream, on which nothing may come any more once it is over.
    fn heard(&mut self, id: StreamId) -> &mut StreamLog {
        let heard = self.streams.entry(id).or_default();
        assert!(!heard.ended && heard.aborted.is_none(), "{id:?} is over");
        heard
    }
}

impl MessageSink for RecordingSink {
    fn on_request(&mut self, id: StreamId, head: &RequestHead<'_>) {
        let _ = head.to_request();
        let heard = self.heard(id);
        assert!(heard.heads.is_empty(), "two requests on a stream");
        heard.heads.push(head.method().to_vec());
    }
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        let _ = head.to_response();
        let heard = self.heard(id);
        assert!(heard.heads.last().is_none_or(|last| last.first() == Some(&1)), "a head after a final one");
        heard.heads.push(vec![(head.status() / 100) as u8]);
    }
    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let heard = self.heard(id);
        assert!(!heard.heads.is_empty() && heard.trailers == 0 && !bytes.is_empty(), "content out of order");
        heard.body.extend_from_slice(bytes);
        bytes.len()
    }
    fn on_trailers(&mut self, id: StreamId, trailers: &Trailers<'_>) {
        let _ = trailers.to_headers();
        let heard = self.heard(id);
        assert!(!heard.heads.is_empty() && heard.trailers == 0, "trailers out of order");
        heard.trailers = 1 + trailers.fields().len();
    }
    fn on_end(&mut self, id: StreamId) {
        let heard = self.heard(id);
        assert!(!heard.heads.is_empty(), "an end without a head");
        heard.ended = true;
    }
    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        self.heard(id).aborted = Some(abort);
    }
}

/// A transport that plays a script's events and notes what it is asked.
#[derive(Default)]
struct Script {
    events: VecDeque<Event>,
    asked: Vec<(StreamId, &'static str, u64)>,
    closed: Option<Code>,
    opened: [u64; 2],
}

impl QuicConnection for Script {
    fn open(&mut self, dir: Dir) -> Result<StreamId, OpenError> {
        let opened = self.opened.get_mut(dir.index()).ok_or(OpenError::Limit)?;
        *opened += 1;
        // Whose they are matters for none of ours that a script can name.
        let initiator = if dir == Dir::Bidi { Side::Client } else { Side::Server };
        Ok(StreamId::new(initiator, dir, *opened - 1))
    }
    fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), WriteError> {
        self.asked.push((id, "write", bytes.len() as u64));
        Ok(())
    }
    fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.asked.push((id, "finish", 0));
        Ok(())
    }
    fn reset(&mut self, id: StreamId, code: u64) {
        self.asked.push((id, "reset", code));
    }
    fn stop_sending(&mut self, id: StreamId, code: u64) {
        self.asked.push((id, "stop sending", code));
    }
    fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.asked.push((id, "priority", u64::from(priority.urgency)));
    }
    fn defer(&mut self, id: StreamId) {
        self.asked.push((id, "defer", 0));
    }
    fn deliver(&mut self, _: Instant, _: StreamId, _: &mut impl StreamSink) {}
    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn remembered(&self) -> Option<Vec<u8>> {
        None
    }
    fn remember(&mut self, _: &[u8]) {}
    fn is_early_data_accepted(&self) -> bool {
        false
    }
    fn close(&mut self, _: Instant, code: u64, _: &[u8]) {
        assert!(self.closed.is_none(), "closed twice");
        self.closed = Some(Code(code));
    }
}
