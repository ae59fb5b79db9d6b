//! The client of raw transfers.

use super::header::Header;
use super::server::PAUSE;
use super::travels::Travels;
use crate::piece::{Incoming, Outgoing};
use crate::read_behaviour::ReadBehaviour;
use base::pattern;
use base::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use transport::{
    CloseReason, Connection, Counters, Dir, EarlyStatus, Event, Fin, MtuReport, StreamId, StreamSink,
};
use worker::{App, Next};

/// Bytes of a stream that a reset may leave to be delivered.
const HEADER: u64 = 20;
/// The code with which streams are given up.
const CANCEL: u64 = 7;

/// What one stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What is said in the header.
    pub header: Header,
    /// Whether an answer is wanted at all.
    pub dir: Dir,
    /// Gives up, both ways, after this many bytes of the answer.
    pub cancel_after: Option<u64>,
}

impl Transfer {
    /// A download from the beginning of the pattern.
    pub fn download(down: u64) -> Transfer {
        Transfer { header: Header { up: 0, down, offset: 0 }, dir: Dir::Bidi, cancel_after: None }
    }
}

#[derive(Debug)]
struct Exchange {
    transfer: Transfer,
    incoming: Incoming,
    outgoing: Outgoing,
    is_finished: bool,
}

/// What the client does on one connection.
#[derive(Debug)]
pub struct TransferPlan {
    read_behaviour: ReadBehaviour,
    waiting: VecDeque<Transfer>,
    exchanges: BTreeMap<StreamId, Exchange>,
    parallel: usize,
    sending: Vec<StreamId>,
    paused: Vec<StreamId>,
    /// Streams whose answer is complete, or that are to be given up.
    over: Vec<(StreamId, bool)>,
    /// A key update is asked for as often as the connection allows, this often in all.
    pub key_updates: u32,
    /// DATAGRAM frames that are still to be sent.
    pub datagrams: u32,
    /// Where it moves.
    pub(super) travels: Travels,
    failures: Vec<String>,
    is_done: bool,
    /// Its handshake is counted.
    is_counted: bool,
    /// Bytes of answers that have arrived since the last turn.
    received: u64,
}

impl TransferPlan {
    /// Carries out `transfers`, at most `parallel` at a time.
    pub fn new(
        read_behaviour: ReadBehaviour,
        transfers: impl IntoIterator<Item = Transfer>,
        parallel: usize,
    ) -> TransferPlan {
        TransferPlan {
            read_behaviour,
            waiting: transfers.into_iter().collect(),
            exchanges: BTreeMap::new(),
            parallel: parallel.max(1),
            sending: Vec::new(),
            paused: Vec::new(),
            over: Vec::new(),
            key_updates: 0,
            datagrams: 0,
            travels: Travels::default(),
            failures: Vec::new(),
            is_done: false,
            is_counted: false,
            received: 0,
        }
    }

    /// What is not over yet, for a report.
    pub(super) fn unfinished(&self) -> String {
        let mut text = format!("{} to be opened", self.waiting.len());
        for (id, exchange) in self.exchanges.iter().take(5) {
            let Exchange { incoming, outgoing, is_finished, .. } = exchange;
            text += &format!(", stream {}: {incoming:?} {outgoing:?} finished: {is_finished}", id.as_u64());
        }
        text
    }

    fn open(&mut self, connection: &mut Connection) {
        while self.exchanges.len() < self.parallel {
            let Some(&transfer) = self.waiting.front() else { return };
            let Ok(id) = connection.open(transfer.dir) else { return };
            self.waiting.pop_front();
            let Header { up, down, offset } = transfer.header;
            if let Err(error) = connection.write(id, Bytes::from(transfer.header.to_bytes())) {
                self.failures.push(format!("stream {}: {error}", id.as_u64()));
            }
            let (incoming, outgoing) = (Incoming::new(offset, down), Outgoing::new(offset, up));
            self.exchanges.insert(id, Exchange { transfer, incoming, outgoing, is_finished: false });
            self.sending.push(id);
        }
    }

    fn send(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(exchange) = self.exchanges.get_mut(&id).filter(|exchange| !exchange.is_finished) else {
            return;
        };
        let written = exchange.outgoing.write(connection, id, &mut self.read_behaviour);
        let finished = written.and_then(|()| {
            if exchange.outgoing.is_written() {
                exchange.is_finished = true;
                connection.finish_stream(id)?;
            }
            Ok(())
        });
        if let Err(error) = finished {
            self.failures.push(format!("client, stream {}: {error}", id.as_u64()));
        }
    }

    /// Sends a few datagrams: where in the pattern their content begins, then the content.
    fn send_datagrams(&mut self, connection: &mut Connection) {
        let Some(most) = connection.max_datagram_size().filter(|most| *most > 8) else { return };
        for _ in 0..self.datagrams.min(3) {
            self.datagrams -= 1;
            let offset = u64::from(self.datagrams) * 777;
            let content = pattern::at(offset);
            let len = self.read_behaviour.write_len(most - 8);
            let datagram = [&offset.to_be_bytes()[..], content.get(..len).unwrap_or(&[])].concat();
            if let Err(error) = connection.send_datagram(datagram.into()) {
                self.failures.push(format!("datagram of {len}: {error:?}"));
            }
        }
    }

    fn on_bytes(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> Result<(), String> {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return Err("no such exchange".to_owned()) };
        exchange.incoming.on_bytes(bytes)?;
        self.received += bytes.len() as u64;
        let received = exchange.transfer.header.down - exchange.incoming.left();
        if exchange.transfer.cancel_after.is_some_and(|limit| received >= limit) {
            self.over.push((id, true));
        } else if fin == Fin::End {
            self.over.push((id, false));
            if !exchange.incoming.is_complete() {
                return Err(format!("ended {} bytes early", exchange.incoming.left()));
            }
            if !exchange.is_finished {
                return Err("answered before all was sent".to_owned());
            }
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event, reasons: &mut Vec<CloseReason>) {
        match event {
            Event::Writable { id } => self.sending.push(id),
            Event::Finished { id } if id.dir() == Dir::Uni => self.over.push((id, false)),
            Event::StreamReset { id, .. } | Event::StopSending { id, .. }
                if self.exchanges.contains_key(&id) =>
            {
                self.failures.push(format!("the server gave up stream {}", id.as_u64()));
            }
            Event::Closed(reason) => {
                if !self.is_done {
                    self.failures.push(format!("closed too early: {reason:?}"));
                }
                reasons.push(reason);
            }
            _ => {}
        }
    }
}

impl StreamSink for TransferPlan {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        let taken = self.read_behaviour.takes(bytes.len());
        let fin = if taken == bytes.len() {
            fin
        } else {
            self.paused.push(id);
            Fin::Open
        };
        // What still arrives on a stream that was given up is discarded.
        if self.exchanges.contains_key(&id)
            && let Err(failure) = self.on_bytes(id, bytes.get(..taken).unwrap_or(&[]), fin)
        {
            self.failures.push(format!("client, stream {}: {failure}", id.as_u64()));
        }
        taken
    }
}

/// The application, and what became of it all.
#[derive(Debug, Default)]
pub struct Client {
    /// Connections on which everything was done.
    pub done: u64,
    /// When the last of them was.
    pub done_at: Instant,
    /// When the last handshake was complete.
    pub connected_at: Instant,
    /// Bytes of answers that have arrived, on all connections.
    pub received: u64,
    /// Connections that were resumed.
    pub resumed: u64,
    /// Paths that were opened beside the first.
    pub paths_opened: u64,
    /// What their connections counted.
    pub counters: Counters,
    /// What the search for larger packets found on the connection that had the last turn.
    pub mtu: MtuReport,
    /// Why connections ended.
    pub reasons: Vec<CloseReason>,
    /// Everything that went wrong.
    pub failures: Vec<String>,
}

impl App for Client {
    type State = TransferPlan;

    /// Never called: a client's endpoint refuses connections.
    fn on_accept(&mut self, _now: Instant, connection: &mut Connection) -> TransferPlan {
        self.failures.push(format!("a peer connected to the client from {}", connection.addresses().peer));
        TransferPlan::new(ReadBehaviour::new(base::rng::Rng::from_u64(0), 0), [], 1)
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, client_plan: &mut TransferPlan) -> Next {
        while let Some(event) = connection.next_event() {
            self.paths_opened += u64::from(matches!(event, Event::PathOpened { .. }));
            client_plan.on_event(event, &mut self.reasons);
        }
        for id in core::mem::take(&mut client_plan.paused) {
            connection.deliver(now, id, client_plan);
        }
        self.received += core::mem::take(&mut client_plan.received);
        self.mtu = connection.mtu_report();
        let is_early = connection.early_status() == EarlyStatus::Offered;
        if connection.is_connected() && !client_plan.is_counted {
            (client_plan.is_counted, self.connected_at) = (true, now);
            self.resumed += u64::from(connection.is_resumed());
        }
        if (connection.is_connected() || is_early) && !client_plan.is_done {
            for (id, is_cancelled) in core::mem::take(&mut client_plan.over) {
                if client_plan.exchanges.remove(&id).is_some() && is_cancelled {
                    connection.stop_sending(id, CANCEL);
                    // Every other one leaves its header to be delivered.
                    let is_at = id.index() % 2 == 1 && connection.reset_at(id, CANCEL, HEADER).is_ok();
                    if !is_at {
                        connection.reset(id, CANCEL);
                    }
                }
            }
            client_plan.open(connection);
            for id in core::mem::take(&mut client_plan.sending) {
                client_plan.send(connection, id);
            }
            client_plan.send_datagrams(connection);
            if client_plan.key_updates > 0 && connection.update_keys(now) {
                client_plan.key_updates -= 1;
            }
            let is_over = client_plan.exchanges.is_empty() && client_plan.waiting.is_empty();
            if is_over && connection.is_connected() {
                client_plan.is_done = true;
                (self.done, self.done_at) = (self.done + 1, now);
                self.counters = *connection.counters();
                connection.close(now, 0, b"done");
            }
        }
        self.failures.append(&mut client_plan.failures);
        let moves_at = client_plan.travels.on_turn(now, connection);
        let waits = client_plan.paused.is_empty() || connection.is_closed();
        let looks_at = (!waits).then(|| now + PAUSE);
        moves_at.into_iter().chain(looks_at).min().map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, _now: Instant, _connection: &Connection, mut client_plan: TransferPlan) {
        self.failures.append(&mut client_plan.failures);
        if !client_plan.is_done {
            self.failures.push("gone before all was done".to_owned());
        }
    }
}
