//! QUIC versions 1 and 2 as state machines without sockets, clocks or threads: RFC 9000, RFC 9001, RFC 9369, RFC 9221.
//!
//! Four kinds of method, on the endpoint and on a connection alike: bytes and time go in (`route`, `receive`,
//! `on_timeout`), bytes come out (`transmit`), the application asks (`open`, `write`, `close`, …), and what happened is
//! taken out (`next_event`, `next_timeout`). Every method takes the time it needs; none reads a clock or asks for
//! randomness that a seed did not provide.
#![forbid(unsafe_code)]

mod admission;
mod announce;
mod builder;
mod cid;
mod config;
mod connection;
mod crypto_stream;
mod endpoint;
mod error;
mod event;
mod flow;
mod lane_id;
mod path;
mod reassembly;
mod sent;
mod space;
mod stream_id;
mod streams;
mod without;

pub use admission::{ClientConfig, ServerConfig};
pub use cid::{CID_WORKER_OFFSET, cid_generations};
pub use config::{
    InvalidConfig, MAX_PACKET_SIZE, MIN_PACKET_SIZE, PreferredAddresses, Scheduler, Switch, TransportConfig,
};
pub use connection::{
    Connection, Counters, DatagramError, DatagramRoom, PathCounters, PathInfo, Transmitted,
};
pub use crypto::{EarlyStatus, HandshakeOutcome, HandshakeWork, TlsError};
pub use endpoint::{
    DropReason, Endpoint, EndpointConfig, EndpointCounters, Incoming, IncomingPolicy, Predecessor,
    Predecessors, ResumeCounters, RetryPolicy, Route, UsedTokens, split_run,
};
pub use error::{AlreadySending, MigrateError, OpenPathError, TransportError};
pub use event::{CloseReason, Event, Fin, StreamSink};
pub use lane_id::LaneId;
pub use recovery::congestion::{
    Algorithm, InitialWindow, ResumeOutcome, ResumePhase, ResumeReport, SlowStart, SlowStartEnd,
};
pub use recovery::mtu::{Mode as MtuMode, MtuConfig, MtuReport};
pub use recovery::one_way::OneWayDelays;
pub use recovery::pacer::{Burst, Pacing};
pub use stream_id::{Dir, StreamId};
pub use streams::{OpenError, Priority, ResetAtError, StreamConfig, WriteError};
pub use wire::frame::PathPreference;
pub use without::{Technique, Without};
