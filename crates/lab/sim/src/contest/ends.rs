//! The two applications: one sends without end and says first which flow it is, the other counts.

use base::pattern;
use base::time::Instant;
use bytes::Bytes;
use transport::{Connection, Dir, Event, Fin, StreamId, StreamSink};
use worker::{App, Next};

/// One connection of the sending host.
#[derive(Debug)]
pub(super) struct Sending {
    flow: u8,
    stream: Option<StreamId>,
    place: u64,
}

impl Sending {
    pub(super) const fn new(flow: u8) -> Sending {
        Sending { flow, stream: None, place: 0 }
    }

    /// As much as the connection takes.
    fn fill(&mut self, connection: &mut Connection) -> Result<(), String> {
        let stream = match self.stream {
            Some(stream) => stream,
            None => {
                let Ok(stream) = connection.open(Dir::Uni) else { return Ok(()) };
                connection.write(stream, Bytes::copy_from_slice(&[self.flow])).map_err(|e| e.to_string())?;
                *self.stream.insert(stream)
            }
        };
        loop {
            let bytes = pattern::at(self.place);
            let len = connection.send_capacity(stream).min(bytes.len());
            if len == 0 {
                return Ok(());
            }
            self.place += len as u64;
            let bytes = Bytes::from_static(bytes.get(..len).unwrap_or(bytes));
            connection.write(stream, bytes).map_err(|e| e.to_string())?;
        }
    }
}

impl StreamSink for Sending {
    fn on_stream_data(&mut self, _id: StreamId, bytes: &[u8], _fin: Fin) -> usize {
        bytes.len()
    }
}

/// The sending host's application.
#[derive(Debug, Default)]
pub(super) struct Sender {
    pub(super) failures: Vec<String>,
}

impl App for Sender {
    type State = Sending;

    fn on_accept(&mut self, _now: Instant, _connection: &mut Connection) -> Sending {
        self.failures.push("a peer connected to the sender".to_owned());
        Sending::new(u8::MAX)
    }

    fn on_turn(&mut self, _now: Instant, connection: &mut Connection, state: &mut Sending) -> Next {
        while let Some(event) = connection.next_event() {
            if let Event::Closed(reason) = event {
                self.failures.push(format!("flow {}: {reason:?}", state.flow));
            }
        }
        if connection.is_connected()
            && !connection.is_closed()
            && let Err(failure) = state.fill(connection)
        {
            self.failures.push(format!("flow {}: {failure}", state.flow));
        }
        Next::Wait
    }

    fn on_gone(&mut self, _now: Instant, _connection: &Connection, _state: Sending) {}
}

/// One connection of the receiving host.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    flow: Option<u8>,
    fresh: u64,
}

impl StreamSink for Receiving {
    fn on_stream_data(&mut self, _id: StreamId, bytes: &[u8], _fin: Fin) -> usize {
        if self.flow.is_none() {
            self.flow = bytes.first().copied();
        }
        self.fresh += bytes.len() as u64;
        bytes.len()
    }
}

/// The receiving host's application.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Bytes of each flow that arrived in order.
    pub(super) received: Vec<u64>,
}

impl App for Receiver {
    type State = Receiving;

    fn on_accept(&mut self, _now: Instant, _connection: &mut Connection) -> Receiving {
        Receiving::default()
    }

    fn on_turn(&mut self, _now: Instant, connection: &mut Connection, state: &mut Receiving) -> Next {
        while connection.next_event().is_some() {}
        if let Some(flow) = state.flow {
            let flow = usize::from(flow);
            if self.received.len() <= flow {
                self.received.resize(flow + 1, 0);
            }
            if let Some(received) = self.received.get_mut(flow) {
                *received += core::mem::take(&mut state.fresh);
            }
        }
        Next::Wait
    }

    fn on_gone(&mut self, _now: Instant, _connection: &Connection, _state: Receiving) {}
}
