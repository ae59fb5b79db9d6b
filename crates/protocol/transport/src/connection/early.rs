//! What early data is held to: limits that a server promises with a ticket, and keys. Source: RFC 9000 §7.4.1, RFC 9001 §4.6.
//!
//! A client takes the limits of an earlier connection from the ticket. A server seals its own into the ticket, and takes no early data
//! when one of them is lower now.

use super::keys::EarlyKeys;
use base::net::Ecn;
use base::time::Instant;
use crypto::{EarlyStatus, TlsSession};
use wire::Side;
use wire::transport_parameters::TransportParameters;

/// Packets that came before their keys, at most this many and no more bytes than this.
pub(super) const EARLY_PACKETS: usize = 10;

/// The same for 0-RTT packets that wait until the application has met the connection, or for a step of the handshake that is out.
pub(super) const HELD_PACKETS: usize = 64;

/// The parameters that early data could violate if they were lower than the client remembers. Source: RFC 9000 §7.4.1.
pub(super) fn limits(parameters: &TransportParameters) -> [u64; 8] {
    [
        parameters.active_connection_id_limit,
        parameters.initial_max_data,
        parameters.initial_max_stream_data_bidi_local,
        parameters.initial_max_stream_data_bidi_remote,
        parameters.initial_max_stream_data_uni,
        parameters.initial_max_streams_bidi,
        parameters.initial_max_streams_uni,
        //= rfc9221/3#4
        parameters.max_datagram_frame_size,
    ]
}

/// What a client may go by before the server answers: keys, and the server's parameters of the connection that the ticket is from.
pub(super) fn sealing(tls: &TlsSession) -> Option<(EarlyKeys, TransportParameters)> {
    //= rfc9001/5.6#1
    let keys = tls.zero_rtt_keys().filter(|_| tls.early_status() == EarlyStatus::Offered)?;
    let remembered = TransportParameters::parse(tls.remembered_parameters()?, Side::Server).ok()?;
    Some((EarlyKeys::Local(Box::new(keys)), remembered))
}

/// The keys by which a server opens 0-RTT packets, if it takes any.
pub(super) fn opening(tls: &TlsSession) -> EarlyKeys {
    match tls.zero_rtt_keys().filter(|_| tls.early_status() == EarlyStatus::Accepted) {
        Some(keys) => EarlyKeys::Peer { keys: Box::new(keys), until: None },
        None => EarlyKeys::None,
    }
}

/// A packet that came before its keys did.
pub(super) struct EarlyPacket {
    pub(super) arrived: Instant,
    pub(super) ecn: Ecn,
    pub(super) bytes: Box<[u8]>,
}
