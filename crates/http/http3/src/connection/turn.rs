//! The turn: what happened below is taken in, what was noted is asked of the transport, deadlines are looked at.

use super::Connection;
use super::receive::Action;
use crate::error::{Code, ConnectionError, Violation};
use crate::fields;
use crate::message::Deadlines;
use crate::outgoing::Outgoing;
use crate::quic::QuicConnection;
use crate::sink::MessageSink;
use base::time::Instant;
use transport::{Dir, Event, StreamId};
use wire::Side;

impl Connection {
    /// Takes in the transport's events and asks of it what is due. Call it after the transport received something, after
    /// its timers ran, and when [`Connection::next_timeout`] says so. Afterwards call the transport's `transmit`.
    pub fn on_turn<S: MessageSink>(&mut self, quic: &mut impl QuicConnection, sink: &mut S, now: Instant) {
        self.now = now;
        self.abuse_budgets.on_turn(now);
        if let Some(trace) = &mut self.trace {
            trace.on_turn(quic, now);
        }
        while let Some(event) = quic.next_event() {
            if let Err(error) = self.on_event(sink, &event) {
                self.fail(error);
            }
        }
        if self.closed {
            return;
        }
        self.compare_settings(quic);
        self.local.open(quic, || self.config.settings(), &mut self.trace);
        if now >= self.next_scan
            && let Err(error) = self.scan(sink, now)
        {
            self.fail(error);
        }
        self.act(quic, now);
    }

    /// When [`Connection::on_turn`] must be called at the latest.
    pub fn next_timeout(&self) -> Option<Instant> {
        let waiting = !self.exchanges.is_empty() && !self.closed && self.config.scan_interval().is_some();
        waiting.then_some(self.next_scan)
    }

    fn on_event<S: MessageSink>(&mut self, sink: &mut S, event: &Event) -> Result<(), ConnectionError> {
        if let Event::Closed(_) = event {
            self.closed = true;
        }
        if self.failure.is_some() && !self.closed {
            return Ok(());
        }
        match *event {
            Event::StreamReset { id, code } => self.on_stream_reset(sink, id, Code(code)),
            Event::StopSending { id, code } => self.on_stop_sending(sink, id, Code(code)),
            Event::Writable { id } => {
                if id.dir() == Dir::Bidi {
                    sink.on_writable(id);
                }
                Ok(())
            }
            Event::Finished { id } => {
                if id.dir() == Dir::Bidi {
                    sink.on_acknowledged(id);
                }
                Ok(())
            }
            _ => {
                sink.on_event(event);
                Ok(())
            }
        }
    }

    /// Asks of the transport what was noted.
    pub(crate) fn act(&mut self, quic: &mut impl QuicConnection, now: Instant) {
        if let Some(error) = self.failure {
            if !self.closed {
                self.closed = true;
                quic.close(now, error.code.0, error.reason.as_bytes());
            }
            self.actions.clear();
            return;
        }
        let mut actions = core::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Reset { id, code } => {
                    quic.reset(id, code.0);
                    quic.stop_sending(id, code.0);
                }
                Action::StopSending { id, code } => quic.stop_sending(id, code.0),
                Action::Refuse { id } => self.refuse(quic, id),
                Action::SetPriority { id, priority } => {
                    quic.set_priority(id, priority);
                    if let Some(trace) = &mut self.trace {
                        trace.on_priority(quic, id, priority);
                    }
                }
            }
        }
        self.actions = actions;
    }

    /// RFC 9114 §4.2.2: a request whose head is too large is told so. What remains of it is not wanted.
    fn refuse(&mut self, quic: &mut impl QuicConnection, id: StreamId) {
        let no_content = [(&b"content-length"[..], &b"0"[..])];
        let (bytes, size) = self.arena().head(None, |out| fields::write_response(431, no_content, out));
        let fits = size <= self.peer_max_field_section_size();
        if !fits || quic.write(id, bytes.clone()).and_then(|()| quic.finish(id)).is_err() {
            quic.reset(id, Code::EXCESSIVE_LOAD.0);
        } else if let Some(trace) = &mut self.trace {
            trace.on_sent(quic, id, &bytes);
        }
        quic.stop_sending(id, Code::NO_ERROR.0);
        self.exchanges.remove(id.index());
    }

    /// Looks for messages that are overdue. RFC 9000 §21.6.
    fn scan<S: MessageSink>(&mut self, sink: &mut S, now: Instant) -> Result<(), ConnectionError> {
        let Some(interval) = self.config.scan_interval() else { return Ok(()) };
        self.next_scan = now + interval;
        let deadlines = Deadlines {
            head: self.config.head_timeout,
            body: self.config.body_timeout,
            body_bytes: self.config.min_body_bytes,
        };
        let overdue: Vec<(u64, &'static str)> = self
            .exchanges
            .iter_mut()
            .filter_map(|(index, exchange)| {
                exchange.incoming.is_overdue(now, &deadlines).map(|reason| (index, reason))
            })
            .collect();
        for (index, reason) in overdue {
            let code = if self.side.is_server() { Code::REQUEST_INCOMPLETE } else { Code::REQUEST_CANCELLED };
            let id = StreamId::new(Side::Client, Dir::Bidi, index);
            let is_discarded =
                self.exchanges.entry_mut(index).is_some_and(|entry| entry.incoming.is_discarded());
            let slow = Violation::Stream { code, reason };
            self.on_violation(sink, id, if is_discarded { Violation::Unwanted } else { slow })?;
        }
        Ok(())
    }

    /// What we sent on an exchange has come to its end.
    pub(super) fn on_sent_all(&mut self, id: StreamId) {
        if let Some(exchange) = self.exchanges.entry_mut(id.index()) {
            exchange.outgoing = Outgoing::Done;
            if exchange.is_over() {
                self.exchanges.remove(id.index());
            }
        }
    }
}
