//! The generator as a worker's application: answers are booked, and the requests that follow are sent.

use super::connection::{ClientConnection, ConnectionState, Slot};
use crate::accounts::{Phase, RequestAccounts};
use crate::failure::Failure;
use crate::plan::{LoadPlan, Reuse};
use base::pattern;
use base::time::Instant;
use bytes::Bytes;
use client::fault::ConnectionEnd;
use http3::{BodyLength, EncodedRequest, RequestError};
use transport::{CloseReason, Connection, StreamId};
use worker::{App, Next};

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
    reuse: Reuse,
    /// For words about connections that failed: who was asked, and how long a handshake may take, in seconds.
    host: (String, u64),
    pub(super) accounts: RequestAccounts,
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
            reuse: plan.reuse,
            host: (plan.server_name.clone(), handshake_timeout_s),
            accounts: RequestAccounts::new(&plan.rules()),
            news: Vec::new(),
        }
    }

    /// RequestAccounts what has come on a connection since its last turn.
    #[inline]
    fn collect(&mut self, now: Instant, client_connection: &mut ClientConnection) {
        let inbox = &mut client_connection.session.messages;
        if inbox.content_bytes > 0 {
            self.accounts.on_content(now, core::mem::take(&mut inbox.content_bytes));
        }
        let mut finished = core::mem::take(&mut inbox.finished);
        let is_done = self.reuse == Reuse::Never && !(finished.is_empty() && inbox.failed.is_empty());
        for slot in finished.drain(..) {
            self.accounts.on_answer(now, &slot.times, slot.status);
        }
        inbox.finished = finished;
        if !inbox.failed.is_empty() {
            for (slot, failure) in core::mem::take(&mut inbox.failed) {
                self.accounts.on_failure(now, &slot.times, failure);
            }
        }
        if is_done && client_connection.state == ConnectionState::Up {
            client_connection.state = ConnectionState::Leaving;
        }
    }

    /// Something happened to a connection itself.
    #[cold]
    fn settle(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        client_connection: &mut ClientConnection,
    ) {
        let inbox = &mut client_connection.session.messages;
        inbox.needs_attention = false;
        if inbox.is_connected && client_connection.state == ConnectionState::Connecting {
            client_connection.state = ConnectionState::Up;
            let took = now.saturating_since(client_connection.opened);
            match &client_connection.booked {
                Some(times) => self.accounts.on_handshake_for(times, took),
                None => self.accounts.on_handshake(took),
            }
            self.news.push(SlotEvent::Up(client_connection.number));
        }
        if inbox.is_going_away && client_connection.state == ConnectionState::Up {
            client_connection.state = ConnectionState::Leaving;
        }
        let Some(reason) = &inbox.closed else { return };
        if client_connection.state == ConnectionState::Down {
            return;
        }
        let (was_up, was_leaving) = (
            client_connection.state != ConnectionState::Connecting,
            client_connection.state == ConnectionState::Leaving,
        );
        client_connection.state = ConnectionState::Down;
        let cause = client_connection.session.connection.failure();
        let failure = client_connection.verdict.unwrap_or_else(|| Failure::of_close(reason, cause.as_ref()));
        let ids: Vec<StreamId> = inbox.slots.iter().map(|slot| slot.id).collect();
        for id in ids {
            inbox.failed.extend(inbox.slots.remove(id).map(|slot| (slot, failure)));
        }
        if let Some(times) = client_connection.booked.take() {
            self.accounts.on_failure(now, &times, failure);
        }
        if !was_up {
            self.accounts.on_connection_failure(failure);
        }
        // What we closed because it had done its part is no fault.
        let is_ours = was_leaving && cause.is_none() && matches!(reason, CloseReason::Local { .. });
        if !is_ours && client_connection.verdict != Some(Failure::Refused) {
            let (host, connect_s) = (self.host.0.as_str(), self.host.1);
            let ended = ConnectionEnd { host, connect_s, silence_s: connect_s, failure: cause };
            self.accounts.on_fault(|| ended.error(reason).to_string());
        }
        if self.accounts.phase != Phase::Over {
            self.accounts.record.lost_packets += connection.counters().lost_packets;
        }
        self.news.push(SlotEvent::Down(client_connection.number, was_up));
    }

    /// Sends as many requests as there is room for.
    #[inline]
    fn ask(&mut self, now: Instant, connection: &mut Connection, client_connection: &mut ClientConnection) {
        while client_connection.state == ConnectionState::Up
            && client_connection.session.messages.slots.has_room()
        {
            let intended = match (client_connection.booked, self.reuse) {
                (Some(times), _) => times.intended,
                (None, Reuse::Never) => break,
                (None, Reuse::Always) => match self.accounts.peek(now) {
                    Some(intended) => intended,
                    None => return,
                },
            };
            let Some(request) =
                self.requests.get(client_connection.next_request % self.requests.len().max(1))
            else {
                return;
            };
            match client_connection.session.connection.request_encoded(connection, request) {
                Ok(id) => {
                    client_connection.next_request = client_connection.next_request.wrapping_add(1);
                    let times =
                        client_connection.booked.take().unwrap_or_else(|| self.accounts.begin(now, intended));
                    client_connection.session.messages.slots.insert(Slot {
                        id,
                        times,
                        status: 0,
                        unsent: self.content,
                    });
                    if self.content > 0 {
                        feed(connection, client_connection, id);
                    }
                }
                // The transport tells when the server allows more.
                Err(RequestError::NoStream) => return,
                Err(RequestError::GoingAway | RequestError::Closed) => {
                    client_connection.state = ConnectionState::Leaving
                }
                Err(RequestError::HeadTooLarge) => {
                    client_connection.state = ConnectionState::Leaving;
                    let times =
                        client_connection.booked.take().unwrap_or_else(|| self.accounts.begin(now, intended));
                    self.accounts
                        .on_fault(|| "the server takes no request with so much in its head".to_owned());
                    self.accounts.on_failure(now, &times, Failure::Protocol);
                }
            }
        }
        if client_connection.state == ConnectionState::Leaving
            && client_connection.session.messages.slots.len() == 0
        {
            client_connection.session.connection.close(connection, now);
        }
    }
}

/// Hands over as much of a request's content as its stream takes.
fn feed(connection: &mut Connection, client_connection: &mut ClientConnection, id: StreamId) {
    let Some(slot) = client_connection.session.messages.slots.entry_mut(id) else { return };
    while slot.unsent > 0 {
        let room = connection.send_capacity(id).min(pattern::PERIOD);
        let length = usize::try_from(slot.unsent).unwrap_or(usize::MAX).min(room);
        let piece = pattern::at(0).get(..length).unwrap_or_default();
        if piece.is_empty() {
            return;
        }
        if client_connection.session.connection.write_body(connection, id, Bytes::from_static(piece)).is_err()
        {
            // Its end is told by the other direction.
            slot.unsent = 0;
            return;
        }
        slot.unsent -= piece.len() as u64;
    }
    let _ = client_connection.session.connection.finish(connection, id);
}

impl App for RequestApp {
    type State = ClientConnection;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> ClientConnection {
        // Never called: a client's worker has no server configuration.
        ClientConnection::new(0, 1, std::sync::Arc::new(http3::Config::client()), now)
    }

    fn on_turn(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        client_connection: &mut ClientConnection,
    ) -> Next {
        client_connection.session.on_turn(connection, now);
        if client_connection.session.messages.needs_attention {
            self.settle(now, connection, client_connection);
        }
        self.collect(now, client_connection);
        if !client_connection.session.messages.writable.is_empty() {
            for id in core::mem::take(&mut client_connection.session.messages.writable) {
                if client_connection.session.messages.slots.entry_mut(id).is_some_and(|slot| slot.unsent > 0)
                {
                    feed(connection, client_connection, id);
                }
            }
        }
        self.ask(now, connection, client_connection);
        client_connection.session.connection.next_timeout().map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, now: Instant, connection: &Connection, mut client_connection: ClientConnection) {
        if client_connection.state != ConnectionState::Down && self.accounts.phase != Phase::Over {
            self.accounts.record.lost_packets += connection.counters().lost_packets;
            self.news.push(SlotEvent::Down(
                client_connection.number,
                client_connection.state != ConnectionState::Connecting,
            ));
        }
        let ids: Vec<StreamId> =
            client_connection.session.messages.slots.iter().map(|slot| slot.id).collect();
        for id in ids {
            let inbox = &mut client_connection.session.messages;
            inbox.failed.extend(inbox.slots.remove(id).map(|slot| (slot, Failure::Closed)));
        }
        if let Some(times) = client_connection.booked.take() {
            self.accounts.on_failure(now, &times, Failure::Closed);
        }
        self.collect(now, &mut client_connection);
    }
}
