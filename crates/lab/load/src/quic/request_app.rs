//! The generator as a worker's application: answers are booked, and the requests that follow are sent.

use super::asking::AskingConnections;
use super::connection::{self, Active, LoadConnection, Slot};
use crate::accounts::{Phase, RequestAccounts};
use crate::failure::Failure;
use crate::kinds::HandshakeKind;
use crate::plan::{LoadPlan, Reuse};
use base::time::Instant;
use client::app::{End, Requests};
use client::fault::ConnectionEnd;
use http3::{BodyLength, EncodedRequest, RequestError};
use transport::{CloseReason, Connection, EarlyStatus};

/// What the owner of the connections must hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotEvent {
    /// This connection takes requests.
    Up(usize),
    /// This connection is over; whether it ever took any.
    Down(usize, bool),
}

/// All connections of a thread together.
pub(super) struct RequestApp {
    requests: Vec<EncodedRequest>,
    content: u64,
    /// Requests at a time on a connection.
    streams: usize,
    reuse: Reuse,
    /// For words about connections that failed: who was asked, and how long a handshake may take, in seconds.
    host: (String, u64),
    pub(super) accounts: RequestAccounts,
    pub(super) asking: AskingConnections,
    pub(super) news: Vec<SlotEvent>,
}

impl RequestApp {
    pub(super) fn new(plan: &LoadPlan, handshake_timeout_s: u64) -> RequestApp {
        let length = match plan.content {
            0 => BodyLength::Empty,
            bytes => BodyLength::Known(bytes),
        };
        RequestApp {
            requests: plan.requests.iter().map(|head| EncodedRequest::new(head, length)).collect(),
            content: plan.content,
            streams: plan.streams,
            reuse: plan.reuse,
            host: (plan.server_name.clone(), handshake_timeout_s),
            accounts: RequestAccounts::new(&plan.rules()),
            asking: AskingConnections::new(plan.connections),
            news: Vec::new(),
        }
    }

    /// Books what has come on a connection since its last turn. Returns whether a request has ended.
    #[inline]
    fn collect(&mut self, now: Instant, state: &mut LoadConnection) -> bool {
        if state.content_bytes > 0 {
            self.accounts.on_content(now, core::mem::take(&mut state.content_bytes));
        }
        for times in state.heads.drain(..) {
            self.accounts.on_head(now, &times);
        }
        let has_ended = !(state.finished.is_empty() && state.failed.is_empty());
        for slot in state.finished.drain(..) {
            self.accounts.on_answer(now, &slot.times, slot.status);
        }
        for (slot, failure) in state.failed.drain(..) {
            self.accounts.on_failure(now, &slot.times, failure);
        }
        has_ended
    }

    /// Sends as many requests as there is room for.
    #[inline]
    fn ask(&mut self, active: &mut Active<'_>) {
        let now = active.now;
        while (active.is_open() || active.may_send_early()) && active.outstanding() < self.streams {
            let state = active.state();
            let intended = match (state.booked, self.reuse) {
                (Some(times), _) => times.intended,
                (None, Reuse::Never) => return,
                (None, Reuse::Always) => match self.accounts.peek(now) {
                    Some(intended) => intended,
                    None => return,
                },
            };
            let Some(request) = self.requests.get(state.next_request % self.requests.len().max(1)) else {
                return;
            };
            let sent = active.request_encoded(request);
            // The transport tells when the server allows more. On a connection that leaves, none is sent any more.
            let Ok(id) = sent else {
                if sent == Err(RequestError::HeadTooLarge) {
                    self.on_head_too_large(active, intended);
                }
                return;
            };
            let state = active.state();
            state.next_request = state.next_request.wrapping_add(1);
            let times = state.booked.take().unwrap_or_else(|| self.accounts.begin(now, intended));
            state.sent = Some(times);
            let number = state.number;
            if self.asking.note(number) {
                connection::on_asking(active);
            }
            active.keep(id, Slot { times, status: 0, unsent: self.content });
            if self.content > 0 {
                active.feed(id);
            }
        }
    }

    #[cold]
    fn on_head_too_large(&mut self, active: &mut Active<'_>, intended: Instant) {
        active.leave();
        let booked = active.state().booked.take();
        let times = booked.unwrap_or_else(|| self.accounts.begin(active.now, intended));
        self.accounts.on_fault(|| "the server takes no request with so much in its head".to_owned());
        self.accounts.on_failure(active.now, &times, Failure::Protocol);
    }
}

impl Requests for RequestApp {
    type Connection = LoadConnection;

    fn on_accept(&mut self, now: Instant) -> LoadConnection {
        LoadConnection::new(0, now)
    }

    fn on_connected(&mut self, active: &mut Active<'_>) {
        let now = active.now;
        let state = active.state();
        state.was_up = true;
        let took = now.saturating_since(state.opened);
        let times = state.booked.or(state.sent.filter(|_| state.is_single));
        let kind = match (active.quic.early_status(), active.quic.is_resumed()) {
            (EarlyStatus::Accepted, _) => HandshakeKind::Early,
            (_, true) => HandshakeKind::Resumed,
            (_, false) => HandshakeKind::Full,
        };
        self.accounts.on_handshake(times.as_ref(), took, kind);
        self.accounts.record.key_exchange = active.quic.key_exchange();
        let state = active.state();
        self.news.push(SlotEvent::Up(state.number));
    }

    #[inline]
    fn on_turn(&mut self, active: &mut Active<'_>) -> Option<Instant> {
        if self.collect(active.now, active.state()) && self.reuse == Reuse::Never {
            active.state().is_done = true;
        }
        // Tickets come with the confirmation, which is later than the answer to early data.
        if active.state().is_done && active.quic.is_confirmed() {
            active.leave();
        }
        self.ask(active);
        None
    }

    fn on_closed(&mut self, now: Instant, quic: &Connection, state: &mut LoadConnection, end: &End) {
        self.collect(now, state);
        let failure = state.failure(end);
        if let Some(times) = state.booked.take() {
            self.accounts.on_failure(now, &times, failure);
        }
        if !state.was_up {
            self.accounts.on_connection_failure(failure);
        }
        // What we closed because it had done its part is no fault.
        let is_local = matches!(end.reason, CloseReason::Local { .. });
        let is_ours = is_local && state.was_up && end.failure.is_none() && state.verdict.is_none();
        if !is_ours && state.verdict != Some(Failure::Refused) {
            let (host, connect_s) = (self.host.0.as_str(), self.host.1);
            let ended = ConnectionEnd { host, connect_s, silence_s: connect_s, failure: end.failure };
            self.accounts.on_fault(|| ended.error(&end.reason).to_string());
        }
        if self.accounts.phase != Phase::Over {
            self.accounts.record.lost_packets += quic.counters().lost_packets;
        }
        self.news.push(SlotEvent::Down(state.number, state.was_up));
    }
}
