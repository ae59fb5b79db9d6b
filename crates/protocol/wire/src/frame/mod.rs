//! Frames: what a packet's payload consists of. RFC 9000 §12.4, §19; RFC 9221;
//! draft-ietf-quic-ack-frequency; draft-ietf-quic-reliable-stream-reset; draft-ietf-quic-multipath; draft-huitema-quic-ts.
//!
//! One view per frame, with the same three functions: `parse` (the type has been read already, by [`read_type`], so that a
//! connection can dispatch on it), `size` and `write`. Frames without fields (PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK)
//! are their type byte and need no view; [`crate::Reader::skip_zeros`] passes over a run of padding.
//!
//! This page lists every frame: its type, its name, its view. A new frame is a file of its own and its lines here.
//!
//! Every error here is a FRAME_ENCODING_ERROR, but for a frame type that is not in its shortest encoding. [`Frame`] holds any of them.

mod ack;
mod ack_frequency;
mod cids;
mod close;
mod datagram;
mod frame_type;
mod limits;
mod path;
mod paths;
mod reset;
mod stream;
mod timestamp;
mod token;

#[cfg(test)]
mod tests;

pub use ack::{Ack, EcnCounts, MAX_RANGES_WRITTEN, Ranges, write_ack, write_path_ack};
pub use ack_frequency::AckFrequency;
pub use cids::{NewConnectionId, RetireConnectionId};
pub use close::ConnectionClose;
pub use datagram::Datagram;
pub use frame_type::{FrameTypeError, read_type};
pub use limits::{
    DataBlocked, MAX_STREAM_COUNT, MaxData, MaxStreamData, MaxStreams, StreamDataBlocked, StreamsBlocked,
};
pub use path::{PathChallenge, PathResponse};
pub use paths::{
    MAX_PATH_ID, MaxPathId, PathAbandon, PathAck, PathCidsBlocked, PathNewConnectionId, PathPreference,
    PathRetireConnectionId, PathStatus, PathsBlocked,
};
pub use reset::{ResetStream, ResetStreamAt, StopSending};
pub use stream::{Crypto, Stream, crypto_header, crypto_header_size, stream_header, stream_header_size};
pub use timestamp::Timestamp;
pub use token::NewToken;

use crate::error::Malformed;
use crate::reader::Reader;
use crate::writer::Writer;

/// Frame types. RFC 9000 §19, RFC 9221 §4, draft-ietf-quic-ack-frequency §4 and §5.
pub mod ty {
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
    /// RESET_STREAM_AT. draft-ietf-quic-reliable-stream-reset §4. One byte, as all types below 64.
    pub const RESET_STREAM_AT: u64 = 0x24;
    /// DATAGRAM that reaches to the end of the packet. RFC 9221 §4.
    pub const DATAGRAM: u64 = 0x30;
    /// DATAGRAM with a length field. RFC 9221 §4.
    pub const DATAGRAM_LEN: u64 = 0x31;
    /// PATH_ACK without ECN counts. draft-ietf-quic-multipath §4.1.
    pub const PATH_ACK: u64 = 0x3e;
    /// PATH_ACK with ECN counts. draft-ietf-quic-multipath §4.1.
    pub const PATH_ACK_ECN: u64 = 0x3f;
    /// ACK_FREQUENCY. draft-ietf-quic-ack-frequency §4.
    pub const ACK_FREQUENCY: u64 = 0xaf;
    /// TIMESTAMP. draft-huitema-quic-ts §2.3.
    pub const TIMESTAMP: u64 = 0x02f5;
    /// PATH_ABANDON. draft-ietf-quic-multipath §4.2.
    pub const PATH_ABANDON: u64 = 0x3e75;
    /// PATH_STATUS_BACKUP. draft-ietf-quic-multipath §4.3.
    pub const PATH_STATUS_BACKUP: u64 = 0x3e76;
    /// PATH_STATUS_AVAILABLE. draft-ietf-quic-multipath §4.3.
    pub const PATH_STATUS_AVAILABLE: u64 = 0x3e77;
    /// PATH_NEW_CONNECTION_ID. draft-ietf-quic-multipath §4.4.
    pub const PATH_NEW_CONNECTION_ID: u64 = 0x3e78;
    /// PATH_RETIRE_CONNECTION_ID. draft-ietf-quic-multipath §4.5.
    pub const PATH_RETIRE_CONNECTION_ID: u64 = 0x3e79;
    /// MAX_PATH_ID. draft-ietf-quic-multipath §4.6.
    pub const MAX_PATH_ID: u64 = 0x3e7a;
    /// PATHS_BLOCKED. draft-ietf-quic-multipath §4.7.
    pub const PATHS_BLOCKED: u64 = 0x3e7b;
    /// PATH_CIDS_BLOCKED. draft-ietf-quic-multipath §4.7.
    pub const PATH_CIDS_BLOCKED: u64 = 0x3e7c;

    /// The RFC's name of a frame type, for logs and close reasons.
    pub const fn name(ty: u64) -> &'static str {
        match ty {
            PADDING => "PADDING",
            PING => "PING",
            ACK | ACK_ECN => "ACK",
            RESET_STREAM => "RESET_STREAM",
            RESET_STREAM_AT => "RESET_STREAM_AT",
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
            TIMESTAMP => "TIMESTAMP",
            PATH_ACK | PATH_ACK_ECN => "PATH_ACK",
            PATH_ABANDON => "PATH_ABANDON",
            PATH_STATUS_BACKUP => "PATH_STATUS_BACKUP",
            PATH_STATUS_AVAILABLE => "PATH_STATUS_AVAILABLE",
            PATH_NEW_CONNECTION_ID => "PATH_NEW_CONNECTION_ID",
            PATH_RETIRE_CONNECTION_ID => "PATH_RETIRE_CONNECTION_ID",
            MAX_PATH_ID => "MAX_PATH_ID",
            PATHS_BLOCKED => "PATHS_BLOCKED",
            PATH_CIDS_BLOCKED => "PATH_CIDS_BLOCKED",
            _ => "unknown",
        }
    }
}

/// Any frame, as one value: for tests, the simulator, fuzzing and dissectors. A connection dispatches on the type instead and
/// parses only the view that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant holds the view of the same name, documented there")]
pub enum Frame<'a> {
    /// A run of PADDING frames.
    Padding {
        count: usize,
    },
    Ping,
    Ack(Ack<'a>),
    ResetStream(ResetStream),
    ResetStreamAt(ResetStreamAt),
    StopSending(StopSending),
    Crypto(Crypto<'a>),
    NewToken(NewToken<'a>),
    Stream(Stream<'a>),
    MaxData(MaxData),
    MaxStreamData(MaxStreamData),
    MaxStreams(MaxStreams),
    DataBlocked(DataBlocked),
    StreamDataBlocked(StreamDataBlocked),
    StreamsBlocked(StreamsBlocked),
    NewConnectionId(NewConnectionId),
    RetireConnectionId(RetireConnectionId),
    PathChallenge(PathChallenge),
    PathResponse(PathResponse),
    ConnectionClose(ConnectionClose<'a>),
    HandshakeDone,
    ImmediateAck,
    Datagram(Datagram<'a>),
    AckFrequency(AckFrequency),
    Timestamp(Timestamp),
    PathAck(PathAck<'a>),
    PathAbandon(PathAbandon),
    PathStatus(PathStatus),
    PathNewConnectionId(PathNewConnectionId),
    PathRetireConnectionId(PathRetireConnectionId),
    MaxPathId(MaxPathId),
    PathsBlocked(PathsBlocked),
    PathCidsBlocked(PathCidsBlocked),
}

impl<'a> Frame<'a> {
    /// Reads the next frame. A run of PADDING counts as one. Must not be called on an empty reader.
    pub fn parse_next(reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
        let ty = read_type(reader)?;
        Ok(match ty {
            ty::PADDING => Frame::Padding { count: reader.skip_zeros().saturating_add(1) },
            ty::PING => Frame::Ping,
            ty::ACK | ty::ACK_ECN => Frame::Ack(Ack::parse(ty, reader)?),
            ty::RESET_STREAM => Frame::ResetStream(ResetStream::parse(ty, reader)?),
            ty::RESET_STREAM_AT => Frame::ResetStreamAt(ResetStreamAt::parse(ty, reader)?),
            ty::STOP_SENDING => Frame::StopSending(StopSending::parse(ty, reader)?),
            ty::CRYPTO => Frame::Crypto(Crypto::parse(ty, reader)?),
            ty::NEW_TOKEN => Frame::NewToken(NewToken::parse(ty, reader)?),
            ty::STREAM..=ty::STREAM_LAST => Frame::Stream(Stream::parse(ty, reader)?),
            ty::MAX_DATA => Frame::MaxData(MaxData::parse(ty, reader)?),
            ty::MAX_STREAM_DATA => Frame::MaxStreamData(MaxStreamData::parse(ty, reader)?),
            ty::MAX_STREAMS_BIDI | ty::MAX_STREAMS_UNI => Frame::MaxStreams(MaxStreams::parse(ty, reader)?),
            ty::DATA_BLOCKED => Frame::DataBlocked(DataBlocked::parse(ty, reader)?),
            ty::STREAM_DATA_BLOCKED => Frame::StreamDataBlocked(StreamDataBlocked::parse(ty, reader)?),
            ty::STREAMS_BLOCKED_BIDI | ty::STREAMS_BLOCKED_UNI => {
                Frame::StreamsBlocked(StreamsBlocked::parse(ty, reader)?)
            }
            ty::NEW_CONNECTION_ID => Frame::NewConnectionId(NewConnectionId::parse(ty, reader)?),
            ty::RETIRE_CONNECTION_ID => Frame::RetireConnectionId(RetireConnectionId::parse(ty, reader)?),
            ty::PATH_CHALLENGE => Frame::PathChallenge(PathChallenge::parse(ty, reader)?),
            ty::PATH_RESPONSE => Frame::PathResponse(PathResponse::parse(ty, reader)?),
            ty::CONNECTION_CLOSE | ty::CONNECTION_CLOSE_APPLICATION => {
                Frame::ConnectionClose(ConnectionClose::parse(ty, reader)?)
            }
            ty::HANDSHAKE_DONE => Frame::HandshakeDone,
            ty::IMMEDIATE_ACK => Frame::ImmediateAck,
            ty::DATAGRAM | ty::DATAGRAM_LEN => Frame::Datagram(Datagram::parse(ty, reader)?),
            ty::ACK_FREQUENCY => Frame::AckFrequency(AckFrequency::parse(ty, reader)?),
            ty::TIMESTAMP => Frame::Timestamp(Timestamp::parse(ty, reader)?),
            ty::PATH_ACK | ty::PATH_ACK_ECN => Frame::PathAck(PathAck::parse(ty, reader)?),
            ty::PATH_ABANDON => Frame::PathAbandon(PathAbandon::parse(ty, reader)?),
            ty::PATH_STATUS_BACKUP | ty::PATH_STATUS_AVAILABLE => {
                Frame::PathStatus(PathStatus::parse(ty, reader)?)
            }
            ty::PATH_NEW_CONNECTION_ID => Frame::PathNewConnectionId(PathNewConnectionId::parse(ty, reader)?),
            ty::PATH_RETIRE_CONNECTION_ID => {
                Frame::PathRetireConnectionId(PathRetireConnectionId::parse(ty, reader)?)
            }
            ty::MAX_PATH_ID => Frame::MaxPathId(MaxPathId::parse(ty, reader)?),
            ty::PATHS_BLOCKED => Frame::PathsBlocked(PathsBlocked::parse(ty, reader)?),
            ty::PATH_CIDS_BLOCKED => Frame::PathCidsBlocked(PathCidsBlocked::parse(ty, reader)?),
            _ => return Err(Malformed("unknown frame type")),
        })
    }

    /// How many bytes [`Frame::write`] takes.
    pub fn size(&self) -> usize {
        match self {
            Frame::Padding { count } => *count,
            Frame::Ping | Frame::HandshakeDone | Frame::ImmediateAck => 1,
            Frame::Ack(frame) => frame.size(),
            Frame::ResetStream(frame) => frame.size(),
            Frame::ResetStreamAt(frame) => frame.size(),
            Frame::StopSending(frame) => frame.size(),
            Frame::Crypto(frame) => frame.size(),
            Frame::NewToken(frame) => frame.size(),
            Frame::Stream(frame) => frame.size(),
            Frame::MaxData(frame) => frame.size(),
            Frame::MaxStreamData(frame) => frame.size(),
            Frame::MaxStreams(frame) => frame.size(),
            Frame::DataBlocked(frame) => frame.size(),
            Frame::StreamDataBlocked(frame) => frame.size(),
            Frame::StreamsBlocked(frame) => frame.size(),
            Frame::NewConnectionId(frame) => frame.size(),
            Frame::RetireConnectionId(frame) => frame.size(),
            Frame::PathChallenge(frame) => frame.size(),
            Frame::PathResponse(frame) => frame.size(),
            Frame::ConnectionClose(frame) => frame.size(),
            Frame::Datagram(frame) => frame.size(),
            Frame::AckFrequency(frame) => frame.size(),
            Frame::Timestamp(frame) => frame.size(),
            Frame::PathAck(frame) => frame.size(),
            Frame::PathAbandon(frame) => frame.size(),
            Frame::PathStatus(frame) => frame.size(),
            Frame::PathNewConnectionId(frame) => frame.size(),
            Frame::PathRetireConnectionId(frame) => frame.size(),
            Frame::MaxPathId(frame) => frame.size(),
            Frame::PathsBlocked(frame) => frame.size(),
            Frame::PathCidsBlocked(frame) => frame.size(),
        }
    }

    /// Writes the frame in its own, shortest encoding; STREAM and DATAGRAM with a length field.
    pub fn write(&self, writer: &mut Writer<'_>) {
        match self {
            Frame::Padding { count } => writer.zeros(*count),
            Frame::Ping => writer.u8(ty::PING as u8),
            Frame::HandshakeDone => writer.u8(ty::HANDSHAKE_DONE as u8),
            Frame::ImmediateAck => writer.u8(ty::IMMEDIATE_ACK as u8),
            Frame::Ack(frame) => frame.write(writer),
            Frame::ResetStream(frame) => frame.write(writer),
            Frame::ResetStreamAt(frame) => frame.write(writer),
            Frame::StopSending(frame) => frame.write(writer),
            Frame::Crypto(frame) => frame.write(writer),
            Frame::NewToken(frame) => frame.write(writer),
            Frame::Stream(frame) => frame.write(writer),
            Frame::MaxData(frame) => frame.write(writer),
            Frame::MaxStreamData(frame) => frame.write(writer),
            Frame::MaxStreams(frame) => frame.write(writer),
            Frame::DataBlocked(frame) => frame.write(writer),
            Frame::StreamDataBlocked(frame) => frame.write(writer),
            Frame::StreamsBlocked(frame) => frame.write(writer),
            Frame::NewConnectionId(frame) => frame.write(writer),
            Frame::RetireConnectionId(frame) => frame.write(writer),
            Frame::PathChallenge(frame) => frame.write(writer),
            Frame::PathResponse(frame) => frame.write(writer),
            Frame::ConnectionClose(frame) => frame.write(writer),
            Frame::Datagram(frame) => frame.write(writer),
            Frame::AckFrequency(frame) => frame.write(writer),
            Frame::Timestamp(frame) => frame.write(writer),
            Frame::PathAck(frame) => frame.write(writer),
            Frame::PathAbandon(frame) => frame.write(writer),
            Frame::PathStatus(frame) => frame.write(writer),
            Frame::PathNewConnectionId(frame) => frame.write(writer),
            Frame::PathRetireConnectionId(frame) => frame.write(writer),
            Frame::MaxPathId(frame) => frame.write(writer),
            Frame::PathsBlocked(frame) => frame.write(writer),
            Frame::PathCidsBlocked(frame) => frame.write(writer),
        }
    }
}
