//! Packets: sent, received, dropped, acknowledged, lost. Source: draft-ietf-quic-qlog-quic-events §5.12 to §5.16, §7.4.

use crate::frames;
use crate::{Event, Object};
use wire::cid::ConnectionId;
use wire::version::Version;

/// The kind of a packet with a packet number, and what only its header has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// 1-RTT, with how often the keys were updated before.
    OneRtt {
        /// How many times the keys were updated.
        key_phase: u64,
    },
}

impl PacketKind {
    fn name(self) -> &'static str {
        match self {
            PacketKind::Initial => "initial",
            PacketKind::ZeroRtt => "0RTT",
            PacketKind::Handshake => "handshake",
            PacketKind::OneRtt { .. } => "1RTT",
        }
    }

    fn space(self) -> &'static str {
        match self {
            PacketKind::Initial => "initial",
            PacketKind::Handshake => "handshake",
            PacketKind::ZeroRtt | PacketKind::OneRtt { .. } => "application_data",
        }
    }
}

/// A packet left.
#[derive(Clone, Copy, Debug)]
pub struct PacketSent<'a> {
    /// Its kind.
    pub kind: PacketKind,
    /// Its number.
    pub pn: u64,
    /// Of a long header.
    pub version: Option<Version>,
    /// Where it went.
    pub dcid: ConnectionId,
    /// Its length in bytes, with header and tag.
    pub len: usize,
    /// The plaintext of its frames.
    pub payload: &'a [u8],
    /// By which the delay of its acknowledgements is scaled.
    pub ack_delay_exponent: u8,
}

/// A packet arrived, authentic and new.
#[derive(Clone, Copy, Debug)]
pub struct PacketReceived<'a>(pub PacketSent<'a>);

impl PacketSent<'_> {
    fn write_members(&self, data: &mut Object<'_>) {
        data.object("header", |header| {
            header.text("packet_type", self.kind.name()).number("packet_number", self.pn);
            if let PacketKind::OneRtt { key_phase } = self.kind {
                header.number("key_phase", key_phase);
            }
            if let Some(version) = self.version {
                header.hex("version", &version.0.to_be_bytes());
            }
            header.hex("dcid", self.dcid.as_slice());
        });
        data.object("raw", |raw| {
            raw.number("length", self.len as u64).number("payload_length", self.payload.len() as u64);
        });
        data.array("frames", |list| frames::write(self.payload, self.ack_delay_exponent, list));
    }
}

impl Event for PacketSent<'_> {
    const NAME: &'static str = "quic:packet_sent";

    fn write(&self, data: &mut Object<'_>) {
        self.write_members(data);
    }
}

impl Event for PacketReceived<'_> {
    const NAME: &'static str = "quic:packet_received";

    fn write(&self, data: &mut Object<'_>) {
        self.0.write_members(data);
    }
}

/// Packets were dropped.
#[derive(Clone, Copy, Debug)]
pub struct PacketDropped {
    /// Why.
    pub trigger: DropTrigger,
    /// How many at once.
    pub count: u64,
}

/// Why packets were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropTrigger {
    /// From a path that may not be used.
    Rejected,
    /// Not a packet of this connection.
    Invalid,
    /// Received before.
    Duplicate,
    /// Not authentic.
    DecryptionFailure,
    /// No keys, yet or any more.
    KeyUnavailable,
}

impl Event for PacketDropped {
    const NAME: &'static str = "quic:packet_dropped";

    fn write(&self, data: &mut Object<'_>) {
        data.text(
            "trigger",
            match self.trigger {
                DropTrigger::Rejected => "rejected",
                DropTrigger::Invalid => "invalid",
                DropTrigger::Duplicate => "duplicate",
                DropTrigger::DecryptionFailure => "decryption_failure",
                DropTrigger::KeyUnavailable => "key_unavailable",
            },
        );
        if self.count > 1 {
            data.object("details", |details| {
                details.number("count", self.count);
            });
        }
    }
}

/// Packets were acknowledged, each for the first time.
#[derive(Clone, Copy, Debug)]
pub struct PacketsAcked<'a> {
    /// Whose space.
    pub kind: PacketKind,
    /// Their numbers.
    pub numbers: &'a [u64],
}

impl Event for PacketsAcked<'_> {
    const NAME: &'static str = "quic:packets_acked";

    fn write(&self, data: &mut Object<'_>) {
        data.text("packet_number_space", self.kind.space());
        data.array("packet_numbers", |list| self.numbers.iter().for_each(|pn| list.number(*pn)));
    }
}

/// A packet was declared lost.
#[derive(Clone, Copy, Debug)]
pub struct PacketLost {
    /// Its kind.
    pub kind: PacketKind,
    /// Its number.
    pub pn: u64,
    /// How its loss was found.
    pub trigger: LossTrigger,
    /// Whether it was a probe of the path MTU.
    pub is_mtu_probe: bool,
}

/// How a loss was found. Source: RFC 9002 §6.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossTrigger {
    /// Later packets were acknowledged, so many that this one is lost.
    Reordering,
    /// A later packet was acknowledged, and this one is too old.
    Time,
}

impl Event for PacketLost {
    const NAME: &'static str = "quic:packet_lost";

    fn write(&self, data: &mut Object<'_>) {
        data.object("header", |header| {
            header.text("packet_type", self.kind.name()).number("packet_number", self.pn);
        });
        if self.is_mtu_probe {
            data.yes("is_mtu_probe_packet");
        }
        data.text(
            "trigger",
            match self.trigger {
                LossTrigger::Reordering => "reordering_threshold",
                LossTrigger::Time => "time_threshold",
            },
        );
    }
}
