//! The generator as a worker's application: answers are booked, and the requests that follow are sent.

use super::lane::{Lane, Standing};
use super::slots::Slot;
use crate::books::{Books, Phase};
use crate::failure::Failure;
use crate::plan::{Plan, Reuse};
use base::pattern;
use base::time::Instant;
use bytes::Bytes;
use client::fault::Ended;
use http3::{BodyLength, EncodedRequest, RequestError};
use transport::{CloseReason, Connection, StreamId};
use worker::{App, Next};

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
    reuse: Reuse,
    /// For words about connections that failed: who was asked, and how long a handshake may take, in seconds.
    host: (String, u64),
    pub(super) books: Books,
    pub(super) news: Vec<News>,
}

impl Asker {
    pub(super) fn new(plan: &Plan, handshake_timeout_s: u64) -> Asker {
        let length = match plan.content {
            0 => BodyLength::Empty,
            bytes => BodyLength::Known(bytes),
        };
        Asker {
            requests: plan.requests.iter().map(|head| EncodedRequest::new(head, length)).collect(),
            content: plan.content,
            reuse: plan.reuse,
            host: (plan.server_name.clone(), handshake_timeout_s),
            books: Books::new(plan),
            news: Vec::new(),
        }
    }

    /// Books what has come on a connection since its last turn.
    #[inline]
    fn collect(&mut self, now: Instant, lane: &mut Lane) {
        let inbox = &mut lane.session.messages;
        if inbox.content_bytes > 0 {
            self.books.on_content(now, core::mem::take(&mut inbox.content_bytes));
        }
        let mut finished = core::mem::take(&mut inbox.finished);
        let is_done = self.reuse == Reuse::Never && !(finished.is_empty() && inbox.failed.is_empty());
        for slot in finished.drain(..) {
            self.books.on_answer(now, &slot.asked, slot.status);
        }
        inbox.finished = finished;
        if !inbox.failed.is_empty() {
            for (slot, failure) in core::mem::take(&mut inbox.failed) {
                self.books.on_failure(now, &slot.asked, failure);
            }
        }
        if is_done && lane.standing == Standing::Up {
            lane.standing = Standing::Leaving;
        }
    }

    /// Something happened to a connection itself.
    #[cold]
    fn settle(&mut self, now: Instant, connection: &mut Connection, lane: &mut Lane) {
        let inbox = &mut lane.session.messages;
        inbox.is_stirred = false;
        if inbox.is_connected && lane.standing == Standing::Connecting {
            lane.standing = Standing::Up;
            let took = now.saturating_since(lane.opened);
            match &lane.booked {
                Some(asked) => self.books.on_handshake_for(asked, took),
                None => self.books.on_handshake(took),
            }
            self.news.push(News::Up(lane.number));
        }
        if inbox.is_going_away && lane.standing == Standing::Up {
            lane.standing = Standing::Leaving;
        }
        let Some(reason) = &inbox.closed else { return };
        if lane.standing == Standing::Down {
            return;
        }
        let (was_up, was_leaving) =
            (lane.standing != Standing::Connecting, lane.standing == Standing::Leaving);
        lane.standing = Standing::Down;
        let cause = lane.session.connection.failure();
        let failure = lane.verdict.unwrap_or_else(|| Failure::of_close(reason, cause.as_ref()));
        let ids: Vec<StreamId> = inbox.slots.iter().map(|slot| slot.id).collect();
        for id in ids {
            inbox.failed.extend(inbox.slots.remove(id).map(|slot| (slot, failure)));
        }
        if let Some(asked) = lane.booked.take() {
            self.books.on_failure(now, &asked, failure);
        }
        if !was_up {
            self.books.on_connection_failure(failure);
        }
        // What we closed because it had done its part is no fault.
        let is_ours = was_leaving && cause.is_none() && matches!(reason, CloseReason::Local { .. });
        if !is_ours && lane.verdict != Some(Failure::Refused) {
            let (host, connect_s) = (self.host.0.as_str(), self.host.1);
            let ended = Ended { host, connect_s, silence_s: connect_s, failure: cause };
            self.books.on_fault(|| ended.error(reason).to_string());
        }
        if self.books.phase != Phase::Over {
            self.books.record.lost_packets += connection.counters().lost_packets;
        }
        self.news.push(News::Down(lane.number, was_up));
    }

    /// Sends as many requests as there is room for.
    #[inline]
    fn ask(&mut self, now: Instant, connection: &mut Connection, lane: &mut Lane) {
        while lane.standing == Standing::Up && lane.session.messages.slots.has_room() {
            let intended = match (lane.booked, self.reuse) {
                (Some(asked), _) => asked.intended,
                (None, Reuse::Never) => break,
                (None, Reuse::Always) => match self.books.peek(now) {
                    Some(intended) => intended,
                    None => return,
                },
            };
            let Some(request) = self.requests.get(lane.next_request % self.requests.len().max(1)) else {
                return;
            };
            match lane.session.connection.request_encoded(connection, request) {
                Ok(id) => {
                    lane.next_request = lane.next_request.wrapping_add(1);
                    let asked = lane.booked.take().unwrap_or_else(|| self.books.begin(now, intended));
                    lane.session.messages.slots.insert(Slot { id, asked, status: 0, unsent: self.content });
                    if self.content > 0 {
                        feed(connection, lane, id);
                    }
                }
                // The transport tells when the server allows more.
                Err(RequestError::NoStream) => return,
                Err(RequestError::GoingAway | RequestError::Closed) => lane.standing = Standing::Leaving,
                Err(RequestError::HeadTooLarge) => {
                    lane.standing = Standing::Leaving;
                    let asked = lane.booked.take().unwrap_or_else(|| self.books.begin(now, intended));
                    self.books.on_fault(|| "the server takes no request with so much in its head".to_owned());
                    self.books.on_failure(now, &asked, Failure::Protocol);
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
        if lane.standing != Standing::Down && self.books.phase != Phase::Over {
            self.books.record.lost_packets += connection.counters().lost_packets;
            self.news.push(News::Down(lane.number, lane.standing != Standing::Connecting));
        }
        let ids: Vec<StreamId> = lane.session.messages.slots.iter().map(|slot| slot.id).collect();
        for id in ids {
            let inbox = &mut lane.session.messages;
            inbox.failed.extend(inbox.slots.remove(id).map(|slot| (slot, Failure::Closed)));
        }
        if let Some(asked) = lane.booked.take() {
            self.books.on_failure(now, &asked, Failure::Closed);
        }
        self.collect(now, &mut lane);
    }
}
