//! What a connection counts, for reports. Plain numbers that only rise.

/// Counts since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that arrived for this connection.
    pub received_datagrams: u64,
    /// Packets that were authentic and new.
    pub received_packets: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Bytes that were sent, as UDP payload.
    pub sent_bytes: u64,
    /// Of the packets sent, 0-RTT packets.
    pub sent_early: u64,
    /// Of the packets received, 0-RTT packets.
    pub received_early: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// Key updates, of either side.
    pub key_updates: u64,
    /// Changes of the path in use.
    pub migrations: u64,
    /// Datagrams dropped: from a path that may not be used.
    pub dropped_path: u64,
    /// Packets dropped: too short, or a header that no packet of this connection has.
    pub dropped_malformed: u64,
    /// Packets dropped: not authentic.
    pub dropped_forged: u64,
    /// Packets dropped: received before.
    pub dropped_duplicate: u64,
    /// Packets dropped: no keys for them, yet or any more.
    pub dropped_no_keys: u64,
}
