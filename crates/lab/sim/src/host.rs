//! A host's edge: where its datagrams wait to be taken in, and the address translator before it.

use crate::datagram::Datagram;
use base::time::Duration;
use core::net::{IpAddr, SocketAddr};
use link::Renewal;
use std::collections::VecDeque;

/// Bytes that wait for a host before more are lost: a generous socket buffer.
const RECEIVE_BUFFER: usize = 8 << 20;

/// How a host is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// Arrivals are collected for so long before the host notices, as network cards do. This is what lets datagrams
    /// arrive in trains.
    pub coalesce: Duration,
}

/// New bindings, each of which ends the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rebinding {
    pub at: Duration,
    pub every: Duration,
    pub times: u32,
    pub what: Renewal,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub address: SocketAddr,
    pub options: HostOptions,
    /// Its other addresses, which no translator stands before.
    pub others: Vec<SocketAddr>,
    rebindings: Vec<Rebinding>,
    /// From when the times of rebindings count.
    armed: Option<Duration>,
    /// Arrived, not yet noticed.
    pending: Vec<Datagram>,
    /// Noticed, not yet taken in.
    inbox: VecDeque<Datagram>,
    waiting_bytes: usize,
    /// Lost because they came in faster than they were taken in.
    pub overflowed: u64,
}

impl Host {
    pub(crate) fn new(address: SocketAddr, options: HostOptions) -> Host {
        Host {
            address,
            options,
            others: Vec::new(),
            rebindings: Vec::new(),
            armed: None,
            pending: Vec::new(),
            inbox: VecDeque::new(),
            waiting_bytes: 0,
            overflowed: 0,
        }
    }

    pub(crate) fn rebind(&mut self, rebinding: Rebinding) {
        self.rebindings.push(rebinding);
    }

    pub(crate) fn arm(&mut self, age: Duration) {
        self.armed.get_or_insert(age);
    }

    /// How the host appears to others, `age` after the beginning of the run.
    pub(crate) fn external(&self, age: Duration) -> SocketAddr {
        let Some(armed) = self.armed else { return self.address };
        let age = age.saturating_sub(armed);
        let (mut ports, mut addresses) = (0u64, 0u64);
        for rebinding in self.rebindings.iter().filter(|rebinding| rebinding.at <= age) {
            let since = age.saturating_sub(rebinding.at).as_nanos();
            let count = (1 + since / rebinding.every.as_nanos().max(1)).min(u64::from(rebinding.times));
            ports += count;
            addresses += if rebinding.what == Renewal::Address { count } else { 0 };
        }
        let mut external = self.address;
        external.set_port(self.address.port().wrapping_add(ports as u16));
        external.set_ip(shifted(self.address.ip(), addresses));
        external
    }

    /// Whether a datagram for `address` was ever meant for this host: its own address or one that it appeared under.
    /// Hosts are kept far enough apart for this.
    pub(crate) fn owns(&self, address: SocketAddr) -> bool {
        match (self.address, address) {
            (SocketAddr::V4(own), SocketAddr::V4(other)) => {
                own.ip().octets()[..3] == other.ip().octets()[..3]
            }
            (SocketAddr::V6(own), SocketAddr::V6(other)) => {
                own.ip().octets()[..14] == other.ip().octets()[..14]
            }
            _ => false,
        }
    }

    /// Takes a datagram in at the edge; `true` when the host has to be told, after `coalesce`.
    pub(crate) fn on_arrival(&mut self, datagram: Datagram) -> bool {
        if self.waiting_bytes + datagram.bytes.len() > RECEIVE_BUFFER {
            self.overflowed += 1;
            return false;
        }
        self.waiting_bytes += datagram.bytes.len();
        self.pending.push(datagram);
        self.pending.len() == 1
    }

    pub(crate) fn notice(&mut self) {
        self.inbox.extend(self.pending.drain(..));
    }

    pub(crate) fn has_arrivals(&self) -> bool {
        !self.inbox.is_empty()
    }

    pub(crate) fn take(&mut self) -> Option<Datagram> {
        let datagram = self.inbox.pop_front()?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(datagram.bytes.len());
        Some(datagram)
    }
}

/// The address `count` further on in the same small network.
pub(crate) fn shifted(ip: IpAddr, count: u64) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            IpAddr::from([a, b, c, d.wrapping_add(count as u8)])
        }
        IpAddr::V6(ip) => {
            let mut segments = ip.segments();
            segments[7] = segments[7].wrapping_add(count as u16);
            IpAddr::from(segments)
        }
    }
}
