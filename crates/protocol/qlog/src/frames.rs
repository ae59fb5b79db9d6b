//! The frames of a packet, decoded once more from its plaintext. Source: draft-ietf-quic-qlog-quic-events §8.13.
//!
//! Frame types that the draft does not know (ACK_FREQUENCY, IMMEDIATE_ACK, and others of extensions) are logged as `unknown`
//! with their type, as the draft asks. Tokens of any kind, contents and reset tokens are left out.

use crate::json::{Array, Object};
use crate::quic::{application_error, transport_error};
use base::time::Duration;
use wire::dir::Dir;
use wire::frame::{Ack, ConnectionClose, Frame, ty};
use wire::reader::Reader;

/// More ranges of one acknowledgement are not logged.
const MAX_RANGES: usize = 256;

/// Longest part of a reason phrase that is logged, in bytes.
pub(crate) const MAX_REASON: usize = 256;

/// Writes the frames of a payload. Stops at the first one that is malformed or of an unknown type, as its length is not known.
pub(crate) fn write(payload: &[u8], ack_delay_exponent: u8, list: &mut Array<'_>) {
    let mut reader = Reader::new(payload);
    while !reader.is_empty() {
        let rest = reader.peek();
        match Frame::parse_next(&mut reader) {
            Ok(frame) => {
                let len = rest.len().saturating_sub(reader.remaining());
                list.object(|out| one(&frame, (len, rest), ack_delay_exponent, out));
            }
            Err(_) => {
                list.object(|out| {
                    unknown(rest, rest.len(), out);
                });
                return;
            }
        }
    }
}

fn one(frame: &Frame<'_>, (len, bytes): (usize, &[u8]), exponent: u8, out: &mut Object<'_>) {
    match frame {
        Frame::Padding { .. } => named("padding", out),
        Frame::Ping => named("ping", out),
        Frame::Ack(ack) => return write_ack(ack, exponent, out),
        Frame::Stream(stream) => {
            named("stream", out).number("stream_id", stream.id).number("offset", stream.offset);
            if stream.fin {
                out.yes("fin");
            }
            return lengths(len, stream.data.len(), out);
        }
        Frame::Crypto(crypto) => {
            named("crypto", out).number("offset", crypto.offset);
            return lengths(len, crypto.data.len(), out);
        }
        Frame::Datagram(datagram) => {
            named("datagram", out);
            return lengths(len, datagram.data.len(), out);
        }
        Frame::ConnectionClose(close) => return write_close(close, out),
        Frame::HandshakeDone => named("handshake_done", out),
        Frame::NewToken(token) => named("new_token", out).object("token", |out| {
            out.text("type", "retry").length(token.token.len());
        }),
        Frame::ResetStream(_) | Frame::ResetStreamAt(_) | Frame::StopSending(_) => return reset(frame, out),
        Frame::NewConnectionId(_)
        | Frame::RetireConnectionId(_)
        | Frame::PathChallenge(_)
        | Frame::PathResponse(_) => return path(frame, out),
        _ => return limit(frame, (len, bytes), out),
    };
    out.length(len);
}

fn named<'a, 'b>(name: &str, out: &'a mut Object<'b>) -> &'a mut Object<'b> {
    out.text("frame_type", name)
}

fn lengths(length: usize, payload: usize, out: &mut Object<'_>) {
    out.object("raw", |raw| {
        raw.number("length", length as u64).number("payload_length", payload as u64);
    });
}

fn unknown<'a, 'b>(bytes: &[u8], len: usize, out: &'a mut Object<'b>) -> &'a mut Object<'b> {
    let ty = wire::frame::read_type(&mut Reader::new(bytes)).unwrap_or(ty::PADDING);
    named("unknown", out).number("frame_type_bytes", ty).length(len)
}

fn write_ack(ack: &Ack<'_>, exponent: u8, out: &mut Object<'_>) {
    let micros = ack.delay().saturating_mul(1 << exponent.min(20));
    named("ack", out).milliseconds("ack_delay", Duration::from_micros(micros));
    // The frame has the highest range first; tools expect either order.
    out.array("acked_ranges", |list| {
        for range in ack.ranges().take(MAX_RANGES) {
            list.array(|list| {
                list.number(*range.start());
                if range.start() != range.end() {
                    list.number(*range.end());
                }
            });
        }
    });
    if let Some(ecn) = ack.ecn() {
        out.number("ect0", ecn.ect0).number("ect1", ecn.ect1).number("ce", ecn.ce);
    }
}

fn write_close(close: &ConnectionClose<'_>, out: &mut Object<'_>) {
    named("connection_close", out);
    match close {
        ConnectionClose::Transport { code, frame_type, .. } => {
            out.text("error_space", "transport");
            transport_error("error", *code, out);
            out.number("trigger_frame_type", *frame_type);
        }
        ConnectionClose::Application { code, .. } => {
            out.text("error_space", "application");
            application_error("error", *code, out);
        }
    }
    let reason = close.reason();
    if !reason.is_empty() {
        out.lossy("reason", reason.get(..MAX_REASON).unwrap_or(reason));
    }
}

fn reset(frame: &Frame<'_>, out: &mut Object<'_>) {
    match frame {
        Frame::ResetStream(reset) => {
            named("reset_stream", out).number("stream_id", reset.id);
            application_error("error", reset.code, out);
            out.number("final_size", reset.final_size);
        }
        Frame::ResetStreamAt(reset) => {
            named("reset_stream_at", out).number("stream_id", reset.id);
            application_error("error", reset.code, out);
            out.number("final_size", reset.final_size).number("reliable_size", reset.reliable_size);
        }
        Frame::StopSending(stop) => {
            named("stop_sending", out).number("stream_id", stop.id);
            application_error("error", stop.code, out);
        }
        _ => {}
    }
}

fn path(frame: &Frame<'_>, out: &mut Object<'_>) {
    match frame {
        Frame::NewConnectionId(new) => {
            named("new_connection_id", out)
                .number("sequence_number", new.sequence)
                .number("retire_prior_to", new.retire_prior_to)
                .number("connection_id_length", new.cid.len() as u64)
                .hex("connection_id", new.cid.as_slice());
        }
        Frame::RetireConnectionId(retire) => {
            named("retire_connection_id", out).number("sequence_number", retire.sequence);
        }
        Frame::PathChallenge(challenge) => {
            named("path_challenge", out).hex("data", &challenge.0);
        }
        Frame::PathResponse(response) => {
            named("path_response", out).hex("data", &response.0);
        }
        _ => {}
    }
}

fn limit(frame: &Frame<'_>, (len, bytes): (usize, &[u8]), out: &mut Object<'_>) {
    match frame {
        Frame::MaxData(frame) => named("max_data", out).number("maximum", frame.maximum),
        Frame::MaxStreamData(frame) => {
            named("max_stream_data", out).number("stream_id", frame.id).number("maximum", frame.maximum)
        }
        Frame::MaxStreams(frame) => named("max_streams", out)
            .text("stream_type", direction(frame.dir))
            .number("maximum", frame.maximum),
        Frame::DataBlocked(frame) => named("data_blocked", out).number("limit", frame.limit),
        Frame::StreamDataBlocked(frame) => {
            named("stream_data_blocked", out).number("stream_id", frame.id).number("limit", frame.limit)
        }
        Frame::StreamsBlocked(frame) => named("streams_blocked", out)
            .text("stream_type", direction(frame.dir))
            .number("limit", frame.limit),
        _ => unknown(bytes, len, out),
    };
}

fn direction(dir: Dir) -> &'static str {
    match dir {
        Dir::Bidi => "bidirectional",
        Dir::Uni => "unidirectional",
    }
}
