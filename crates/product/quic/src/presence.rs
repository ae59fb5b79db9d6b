//! What the worker keeps for a connection beside the connection itself.

use crate::arrivals::Arrivals;
use crate::error::ConnectionError;
use crate::hub::Hub;
use crate::shared::Shared;
use std::sync::Arc;
use transport::{Fin, StreamId, StreamSink};

/// A connection's application, as the worker sees it. When it is dropped, nothing of the connection is left but handles.
pub(crate) struct Presence {
    pub(crate) shared: Arc<Shared>,
    pub(crate) arrivals: Box<Arrivals>,
    hub: Arc<Hub>,
}

impl Presence {
    /// Of a connection that `hub` counts already.
    pub(crate) fn new(shared: Arc<Shared>, hub: Arc<Hub>) -> Presence {
        Presence { shared, arrivals: Box::new(Arrivals::new()), hub }
    }
}

impl StreamSink for Presence {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.arrivals.on_stream_data(id, bytes, fin)
    }

    fn on_datagram(&mut self, bytes: &[u8]) {
        self.arrivals.on_datagram(bytes);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Has no effect where the connection has ended in order.
        self.shared.fail(ConnectionError::LocallyClosed);
        self.hub.on_gone();
    }
}
