//! One connection's answers, on their way to the downloads that asked for them.
//!
//! The transport lends content from the packet it decrypted; it goes to the output from there, without a copy of ours but
//! the one that gathers a file's bytes for large writes.

use crate::answer::Answer;
use crate::download::Download;
use crate::error::{GetError, shown};
use crate::exchange::Exchange;
use crate::fault;
use crate::transfer::Transfer;
use base::slab::{Handle, Slab};
use base::time::{Duration, Instant};
use core::fmt::Write as _;
use http3::{Abort, Code, MessageSink, ResponseHead};
use transport::{CloseReason, Event, StreamId};

/// An exchange and whose it is.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) transfer: Handle,
    pub(crate) exchange: Exchange,
}

/// The application's end of a connection.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) transfers: Slab<Transfer>,
    /// A handful: a scan finds one faster than a table would.
    pub(crate) streams: Vec<Stream>,
    /// Something happened other than content: the turn must look.
    pub(crate) needs_attention: bool,
    pub(crate) is_connected: bool,
    pub(crate) is_going_away: bool,
    pub(crate) closed: Option<CloseReason>,
    /// When something of an answer last arrived, to the nearest tick.
    heard: Instant,
}

impl Messages {
    #[inline]
    fn find(&mut self, id: StreamId) -> Option<(&mut Download, &mut Exchange)> {
        let stream = self.streams.iter_mut().find(|stream| stream.id == id)?;
        let transfer = self.transfers.entry_mut(stream.transfer)?;
        Some((&mut transfer.download, &mut stream.exchange))
    }

    fn forget(&mut self, id: StreamId) {
        self.streams.retain(|stream| stream.id != id);
        self.needs_attention = true;
    }

    /// Time has passed: downloads whose server is silent give up.
    pub(crate) fn on_tick(&mut self, now: Instant, patience: Duration) {
        // All of them, so that each takes note of what it has.
        let advanced =
            self.transfers.iter_mut().filter_map(|(_, each)| each.has_advanced().then_some(())).count();
        if advanced > 0 {
            self.heard = now;
        }
        for (_, transfer) in self.transfers.iter_mut() {
            transfer.on_tick(now, self.heard, patience);
            self.needs_attention |= transfer.download.has_failed();
        }
    }

    /// Whether a download has something to ask.
    #[inline]
    pub(crate) fn request_app(&mut self) -> Option<Handle> {
        self.transfers.iter_mut().find(|(_, each)| each.download.wants_stream()).map(|(handle, _)| handle)
    }
}

impl MessageSink for Messages {
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        if head.is_interim() {
            return;
        }
        self.needs_attention = true;
        let Some((download, exchange)) = self.find(id) else { return };
        let mut answer = Answer::default();
        let mut text = format!("HTTP/3 {}\n", head.status());
        let mut outcome = answer.on_field(b":status", head.status().to_string().as_bytes());
        for line in head.fields() {
            outcome = outcome.and_then(|()| answer.on_field(line.name, line.value));
            let (name, value) = (String::from_utf8_lossy(line.name), String::from_utf8_lossy(line.value));
            let _ = writeln!(text, "{}: {}", shown(&name), shown(&value));
        }
        if download.is_head_only() {
            download.on_head_text(&text);
        }
        match outcome {
            Ok(()) => download.on_answer(exchange, &answer),
            Err(error) => download.fail(error),
        }
    }

    #[inline]
    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        if let Some((download, exchange)) = self.find(id) {
            download.on_body(exchange, bytes);
            if !download.is_current(exchange) {
                // Its stream is to be given up.
                self.needs_attention = true;
            }
        }
        bytes.len()
    }

    fn on_end(&mut self, id: StreamId) {
        if let Some((download, exchange)) = self.find(id) {
            download.on_end(exchange);
        }
        self.forget(id);
    }

    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        if let Some((download, exchange)) = self.find(id) {
            if abort == Abort::Peer(Code::REQUEST_REJECTED) {
                download.take_back(exchange);
            } else if download.is_current(exchange) {
                download.on_cut(exchange);
                let error: GetError = fault::of_abort(abort, exchange.owed());
                download.fail(error);
            }
        }
        self.forget(id);
    }

    fn on_goaway(&mut self) {
        (self.is_going_away, self.needs_attention) = (true, true);
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Connected => self.is_connected = true,
            Event::Closed(reason) => self.closed = Some(reason.clone()),
            _ => {}
        }
        self.needs_attention = true;
    }
}
