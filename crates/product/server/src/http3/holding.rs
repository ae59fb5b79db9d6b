//! What a connection holds of the server: whether its client takes what it asked for, and what it costs in memory.

use super::{Server, State};
use crate::budget::{self, Verdict};
use crate::low::Handler;
use crate::progress::Look;
use crate::warnings::Warning;
use base::time::Instant;
use http3::Code;
use transport::Connection;

impl<H: Handler> Server<H> {
    /// Ends the connection if its client takes too little. Returns when to look again.
    pub(super) fn watch(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        state: &mut State<H>,
    ) -> Option<Instant> {
        let State { session, watch, .. } = state;
        let is_owed = !connection.is_closed()
            // While a client waits for us it is not the client that takes too little.
            && !session.messages.is_kept_waiting()
            && (!session.messages.replies.is_empty() || connection.unacknowledged_bytes() > 0);
        let moved = connection.delivered_bytes().saturating_add(session.messages.received());
        match watch.look(now, is_owed.then_some(moved), &self.progress) {
            Look::Idle => None,
            Look::Until(end) => Some(end),
            Look::Stalled => {
                self.journal.served.stalled += 1;
                self.shared.warnings.note(Warning::SlowClients, 1);
                connection.close(now, Code::EXCESSIVE_LOAD.0, b"too little was taken of what was asked for");
                None
            }
        }
    }

    /// Accounts for what the connection holds, and does what follows from that.
    pub(super) fn settle(&mut self, now: Instant, connection: &mut Connection, state: &mut State<H>) {
        let messages = &mut state.session.messages;
        let bytes = budget::CONNECTION
            + budget::STREAM * connection.open_streams() as u64
            + connection.retained_bytes()
            + connection.trace_bytes()
            + (messages.head_bytes() + messages.upload_bytes()) as u64;
        let moved = connection.delivered_bytes().saturating_add(messages.received());
        let is_idle = messages.replies.is_empty() && connection.unacknowledged_bytes() == 0;
        match self.ledger.on_turn(now, (state.call.handle(), &mut state.held), bytes, moved) {
            Verdict::End if !connection.is_closed() => {
                self.journal.served.evicted += 1;
                self.shared.warnings.note(Warning::BudgetExceeded, 1);
                let code = if is_idle { Code::NO_ERROR } else { Code::EXCESSIVE_LOAD };
                connection.close(now, code.0, b"the server is short of memory");
            }
            Verdict::Limit(limit) => connection.limit_memory(limit),
            Verdict::Keep | Verdict::End => {}
        }
    }
}
