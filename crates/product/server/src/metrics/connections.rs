//! What connections of QUIC went through, added up. A connection keeps its own counters; they are added when it has closed, and
//! for those that are open when the thread is asked.

use super::histogram::Histogram;
use crypto::EarlyStatus;
use transport::Connection;

/// Sums over connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTally {
    /// Handshakes with a certificate.
    pub full: u64,
    /// Handshakes with a ticket of an earlier connection, without early data.
    pub resumed: u64,
    /// Handshakes with a ticket and early data that was taken (0-RTT).
    pub early: u64,
    /// Connections that ended before their handshake was complete.
    pub failed: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Packets that were authentic and new.
    pub received_packets: u64,
    /// Packets declared lost, whose information is sent again.
    pub lost_packets: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// Changes of the path in use.
    pub migrations: u64,
    /// Key updates.
    pub key_updates: u64,
    /// Smoothed round trips of connections that have closed.
    pub round_trips: Histogram,
}

impl ConnectionTally {
    /// Adds a connection that is open.
    pub(crate) fn on_open(&mut self, connection: &Connection) {
        let counters = connection.counters();
        self.sent_packets += counters.sent_packets;
        self.received_packets += counters.received_packets;
        self.lost_packets += counters.lost_packets;
        self.probe_timeouts += counters.probe_timeouts;
        self.migrations += counters.migrations;
        self.key_updates += counters.key_updates;
        if !connection.has_connected() {
            return;
        }
        let kind = match (connection.is_resumed(), connection.early_status()) {
            (_, EarlyStatus::Accepted) => &mut self.early,
            (true, _) => &mut self.resumed,
            (false, _) => &mut self.full,
        };
        *kind += 1;
    }

    /// Adds a connection that has closed.
    pub(crate) fn on_closed(&mut self, connection: &Connection) {
        self.on_open(connection);
        if connection.has_connected() {
            self.round_trips.observe(connection.rtt());
        } else {
            self.failed += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &ConnectionTally) {
        self.full += other.full;
        self.resumed += other.resumed;
        self.early += other.early;
        self.failed += other.failed;
        self.sent_packets += other.sent_packets;
        self.received_packets += other.received_packets;
        self.lost_packets += other.lost_packets;
        self.probe_timeouts += other.probe_timeouts;
        self.migrations += other.migrations;
        self.key_updates += other.key_updates;
        self.round_trips.add(&other.round_trips);
    }
}
