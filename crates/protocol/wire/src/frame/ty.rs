//! Frame types. RFC 9000 §19, RFC 9221 §4, draft-ietf-quic-ack-frequency §4 and §5.

/// PADDING. RFC 9000 §19.1.
pub const PADDING: u64 = 0x00;
/// PING. RFC 9000 §19.2.
pub const PING: u64 = 0x01;
/// ACK without ECN counts. RFC 9000 §19.3.
pub const ACK: u64 = 0x02;
/// ACK with ECN counts. RFC 9000 §19.3.2.
pub const ACK_ECN: u64 = 0x03;
/// RESET_STREAM. RFC 9000 §19.4.
pub const RESET_STREAM: u64 = 0x04;
/// STOP_SENDING. RFC 9000 §19.5.
pub const STOP_SENDING: u64 = 0x05;
/// CRYPTO. RFC 9000 §19.6.
pub const CRYPTO: u64 = 0x06;
/// NEW_TOKEN. RFC 9000 §19.7.
pub const NEW_TOKEN: u64 = 0x07;
/// The first of the eight STREAM types. RFC 9000 §19.8.
pub const STREAM: u64 = 0x08;
/// In a STREAM type: this is the end of the stream.
pub const STREAM_FIN: u64 = 0x01;
/// In a STREAM type: a length field is present.
pub const STREAM_LEN: u64 = 0x02;
/// In a STREAM type: an offset field is present.
pub const STREAM_OFF: u64 = 0x04;
/// The last of the eight STREAM types.
pub const STREAM_LAST: u64 = STREAM | STREAM_FIN | STREAM_LEN | STREAM_OFF;
/// MAX_DATA. RFC 9000 §19.9.
pub const MAX_DATA: u64 = 0x10;
/// MAX_STREAM_DATA. RFC 9000 §19.10.
pub const MAX_STREAM_DATA: u64 = 0x11;
/// MAX_STREAMS for bidirectional streams. RFC 9000 §19.11.
pub const MAX_STREAMS_BIDI: u64 = 0x12;
/// MAX_STREAMS for unidirectional streams. RFC 9000 §19.11.
pub const MAX_STREAMS_UNI: u64 = 0x13;
/// DATA_BLOCKED. RFC 9000 §19.12.
pub const DATA_BLOCKED: u64 = 0x14;
/// STREAM_DATA_BLOCKED. RFC 9000 §19.13.
pub const STREAM_DATA_BLOCKED: u64 = 0x15;
/// STREAMS_BLOCKED for bidirectional streams. RFC 9000 §19.14.
pub const STREAMS_BLOCKED_BIDI: u64 = 0x16;
/// STREAMS_BLOCKED for unidirectional streams. RFC 9000 §19.14.
pub const STREAMS_BLOCKED_UNI: u64 = 0x17;
/// NEW_CONNECTION_ID. RFC 9000 §19.15.
pub const NEW_CONNECTION_ID: u64 = 0x18;
/// RETIRE_CONNECTION_ID. RFC 9000 §19.16.
pub const RETIRE_CONNECTION_ID: u64 = 0x19;
/// PATH_CHALLENGE. RFC 9000 §19.17.
pub const PATH_CHALLENGE: u64 = 0x1a;
/// PATH_RESPONSE. RFC 9000 §19.18.
pub const PATH_RESPONSE: u64 = 0x1b;
/// CONNECTION_CLOSE with a transport error code. RFC 9000 §19.19.
pub const CONNECTION_CLOSE: u64 = 0x1c;
/// CONNECTION_CLOSE with an application error code. RFC 9000 §19.19.
pub const CONNECTION_CLOSE_APPLICATION: u64 = 0x1d;
/// HANDSHAKE_DONE. RFC 9000 §19.20.
pub const HANDSHAKE_DONE: u64 = 0x1e;
/// IMMEDIATE_ACK. draft-ietf-quic-ack-frequency §5.
pub const IMMEDIATE_ACK: u64 = 0x1f;
/// DATAGRAM that reaches to the end of the packet. RFC 9221 §4.
pub const DATAGRAM: u64 = 0x30;
/// DATAGRAM with a length field. RFC 9221 §4.
pub const DATAGRAM_LEN: u64 = 0x31;
/// ACK_FREQUENCY. draft-ietf-quic-ack-frequency §4.
pub const ACK_FREQUENCY: u64 = 0xaf;

/// The RFC's name of a frame type, for logs and close reasons.
pub const fn name(ty: u64) -> &'static str {
    match ty {
        PADDING => "PADDING",
        PING => "PING",
        ACK | ACK_ECN => "ACK",
        RESET_STREAM => "RESET_STREAM",
        STOP_SENDING => "STOP_SENDING",
        CRYPTO => "CRYPTO",
        NEW_TOKEN => "NEW_TOKEN",
        STREAM..=STREAM_LAST => "STREAM",
        MAX_DATA => "MAX_DATA",
        MAX_STREAM_DATA => "MAX_STREAM_DATA",
        MAX_STREAMS_BIDI | MAX_STREAMS_UNI => "MAX_STREAMS",
        DATA_BLOCKED => "DATA_BLOCKED",
        STREAM_DATA_BLOCKED => "STREAM_DATA_BLOCKED",
        STREAMS_BLOCKED_BIDI | STREAMS_BLOCKED_UNI => "STREAMS_BLOCKED",
        NEW_CONNECTION_ID => "NEW_CONNECTION_ID",
        RETIRE_CONNECTION_ID => "RETIRE_CONNECTION_ID",
        PATH_CHALLENGE => "PATH_CHALLENGE",
        PATH_RESPONSE => "PATH_RESPONSE",
        CONNECTION_CLOSE | CONNECTION_CLOSE_APPLICATION => "CONNECTION_CLOSE",
        HANDSHAKE_DONE => "HANDSHAKE_DONE",
        IMMEDIATE_ACK => "IMMEDIATE_ACK",
        DATAGRAM | DATAGRAM_LEN => "DATAGRAM",
        ACK_FREQUENCY => "ACK_FREQUENCY",
        _ => "unknown",
    }
}
