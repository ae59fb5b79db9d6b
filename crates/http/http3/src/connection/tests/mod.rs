//! Whole connections: one end against bytes made by hand (rules.rs, budgets.rs), and two ends against each other (pairs.rs).

mod budgets;
mod pairs;
mod rules;

use super::*;
use crate::error::Code;
use crate::testing::{FakeQuic, Recorder, frame};
use base::time::Duration;
use transport::{Dir, Event, Fin, StreamId};

/// One end, its transport and its application.
struct End {
    connection: Connection,
    quic: FakeQuic,
    sink: Recorder,
    now: Instant,
}

impl End {
    fn new(side: Side, config: Config) -> End {
        let mut end = End {
            connection: Connection::new(side, Arc::new(config.build().unwrap()), Instant::ZERO),
            quic: FakeQuic::new(side),
            sink: Recorder::default(),
            now: Instant::ZERO,
        };
        end.turn();
        end
    }

    /// A server whose client has sent its SETTINGS.
    fn server() -> End {
        let mut end = End::new(Side::Server, Config::server());
        end.control(&frame(0x04, &[]));
        end
    }

    /// A client whose server has sent its SETTINGS.
    fn client() -> End {
        let mut end = End::new(Side::Client, Config::client());
        end.control(&frame(0x04, &[]));
        end
    }

    /// The peer's control stream says this (for the first time with its type in front).
    fn control(&mut self, bytes: &[u8]) {
        let id = self.peer_uni(0);
        if self.connection.peer_settings().is_none() {
            self.receive(id, &[0x00], Fin::Open);
        }
        self.receive(id, bytes, Fin::Open);
    }

    fn peer_uni(&self, index: u64) -> StreamId {
        StreamId::new(self.connection.side.other(), Dir::Uni, index)
    }

    fn receive(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.connection.on_stream_data(&mut self.sink, id, bytes, fin)
    }

    fn event(&mut self, event: Event) {
        self.quic.events.push_back(event);
        self.turn();
    }

    fn turn(&mut self) {
        self.connection.on_turn(&mut self.quic, &mut self.sink, self.now);
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.turn();
    }

    fn closed_with(&mut self) -> Option<Code> {
        self.turn();
        self.quic.closed_with()
    }
}
