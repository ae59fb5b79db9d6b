//! One connection of the generator: what has come of it since its last turn.
//!
//! While packets are taken in, the connection notes; in the turn that follows, the [`super::request_app::RequestApp`] books.
//! Content is counted where it lies and taken in full at once, so no stream ever pauses.

use crate::accounts::RequestTimes;
use crate::failure::Failure;
use base::pattern;
use base::time::{Duration, Instant};
use bytes::Bytes;
use client::app::{self, Content, End, Responses};
use http3::ResponseHead;
use transport::StreamId;

/// A connection on which the generator acts.
pub(super) type Active<'a> = app::Active<'a, LoadConnection>;

/// A request without its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) times: RequestTimes,
    /// The status of its answer; 0 until the head has arrived.
    pub(super) status: u16,
    /// Content of the request that was not handed over yet.
    pub(super) unsent: u64,
}

/// What the generator keeps for a connection.
#[derive(Debug)]
pub(super) struct LoadConnection {
    /// Which of the generator's connections it is.
    pub(super) number: usize,
    /// The request that it was made for, if it is there for one only, until it is sent.
    pub(super) booked: Option<RequestTimes>,
    /// The last request that was sent.
    pub(super) sent: Option<RequestTimes>,
    /// It is there for one request only.
    pub(super) is_single: bool,
    /// That request has ended.
    pub(super) is_done: bool,
    /// Requests of such connections whose answer has begun since the last turn.
    pub(super) heads: Vec<RequestTimes>,
    /// Which request comes next.
    pub(super) next_request: usize,
    pub(super) opened: Instant,
    /// It has taken requests.
    pub(super) was_up: bool,
    /// Why we gave it up, if we did.
    pub(super) verdict: Option<Failure>,
    /// Packets that had arrived when we last looked, and when their number last changed. Not kept while nothing is asked.
    heard: (u64, Instant),
    /// Answered since the last turn.
    pub(super) finished: Vec<Slot>,
    /// Failed since the last turn.
    pub(super) failed: Vec<(Slot, Failure)>,
    /// Content since the last turn.
    pub(super) content_bytes: u64,
}

impl Responses for LoadConnection {
    type Request = Slot;

    fn on_head(&mut self, slot: &mut Slot, head: &ResponseHead<'_>) {
        slot.status = head.status();
        if self.is_single {
            self.heads.push(slot.times);
        }
    }

    #[inline]
    fn on_body(&mut self, _: &mut Slot, bytes: &[u8]) -> usize {
        self.content_bytes += bytes.len() as u64;
        bytes.len()
    }

    #[inline]
    fn on_end(&mut self, slot: Slot) -> Option<Slot> {
        self.finished.push(slot);
        None
    }

    fn on_failure(&mut self, slot: Slot, failure: app::Failure<'_>) {
        let failure = match failure {
            app::Failure::Aborted(abort) => Failure::of_abort(abort),
            app::Failure::Unsendable(_) => Failure::Protocol,
            app::Failure::Closed(end) => self.failure(end),
        };
        self.failed.push((slot, failure));
    }

    fn on_stop_sending(&mut self, slot: &mut Slot) {
        // The server answers without the rest of the request.
        slot.unsent = 0;
    }

    fn next_content(&mut self, slot: &mut Slot, room: usize) -> Content {
        let length = usize::try_from(slot.unsent).unwrap_or(usize::MAX).min(room).min(pattern::PERIOD);
        let piece = pattern::at(0).get(..length).unwrap_or_default();
        slot.unsent -= piece.len() as u64;
        match (piece, slot.unsent) {
            ([], _) => Content::Wait,
            (piece, 0) => Content::Last(Bytes::from_static(piece), None),
            (piece, _) => Content::Bytes(Bytes::from_static(piece)),
        }
    }
}

impl LoadConnection {
    /// A connection that has done nothing yet.
    pub(super) fn new(number: usize, now: Instant) -> LoadConnection {
        LoadConnection {
            number,
            booked: None,
            sent: None,
            is_single: false,
            is_done: false,
            heads: Vec::new(),
            next_request: 0,
            opened: now,
            was_up: false,
            verdict: None,
            heard: (0, now),
            finished: Vec::new(),
            failed: Vec::new(),
            content_bytes: 0,
        }
    }

    /// What the end of the connection means to what was asked on it.
    pub(super) fn failure(&self, end: &End) -> Failure {
        self.verdict.unwrap_or_else(|| Failure::of_close(&end.reason, end.failure.as_ref()))
    }
}

/// How long the oldest request has waited that is outstanding.
pub(super) fn oldest(active: &mut Active<'_>) -> Duration {
    let (now, booked) = (active.now, active.state().booked);
    let outstanding = active.requests().map(|(_, slot)| slot.times).chain(booked);
    outstanding.map(|times| now.saturating_since(times.intended)).max().unwrap_or(Duration::ZERO)
}

/// Ends the connection; what is outstanding fails with `verdict`.
pub(super) fn give_up(active: &mut Active<'_>, verdict: Failure) {
    active.state().verdict.get_or_insert(verdict);
    active.close();
}

/// It asks, after it did not: its silence counts from here.
pub(super) fn on_asking(active: &mut Active<'_>) {
    let heard = (active.quic.counters().received_packets, active.now);
    active.state().heard = heard;
}

/// Time has passed: requests that are too old fail, and so does a connection that was silent for as long. Returns whether
/// anything is outstanding.
pub(super) fn on_tick(active: &mut Active<'_>, timeout: Duration) -> bool {
    let (now, received) = (active.now, active.quic.counters().received_packets);
    let state = active.state();
    if received != state.heard.0 {
        state.heard = (received, now);
    }
    let is_late = |times: &RequestTimes| now.saturating_since(times.began) >= timeout;
    let (heard, is_too_late) = (state.heard.1, state.booked.as_ref().is_some_and(is_late));
    if active.is_closed() {
        return false;
    }
    if is_too_late {
        give_up(active, Failure::Timeout);
        return false;
    }
    let late: Vec<StreamId> =
        active.requests().filter(|(_, slot)| is_late(&slot.times)).map(|(id, _)| id).collect();
    for id in &late {
        if let Some(slot) = active.cancel(*id) {
            active.state().failed.push((slot, Failure::Timeout));
        }
    }
    if !late.is_empty() && now.saturating_since(heard) >= timeout {
        give_up(active, Failure::Timeout);
    }
    active.outstanding() > 0 || active.state().booked.is_some()
}
