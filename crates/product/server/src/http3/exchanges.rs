//! The requests and responses of one HTTP/3 connection.
//!
//! A request goes from list to list: what waits for its content, what can be answered, what the handler has put back, what is
//! answered. Content goes to the request's [`Upload`], which moves with the request and stays on after the response has begun
//! for as long as the handler wants content.

use super::record::{Record, Unacknowledged};
use crate::caught::caught;
use crate::early_data::{self, EarlyData};
use crate::low::{Handler, Head as _, Received, Upload as _};
use base::time::Instant;
use http3::{Abort, Code, MessageSink, Refused, RequestHead, Trailers};
use transport::StreamId;

/// Heads are not counted one by one below this many bytes on one connection.
const HEADS_NOTICED: usize = 64 << 10;
/// Heads that are kept for their memory, per connection.
const SPARE_HEADS: usize = 16;

/// Requests and responses of a connection.
pub(super) struct Exchanges<H: Handler> {
    /// Requests that can be answered.
    pub(super) waiting: Vec<RequestState<H>>,
    /// Requests whose content must arrive first.
    pub(super) receiving: Vec<RequestState<H>>,
    /// Requests that the handler has put back until it is woken.
    pub(super) looking: Vec<RequestState<H>>,
    /// Responses whose content is not there yet.
    pub(super) reading: Vec<StreamId>,
    pub(super) replies: Vec<Reply<H>>,
    /// What takes the content of requests whose response has begun.
    pub(super) uploads: Vec<(StreamId, H::Upload)>,
    /// Requests whose content pauses.
    pub(super) paused: Vec<StreamId>,
    /// Responses that the peer gave up.
    pub(super) given_up: Vec<Record<H>>,
    /// Responses that were handed over whole, while there is a log.
    pub(super) unacknowledged: Unacknowledged<H>,
    /// Requests whose head or content made the handler panic.
    pub(super) panicked: Vec<StreamId>,
    /// Streams that take bytes.
    pub(super) writable: Vec<StreamId>,
    /// Some of them were full.
    pub(super) has_resumed: bool,
    /// Requests with methods that are not safe are to be told apart.
    pub(super) judges_methods: bool,
    /// Bytes of content of all requests that arrived.
    pub(super) received: u64,
    /// Bytes that heads hold, at least.
    head_bytes: usize,
    /// Boxed, because each head is handed from list to list and is large.
    spare: Spare<H>,
}

impl<H: Handler> Exchanges<H> {
    /// None.
    pub(super) const EMPTY: Exchanges<H> = Exchanges {
        waiting: Vec::new(),
        receiving: Vec::new(),
        looking: Vec::new(),
        reading: Vec::new(),
        replies: Vec::new(),
        uploads: Vec::new(),
        paused: Vec::new(),
        given_up: Vec::new(),
        unacknowledged: Unacknowledged::NONE,
        panicked: Vec::new(),
        writable: Vec::new(),
        has_resumed: false,
        judges_methods: false,
        received: 0,
        head_bytes: 0,
        spare: Vec::new(),
    };
}

/// A request.
pub(super) struct RequestState<H: Handler> {
    pub(super) id: StreamId,
    pub(super) head: Box<H::Head>,
    /// Takes its content.
    pub(super) upload: H::Upload,
    /// How far it has come.
    pub(super) stage: Stage,
    /// The turn in which its head arrived, once that is known.
    pub(super) began: Option<Instant>,
    /// It must not be carried out twice, and came while that was asked.
    pub(super) is_unsafe: bool,
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

impl Stage {
    pub(super) fn received(self) -> Received {
        if self == Stage::Whole { Received::Whole } else { Received::Open }
    }
}

/// Heads of requests that were answered, empty, kept for their memory.
type Spare<H> = Vec<Box<<H as Handler>::Head>>;

/// A response whose head was sent.
pub(super) struct Begun<H: Handler> {
    pub(super) status: u16,
    /// The content that is to follow; `None`: nothing is.
    pub(super) body: Option<H::Content>,
    /// Bytes of content that were sent with the head.
    pub(super) sent: u64,
}

/// A response on its way.
pub(super) struct Reply<H: Handler> {
    pub(super) record: Record<H>,
    /// `None`: complete with its head.
    pub(super) body: Option<H::Content>,
}

impl<H: Handler> MessageSink for Exchanges<H> {
    fn on_request(&mut self, id: StreamId, request: &RequestHead<'_>) {
        let Some(head) = self.take_head(id, |head| head.on_request(request)) else { return };
        self.head_bytes = self.head_bytes.saturating_add(head.memory());
        let (upload, stage) = (H::Upload::default(), Stage::Open);
        let is_unsafe = self.judges_methods && !early_data::is_safe(request.method());
        let asked = RequestState::<H> { id, head, upload, stage, began: None, is_unsafe };
        if asked.awaits_content() && !asked.head.expects_continue() {
            self.receiving.push(asked);
        } else {
            self.waiting.push(asked);
        }
    }

    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let Some(upload) = self.upload(id) else {
            self.received = self.received.saturating_add(bytes.len() as u64);
            return bytes.len();
        };
        let Ok(taken) = caught(|| upload.on_body(bytes).min(bytes.len())) else {
            self.panicked.push(id);
            return bytes.len();
        };
        let is_enough = upload.is_enough();
        self.received = self.received.saturating_add(taken as u64);
        if taken < bytes.len() && !self.paused.contains(&id) {
            self.paused.push(id);
        }
        if is_enough && let Some(place) = self.receiving.iter().position(|asked| asked.id == id) {
            let asked = self.receiving.swap_remove(place);
            self.waiting.push(asked);
        }
        taken
    }

    fn on_trailers(&mut self, id: StreamId, trailers: &Trailers<'_>) {
        if let Some(upload) = self.upload(id)
            && caught(|| upload.on_trailers(trailers)).is_err()
        {
            self.panicked.push(id);
        }
    }

    fn on_refused(&mut self, id: StreamId, status: u16) -> Refused {
        let Some(head) = self.take_head(id, |head| head.on_refused(status)) else {
            return Refused::ByApplication;
        };
        let (upload, stage) = (H::Upload::default(), Stage::Open);
        self.waiting.push(RequestState { id, head, upload, stage, began: None, is_unsafe: false });
        Refused::ByApplication
    }

    fn on_end(&mut self, id: StreamId) {
        // Mostly the last one: a request without content ends with its head.
        let mut ended = Ok(());
        if let Some(asked) = self.waiting.iter_mut().rev().find(|asked| asked.id == id) {
            ended = asked.on_whole();
        } else if let Some(mut asked) = self.take_put_back(id) {
            ended = asked.on_whole();
            self.waiting.push(asked);
        } else if let Some(mut upload) = self.take_upload(id) {
            ended = caught(|| upload.on_end());
        }
        if ended.is_err() {
            self.panicked.push(id);
        }
    }

    fn on_abort(&mut self, id: StreamId, _: Abort) {
        for list in [&mut self.waiting, &mut self.receiving, &mut self.looking] {
            list.extract_if(.., |asked| asked.id == id).for_each(|mut asked| abort::<H>(&mut asked.upload));
        }
        self.abort_upload(id);
        self.give_up(id);
    }

    fn on_stop_sending(&mut self, id: StreamId, _: Code) {
        // Nothing of a request that has arrived whole is of use to a client that wants no response.
        self.looking.retain(|asked| asked.id != id || asked.stage != Stage::Whole);
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

impl<H: Handler> RequestState<H> {
    /// Whether the answer waits for content that may still come.
    #[inline]
    pub(super) fn awaits_content(&self) -> bool {
        self.stage == Stage::Open && self.head.awaits_content()
    }

    #[inline]
    fn on_whole(&mut self) -> Result<(), ()> {
        self.stage = Stage::Whole;
        caught(|| self.upload.on_end())
    }
}

/// The content will not be completed. A panic then has no request left to end.
fn abort<H: Handler>(upload: &mut H::Upload) {
    let _ = caught(|| upload.on_abort());
}

impl<H: Handler> Exchanges<H> {
    /// Of a connection whose early requests are treated like this.
    pub(super) fn new(rule: EarlyData) -> Exchanges<H> {
        Exchanges { judges_methods: rule == EarlyData::SafeMethods, ..Exchanges::EMPTY }
    }

    /// Whether there is nothing that waits, is under way or kept for its memory.
    pub(super) fn is_empty(&self) -> bool {
        let requests = [&self.waiting, &self.receiving, &self.looking];
        let streams = [&self.reading, &self.paused, &self.panicked, &self.writable];
        requests.into_iter().all(Vec::is_empty)
            && streams.into_iter().all(Vec::is_empty)
            && self.replies.is_empty()
            && self.uploads.is_empty()
            && self.given_up.is_empty()
            && self.unacknowledged.iter().next().is_none()
            && !self.unacknowledged.has_over()
            && self.spare.is_empty()
            && !self.has_resumed
    }

    /// Gives back memory that requests to come would use again.
    pub(super) fn release_memory(&mut self) {
        self.spare = Vec::new();
        for list in [&mut self.waiting, &mut self.receiving, &mut self.looking] {
            list.shrink_to_fit();
        }
        for list in [&mut self.reading, &mut self.paused, &mut self.panicked, &mut self.writable] {
            list.shrink_to_fit();
        }
        self.replies.shrink_to_fit();
        self.uploads.shrink_to_fit();
        self.given_up.shrink_to_fit();
        self.unacknowledged.release_memory();
        self.count_heads();
    }

    /// A head that keeps what `fill` says; `None` if that panics.
    fn take_head(&mut self, id: StreamId, fill: impl FnOnce(&mut H::Head)) -> Option<Box<H::Head>> {
        let mut head = self.spare.pop().unwrap_or_default();
        if caught(|| fill(&mut head)).is_err() {
            self.panicked.push(id);
            return None;
        }
        Some(head)
    }

    /// A request that waits for its content, or that the handler has put back.
    fn take_put_back(&mut self, id: StreamId) -> Option<RequestState<H>> {
        for list in [&mut self.receiving, &mut self.looking] {
            if let Some(place) = list.iter().position(|asked| asked.id == id) {
                return Some(list.swap_remove(place));
            }
        }
        None
    }

    /// Forgets a request. Whether no response has begun.
    pub(super) fn forget(&mut self, id: StreamId) -> bool {
        for list in [&mut self.waiting, &mut self.receiving, &mut self.looking] {
            list.retain(|asked| asked.id != id);
        }
        self.uploads.retain(|(stream, _)| *stream != id);
        let has_begun = self.replies.iter().any(|reply| reply.record.id == id);
        self.give_up(id);
        !has_begun
    }

    /// What takes the content of a request.
    fn upload(&mut self, id: StreamId) -> Option<&mut H::Upload> {
        if let Some(place) = self.uploads.iter().position(|(stream, _)| *stream == id) {
            return self.uploads.get_mut(place).map(|(_, upload)| upload);
        }
        let lists = [&mut self.receiving, &mut self.looking, &mut self.waiting];
        let mut asked = lists.into_iter().flatten();
        asked.find(|asked| asked.id == id).map(|asked| &mut asked.upload)
    }

    /// What took the content of a request whose response has begun.
    fn take_upload(&mut self, id: StreamId) -> Option<H::Upload> {
        let place = self.uploads.iter().position(|(stream, _)| *stream == id)?;
        Some(self.uploads.swap_remove(place).1)
    }

    /// Whether a response goes on that has begun, or the content of its request does.
    pub(super) fn has_begun(&self, id: StreamId) -> bool {
        self.replies.iter().any(|reply| reply.record.id == id)
            || self.uploads.iter().any(|(stream, _)| *stream == id)
    }

    /// Nothing more comes of the content of a request whose response has begun.
    pub(super) fn abort_upload(&mut self, id: StreamId) {
        self.take_upload(id).into_iter().for_each(|mut upload| abort::<H>(&mut upload));
    }

    /// A stream whose content paused and is taken again.
    pub(super) fn take_resumed(&mut self) -> Option<StreamId> {
        for place in 0..self.paused.len() {
            let Some(&id) = self.paused.get(place) else { break };
            if self.upload(id).is_none_or(|upload| upload.has_room()) {
                return Some(self.paused.swap_remove(place));
            }
        }
        None
    }

    /// A request whose response has begun and whose content is not wanted any more.
    pub(super) fn take_unwanted(&mut self) -> Option<StreamId> {
        let place = self.uploads.iter().position(|(_, upload)| !upload.is_wanted())?;
        Some(self.uploads.swap_remove(place).0)
    }

    /// The connection is closed: nothing more is answered.
    pub(super) fn on_closed(&mut self) {
        for list in [&mut self.waiting, &mut self.receiving, &mut self.looking] {
            list.drain(..).for_each(|mut asked| abort::<H>(&mut asked.upload));
        }
        self.uploads.drain(..).for_each(|(_, mut upload)| abort::<H>(&mut upload));
        self.given_up.extend(self.replies.drain(..).map(|reply| reply.record));
        self.unacknowledged.on_closed();
    }

    fn give_up(&mut self, id: StreamId) {
        if let Some(place) = self.replies.iter().position(|reply| reply.record.id == id) {
            let reply = self.replies.swap_remove(place);
            self.given_up.push(reply.record);
        } else {
            // What was handed over will not be acknowledged as a whole.
            self.unacknowledged.on_over(id);
        }
    }

    pub(super) fn recycle(&mut self, mut head: Box<H::Head>) {
        head.recycle();
        if self.spare.len() < SPARE_HEADS {
            self.spare.push(head);
        }
    }

    /// Requests and responses that the handler has put back.
    #[inline]
    pub(super) fn put_back(&self) -> usize {
        self.looking.len() + self.reading.len()
    }

    /// Whether a client waits for us, and not we for its content.
    pub(super) fn is_kept_waiting(&self) -> bool {
        !self.reading.is_empty() || self.looking.iter().any(|asked| !asked.upload.is_awaited())
    }

    /// All that was put back is tried again, in front of what came later.
    pub(super) fn try_again(&mut self) {
        self.looking.append(&mut self.waiting);
        core::mem::swap(&mut self.looking, &mut self.waiting);
        self.reading.append(&mut self.writable);
        core::mem::swap(&mut self.reading, &mut self.writable);
    }

    /// Bytes that content of requests holds which the handler has not taken.
    pub(super) fn upload_bytes(&self) -> usize {
        let asked = self.looking.iter().chain(&self.receiving).map(|asked| asked.upload.memory());
        asked.chain(self.uploads.iter().map(|(_, upload)| upload.memory())).sum()
    }

    /// Bytes that heads hold; counted anew when they may be many.
    pub(super) fn head_bytes(&mut self) -> usize {
        if self.head_bytes > HEADS_NOTICED {
            self.count_heads();
        }
        self.head_bytes
    }

    fn count_heads(&mut self) {
        let asked = [&self.waiting, &self.receiving, &self.looking].into_iter().flatten();
        let begun = self.replies.iter().map(|reply| &reply.record).chain(&self.given_up);
        let answered = begun.chain(self.unacknowledged.iter()).map(|record| &record.head);
        let heads = asked.map(|asked| &asked.head).chain(answered).chain(&self.spare);
        self.head_bytes = heads.map(|head| head.memory()).sum();
    }
}
