//! The generator as a worker's application: answers are booked, and the requests that follow are sent.

use super::budget::Budget;
use super::failure::Failure;
use super::lane::{Lane, Standing};
use super::plan::{Bound, Plan};
use super::record::{Record, Slice};
use super::slots::Slot;
use crate::fault::Ended;
use base::pattern;
use base::time::{Duration, Instant};
use bytes::Bytes;
use http3::{BodyLength, EncodedRequest, RequestError};
use transport::{Connection, StreamId};
use worker::{App, Next};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Connections are made.
    Gathering,
    /// Requests are made and not counted.
    WarmUp,
    /// Requests are counted.
    Measuring,
    /// Nothing counts any more.
    Over,
}

/// What the owner of the connections must hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// This connection takes requests.
    Up(usize),
    /// This connection is over; whether it ever took any.
    Down(usize, bool),
}

/// All connections of a thread together.
pub(super) struct Asker {
    requests: Vec<EncodedRequest>,
    content: u64,
    bound: Bound,
    series: Option<Duration>,
    /// For words about connections that failed: who was asked, and how long a handshake may take, in seconds.
    host: (String, u64),
    pub(super) phase: Phase,
    pub(super) budget: Budget,
    pub(super) outstanding: usize,
    pub(super) record: Record,
    /// When the last answer that counts came.
    pub(super) last_answer: Instant,
    pub(super) news: Vec<News>,
}

impl Asker {
    pub(super) fn new(plan: &Plan) -> Asker {
        let length = match plan.content {
            0 => BodyLength::Empty,
            bytes => BodyLength::Known(bytes),
        };
        Asker {
            requests: plan.requests.iter().map(|head| EncodedRequest::new(head, length)).collect(),
            content: plan.content,
            bound: plan.bound,
            series: plan.series,
            host: (plan.server_name.clone(), plan.quic.transport.handshake_timeout.as_millis() / 1_000),
            phase: Phase::Gathering,
            budget: Budget::NONE,
            outstanding: 0,
            record: Record::new(),
            last_answer: Instant::ZERO,
            news: Vec::new(),
        }
    }

    /// Whether a request counts that ends now. A span of time counts what ends in it, a number what begins after the
    /// warm-up, so that exactly so many are counted.
    #[inline]
    fn counts(&self, slot: &Slot) -> bool {
        self.phase == Phase::Measuring && (slot.is_counted || matches!(self.bound, Bound::Span(_)))
    }

    fn slice(&mut self, now: Instant) -> Option<&mut Slice> {
        let length = self.series?.as_nanos().max(1);
        let place = now.saturating_since(self.record.began).as_nanos() / length;
        // A clock that jumps does not take all memory: a day of slices of 100 ms.
        let place = usize::try_from(place).ok().filter(|place| *place < 1_000_000)?;
        if place >= self.record.series.len() {
            self.record.series.resize(place + 1, Slice::default());
        }
        self.record.series.get_mut(place)
    }

    /// Books what has come on a connection since its last turn.
    #[inline]
    fn collect(&mut self, now: Instant, lane: &mut Lane) {
        let inbox = &mut lane.session.messages;
        if inbox.content_bytes > 0 {
            let bytes = core::mem::take(&mut inbox.content_bytes);
            if self.phase == Phase::Measuring {
                self.record.content_bytes += bytes;
                if let Some(slice) = self.slice(now) {
                    slice.content_bytes += bytes;
                }
            }
        }
        let mut finished = core::mem::take(&mut inbox.finished);
        for slot in finished.drain(..) {
            self.outstanding -= 1;
            self.on_answer(now, &slot);
        }
        inbox.finished = finished;
        if !inbox.failed.is_empty() {
            for (slot, failure) in core::mem::take(&mut inbox.failed) {
                self.outstanding -= 1;
                self.on_failure(now, &slot, failure);
            }
        }
    }

    #[inline]
    fn on_answer(&mut self, now: Instant, slot: &Slot) {
        if slot.status >= 400 {
            self.on_failure(now, slot, Failure::Status);
        }
        if !self.counts(slot) {
            return;
        }
        let latency = now.saturating_since(slot.intended);
        self.last_answer = now;
        self.record.statuses.add(slot.status);
        self.record.latency.add(latency);
        let succeeds = slot.status < 400;
        self.record.succeeded += u64::from(succeeds);
        if let Some(slice) = self.slice(now) {
            slice.succeeded += u64::from(succeeds);
            slice.longest_ns = slice.longest_ns.max(latency.as_nanos());
        }
    }

    #[cold]
    fn on_failure(&mut self, now: Instant, slot: &Slot, failure: Failure) {
        if self.phase == Phase::Over {
            return;
        }
        if !self.counts(slot) {
            self.record.warm_up_failures += 1;
            return;
        }
        self.last_answer = now;
        self.record.failures.add(failure, 1);
        if failure == Failure::Timeout {
            self.record.latency.add(now.saturating_since(slot.intended));
        }
        if let Some(slice) = self.slice(now) {
            slice.failed += 1;
        }
    }

    /// Something happened to a connection itself.
    #[cold]
    fn settle(&mut self, now: Instant, connection: &mut Connection, lane: &mut Lane) {
        let inbox = &mut lane.session.messages;
        inbox.is_stirred = false;
        if inbox.is_connected && lane.standing == Standing::Connecting {
            lane.standing = Standing::Up;
            self.record.handshake.add(now.saturating_since(lane.opened));
            self.news.push(News::Up(lane.number));
        }
        if inbox.is_going_away && lane.standing == Standing::Up {
            lane.standing = Standing::Leaving;
        }
        let Some(reason) = &inbox.closed else { return };
        if lane.standing == Standing::Down {
            return;
        }
        let was_up = lane.standing != Standing::Connecting;
        lane.standing = Standing::Down;
        let cause = lane.session.connection.failure();
        let failure = lane.verdict.unwrap_or_else(|| Failure::of_close(reason, cause.as_ref()));
        let ids: Vec<StreamId> = inbox.slots.iter().map(|slot| slot.id).collect();
        for id in ids {
            inbox.failed.extend(inbox.slots.remove(id).map(|slot| (slot, failure)));
        }
        if self.phase != Phase::Over {
            if !was_up {
                self.record.connection_failures.add(failure, 1);
            }
            if self.record.first_fault.is_none() && lane.verdict != Some(Failure::Refused) {
                let (host, connect_s) = (self.host.0.as_str(), self.host.1);
                let ended = Ended { host, connect_s, silence_s: connect_s, failure: cause };
                self.record.first_fault = Some(ended.error(reason).to_string());
            }
            self.record.lost_packets += connection.counters().lost_packets;
        }
        self.news.push(News::Down(lane.number, was_up));
    }

    /// Sends as many requests as there is room for.
    #[inline]
    fn ask(&mut self, now: Instant, connection: &mut Connection, lane: &mut Lane) {
        while lane.standing == Standing::Up && lane.session.messages.slots.has_room() {
            let Some(intended) = self.budget.peek(now) else { return };
            let Some(request) = self.requests.get(lane.next_request % self.requests.len().max(1)) else {
                return;
            };
            match lane.session.connection.request_encoded(connection, request) {
                Ok(id) => {
                    self.budget.begin();
                    self.outstanding += 1;
                    lane.next_request = lane.next_request.wrapping_add(1);
                    let (is_counted, unsent) = (self.phase == Phase::Measuring, self.content);
                    let slot = Slot { id, intended, began: now, is_counted, status: 0, unsent };
                    lane.session.messages.slots.insert(slot);
                    if self.content > 0 {
                        feed(connection, lane, id);
                    }
                }
                // The transport tells when the server allows more.
                Err(RequestError::NoStream) => return,
                Err(RequestError::GoingAway | RequestError::Closed | RequestError::HeadTooLarge) => {
                    lane.standing = Standing::Leaving;
                }
            }
        }
        if lane.standing == Standing::Leaving && lane.session.messages.slots.len() == 0 {
            lane.session.connection.close(connection, now);
        }
    }
}

/// Hands over as much of a request's content as its stream takes.
fn feed(connection: &mut Connection, lane: &mut Lane, id: StreamId) {
    let Some(slot) = lane.session.messages.slots.entry_mut(id) else { return };
    while slot.unsent > 0 {
        let room = connection.send_capacity(id).min(pattern::PERIOD);
        let length = usize::try_from(slot.unsent).unwrap_or(usize::MAX).min(room);
        let piece = pattern::at(0).get(..length).unwrap_or_default();
        if piece.is_empty() {
            return;
        }
        if lane.session.connection.write_body(connection, id, Bytes::from_static(piece)).is_err() {
            // Its end is told by the other direction.
            slot.unsent = 0;
            return;
        }
        slot.unsent -= piece.len() as u64;
    }
    let _ = lane.session.connection.finish(connection, id);
}

impl App for Asker {
    type State = Lane;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> Lane {
        // A client's worker has no server configuration, so nobody gets this far.
        Lane::new(0, 1, std::sync::Arc::new(http3::Config::client()), now)
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, lane: &mut Lane) -> Next {
        lane.session.on_turn(connection, now);
        if lane.session.messages.is_stirred {
            self.settle(now, connection, lane);
        }
        self.collect(now, lane);
        if !lane.session.messages.writable.is_empty() {
            for id in core::mem::take(&mut lane.session.messages.writable) {
                if lane.session.messages.slots.entry_mut(id).is_some_and(|slot| slot.unsent > 0) {
                    feed(connection, lane, id);
                }
            }
        }
        self.ask(now, connection, lane);
        lane.session.connection.next_timeout().map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, now: Instant, connection: &Connection, mut lane: Lane) {
        if lane.standing != Standing::Down && self.phase != Phase::Over {
            self.record.lost_packets += connection.counters().lost_packets;
            self.news.push(News::Down(lane.number, lane.standing != Standing::Connecting));
        }
        let ids: Vec<StreamId> = lane.session.messages.slots.iter().map(|slot| slot.id).collect();
        for id in ids {
            let inbox = &mut lane.session.messages;
            inbox.failed.extend(inbox.slots.remove(id).map(|slot| (slot, Failure::Closed)));
        }
        self.collect(now, &mut lane);
    }
}
