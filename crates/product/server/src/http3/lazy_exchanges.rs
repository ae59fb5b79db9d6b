//! The exchanges of a connection, kept only while there are any.
//!
//! An idle connection has none, and a dozen empty lists are a twentieth of what it holds. Reading finds an empty value where none is kept;
//! changing makes one, which goes when the connection is quiet and all of its lists are empty.

use super::exchanges::Exchanges;
use crate::early_data::EarlyData;
use crate::low::Handler;
use core::ops::{Deref, DerefMut};
use http3::{Abort, Code, MessageSink, Refused, RequestHead, Trailers};
use transport::StreamId;

/// The exchanges of a connection.
pub(super) struct LazyExchanges<H: Handler> {
    kept: Option<Box<Exchanges<H>>>,
    rule: EarlyData,
    /// Bytes of content that arrived before `kept` was made.
    received: u64,
}

impl<H: Handler> LazyExchanges<H> {
    const EMPTY: &'static Exchanges<H> = &Exchanges::EMPTY;

    /// Of a connection whose early requests are treated like this.
    pub(super) fn new(rule: EarlyData) -> LazyExchanges<H> {
        LazyExchanges { kept: None, rule, received: 0 }
    }

    /// Bytes of content of all requests that arrived.
    pub(super) fn received(&self) -> u64 {
        self.received.saturating_add(self.kept.as_ref().map_or(0, |kept| kept.received))
    }

    /// Bytes that heads hold; counted anew when they may be many.
    pub(super) fn head_bytes(&mut self) -> usize {
        self.kept.as_mut().map_or(0, |kept| kept.head_bytes())
    }

    /// Gives back memory that requests to come would use again.
    pub(super) fn release_memory(&mut self) {
        let Some(kept) = &mut self.kept else { return };
        kept.release_memory();
        if kept.is_empty() {
            self.received = self.received();
            self.kept = None;
        }
    }
}

impl<H: Handler> Deref for LazyExchanges<H> {
    type Target = Exchanges<H>;

    #[inline]
    fn deref(&self) -> &Exchanges<H> {
        self.kept.as_deref().unwrap_or(Self::EMPTY)
    }
}

impl<H: Handler> DerefMut for LazyExchanges<H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Exchanges<H> {
        let rule = self.rule;
        self.kept.get_or_insert_with(|| Box::new(Exchanges::new(rule)))
    }
}

impl<H: Handler> MessageSink for LazyExchanges<H> {
    fn on_request(&mut self, id: StreamId, request: &RequestHead<'_>) {
        (**self).on_request(id, request);
    }

    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        (**self).on_body(id, bytes)
    }

    fn on_trailers(&mut self, id: StreamId, trailers: &Trailers<'_>) {
        (**self).on_trailers(id, trailers);
    }

    fn on_refused(&mut self, id: StreamId, status: u16) -> Refused {
        (**self).on_refused(id, status)
    }

    fn on_end(&mut self, id: StreamId) {
        (**self).on_end(id);
    }

    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        (**self).on_abort(id, abort);
    }

    fn on_stop_sending(&mut self, id: StreamId, code: Code) {
        (**self).on_stop_sending(id, code);
    }

    fn on_acknowledged(&mut self, id: StreamId) {
        (**self).on_acknowledged(id);
    }

    fn on_writable(&mut self, id: StreamId) {
        (**self).on_writable(id);
    }
}
