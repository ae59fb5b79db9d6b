//! Frames: what a packet's payload consists of. RFC 9000 §12.4, §19; RFC 9221; draft-ietf-quic-ack-frequency.
//!
//! One view per frame, with the same three functions: `parse` (the type has been read already, by [`read_type`], so that a
//! connection can dispatch on it), `size` and `write`. Frames without fields (PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK)
//! are their type byte and need no view; [`crate::Reader::skip_zeros`] passes over a run of padding.
//!
//! Every error here is a FRAME_ENCODING_ERROR, but for a frame type that is not in its shortest encoding. [`Frame`] holds any of them.

pub mod ty;

mod ack;
mod ack_frequency;
mod any;
mod cids;
mod close;
mod datagram;
mod frame_type;
mod limits;
mod path;
mod reset;
mod stream;
mod token;

#[cfg(test)]
mod tests;

pub use ack::{Ack, EcnCounts, MAX_RANGES_WRITTEN, Ranges, write_ack};
pub use ack_frequency::AckFrequency;
pub use any::Frame;
pub use cids::{NewConnectionId, RetireConnectionId};
pub use close::ConnectionClose;
pub use datagram::Datagram;
pub use frame_type::{FrameTypeError, read_type};
pub use limits::{
    DataBlocked, MAX_STREAM_COUNT, MaxData, MaxStreamData, MaxStreams, StreamDataBlocked, StreamsBlocked,
};
pub use path::{PathChallenge, PathResponse};
pub use reset::{ResetStream, StopSending};
pub use stream::{Crypto, Stream, crypto_header, crypto_header_size, stream_header, stream_header_size};
pub use token::NewToken;
