//! A sent packet as loss detection sees it, and the names of the packet-number spaces.
//!
//! The properties of a packet are one byte of flags, so that the ledger's slot stays small.

use base::net::Ecn;
use base::time::Instant;

/// A packet-number space. Source: RFC 9000 §12.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Initial packets.
    Initial = 0,
    /// Handshake packets.
    Handshake = 1,
    /// 0-RTT and 1-RTT packets.
    Application = 2,
}

impl Space {
    /// The three spaces in the order in which they are probed.
    pub const ALL: [Space; 3] = [Space::Initial, Space::Handshake, Space::Application];

    /// 0, 1 or 2, for arrays with one entry per space.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Properties of a sent packet, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketFlags(u8);

impl PacketFlags {
    /// Carries nothing but ACK, PADDING without length limits, or CONNECTION_CLOSE: neither acknowledged nor counted.
    pub const NONE: PacketFlags = PacketFlags(0);
    /// The peer must acknowledge it. Source: RFC 9002 §2.
    pub const ACK_ELICITING: PacketFlags = PacketFlags(1);
    /// Counts towards bytes in flight: ack-eliciting or padded. Source: RFC 9002 §2.
    pub const IN_FLIGHT: PacketFlags = PacketFlags(1 << 1);
    /// Left marked ECT(0).
    pub const ECT0: PacketFlags = PacketFlags(1 << 2);
    /// Left marked ECT(1).
    pub const ECT1: PacketFlags = PacketFlags(1 << 3);
    /// Probes the path MTU: its loss says nothing about congestion. Source: RFC 9000 §14.4.
    pub const MTU_PROBE: PacketFlags = PacketFlags(1 << 4);
    /// Its frames were already sent again by a probe, before any loss was declared. Set by the ledger.
    pub const PROBED: PacketFlags = PacketFlags(1 << 5);
    /// The usual data packet: ack-eliciting and in flight.
    pub const DATA: PacketFlags = PacketFlags::ACK_ELICITING.with(PacketFlags::IN_FLIGHT);

    /// The union of both sets.
    #[inline]
    pub const fn with(self, other: PacketFlags) -> PacketFlags {
        PacketFlags(self.0 | other.0)
    }

    /// This set less `other`.
    #[inline]
    pub const fn without(self, other: PacketFlags) -> PacketFlags {
        PacketFlags(self.0 & !other.0)
    }

    /// Whether all of `other` is in this set.
    #[inline]
    pub const fn has(self, other: PacketFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flag that records the marking a datagram leaves with; CE and Not-ECT leave none.
    #[inline]
    pub const fn of_ecn(mark: Ecn) -> PacketFlags {
        match mark {
            Ecn::Ect0 => PacketFlags::ECT0,
            Ecn::Ect1 => PacketFlags::ECT1,
            Ecn::NotEct | Ecn::Ce => PacketFlags::NONE,
        }
    }
}

/// What the ledger records of a packet, and hands back when the packet's fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Packet number.
    pub pn: u64,
    /// When it left.
    pub sent_at: Instant,
    /// Bytes of the QUIC packet, with header and tag, without UDP and IP.
    pub size: u16,
    /// Its properties.
    pub flags: PacketFlags,
}

impl SentPacket {
    /// Whether the peer must acknowledge it.
    #[inline]
    pub const fn is_ack_eliciting(&self) -> bool {
        self.flags.has(PacketFlags::ACK_ELICITING)
    }

    /// Whether it counts towards bytes in flight.
    #[inline]
    pub const fn is_in_flight(&self) -> bool {
        self.flags.has(PacketFlags::IN_FLIGHT)
    }

    /// Whether its frames were already sent again by a probe, so that its loss need not send them a third time.
    #[inline]
    pub const fn is_probed(&self) -> bool {
        self.flags.has(PacketFlags::PROBED)
    }
}
