//! Packets of a long transfer, and handshakes.

use crate::parts::{Parts, Row};
use crate::world::{App, World};
use base::pattern;
use base::time::Instant;
use bytes::Bytes;
use std::error::Error;
use transport::{Connection, Dir, Fin, StreamId, StreamSink};

/// Bytes of the transfer before figures are taken, and of the one that is counted.
const WARM_UP: u64 = 8 << 20;
const TRANSFER: u64 = 16 << 20;
/// Handshakes that are counted.
const HANDSHAKES: u64 = 20;
/// Bytes that are written ahead.
const AHEAD: u64 = 4 << 20;

/// Sends bytes on a stream, and counts those that arrive.
#[derive(Default)]
struct Bytewise {
    received: Received,
    stream: Option<StreamId>,
    /// Bytes that are still to be written, and that were.
    left: u64,
    written: u64,
}

#[derive(Default)]
struct Received(u64);

impl StreamSink for Received {
    #[inline]
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], _: Fin) -> usize {
        self.0 += bytes.len() as u64;
        bytes.len()
    }
}

impl App for Bytewise {
    type Sink = Received;

    fn on_accept(&mut self, _: Instant, _: &mut Connection) {}

    fn sink(&mut self) -> Option<&mut Received> {
        Some(&mut self.received)
    }

    fn on_turn(&mut self, _: Instant, connection: &mut Connection) -> bool {
        while connection.next_event().is_some() {}
        if self.left > 0 && self.stream.is_none() {
            self.stream = connection.open(Dir::Uni).ok();
        }
        let Some(stream) = self.stream else { return false };
        while self.left > 0 && connection.retained_bytes() < AHEAD {
            let piece = pattern::at(self.written);
            let piece = piece.get(..piece.len().min(self.left as usize)).unwrap_or(piece);
            if connection.write(stream, Bytes::from_static(piece)).is_err() {
                return false;
            }
            self.written += piece.len() as u64;
            self.left -= piece.len() as u64;
        }
        false
    }
}

type Ends = World<Bytewise, Bytewise>;

fn world() -> Result<Ends, Box<dyn Error>> {
    World::new(b"count", (Bytewise::default(), Bytewise::default()))
}

fn sent_packets(connection: &Option<Connection>) -> u64 {
    connection.as_ref().map_or(0, |connection| connection.counters().sent_packets)
}

/// What packets cost: the server sends, the client receives and acknowledges.
pub(crate) fn packets(parts: &mut Parts) -> Result<(), Box<dyn Error>> {
    let mut world = world()?;
    world.connect()?;
    world.run_until("the handshake", |world| world.is_confirmed())?;
    let transfer = |bytes: u64, world: &mut Ends| {
        let wanted = world.client.app.received.0 + bytes;
        world.server.app.left = bytes;
        world.run_until("the transfer", |world| world.client.app.received.0 >= wanted)
    };
    transfer(WARM_UP, &mut world)?;
    let before = (sent_packets(&world.server.connection), sent_packets(&world.client.connection));
    parts.begin();
    transfer(TRANSFER, &mut world)?;
    let packets = sent_packets(&world.server.connection) - before.0;
    let acks = sent_packets(&world.client.connection) - before.1;
    let row = |name, functions, count| Row { name, functions, count };
    parts.end(&[
        row("packet sent", &["server_sends"], packets),
        row("packet received", &["client_receives"], packets),
        row("ACK sent", &["client_sends"], acks),
        row("ACK received", &["server_receives"], acks),
    ]);
    Ok(())
}

/// What handshakes cost at each end.
pub(crate) fn handshakes(parts: &mut Parts) -> Result<(), Box<dyn Error>> {
    let mut world = world()?;
    let mut run = |count: u64| -> Result<(), Box<dyn Error>> {
        for _ in 0..count {
            world.connect()?;
            world.run_until("a handshake", |world| world.is_confirmed())?;
        }
        Ok(())
    };
    run(2)?;
    parts.begin();
    run(HANDSHAKES)?;
    parts.end(&[
        Row {
            name: "QUIC handshake, server",
            functions: &["server_receives", "server_sends"],
            count: HANDSHAKES,
        },
        Row {
            name: "QUIC handshake, client",
            functions: &["client_connects", "client_receives", "client_sends"],
            count: HANDSHAKES,
        },
    ]);
    Ok(())
}
