//! A port in memory for the tests of this crate and of `link`: what it sends it receives, addresses swapped.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::io;

use base::net::{Addresses, Ecn, Train};
use base::sink::{PacketSink, TrainPath};
use base::time::{Duration, Instant};

use datapath::trains::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, TrainQueue};
use datapath::{Capabilities, Counters, Port, Rx, Tx};

/// A path between two made-up hosts.
pub(crate) fn path() -> TrainPath {
    let host = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
    let addresses =
        Addresses { local: SocketAddr::new(host(1), 443), peer: SocketAddr::new(host(2), 50_000) };
    TrainPath::new(addresses, Ecn::Ect0)
}

/// The port. `capacity` limits the packets of a train, `refuse` makes that many `begin`s fail.
#[derive(Default)]
pub(crate) struct TestPort {
    pub(crate) time: Instant,
    pub(crate) capacity: usize,
    pub(crate) refuse: usize,
    pub(crate) flushes: usize,
    pub(crate) waited_for: Option<Instant>,
    open: Vec<Vec<u8>>,
    room: Vec<u8>,
    path: Option<TrainPath>,
    sent: TrainQueue,
    arrived: TrainQueue,
}

impl PacketSink for TestPort {
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        if self.refuse > 0 {
            self.refuse -= 1;
            return None;
        }
        self.path = Some(path);
        self.room = vec![0; segment_size];
        Some(if self.capacity > 0 { self.capacity } else { MAX_TRAIN_SEGMENTS })
    }
    fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }
    fn push(&mut self, len: usize) {
        assert!(self.open.last().is_none_or(|last| last.len() == self.room.len()), "short, not last");
        self.open.push(self.room[..len].to_vec());
    }
    fn packet(&mut self, index: usize) -> &mut [u8] {
        &mut self.open[index]
    }
    fn end(&mut self) {
        let path = self.path.take().unwrap();
        for packet in self.open.drain(..) {
            self.sent.push(&path, &packet);
        }
    }
}

impl Tx for TestPort {
    fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        Ok(())
    }
}

impl Rx for TestPort {
    fn poll(&mut self) -> io::Result<usize> {
        std::mem::swap(&mut self.sent, &mut self.arrived);
        self.sent.clear();
        Ok(self.arrived.len())
    }
    fn train(&mut self, index: usize) -> Train<'_> {
        let mut train = self.arrived.train(index);
        let Addresses { local, peer } = train.addresses;
        train.addresses = Addresses { local: peer, peer: local };
        train
    }
}

impl Port for TestPort {
    fn now(&mut self) -> Instant {
        self.time
    }
    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.waited_for = deadline;
        self.time = deadline.unwrap_or(self.time + Duration::from_millis(1));
        Ok(())
    }
    fn local_address(&self) -> SocketAddr {
        path().addresses.local
    }
    fn counters(&self) -> Counters {
        Counters::default()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "toy",
            train_segments: MAX_TRAIN_SEGMENTS,
            train_bytes: MAX_TRAIN_BYTES,
            segments_offloaded: true,
            coalesces: true,
            ecn: true,
            departure_times: false,
        }
    }
}

/// Sends `packets` as one train.
pub(crate) fn send(port: &mut impl Port, packets: &[Vec<u8>]) {
    let segment = packets.iter().map(Vec::len).max().unwrap();
    assert!(port.begin(path(), segment).unwrap() >= packets.len());
    for packet in packets {
        port.room()[..packet.len()].copy_from_slice(packet);
        port.push(packet.len());
    }
    port.end();
}

/// Polls once and returns every datagram.
pub(crate) fn receive(port: &mut impl Port) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for index in 0..port.poll().unwrap() {
        let train = port.train(index);
        all.extend(train.bytes.chunks(train.segment_size).map(<[u8]>::to_vec));
    }
    all
}
