//! Transport parameters: what each end tells the other in the TLS handshake. RFC 9000 §7.4, §18; RFC 9221 §3; RFC 9287 §3;
//! RFC 9368 §3; draft-ietf-quic-ack-frequency §3; draft-ietf-quic-multipath §2.1.
//!
//! A plain struct with the defaults of §18.2 for what is absent. Everything that can be judged from the bytes and the
//! sender's side alone is judged while parsing; what needs the connection's state (that the connection IDs match, that the
//! versions agree) is left to it. Any error is a TRANSPORT_PARAMETER_ERROR. Parameters that are not known are passed over;
//! a repeated one is only noticed among the known ones, as remembering the others would let the peer choose our memory or
//! time.

use crate::cid::ConnectionId;
use crate::error::Malformed;
use crate::frame::{MAX_PATH_ID, MAX_STREAM_COUNT};
use crate::reader::Reader;
use crate::side::Side;
use crate::varint;
use crate::version::Version;
use core::net::{SocketAddrV4, SocketAddrV6};

mod id {
    pub(super) const ORIGINAL_DESTINATION_CONNECTION_ID: u64 = 0x00;
    pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
    pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
    pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
    pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
    pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
    pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
    pub(super) const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
    pub(super) const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
    pub(super) const RETRY_SOURCE_CONNECTION_ID: u64 = 0x10;
    pub(super) const VERSION_INFORMATION: u64 = 0x11;
    pub(super) const RESET_STREAM_AT: u64 = 0x1d;
    pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    pub(super) const INITIAL_MAX_PATH_ID: u64 = 0x3e;
    pub(super) const ENABLE_TIMESTAMP: u64 = 0x7158;
    pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;
    pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;
}

/// How many of the peer's available versions are kept; more say nothing that matters.
const MAX_AVAILABLE_VERSIONS: usize = 64;

/// What one end announces. Times in the units of the wire, which the names tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// The destination connection ID of the client's first Initial. Server only.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// After how long in silence the sender closes; 0: never.
    pub max_idle_timeout_ms: u64,
    /// For the connection ID of the handshake. Server only.
    pub stateless_reset_token: Option<[u8; 16]>,
    /// The largest UDP payload the sender takes, 1,200 at least.
    pub max_udp_payload_size: u64,
    /// The first limit of the connection, bytes.
    pub initial_max_data: u64,
    /// The first limit of bidirectional streams the sender of the parameters opens, bytes.
    pub initial_max_stream_data_bidi_local: u64,
    /// The first limit of bidirectional streams the receiver of the parameters opens, bytes. (The RFC's name.)
    pub initial_max_stream_data_bidi_remote: u64,
    /// The first limit of unidirectional streams, bytes.
    pub initial_max_stream_data_uni: u64,
    /// How many bidirectional streams may be opened, at most 2^60.
    pub initial_max_streams_bidi: u64,
    /// How many unidirectional streams may be opened, at most 2^60.
    pub initial_max_streams_uni: u64,
    /// ACK Delay fields are to be shifted left by this, at most 20.
    pub ack_delay_exponent: u64,
    /// By how much the sender delays acknowledgements at most, less than 2^14.
    pub max_ack_delay_ms: u64,
    /// The peer must not change its address towards the one used in the handshake.
    pub disable_active_migration: bool,
    /// Where the server wants to go on. Server only.
    pub preferred_address: Option<PreferredAddress>,
    /// How many connection IDs of the peer the sender keeps, 2 at least.
    pub active_connection_id_limit: u64,
    /// The source connection ID of the sender's first Initial.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// The source connection ID of the Retry packet. Server only.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The largest DATAGRAM frame the sender takes, type and length included; 0: none. RFC 9221 §3.
    pub max_datagram_frame_size: u64,
    /// The sender takes packets without the fixed bit. RFC 9287 §3.
    pub grease_quic_bit: bool,
    /// RFC 9368 §3.
    pub version_information: Option<VersionInformation>,
    /// The sender understands ACK_FREQUENCY and can acknowledge after this time, in microseconds.
    pub min_ack_delay_us: Option<u64>,
    /// The sender understands RESET_STREAM_AT. draft-ietf-quic-reliable-stream-reset §3.
    pub reset_stream_at: bool,
    /// The sender understands several paths at once; the largest path ID that the peer may use at first, at most 2^32 - 1.
    /// draft-ietf-quic-multipath §2.1.
    pub initial_max_path_id: Option<u64>,
    /// What the sender does with TIMESTAMP frames. draft-huitema-quic-ts §2.1.
    pub timestamps: Option<TimestampSupport>,
}

/// What an end does with TIMESTAMP frames. draft-huitema-quic-ts §2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampSupport {
    /// It would like to receive them.
    Receives = 1,
    /// It can send them.
    Sends = 2,
    /// Both.
    Both = 3,
}

impl TimestampSupport {
    fn read(value: &mut Reader<'_>) -> Result<TimestampSupport, Malformed> {
        match value.varint()? {
            1 => Ok(TimestampSupport::Receives),
            2 => Ok(TimestampSupport::Sends),
            3 => Ok(TimestampSupport::Both),
            //= quic-ts/2.1#1
            _ => Err(Malformed("enable_timestamp is not 1, 2 or 3")),
        }
    }
}

/// Where a server wants its client to go on after the handshake. RFC 9000 §18.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreferredAddress {
    /// The IPv4 address; absent when it is all zeros on the wire.
    pub ipv4: Option<SocketAddrV4>,
    /// The IPv6 address; absent when it is all zeros on the wire.
    pub ipv6: Option<SocketAddrV6>,
    /// The connection ID to use there, 1 to 20 bytes; its sequence number is 1.
    pub cid: ConnectionId,
    /// The stateless reset token of that connection ID.
    pub reset_token: [u8; 16],
}

/// What guards version negotiation against tampering. RFC 9368 §3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionInformation {
    /// The version the sender uses on this connection.
    pub chosen: Version,
    /// The versions it could use, the best first. At most the first 64 that were sent.
    pub available: Vec<Version>,
}

impl Default for TransportParameters {
    /// What holds for parameters that are absent. RFC 9000 §18.2.
    fn default() -> TransportParameters {
        TransportParameters {
            original_destination_connection_id: None,
            max_idle_timeout_ms: 0,
            stateless_reset_token: None,
            max_udp_payload_size: 65_527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: 3,
            max_ack_delay_ms: 25,
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: 2,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            max_datagram_frame_size: 0,
            grease_quic_bit: false,
            version_information: None,
            min_ack_delay_us: None,
            reset_stream_at: false,
            initial_max_path_id: None,
            timestamps: None,
        }
    }
}

impl TransportParameters {
    /// Reads what `sender` announced.
    pub fn parse(bytes: &[u8], sender: Side) -> Result<TransportParameters, Malformed> {
        let mut parameters = TransportParameters::default();
        let mut seen: u64 = 0;
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let id = reader.varint()?;
            let mut value = Reader::new(reader.varint_bytes()?);
            //= rfc9000/7.4.2#1
            let Some(bit) = seen_bit(id) else { continue };
            // RFC 9000 §7.4: a parameter must not be sent more than once.
            //= rfc9000/7.4#1
            if seen & bit != 0 {
                return Err(Malformed("transport parameter sent twice"));
            }
            seen |= bit;
            // RFC 9000 §18.2: a client must not send these.
            //= rfc9000/18.2#1
            if sender.is_client() && is_server_only(id) {
                return Err(Malformed("transport parameter that only a server may send"));
            }
            parameters.read_value(id, &mut value, sender)?;
            if !value.is_empty() {
                return Err(Malformed("transport parameter longer than its value"));
            }
        }
        //= rfc9000/7.4#2
        parameters.check()?;
        Ok(parameters)
    }

    fn read_value(&mut self, id: u64, value: &mut Reader<'_>, sender: Side) -> Result<(), Malformed> {
        match id {
            id::ORIGINAL_DESTINATION_CONNECTION_ID => {
                self.original_destination_connection_id = Some(whole_cid(value)?);
            }
            id::MAX_IDLE_TIMEOUT => self.max_idle_timeout_ms = value.varint()?,
            id::STATELESS_RESET_TOKEN => self.stateless_reset_token = Some(value.array()?),
            id::MAX_UDP_PAYLOAD_SIZE => self.max_udp_payload_size = value.varint()?,
            id::INITIAL_MAX_DATA => self.initial_max_data = value.varint()?,
            id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => {
                self.initial_max_stream_data_bidi_local = value.varint()?
            }
            id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => {
                self.initial_max_stream_data_bidi_remote = value.varint()?
            }
            id::INITIAL_MAX_STREAM_DATA_UNI => self.initial_max_stream_data_uni = value.varint()?,
            id::INITIAL_MAX_STREAMS_BIDI => self.initial_max_streams_bidi = value.varint()?,
            id::INITIAL_MAX_STREAMS_UNI => self.initial_max_streams_uni = value.varint()?,
            id::ACK_DELAY_EXPONENT => self.ack_delay_exponent = value.varint()?,
            id::MAX_ACK_DELAY => self.max_ack_delay_ms = value.varint()?,
            id::DISABLE_ACTIVE_MIGRATION => self.disable_active_migration = true,
            //= reliable-stream-reset/3#1
            id::RESET_STREAM_AT => self.reset_stream_at = true,
            id::PREFERRED_ADDRESS => self.preferred_address = Some(PreferredAddress::read(value)?),
            id::ACTIVE_CONNECTION_ID_LIMIT => self.active_connection_id_limit = value.varint()?,
            id::INITIAL_SOURCE_CONNECTION_ID => self.initial_source_connection_id = Some(whole_cid(value)?),
            id::RETRY_SOURCE_CONNECTION_ID => self.retry_source_connection_id = Some(whole_cid(value)?),
            id::MAX_DATAGRAM_FRAME_SIZE => self.max_datagram_frame_size = value.varint()?,
            id::GREASE_QUIC_BIT => self.grease_quic_bit = true,
            id::VERSION_INFORMATION => {
                self.version_information = Some(VersionInformation::read(value, sender)?);
            }
            id::MIN_ACK_DELAY => self.min_ack_delay_us = Some(value.varint()?),
            id::INITIAL_MAX_PATH_ID => self.initial_max_path_id = Some(value.varint()?),
            id::ENABLE_TIMESTAMP => self.timestamps = Some(TimestampSupport::read(value)?),
            _ => {}
        }
        Ok(())
    }

    /// The bounds of RFC 9000 §18.2, draft-ietf-quic-ack-frequency §3 and draft-ietf-quic-multipath §2.1.
    fn check(&self) -> Result<(), Malformed> {
        let max_ack_delay_us = self.max_ack_delay_ms.saturating_mul(1000);
        //= rfc9000/18.2#2
        //= ack-frequency/3#1
        let broken = if self.max_udp_payload_size < 1200 {
            "max_udp_payload_size below 1200"
        } else if self.ack_delay_exponent > 20 {
            "ack_delay_exponent above 20"
        } else if self.max_ack_delay_ms >= 1 << 14 {
            "max_ack_delay of 2^14 or more"
        } else if self.active_connection_id_limit < 2 {
            "active_connection_id_limit below 2"
        } else if self.initial_max_streams_bidi.max(self.initial_max_streams_uni) > MAX_STREAM_COUNT {
            "initial_max_streams above 2^60"
        } else if self.min_ack_delay_us.is_some_and(|delay| delay > max_ack_delay_us) {
            "min_ack_delay above max_ack_delay"
        //= multipath/2.1#1
        } else if self.initial_max_path_id.is_some_and(|id| id > MAX_PATH_ID) {
            "initial_max_path_id above 2^32 - 1"
        } else {
            return Ok(());
        };
        Err(Malformed(broken))
    }

    /// Appends the parameters, leaving out those that have their default value.
    pub fn write(&self, out: &mut Vec<u8>) {
        let default = TransportParameters::default();
        for (id, value, absent) in [
            (id::MAX_IDLE_TIMEOUT, self.max_idle_timeout_ms, default.max_idle_timeout_ms),
            (id::MAX_UDP_PAYLOAD_SIZE, self.max_udp_payload_size, default.max_udp_payload_size),
            (id::INITIAL_MAX_DATA, self.initial_max_data, 0),
            (id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL, self.initial_max_stream_data_bidi_local, 0),
            (id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, self.initial_max_stream_data_bidi_remote, 0),
            (id::INITIAL_MAX_STREAM_DATA_UNI, self.initial_max_stream_data_uni, 0),
            (id::INITIAL_MAX_STREAMS_BIDI, self.initial_max_streams_bidi, 0),
            (id::INITIAL_MAX_STREAMS_UNI, self.initial_max_streams_uni, 0),
            (id::ACK_DELAY_EXPONENT, self.ack_delay_exponent, default.ack_delay_exponent),
            (id::MAX_ACK_DELAY, self.max_ack_delay_ms, default.max_ack_delay_ms),
            (
                id::ACTIVE_CONNECTION_ID_LIMIT,
                self.active_connection_id_limit,
                default.active_connection_id_limit,
            ),
            (id::MAX_DATAGRAM_FRAME_SIZE, self.max_datagram_frame_size, 0),
        ] {
            if value != absent {
                write_integer(out, id, value);
            }
        }
        for (id, cid) in [
            (id::ORIGINAL_DESTINATION_CONNECTION_ID, self.original_destination_connection_id),
            (id::INITIAL_SOURCE_CONNECTION_ID, self.initial_source_connection_id),
            (id::RETRY_SOURCE_CONNECTION_ID, self.retry_source_connection_id),
        ] {
            if let Some(cid) = cid {
                write_bytes(out, id, cid.as_slice());
            }
        }
        for (id, flag) in [
            (id::DISABLE_ACTIVE_MIGRATION, self.disable_active_migration),
            (id::RESET_STREAM_AT, self.reset_stream_at),
            (id::GREASE_QUIC_BIT, self.grease_quic_bit),
        ] {
            if flag {
                write_bytes(out, id, &[]);
            }
        }
        if let Some(delay) = self.min_ack_delay_us {
            write_integer(out, id::MIN_ACK_DELAY, delay);
        }
        if let Some(maximum) = self.initial_max_path_id {
            write_integer(out, id::INITIAL_MAX_PATH_ID, maximum);
        }
        if let Some(support) = self.timestamps {
            write_integer(out, id::ENABLE_TIMESTAMP, support as u64);
        }
        if let Some(token) = &self.stateless_reset_token {
            write_bytes(out, id::STATELESS_RESET_TOKEN, token);
        }
        if let Some(address) = &self.preferred_address {
            write_bytes(out, id::PREFERRED_ADDRESS, &address.to_bytes());
        }
        if let Some(information) = &self.version_information {
            write_bytes(out, id::VERSION_INFORMATION, &information.to_bytes());
        }
    }
}

impl PreferredAddress {
    fn read(value: &mut Reader<'_>) -> Result<PreferredAddress, Malformed> {
        let ipv4 = SocketAddrV4::new(value.array::<4>()?.into(), value.u16()?);
        let ipv6 = SocketAddrV6::new(value.array::<16>()?.into(), value.u16()?, 0, 0);
        let cid = ConnectionId::read(value)?;
        // RFC 9000 §18.2: a server with zero-length connection IDs must not send a preferred address.
        //= rfc9000/18.2#3
        if cid.is_empty() {
            return Err(Malformed("preferred_address without a connection ID"));
        }
        // RFC 9000 §18.2: a family that is not offered is all zeros.
        let ipv4 = (!ipv4.ip().is_unspecified() || ipv4.port() != 0).then_some(ipv4);
        let ipv6 = (!ipv6.ip().is_unspecified() || ipv6.port() != 0).then_some(ipv6);
        Ok(PreferredAddress { ipv4, ipv6, cid, reset_token: value.array()? })
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(&self.ipv4.map_or([0; 4], |address| address.ip().octets()));
        out.extend_from_slice(&self.ipv4.map_or(0, |address| address.port()).to_be_bytes());
        out.extend_from_slice(&self.ipv6.map_or([0; 16], |address| address.ip().octets()));
        out.extend_from_slice(&self.ipv6.map_or(0, |address| address.port()).to_be_bytes());
        out.push(self.cid.len() as u8);
        out.extend_from_slice(self.cid.as_slice());
        out.extend_from_slice(&self.reset_token);
        out
    }
}

impl VersionInformation {
    fn read(value: &mut Reader<'_>, sender: Side) -> Result<VersionInformation, Malformed> {
        let chosen = Version(value.u32()?);
        let mut available = Vec::new();
        // RFC 9368 §4: a version of 0 is a parsing failure, in either place.
        let mut zero = chosen == Version::NEGOTIATION;
        let mut lists_chosen = false;
        while !value.is_empty() {
            let version = Version(value.u32()?);
            zero |= version == Version::NEGOTIATION;
            lists_chosen |= version == chosen;
            if available.len() < MAX_AVAILABLE_VERSIONS {
                available.push(version);
            }
        }
        if zero {
            return Err(Malformed("version 0 in version_information"));
        }
        // RFC 9368 §4: a client lists what it has chosen; a server need not.
        if sender.is_client() && !lists_chosen {
            return Err(Malformed("the chosen version is not among the available ones"));
        }
        Ok(VersionInformation { chosen, available })
    }

    fn to_bytes(&self) -> Vec<u8> {
        [self.chosen].iter().chain(&self.available).flat_map(|version| version.0.to_be_bytes()).collect()
    }
}

/// A bit of its own for every known parameter, to notice repetition. `None` for one that is not known.
fn seen_bit(id: u64) -> Option<u64> {
    let bit = match id {
        0..=0x11 => id as u32,
        id::MAX_DATAGRAM_FRAME_SIZE => 32,
        id::GREASE_QUIC_BIT => 33,
        id::MIN_ACK_DELAY => 34,
        id::RESET_STREAM_AT => 35,
        id::INITIAL_MAX_PATH_ID => 36,
        id::ENABLE_TIMESTAMP => 37,
        _ => return None,
    };
    1u64.checked_shl(bit)
}

fn is_server_only(id: u64) -> bool {
    matches!(
        id,
        id::ORIGINAL_DESTINATION_CONNECTION_ID
            | id::STATELESS_RESET_TOKEN
            | id::PREFERRED_ADDRESS
            | id::RETRY_SOURCE_CONNECTION_ID
    )
}

fn whole_cid(value: &mut Reader<'_>) -> Result<ConnectionId, Malformed> {
    ConnectionId::new(value.rest()).ok_or(Malformed("connection ID longer than 20 bytes"))
}

fn write_integer(out: &mut Vec<u8>, id: u64, value: u64) {
    varint::append(out, id);
    varint::append(out, varint::size(value) as u64);
    varint::append(out, value);
}

fn write_bytes(out: &mut Vec<u8>, id: u64, value: &[u8]) {
    varint::append(out, id);
    varint::append(out, value.len() as u64);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests;
