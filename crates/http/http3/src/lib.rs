//! HTTP/3, RFC 9114, sans-IO over the transport: a server's and a client's side.
//!
//! A [`Session`] is a [`Connection`] and the application's [`MessageSink`]. The transport lends it stream bytes while it
//! receives; it judges them and lends heads and content onward, without copying content. In the turn that follows,
//! [`Session::on_turn`] takes in the transport's events and asks of it what is due, and the application uses the verbs of
//! [`Connection`]: `respond`, `write_body`, `finish`, `request`, `goaway`.
//!
//! ```text
//! transport ──on_stream_data──▶ Connection ──▶ Message ──▶ MessageSink: on_request, on_body, on_trailers, on_end
//!     ▲                             ├──▶ PeerStreams ──▶ ControlStream, QPACK instructions
//!     └──write, finish, reset───────┴◀── verbs, on_turn
//! ```
//!
//! Reading order: frame.rs, message.rs (one stream's way in), outgoing.rs (its way out), connection/.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::indexing_slicing))]

mod abuse_budgets;
mod config;
mod connection;
mod control;
mod error;
mod exchange;
mod fields;
mod frame;
#[doc(hidden)]
pub mod fuzz_targets;
mod message;
mod outgoing;
mod priority;
mod quic;
mod session;
mod settings;
mod sink;
mod stream_table;
mod stream_type;
#[cfg(test)]
mod testing;
mod trace;
mod unidirectional;
mod varint;

pub use abuse_budgets::Rate;
pub use config::{Config, InvalidConfig};
pub use connection::{Connection, EncodedHead, EncodedRequest, Goaway, RequestError};
pub use error::{Code, ConnectionError};
pub use fields::{
    HeadBuffer, HeadMemory, InvalidHead, Protocol, RequestHead, ResponseHead, Target, Trailers,
    convert_in_place, is_authority, is_trimmed,
};
pub use outgoing::{BodyLength, SendError};
pub use qpack::Line;
pub use quic::QuicConnection;
pub use session::Session;
pub use settings::Settings;
pub use sink::{Abort, MessageSink, Refused};
pub use stream_table::StreamTable;
