//! Any frame, as one value: for tests, the simulator, fuzzing and dissectors. A connection dispatches on the type instead
//! and parses only the view it needs.

use super::ack::Ack;
use super::ack_frequency::AckFrequency;
use super::cids::{NewConnectionId, RetireConnectionId};
use super::close::ConnectionClose;
use super::datagram::Datagram;
use super::frame_type::read_type;
use super::limits::{DataBlocked, MaxData, MaxStreamData, MaxStreams, StreamDataBlocked, StreamsBlocked};
use super::path::{PathChallenge, PathResponse};
use super::reset::{ResetStream, StopSending};
use super::stream::{Crypto, Stream};
use super::token::NewToken;
use super::ty;
use crate::error::Malformed;
use crate::reader::Reader;
use crate::writer::Writer;

/// One frame of any type.
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
        }
    }
}
