//! What HTTP/3 asks of the QUIC connection below it.
//!
//! There is one implementation, [`transport::Connection`], and a second in the tests, which writes down what it is asked.
//! A type parameter, not a trait object: the calls are resolved when the program is built.

use base::time::Instant;
use bytes::Bytes;
use transport::{Connection, Dir, EarlyStatus, Event, OpenError, Priority, StreamId, StreamSink, WriteError};

/// A QUIC connection as HTTP/3 uses it. The methods mean what those of [`transport::Connection`] mean.
pub trait QuicConnection {
    /// Opens a stream of our own.
    ///
    /// # Errors
    /// The peer allows no more at present.
    fn open(&mut self, dir: Dir) -> Result<StreamId, OpenError>;
    /// Hands over bytes to be sent.
    ///
    /// # Errors
    /// The stream is over.
    fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), WriteError>;
    /// No more bytes follow.
    ///
    /// # Errors
    /// The stream is over.
    fn finish(&mut self, id: StreamId) -> Result<(), WriteError>;
    /// Hands over the last bytes, in two pieces, and the end.
    ///
    /// # Errors
    /// The stream is over.
    fn write_whole(&mut self, id: StreamId, [first, second]: [Bytes; 2]) -> Result<(), WriteError> {
        self.write(id, first)?;
        self.write(id, second)?;
        self.finish(id)
    }
    /// Gives up sending on a stream.
    fn reset(&mut self, id: StreamId, code: u64);
    /// Asks the peer to give up sending on a stream; what still arrives is discarded below.
    fn stop_sending(&mut self, id: StreamId, code: u64);
    /// How the stream shares the connection with others.
    fn set_priority(&mut self, id: StreamId, priority: Priority);
    /// The stream comes after those of the default priority, unless it was given another than that.
    fn defer(&mut self, id: StreamId);
    /// Lends a paused stream's bytes again.
    fn deliver(&mut self, now: Instant, id: StreamId, sink: &mut impl StreamSink);
    /// What happened since the last call.
    fn next_event(&mut self) -> Option<Event>;
    /// Closes the connection.
    fn close(&mut self, now: Instant, code: u64, reason: &[u8]);
    /// On a client that may send early data: what an earlier connection has kept of this server.
    fn remembered(&self) -> Option<Vec<u8>>;
    /// Keeps what the next connection to this server shall remember.
    fn remember(&mut self, state: &[u8]);
    /// Whether the server has taken early data.
    fn is_early_data_accepted(&self) -> bool;
    /// The connection's trace, if it is traced.
    fn trace(&mut self) -> Option<&mut qlog::Trace> {
        None
    }
}

impl QuicConnection for Connection {
    fn open(&mut self, dir: Dir) -> Result<StreamId, OpenError> {
        Connection::open(self, dir)
    }
    #[inline]
    fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), WriteError> {
        Connection::write(self, id, bytes)
    }
    #[inline]
    fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.finish_stream(id)
    }
    #[inline]
    fn write_whole(&mut self, id: StreamId, pieces: [Bytes; 2]) -> Result<(), WriteError> {
        Connection::write_whole(self, id, pieces)
    }
    fn reset(&mut self, id: StreamId, code: u64) {
        Connection::reset(self, id, code);
    }
    fn stop_sending(&mut self, id: StreamId, code: u64) {
        Connection::stop_sending(self, id, code);
    }
    fn set_priority(&mut self, id: StreamId, priority: Priority) {
        Connection::set_priority(self, id, priority);
    }
    fn defer(&mut self, id: StreamId) {
        let usual = Priority::default();
        if self.priority(id) == usual {
            Connection::set_priority(self, id, Priority { urgency: usual.urgency + 1, ..usual });
        }
    }
    fn deliver(&mut self, now: Instant, id: StreamId, sink: &mut impl StreamSink) {
        Connection::deliver(self, now, id, sink);
    }
    #[inline]
    fn next_event(&mut self) -> Option<Event> {
        Connection::next_event(self)
    }
    fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        Connection::close(self, now, code, reason);
    }
    fn remembered(&self) -> Option<Vec<u8>> {
        if self.early_status() == EarlyStatus::Offered { self.kept_application() } else { None }
    }
    fn remember(&mut self, state: &[u8]) {
        self.keep_application(state);
    }
    fn is_early_data_accepted(&self) -> bool {
        self.early_status() == EarlyStatus::Accepted
    }
    fn trace(&mut self) -> Option<&mut qlog::Trace> {
        Connection::trace(self)
    }
}
