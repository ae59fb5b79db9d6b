//! The same through a port of ours, as a worker drives it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use base::net::{Addresses, Ecn};
use base::sink::TrainPath;
use datapath::Port;

use super::child::{BatchReceiver, BatchSender};

/// Sends or receives.
pub(super) struct PortThroughput<P> {
    port: P,
    path: TrainPath,
    size: usize,
    /// How much of the packet memory has been written once.
    touched: u64,
}

/// Memory that was never written is one page of zeros, which no sender has the luck to send.
const TOUCH: u64 = 8192;

impl<P: Port> PortThroughput<P> {
    pub(super) fn new(port: P, peer: SocketAddr, size: usize) -> PortThroughput<P> {
        let local = port.local_address_towards(peer);
        let path = TrainPath::new(Addresses { local, peer }, Ecn::Ect0);
        PortThroughput { port, path, size, touched: 0 }
    }
}

impl<P: Port> BatchSender for PortThroughput<P> {
    fn push(&mut self, most: u64) -> io::Result<u64> {
        let before = self.port.counters().tx;
        let mut queued = 0;
        while queued < most {
            let Some(room) = self.port.begin(self.path, self.size) else { break };
            let packets = (room as u64).min(most - queued);
            for _ in 0..packets {
                let packet = self.port.room();
                if self.touched < TOUCH {
                    packet.fill(self.touched as u8 | 0x40);
                    self.touched += 1;
                }
                self.port.push(self.size);
            }
            self.port.end();
            queued += packets;
        }
        self.port.flush()?;
        let after = self.port.counters().tx;
        if after.lost() > before.lost() {
            return Err(io::Error::other(format!("datagrams could not be sent: {after:?}")));
        }
        Ok(queued)
    }

    fn calls(&self) -> u64 {
        self.port.counters().tx.calls
    }
}

impl<P: Port> BatchReceiver for PortThroughput<P> {
    fn address(&self) -> SocketAddr {
        self.port.local_address()
    }

    fn take(&mut self) -> io::Result<u64> {
        let trains = self.port.poll()?;
        let datagrams = |port: &mut P, index| {
            let train = port.train(index);
            train.bytes.len().div_ceil(train.segment_size) as u64
        };
        Ok((0..trains).map(|index| datagrams(&mut self.port, index)).sum())
    }

    fn wait(&mut self, span: Duration) -> io::Result<()> {
        let deadline = self.port.now() + base::time::Duration::from_nanos(span.as_nanos() as u64);
        self.port.wait(Some(deadline))
    }

    fn calls(&self) -> u64 {
        self.port.counters().rx.calls
    }
}
