//! A data path over the virtual network.
//!
//! It behaves as a kernel may, and on purpose not always the same: arrivals come merged into trains or one by one, a batch
//! ends early, a train has little room, memory is refused. Which, the seed decides.

use crate::network::{HostId, Network};
use base::net::{Addresses, Train};
use base::rng::Rng;
use base::sink::{PacketSink, TrainPath};
use base::time::Instant;
use core::net::{IpAddr, SocketAddr};
use datapath::trains::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, TrainQueue};
use datapath::{Capabilities, Counters, Port, Refused, Rx, SendFault, Tx};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Datagrams taken in by one poll at most.
const BATCH: u64 = 256;

/// How obliging a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortOptions {
    /// Most datagrams of an outgoing train, 1 to 64.
    pub train_segments: usize,
    /// How often memory for a train is refused until the next flush, in millionths.
    pub refuse_ppm: u32,
    /// How often an arriving datagram is not merged with the one before it, in millionths.
    pub apart_ppm: u32,
    /// Whether trains are held back until they depart.
    pub departure_times: bool,
    /// What the interface takes.
    pub interface: Interface,
}

/// The largest UDP payload that an interface takes; it refuses more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// Whatever IP permits.
    #[default]
    Any,
    /// So many bytes, and the port knows it.
    Known(usize),
    /// So many bytes, which shows only when it refuses.
    Unknown(usize),
}

impl Interface {
    fn limit(self) -> usize {
        match self {
            Interface::Any => MAX_TRAIN_BYTES,
            Interface::Known(limit) | Interface::Unknown(limit) => limit,
        }
    }
}

impl Default for PortOptions {
    fn default() -> Self {
        PortOptions {
            train_segments: MAX_TRAIN_SEGMENTS,
            refuse_ppm: 0,
            apart_ppm: 0,
            departure_times: false,
            interface: Interface::Any,
        }
    }
}

/// The train that is being built.
#[derive(Debug)]
struct Open {
    path: TrainPath,
    segment_size: usize,
    capacity: usize,
    packets: usize,
    end: usize,
}

/// One host's port.
#[derive(Debug)]
pub struct VirtualPort {
    network: Rc<RefCell<Network>>,
    host: HostId,
    address: SocketAddr,
    options: PortOptions,
    rng: Rng,
    arrived: TrainQueue,
    leaving: TrainQueue,
    /// Memory of the open train.
    memory: Vec<u8>,
    open: Option<Open>,
    refused: Vec<Refused>,
    counters: Counters,
}

impl VirtualPort {
    /// The port of `host`.
    pub fn new(network: &Rc<RefCell<Network>>, host: HostId, options: PortOptions) -> VirtualPort {
        let (address, rng) = {
            let mut network = network.borrow_mut();
            (network.address(host), network.fork_rng())
        };
        VirtualPort {
            network: network.clone(),
            host,
            address,
            options,
            rng,
            arrived: TrainQueue::new(),
            leaving: TrainQueue::new(),
            memory: Vec::new(),
            open: None,
            refused: Vec::new(),
            counters: Counters::default(),
        }
    }

    fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.rng.below(1_000_000) < u64::from(ppm)
    }
}

impl Rx for VirtualPort {
    fn poll(&mut self) -> io::Result<usize> {
        self.arrived.clear();
        self.counters.rx.calls += 1;
        if !self.network.borrow().has_arrivals(self.host) {
            return Ok(0);
        }
        for _ in 0..=self.rng.below(BATCH) {
            let Some(arrival) = self.network.borrow_mut().take_arrival(self.host) else { break };
            if arrival.bytes.is_empty() {
                self.counters.rx.empty += 1;
                continue;
            }
            if self.chance(self.options.apart_ppm) {
                self.arrived.close_newest();
            }
            let addresses = Addresses { local: arrival.local, peer: arrival.source };
            self.arrived.push(&TrainPath::new(addresses, arrival.ecn), &arrival.bytes);
            self.counters.rx.datagrams += 1;
            self.counters.rx.bytes += arrival.bytes.len() as u64;
        }
        self.counters.rx.trains += self.arrived.len() as u64;
        Ok(self.arrived.len())
    }

    fn train(&mut self, index: usize) -> Train<'_> {
        self.arrived.train(index)
    }
}

impl PacketSink for VirtualPort {
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        assert!(self.open.is_none(), "one train is open at a time");
        assert!((1..=MAX_TRAIN_BYTES).contains(&segment_size), "no datagram has {segment_size} bytes");
        if self.chance(self.options.refuse_ppm) {
            return None;
        }
        let capacity = (MAX_TRAIN_BYTES / segment_size).min(self.options.train_segments).max(1);
        if self.memory.len() < capacity * segment_size {
            self.memory.resize(capacity * segment_size, 0);
        }
        self.open = Some(Open { path, segment_size, capacity, packets: 0, end: 0 });
        Some(capacity)
    }

    fn room(&mut self) -> &mut [u8] {
        let Some(open) = &self.open else { return &mut [] };
        assert!(open.packets < open.capacity, "the train is full");
        assert_eq!(open.end, open.packets * open.segment_size, "only the last packet of a train is short");
        &mut self.memory[open.end..open.end + open.segment_size]
    }

    fn push(&mut self, len: usize) {
        let Some(open) = &mut self.open else { return };
        assert!((1..=open.segment_size).contains(&len), "{len} bytes in room for {}", open.segment_size);
        open.end = open.packets * open.segment_size + len;
        open.packets += 1;
    }

    fn packet(&mut self, index: usize) -> &mut [u8] {
        let Some(open) = &self.open else { return &mut [] };
        assert!(index < open.packets, "packet {index} of {}", open.packets);
        let start = index * open.segment_size;
        &mut self.memory[start..(start + open.segment_size).min(open.end)]
    }

    fn end(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.leaving.close_newest();
        for packet in self.memory[..open.end].chunks(open.segment_size) {
            self.leaving.push(&open.path, packet);
        }
    }
}

impl Tx for VirtualPort {
    fn flush(&mut self) -> io::Result<()> {
        assert!(self.open.is_none(), "a train is still open");
        let mut network = self.network.borrow_mut();
        self.counters.tx.calls += u64::from(!self.leaving.is_empty());
        self.counters.tx.trains += self.leaving.len() as u64;
        for index in 0..self.leaving.len() {
            let departs = self.leaving.path(index).departs.filter(|_| self.options.departure_times);
            let train = self.leaving.train(index);
            for datagram in train.bytes.chunks(train.segment_size) {
                if datagram.len() > self.options.interface.limit() {
                    self.counters.tx.on_fault(SendFault::TooLarge, 1);
                    self.refused.push(Refused { peer: train.addresses.peer, size: datagram.len() });
                    continue;
                }
                network.send_at(departs, self.host, (train.addresses, train.ecn), datagram);
                self.counters.tx.datagrams += 1;
                self.counters.tx.bytes += datagram.len() as u64;
            }
        }
        self.leaving.clear();
        Ok(())
    }
}

impl Port for VirtualPort {
    fn now(&mut self) -> Instant {
        self.network.borrow().now()
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.counters.waits += 1;
        self.network.borrow_mut().advance_for(self.host, deadline);
        Ok(())
    }

    fn local_address(&self) -> SocketAddr {
        self.address
    }

    fn largest_payload(&mut self, _: IpAddr) -> usize {
        match self.options.interface {
            Interface::Known(limit) => limit,
            Interface::Any | Interface::Unknown(_) => MAX_TRAIN_BYTES,
        }
    }

    fn take_refused(&mut self) -> Option<Refused> {
        self.refused.pop()
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "virtual",
            train_segments: self.options.train_segments,
            train_bytes: MAX_TRAIN_BYTES,
            segments_offloaded: true,
            coalesces: true,
            ecn: true,
            departure_times: self.options.departure_times,
        }
    }
}

#[cfg(test)]
mod tests;
