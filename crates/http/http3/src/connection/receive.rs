//! Stream bytes on their way in: to the message, or to the reader of a critical stream.

use super::Connection;
use crate::control::ControlFrame;
use crate::error::{Code, ConnectionError, Violation};
use crate::exchange::Exchange;
use crate::fields::SectionReader;
use crate::message::{Answers, Message, Shared};
use crate::outgoing::Outgoing;
use crate::sink::{Abort, MessageSink, Refused};
use crate::unidirectional::{CLOSED, Outcome, Purpose};
use transport::{Dir, Fin, Priority, StreamId};
use wire::Side;

/// Something that the transport is to be asked once it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Give up both directions of a stream.
    Reset { id: StreamId, code: Code },
    /// A stream whose rest means nothing to us.
    StopSending { id: StreamId, code: Code },
    /// Answer with 431 (Request Header Fields Too Large).
    Refuse { id: StreamId },
    /// Serve a stream sooner or later than others.
    SetPriority { id: StreamId, priority: Priority },
}

/// Far more than one turn's packets can cause by way of the limits on streams.
const MAX_ACTIONS: usize = 65_536;
/// With this many actions in a turn, priorities are no longer heeded: they are hints.
const MAX_PRIORITIES: usize = 4_096;
/// Of a request whose head is too large this many bytes may still come before its answer says how many more.
const REFUSED: u64 = 1 << 20;
/// Priorities kept for streams that are not open yet: as many as streams are usually allowed.
const MAX_EARLY_PRIORITIES: usize = 100;

impl Connection {
    /// The next bytes of a stream, lent by the transport while it receives. Returns how many were taken.
    #[inline]
    pub fn on_stream_data<S: MessageSink>(
        &mut self,
        sink: &mut S,
        id: StreamId,
        bytes: &[u8],
        fin: Fin,
    ) -> usize {
        if self.failure.is_some() {
            return bytes.len();
        }
        let outcome = match id.dir() {
            Dir::Bidi if id.initiator() == Side::Client => self.on_request_stream(sink, id, bytes, fin),
            Dir::Uni => self.on_unidirectional(sink, id, bytes, fin).map(|()| bytes.len()),
            // RFC 9114 §6.1.
            //= rfc9114/6.1#1
            Dir::Bidi => Err(ConnectionError {
                code: Code::STREAM_CREATION_ERROR,
                reason: "bidirectional stream from a server",
            }),
        };
        outcome.unwrap_or_else(|error| {
            self.fail(error);
            bytes.len()
        })
    }

    #[inline]
    fn on_request_stream<S: MessageSink>(
        &mut self,
        sink: &mut S,
        id: StreamId,
        bytes: &[u8],
        fin: Fin,
    ) -> Result<usize, ConnectionError> {
        let index = id.index();
        if index >= self.exchanges.next() {
            self.on_opened(index)?;
        }
        let Some(exchange) = self.exchanges.entry_mut(index) else {
            // Over: what still arrives was sent before the peer heard of it.
            return Ok(bytes.len());
        };
        let mut priority = None;
        let limits = || Box::new(SectionReader::new(self.config.limits()));
        let mut shared = Shared {
            side: self.side,
            sections: self.sections.get_or_insert_with(limits),
            max_field_section_size: self.config.max_field_section_size,
            extended_connect: self.config.extended_connect(),
            abuse_budgets: &mut self.abuse_budgets,
            buffered: &mut self.buffered,
            max_buffered: self.config.max_buffered(),
            priority: &mut priority,
            trace: self.trace.as_deref_mut(),
            now: self.now,
            sink: &mut *sink,
        };
        match exchange.incoming.on_bytes(id, bytes, fin, &mut shared) {
            Ok(taken) => {
                if exchange.is_over() {
                    self.exchanges.remove(index);
                }
                if priority.is_some() || !self.early_priorities.is_empty() {
                    self.on_head_priority(id, priority)?;
                }
                Ok(taken)
            }
            Err(violation) => {
                self.on_violation(sink, id, violation)?;
                if fin == Fin::End {
                    self.end_discarded(id);
                }
                Ok(bytes.len())
            }
        }
    }

    /// The client opened streams up to this one. RFC 9000 §3.2: those below it too.
    #[cold]
    fn on_opened(&mut self, index: u64) -> Result<(), ConnectionError> {
        if self.side.is_client() {
            // The transport lets no data in for streams that we did not open.
            return Ok(());
        }
        for index in self.exchanges.next()..=index {
            let id = StreamId::new(Side::Client, Dir::Bidi, index);
            //= rfc9114/5.2#6
            if id.as_u64() >= self.local.rejected_from() {
                self.exchanges.skip(index);
                self.note(Action::Reset { id, code: Code::REQUEST_REJECTED })?;
                continue;
            }
            let exchange = Exchange { incoming: Message::new(Answers::Other), outgoing: Outgoing::Head };
            self.exchanges.insert(index, exchange);
            self.abuse_budgets.on_exchange();
            if let Some(trace) = &mut self.trace {
                trace.on_request_stream(id);
            }
        }
        Ok(())
    }

    /// The rest of a message does not matter, and its end has come.
    fn end_discarded(&mut self, id: StreamId) {
        let Some(exchange) = self.exchanges.entry_mut(id.index()) else { return };
        if exchange.incoming.is_discarded() {
            exchange.incoming.give_up();
            if exchange.is_over() {
                self.exchanges.remove(id.index());
            }
        }
    }

    /// What is wrong on a request stream, if it does not end the connection, ends the stream.
    pub(super) fn on_violation<S: MessageSink>(
        &mut self,
        sink: &mut S,
        id: StreamId,
        violation: Violation,
    ) -> Result<(), ConnectionError> {
        let Some(exchange) = self.exchanges.entry_mut(id.index()) else { return Ok(()) };
        let begun = exchange.incoming.has_begun() || self.side.is_client();
        let (code, reason) = match violation {
            Violation::Connection(error) => return Err(error),
            Violation::Stream { code, reason } => (code, reason),
            Violation::TooLarge if begun => (Code::REQUEST_CANCELLED, "field section too large"),
            //= rfc9114/10.5.1#1
            Violation::TooLarge if sink.on_refused(id, 431) == Refused::ByApplication => {
                self.buffered = self.buffered.saturating_sub(exchange.incoming.discard(REFUSED));
                return Ok(());
            }
            Violation::TooLarge => {
                self.buffered = self.buffered.saturating_sub(exchange.incoming.give_up());
                return self.note(Action::Refuse { id });
            }
            Violation::Unwanted => {
                exchange.incoming.give_up();
                if exchange.is_over() {
                    self.exchanges.remove(id.index());
                }
                //= rfc9114/4.1#5
                return self.note(Action::StopSending { id, code: Code::NO_ERROR });
            }
        };
        self.buffered = self.buffered.saturating_sub(exchange.incoming.give_up());
        self.exchanges.remove(id.index());
        if begun {
            sink.on_abort(id, Abort::Local { code, reason });
        }
        self.note(Action::Reset { id, code })
    }

    fn on_unidirectional<S: MessageSink>(
        &mut self,
        sink: &mut S,
        id: StreamId,
        bytes: &[u8],
        fin: Fin,
    ) -> Result<(), ConnectionError> {
        match self.peer_streams.on_bytes(id, bytes, fin, self.trace.as_deref_mut())? {
            Outcome::Nothing => Ok(()),
            Outcome::Unknown => {
                self.abuse_budgets.on_idle_work(1)?;
                match fin {
                    //= rfc9114/6.2#1
                    Fin::Open => self.note(Action::StopSending { id, code: Code::STREAM_CREATION_ERROR }),
                    Fin::End => Ok(()),
                }
            }
            Outcome::Bytes(purpose, bytes) => {
                self.on_critical_stream(sink, purpose, bytes)?;
                if fin == Fin::End { Err(CLOSED) } else { Ok(()) }
            }
        }
    }

    fn on_critical_stream<S: MessageSink>(
        &mut self,
        sink: &mut S,
        purpose: Purpose,
        mut bytes: &[u8],
    ) -> Result<(), ConnectionError> {
        match purpose {
            Purpose::QpackEncoder => {
                let instructions = self.peer_streams.encoder.on_bytes(bytes)?;
                self.abuse_budgets.on_idle_work(instructions)
            }
            Purpose::QpackDecoder => {
                let instructions = self.peer_streams.decoder.on_bytes(bytes)?;
                self.abuse_budgets.on_idle_work(instructions)
            }
            Purpose::Control => {
                while let Some(frame) =
                    self.peer_streams.control.next_frame(&mut bytes, self.trace.as_deref_mut())?
                {
                    self.on_control_frame(sink, frame)?;
                }
                Ok(())
            }
        }
    }

    fn on_control_frame<S: MessageSink>(
        &mut self,
        sink: &mut S,
        frame: ControlFrame,
    ) -> Result<(), ConnectionError> {
        match frame {
            ControlFrame::Settings(settings) => {
                self.settings.on_told(settings);
                Ok(())
            }
            ControlFrame::Goaway(id) => {
                self.abuse_budgets.on_idle_work(1)?;
                self.on_goaway(sink, id)
            }
            ControlFrame::MaxPushId | ControlFrame::Unknown => self.abuse_budgets.on_idle_work(1),
            ControlFrame::PriorityUpdate { stream, priority } => {
                self.abuse_budgets.on_idle_work(1)?;
                self.on_priority_update(StreamId::from_u64(stream), priority)
            }
        }
    }

    /// RFC 9114 §5.2: a server did not and will not look at requests from this ID on.
    fn on_goaway<S: MessageSink>(&mut self, sink: &mut S, from: u64) -> Result<(), ConnectionError> {
        let first = self.peer_goaway.replace(from).is_none();
        if self.side.is_client() {
            let mut rejected: Vec<u64> =
                self.exchanges.iter_mut().map(|(index, _)| index).filter(|index| index * 4 >= from).collect();
            rejected.sort_unstable();
            for index in rejected {
                let id = StreamId::new(Side::Client, Dir::Bidi, index);
                if let Some(mut exchange) = self.exchanges.remove(index) {
                    self.buffered = self.buffered.saturating_sub(exchange.incoming.give_up());
                    //= rfc9114/5.2#5
                    sink.on_abort(id, Abort::Peer(Code::REQUEST_REJECTED));
                    self.note(Action::Reset { id, code: Code::REQUEST_CANCELLED })?;
                }
            }
        }
        if first {
            sink.on_goaway();
        }
        Ok(())
    }

    /// Bytes of a request arrived, perhaps its head with a priority field. RFC 9218 §7: a PRIORITY_UPDATE that came before
    /// overrides the field.
    fn on_head_priority(&mut self, id: StreamId, asked: Option<Priority>) -> Result<(), ConnectionError> {
        let is_early = self.exchanges.entry_mut(id.index()).is_some_and(|entry| !entry.incoming.has_begun());
        if is_early {
            return Ok(());
        }
        let kept = self.early_priorities.iter().position(|(early, _)| *early == id.as_u64());
        let kept = kept.map(|at| self.early_priorities.swap_remove(at).1);
        match kept.or(asked) {
            Some(priority) => self.note(Action::SetPriority { id, priority }),
            None => Ok(()),
        }
    }

    /// The client reconsidered a priority. RFC 9218 §7: the latest word counts, and one about a request whose head has not
    /// come yet is kept.
    fn on_priority_update(&mut self, id: StreamId, priority: Priority) -> Result<(), ConnectionError> {
        let next = self.exchanges.next();
        match self.exchanges.entry_mut(id.index()) {
            Some(exchange) if exchange.incoming.has_begun() => {
                return self.note(Action::SetPriority { id, priority });
            }
            None if id.index() < next => return Ok(()),
            _ => {}
        }
        if self.early_priorities.len() >= MAX_EARLY_PRIORITIES {
            // Requests that ended without a head.
            let exchanges = &mut self.exchanges;
            self.early_priorities
                .retain(|(early, _)| *early / 4 >= next || exchanges.entry_mut(*early / 4).is_some());
        }
        let room = self.early_priorities.len() < MAX_EARLY_PRIORITIES;
        match self.early_priorities.iter_mut().find(|(early, _)| *early == id.as_u64()) {
            Some((_, before)) => *before = priority,
            None if room => self.early_priorities.push((id.as_u64(), priority)),
            None => {}
        }
        Ok(())
    }

    /// Notes something for the next turn. The one place where the list grows.
    pub(super) fn note(&mut self, action: Action) -> Result<(), ConnectionError> {
        if self.actions.len() >= MAX_PRIORITIES && matches!(action, Action::SetPriority { .. }) {
            return Ok(());
        }
        if self.actions.len() >= MAX_ACTIONS {
            let reason = "too many streams given up at once";
            return Err(ConnectionError { code: Code::EXCESSIVE_LOAD, reason });
        }
        self.actions.push(action);
        Ok(())
    }

    /// The peer reset a stream. RFC 9114 §4.1.1, §6.2.1.
    pub(super) fn on_stream_reset<S: MessageSink>(
        &mut self,
        sink: &mut S,
        id: StreamId,
        code: Code,
    ) -> Result<(), ConnectionError> {
        if id.dir() == Dir::Uni {
            return self.peer_streams.on_reset(id);
        }
        if id.index() >= self.exchanges.next() {
            self.on_opened(id.index())?;
        }
        let Some(exchange) = self.exchanges.entry_mut(id.index()) else { return Ok(()) };
        if exchange.incoming.is_ended() {
            return Ok(());
        }
        if exchange.incoming.is_discarded() {
            // It was answered, and the client stops sending what does not matter.
            self.end_discarded(id);
            return Ok(());
        }
        let begun = exchange.incoming.has_begun();
        let answered = exchange.outgoing.is_done();
        self.buffered = self.buffered.saturating_sub(exchange.incoming.give_up());
        self.exchanges.remove(id.index());
        if begun || self.side.is_client() {
            sink.on_abort(id, Abort::Peer(code));
        }
        if answered {
            return Ok(());
        }
        // RFC 9114 §4.1.1: rejected says that the application did not see the request. A client never says so.
        let code = match (self.side, begun) {
            //= rfc9114/4.1.1#1
            (Side::Server, false) => Code::REQUEST_REJECTED,
            _ => Code::REQUEST_CANCELLED,
        };
        self.note(Action::Reset { id, code })?;
        if self.side.is_server() { self.abuse_budgets.on_withdrawn() } else { Ok(()) }
    }

    /// The peer wants nothing more of what we send on a stream.
    pub(super) fn on_stop_sending<S: MessageSink>(
        &mut self,
        sink: &mut S,
        id: StreamId,
        code: Code,
    ) -> Result<(), ConnectionError> {
        //= rfc9204/4.2#2
        if self.local.contains(id) {
            let reason = "control or QPACK stream stopped";
            return Err(ConnectionError { code: Code::CLOSED_CRITICAL_STREAM, reason });
        }
        if id.dir() == Dir::Bidi && id.index() >= self.exchanges.next() {
            self.on_opened(id.index())?;
        }
        if id.dir() == Dir::Uni {
            return Ok(());
        }
        let exchange = self.exchanges.entry_mut(id.index()).filter(|exchange| !exchange.outgoing.is_done());
        let Some(exchange) = exchange else {
            if self.side.is_server() {
                sink.on_stop_sending(id, code);
            }
            return Ok(());
        };
        exchange.outgoing = Outgoing::Done;
        let over = exchange.is_over();
        let begun = exchange.incoming.has_begun();
        if over {
            self.exchanges.remove(id.index());
        }
        if begun || self.side.is_client() {
            sink.on_stop_sending(id, code);
        }
        if self.side.is_server() { self.abuse_budgets.on_withdrawn() } else { Ok(()) }
    }
}
