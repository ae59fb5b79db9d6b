//! The requests and responses of one HTTP/3 connection.
//!
//! A request goes from list to list: what waits for its content, what can be answered, what waits for the disk, what is answered.

use super::record::{Record, Unacknowledged};
use crate::body::Body;
use crate::request::{Head, MAX_CONTENT, Method};
use crate::target;
use base::time::Instant;
use http3::{Abort, Code, MessageSink, Refused, RequestHead};
use transport::StreamId;

/// Heads are not counted one by one below so many bytes on one connection.
const HEADS_NOTICED: usize = 64 << 10;
/// Heads that are kept for their memory, per connection.
const SPARE_HEADS: usize = 16;

/// Requests and responses of a connection.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    /// Requests that can be answered.
    pub(super) waiting: Vec<Asked>,
    /// Requests whose content must arrive first.
    pub(super) receiving: Vec<Asked>,
    /// Requests whose file the disk is asked for, or will be.
    pub(super) looking: Vec<Asked>,
    /// Responses whose content the disk is asked for, or will be.
    pub(super) reading: Vec<StreamId>,
    pub(super) replies: Vec<Reply>,
    /// Responses that the peer gave up.
    pub(super) given_up: Vec<Record>,
    /// Responses that were handed over whole, while there is a log.
    pub(super) unacknowledged: Unacknowledged,
    /// Streams that take bytes.
    pub(super) writable: Vec<StreamId>,
    /// Some of them were full.
    pub(super) has_resumed: bool,
    /// Bytes of content of all requests that arrived.
    pub(super) received: u64,
    /// Bytes that heads hold, at least.
    head_bytes: usize,
    /// Boxed, because each head is handed from list to list and is large.
    spare: Spare,
}

/// A request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: StreamId,
    pub(super) head: Box<Head>,
    /// Bytes of its content that arrived.
    pub(super) received: u64,
    /// How far it has come.
    pub(super) stage: Stage,
    /// The turn in which its head arrived, once that is known.
    pub(super) began: Option<Instant>,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Content may follow.
    Open,
    /// Its client was told to go on: RFC 9110 §10.1.1.
    Continued,
    /// All of it has arrived.
    Whole,
}

/// Heads of requests that were answered, empty, kept for their memory.
type Spare = Vec<Box<Head>>;

/// A response on its way.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) record: Record,
    pub(super) body: Body,
}

impl MessageSink for Exchanges {
    fn on_request(&mut self, id: StreamId, request: &RequestHead<'_>) {
        let mut head = self.spare.pop().unwrap_or_default();
        for line in request.lines() {
            head.on_field(line.name, line.value);
        }
        target::judge_scheme(request.scheme(), &mut head);
        self.head_bytes = self.head_bytes.saturating_add(head.memory());
        let asked = Asked { id, head, received: 0, stage: Stage::Open, began: None };
        // The answer to a POST means that its content has arrived. Content changes nothing of what other methods ask for, so their
        // answer does not wait for it.
        if asked.awaits_content() && !asked.head.expects_continue() {
            self.receiving.push(asked);
        } else {
            self.waiting.push(asked);
        }
    }

    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        self.received = self.received.saturating_add(bytes.len() as u64);
        // Nothing that is served here looks at a request's content.
        if let Some(place) = self.receiving.iter().position(|asked| asked.id == id)
            && let Some(asked) = self.receiving.get_mut(place)
        {
            asked.received = asked.received.saturating_add(bytes.len() as u64);
            if asked.received > MAX_CONTENT {
                let asked = self.receiving.swap_remove(place);
                self.waiting.push(asked);
            }
        }
        bytes.len()
    }

    fn on_refused(&mut self, id: StreamId, status: u16) -> Refused {
        let mut head = self.spare.pop().unwrap_or_default();
        head.refuse(status, "");
        self.waiting.push(Asked { id, head, received: 0, stage: Stage::Open, began: None });
        Refused::ByApplication
    }

    fn on_end(&mut self, id: StreamId) {
        // Mostly the last one: a request without content ends with its head.
        let begun = self.looking.iter_mut().chain(&mut self.waiting);
        if let Some(asked) = begun.rev().find(|asked| asked.id == id) {
            asked.stage = Stage::Whole;
            return;
        }
        if let Some(place) = self.receiving.iter().position(|asked| asked.id == id) {
            let asked = Asked { stage: Stage::Whole, ..self.receiving.swap_remove(place) };
            self.waiting.push(asked);
        }
    }

    fn on_abort(&mut self, id: StreamId, _: Abort) {
        self.waiting.retain(|asked| asked.id != id);
        self.receiving.retain(|asked| asked.id != id);
        self.looking.retain(|asked| asked.id != id);
        self.give_up(id);
    }

    fn on_stop_sending(&mut self, id: StreamId, _: Code) {
        self.give_up(id);
    }

    fn on_acknowledged(&mut self, id: StreamId) {
        self.unacknowledged.on_over(id);
    }

    fn on_writable(&mut self, id: StreamId) {
        self.writable.push(id);
        self.has_resumed = true;
    }
}

impl Asked {
    /// Whether the answer waits for content that may still come.
    pub(super) fn awaits_content(&self) -> bool {
        let may_follow = self.stage == Stage::Open && self.head.refusal().is_none();
        may_follow && self.head.method() == Method::Post && !self.head.announces_too_much()
    }
}

impl Exchanges {
    fn give_up(&mut self, id: StreamId) {
        if let Some(place) = self.replies.iter().position(|reply| reply.record.id == id) {
            let reply = self.replies.swap_remove(place);
            self.given_up.push(reply.record);
        } else {
            // What was handed over will not be acknowledged as a whole.
            self.unacknowledged.on_over(id);
        }
    }

    pub(super) fn recycle(&mut self, mut head: Box<Head>) {
        head.recycle();
        if self.spare.len() < SPARE_HEADS {
            self.spare.push(head);
        }
    }

    /// Requests and responses that wait for the disk.
    pub(super) fn waiting_for_disk(&self) -> usize {
        self.looking.len() + self.reading.len()
    }

    /// All that wait for the disk try again, in front of what came later.
    pub(super) fn try_again(&mut self) {
        self.looking.append(&mut self.waiting);
        core::mem::swap(&mut self.looking, &mut self.waiting);
        self.reading.append(&mut self.writable);
        core::mem::swap(&mut self.reading, &mut self.writable);
    }

    /// Bytes that heads hold; counted anew when they may be many.
    pub(super) fn head_bytes(&mut self) -> usize {
        if self.head_bytes > HEADS_NOTICED {
            let asked = [&self.waiting, &self.receiving, &self.looking].into_iter().flatten();
            let begun = self.replies.iter().map(|reply| &reply.record).chain(&self.given_up);
            let answered = begun.chain(self.unacknowledged.iter()).map(|record| &record.head);
            let heads = asked.map(|asked| &asked.head).chain(answered).chain(&self.spare);
            self.head_bytes = heads.map(|head| head.memory()).sum();
        }
        self.head_bytes
    }
}
