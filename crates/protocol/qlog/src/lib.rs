//! qlog: what a connection did, event by event, as JSON text sequences (`.sqlog`).
//!
//! This crate knows the format and decides what a file keeps. It has no clock, no thread and no file: times are arguments, and
//! finished records go to an [`Output`]. The transport and HTTP/3 record events of this crate's types; a program that opens connections
//! supplies a [`Tracer`], which says for each connection whether and where it is traced.
//!
//! | file | holds |
//! |---|---|
//! | json.rs | the writer of JSON: escapes, numbers, hexadecimal strings |
//! | trace.rs, trace/header.rs | one connection's trace: its chunks, its bounds, what triggers it |
//! | quic.rs, parameters.rs | events of a connection: begin, end, versions, parameters, paths, keys |
//! | packet.rs, frames.rs | packets and the frames in them, decoded from the plaintext |
//! | recovery.rs | round-trip time, congestion, losses, timers, ECN |
//! | http3.rs | events of HTTP/3 |
//! | pending.rs | events that wait until the trace is at hand |
//! | check.rs | for tests: a check of traces against the schemas of the drafts |
//! | sample.rs | which connections are traced, if not all are |
//!
//! Source: draft-ietf-quic-qlog-main-schema-14, draft-ietf-quic-qlog-quic-events-13, draft-ietf-quic-qlog-h3-events-13, RFC 7464.
//!
//! Invariants: no event holds key material, a token, a ticket, a stateless reset token, or content of streams: lengths stand in
//! their place. A peer's text is escaped so that a record remains one line of valid JSON without control characters.

#[cfg(any(test, feature = "check"))]
pub mod check;
mod frames;
mod http3;
mod json;
mod packet;
mod parameters;
mod pending;
mod quic;
mod recovery;
mod sample;
mod trace;

#[cfg(test)]
mod tests;

pub use http3::{
    FieldText, FrameCreated, FrameParsed, Http3Frame, Http3ParametersSet, PriorityUpdated, StreamType,
    StreamTypeSet,
};
pub use json::{Array, Object};
pub use packet::{
    DropTrigger, LossTrigger, PacketDropped, PacketKind, PacketLost, PacketReceived, PacketSent, PacketsAcked,
};
pub use parameters::{Initiator, ParametersSet};
pub use pending::Pending;
pub use quic::{
    AlpnInformation, ConnectionClosed, ConnectionIdUpdated, ConnectionStarted, ConnectionState,
    ConnectionStateUpdated, KeyUpdated, MigrationState, MigrationStateUpdated, MtuUpdated, TupleAssigned,
    VersionInformation,
};
pub use recovery::{
    CongestionStateUpdated, EcnState, EcnStateUpdated, RecoveryMetrics, RecoveryParametersSet, TimerEvent,
    TimerUpdated,
};
pub use sample::{Share, is_sampled};
pub use trace::{Beginning, Ended, Keep, Output, Refused, Trace, Tracer, Triggers};

/// An event of a schema: its name, and how its data is written.
pub trait Event {
    /// The namespace and the type, such as `quic:packet_sent`.
    const NAME: &'static str;

    /// Writes the members of `data`.
    fn write(&self, data: &mut Object<'_>);
}
