//! The message that arrives on one request stream: head, content, trailers, end. RFC 9114 §4.1.
//!
//! Bytes come in order and are lent; content goes on to the application as the slices in which it came. Only a field
//! section that lies in more than one packet is put together here, as far as it has arrived and within the limit.
//!
//! ```text
//! Head ──HEADERS──▶ Content ──HEADERS──▶ Trailed ──▶ Ended
//!  ▲ └─1xx─┘           └──────────end──────────────────▲
//! ```
//! Any stage may fall to Ended when the stream is given up; whatever comes then is discarded. Any stage may fall to
//! Discarded when the rest of the message does not matter: bytes are counted and not looked at, up to a limit.

use crate::abuse_budgets::AbuseBudgets;
use crate::error::{Code, Violation};
use crate::fields::{self, ExtendedConnect, SectionReader};
use crate::frame::{FrameHeader, HeaderReader, Kind};
use crate::sink::MessageSink;
use crate::trace::Trace;
use base::time::Instant;
use transport::{Fin, Priority, StreamId};
use wire::Side;

/// What a client knows of the request that a message answers. RFC 9110 §6.4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// HEAD: the response has no content, whatever its fields say.
    Head,
    /// CONNECT: a successful response opens a tunnel.
    Connect,
    /// Any other, or the message is itself a request.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Content,
    /// CONNECT: only DATA frames, without end known. RFC 9114 §4.4.
    Tunnel,
    Trailed,
    /// The rest is discarded: [`Frame::Skipped`] says how many bytes more may come.
    Discarded,
    Ended,
}

/// The frame whose payload comes next.
#[derive(Clone, Copy, Debug)]
enum Frame {
    None,
    Data { left: u64 },
    Headers { left: usize },
    Skipped { left: u64 },
}

/// How much content is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Unknown,
    Bytes(u64),
    /// None may come: the response to HEAD, 204, 304.
    Nothing,
}

/// What all messages of a connection share while one of them takes in bytes.
pub(crate) struct Shared<'a, S> {
    /// The side that receives.
    pub(crate) side: Side,
    /// Of every head.
    pub(crate) sections: &'a mut SectionReader,
    pub(crate) max_field_section_size: u64,
    pub(crate) extended_connect: ExtendedConnect,
    pub(crate) abuse_budgets: &'a mut AbuseBudgets,
    /// Bytes of unfinished field sections on all streams, and how many there may be.
    pub(crate) buffered: &'a mut usize,
    pub(crate) max_buffered: usize,
    /// A request asked for a priority other than the default.
    pub(crate) priority: &'a mut Option<Priority>,
    /// On a traced connection only.
    pub(crate) trace: Option<&'a mut Trace>,
    /// The time of the last turn.
    pub(crate) now: Instant,
    pub(crate) sink: &'a mut S,
}

/// The receiving half of an exchange.
#[derive(Debug)]
pub(crate) struct Message {
    frame: Frame,
    header: HeaderReader,
    stage: Stage,
    answers: Answers,
    expected: Expected,
    /// The beginning of a field section; empty, and without memory, nearly always.
    partial: Vec<u8>,
    pace: Pace,
}

/// How fast the peer sends, for the deadlines.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Since when the bytes are counted.
    since: Instant,
    bytes: u64,
    /// The application took less than it was lent: the peer is not to blame.
    paused: bool,
}

/// What the peer must achieve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    pub(crate) head: Option<base::time::Duration>,
    pub(crate) body: Option<base::time::Duration>,
    pub(crate) body_bytes: u64,
}

impl Message {
    /// A message of which nothing has arrived. Its time begins with its first byte: a stream may be open because one after
    /// it is in use.
    pub(crate) fn new(answers: Answers) -> Message {
        Message {
            frame: Frame::None,
            header: HeaderReader::default(),
            stage: Stage::Head,
            answers,
            expected: Expected::Unknown,
            partial: Vec::new(),
            pace: Pace { since: Instant::FAR_FUTURE, bytes: 0, paused: false },
        }
    }

    /// Whether the message is complete or given up.
    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Whether the application knows of the message.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage != Stage::Head
    }

    /// Gives the message up. Returns how many bytes of an unfinished field section it held.
    pub(crate) fn give_up(&mut self) -> usize {
        self.stage = Stage::Ended;
        core::mem::take(&mut self.partial).len()
    }

    /// Nothing more of the message reaches the application. `most` bytes of the stream may still come; the end is awaited.
    /// Returns how many bytes of an unfinished field section it held.
    pub(crate) fn discard(&mut self, most: u64) -> usize {
        self.stage = Stage::Discarded;
        self.frame = Frame::Skipped { left: most };
        core::mem::take(&mut self.partial).len()
    }

    /// Whether the rest does not matter.
    pub(crate) fn is_discarded(&self) -> bool {
        self.stage == Stage::Discarded
    }

    /// Counts bytes that are discarded.
    #[cold]
    fn on_discarded(&mut self, len: usize, fin: Fin) -> Result<usize, Violation> {
        let Frame::Skipped { left } = self.frame else { return Ok(len) };
        let left = left.checked_sub(len as u64).ok_or(Violation::Unwanted)?;
        self.frame = Frame::Skipped { left };
        self.pace.bytes = self.pace.bytes.saturating_add(len as u64);
        if fin == Fin::End {
            self.stage = Stage::Ended;
        }
        Ok(len)
    }

    /// Takes in the next bytes of the stream. Returns how many were taken: fewer than all only when the application did
    /// not take all content.
    #[inline]
    pub(crate) fn on_bytes<S: MessageSink>(
        &mut self,
        id: StreamId,
        bytes: &[u8],
        fin: Fin,
        shared: &mut Shared<'_, S>,
    ) -> Result<usize, Violation> {
        if self.stage == Stage::Discarded {
            return self.on_discarded(bytes.len(), fin);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.stage == Stage::Ended {
                return Ok(bytes.len());
            }
            match self.frame {
                Frame::Data { left } => {
                    let lent = split(rest, left);
                    let taken = shared.sink.on_body(id, lent).min(lent.len());
                    self.pace.bytes = self.pace.bytes.saturating_add(taken as u64);
                    self.pace.paused = taken < lent.len();
                    rest = rest.get(taken..).unwrap_or(&[]);
                    self.frame = match left - taken as u64 {
                        0 => Frame::None,
                        left => Frame::Data { left },
                    };
                    if self.pace.paused {
                        return Ok(bytes.len() - rest.len());
                    }
                }
                Frame::None => {
                    self.pace.since = self.pace.since.min(shared.now);
                    match self.header.read(&mut rest) {
                        Some(header) => self.on_frame(id, header, shared)?,
                        None => break,
                    }
                }
                Frame::Headers { left } => rest = self.on_section_bytes(id, rest, left, shared)?,
                Frame::Skipped { left } => {
                    let skipped = split(rest, left).len();
                    rest = rest.get(skipped..).unwrap_or(&[]);
                    self.frame = match left - skipped as u64 {
                        0 => Frame::None,
                        left => Frame::Skipped { left },
                    };
                }
            }
        }
        if fin == Fin::End && self.stage != Stage::Ended {
            self.on_end(id, shared)?;
        }
        Ok(bytes.len())
    }

    /// A frame begins. Which may begin when: RFC 9114 §4.1, §7.
    fn on_frame<S: MessageSink>(
        &mut self,
        id: StreamId,
        header: FrameHeader,
        shared: &mut Shared<'_, S>,
    ) -> Result<(), Violation> {
        const fn unexpected(reason: &'static str) -> Violation {
            Violation::connection(Code::FRAME_UNEXPECTED, reason)
        }
        if let Some(trace) = shared.trace.as_mut().filter(|_| header.kind() != Kind::Headers) {
            trace.on_frame(id, header);
        }
        match (header.kind(), self.stage) {
            (Kind::Data, Stage::Content | Stage::Tunnel) => self.on_data(header.length, shared),
            //= rfc9114/4.1#1
            (Kind::Data, _) => Err(unexpected("DATA before the head or after the trailers")),
            (Kind::Headers, Stage::Head | Stage::Content) => {
                if self.stage == Stage::Content {
                    self.check_content_complete()?;
                }
                // A decoded section counts 32 bytes a line more than its text, so an encoded one beyond the limit on the
                // decoded size is too large whatever it holds (but for Huffman codes that no encoder would choose).
                let limit = shared.max_field_section_size;
                let left = usize::try_from(header.length).ok().filter(|_| header.length <= limit);
                let left = left.ok_or(Violation::TooLarge)?;
                self.frame = Frame::Headers { left };
                if left == 0 {
                    self.on_section_bytes(id, &[], 0, shared)?;
                }
                Ok(())
            }
            //= rfc9114/4.1#2
            (Kind::Headers, _) => Err(unexpected("HEADERS after the trailers or in a tunnel")),
            //= rfc9114/7.2.5#1
            (Kind::PushPromise, _) if shared.side.is_client() => {
                // RFC 9114 §7.2.5: we never send MAX_PUSH_ID, so every push ID is too large.
                Err(Violation::connection(Code::ID_ERROR, "push without permission"))
            }
            (Kind::PushPromise, _) => Err(unexpected("PUSH_PROMISE from a client")),
            //= rfc9114/7.2.4#2
            (Kind::Control, _) => Err(unexpected("control frame on a request stream")),
            //= rfc9114/7.2.8#1
            (Kind::Http2, _) => Err(unexpected("frame of HTTP/2")),
            //= rfc9114/9#1
            (Kind::Unknown, _) => {
                shared.abuse_budgets.on_idle_work(1)?;
                if header.length > 0 {
                    self.frame = Frame::Skipped { left: header.length };
                }
                Ok(())
            }
        }
    }

    /// RFC 9114 §4.1.2: content is held to content-length as soon as a frame announces more, before the application sees
    /// any of it.
    fn on_data<S>(&mut self, length: u64, shared: &mut Shared<'_, S>) -> Result<(), Violation> {
        if length == 0 {
            return Ok(shared.abuse_budgets.on_idle_work(1)?);
        }
        match self.expected {
            Expected::Unknown => {}
            Expected::Bytes(left) => {
                let left = left.checked_sub(length);
                self.expected =
                    //= rfc9114/4.1.2#2
                    Expected::Bytes(left.ok_or(Violation::malformed("content longer than content-length"))?);
            }
            Expected::Nothing => return Err(Violation::malformed("content in a response that has none")),
        }
        self.frame = Frame::Data { left: length };
        Ok(())
    }

    /// Bytes of a field section: judged in place when it lies in one piece, else put together.
    fn on_section_bytes<'a, S: MessageSink>(
        &mut self,
        id: StreamId,
        bytes: &'a [u8],
        left: usize,
        shared: &mut Shared<'_, S>,
    ) -> Result<&'a [u8], Violation> {
        let (piece, rest) = bytes.split_at_checked(left).unwrap_or((bytes, &[]));
        if piece.len() < left {
            self.partial.extend_from_slice(piece);
            *shared.buffered += piece.len();
            if *shared.buffered > shared.max_buffered {
                // Many requests at once explain it, too: the one that is too much ends, and can be sent again.
                let code = match (shared.side, self.stage) {
                    (Side::Server, Stage::Head) => Code::REQUEST_REJECTED,
                    _ => Code::EXCESSIVE_LOAD,
                };
                return Err(Violation::Stream { code, reason: "too many unfinished field sections" });
            }
            self.frame = Frame::Headers { left: left - piece.len() };
            return Ok(rest);
        }
        self.frame = Frame::None;
        let len = self.partial.len() + piece.len();
        if self.partial.is_empty() {
            shared.sections.decode(piece)?;
        } else {
            *shared.buffered = shared.buffered.saturating_sub(self.partial.len());
            let mut whole = core::mem::take(&mut self.partial);
            whole.extend_from_slice(piece);
            shared.sections.decode(&whole)?;
        }
        if let Some(trace) = &mut shared.trace {
            trace.on_section(id, len, shared.sections.section());
        }
        self.on_section(id, shared)?;
        Ok(rest)
    }

    fn on_section<S: MessageSink>(
        &mut self,
        id: StreamId,
        shared: &mut Shared<'_, S>,
    ) -> Result<(), Violation> {
        match (self.stage, shared.side) {
            (Stage::Head, Side::Server) => {
                self.pace.since = shared.now;
                let head = shared.sections.request(shared.extended_connect).map_err(Violation::malformed)?;
                let connect = head.method() == b"CONNECT";
                self.stage = if connect { Stage::Tunnel } else { Stage::Content };
                self.expected = match head.content_length().filter(|_| !connect) {
                    Some(length) => Expected::Bytes(length),
                    None => Expected::Unknown,
                };
                *shared.priority = head.priority();
                shared.sink.on_request(id, &head);
            }
            (Stage::Head, Side::Client) => {
                let head = shared.sections.response().map_err(Violation::malformed)?;
                //= rfc9114/4.1#3
                if head.is_interim() {
                    shared.abuse_budgets.on_idle_work(1)?;
                } else {
                    (self.stage, self.expected) = self.content_of(&head);
                }
                shared.sink.on_response(id, &head);
            }
            _ => {
                let trailers = shared.sections.trailers().map_err(Violation::malformed)?;
                self.stage = Stage::Trailed;
                self.pace = Pace { since: shared.now, bytes: 0, paused: false };
                shared.sink.on_trailers(id, &trailers);
            }
        }
        Ok(())
    }

    /// What follows the head of a final response. RFC 9110 §6.4.1, §9.3.6.
    fn content_of(&self, head: &fields::ResponseHead<'_>) -> (Stage, Expected) {
        match (self.answers, head.status(), head.content_length()) {
            //= rfc9114/4.4#2
            (Answers::Connect, 200..=299, _) => (Stage::Tunnel, Expected::Unknown),
            //= rfc9114/4.1.2#4
            (Answers::Head, ..) | (_, 204 | 304, _) => (Stage::Content, Expected::Nothing),
            (_, _, Some(length)) => (Stage::Content, Expected::Bytes(length)),
            (_, _, None) => (Stage::Content, Expected::Unknown),
        }
    }

    fn check_content_complete(&self) -> Result<(), Violation> {
        match self.expected {
            //= rfc9114/4.1.2#3
            Expected::Bytes(1..) => Err(Violation::malformed("content shorter than content-length")),
            _ => Ok(()),
        }
    }

    /// The stream ended, with or without a last byte. CVE-2026-33555: an empty end is checked like any other.
    fn on_end<S: MessageSink>(&mut self, id: StreamId, shared: &mut Shared<'_, S>) -> Result<(), Violation> {
        if !matches!(self.frame, Frame::None) || self.header.is_begun() {
            //= rfc9114/7.1#2
            return Err(Violation::connection(Code::FRAME_ERROR, "stream ends within a frame"));
        }
        if self.stage == Stage::Head {
            return Err(match shared.side {
                Side::Server => {
                    //= rfc9114/4.1#4
                    Violation::Stream { code: Code::REQUEST_INCOMPLETE, reason: "stream without a request" }
                }
                Side::Client => Violation::malformed("stream without a final response"),
            });
        }
        self.check_content_complete()?;
        self.stage = Stage::Ended;
        shared.sink.on_end(id);
        Ok(())
    }

    /// Whether the peer is too slow. RFC 9000 §21.6: a head must be whole in time, content must keep coming.
    pub(crate) fn is_overdue(&mut self, now: Instant, deadlines: &Deadlines) -> Option<&'static str> {
        let elapsed = now.saturating_since(self.pace.since);
        match self.stage {
            Stage::Head if deadlines.head.is_some_and(|limit| elapsed >= limit) => {
                Some("the head took too long")
            }
            Stage::Content | Stage::Discarded
                if self.pace.paused || self.pace.bytes >= deadlines.body_bytes =>
            {
                self.pace = Pace { since: now, bytes: 0, ..self.pace };
                None
            }
            Stage::Content | Stage::Discarded if deadlines.body.is_some_and(|limit| elapsed >= limit) => {
                Some("the content came too slowly")
            }
            Stage::Trailed if deadlines.body.is_some_and(|limit| elapsed >= limit) => {
                Some("the end took too long after the trailers")
            }
            _ => None,
        }
    }
}

/// The first `most` bytes, or all.
#[inline]
fn split(bytes: &[u8], most: u64) -> &[u8] {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    bytes.get(..most).unwrap_or(bytes)
}

#[cfg(test)]
mod tests;
