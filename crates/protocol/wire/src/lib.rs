//! Bytes to values and back: variable-length integers, headers, frames, transport parameters, connection IDs.
//!
//! What comes in is read through views that borrow from the datagram; what goes out is written into a lent buffer. Nothing
//! here allocates on the path of a packet (only [`TransportParameters`], once per connection, does), knows a connection's
//! state or decrypts anything. Every parser is total: any input gives a value or [`Malformed`], never a panic. The lints
//! below keep it so: no indexing, no `unwrap`, no arithmetic that could overflow.
//!
//! Reading order: [`varint`], [`reader`], [`writer`], then [`packet`] (RFC 9000 §17, RFC 8999, RFC 9369) and [`frame`]
//! (RFC 9000 §19). For data paths that see whole frames: [`ethernet`], [`ip`], [`checksum`].
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod checksum;
pub mod cid;
pub mod dir;
pub mod error;
pub mod ethernet;
pub mod frame;
#[doc(hidden)]
pub mod fuzz_targets;
pub mod ip;
pub mod packet;
pub mod packet_number;
pub mod reader;
pub mod side;
pub mod transport_parameters;
pub mod varint;
pub mod version;
pub mod writer;

pub use cid::ConnectionId;
pub use dir::Dir;
pub use error::{Code, Malformed};
pub use frame::Frame;
pub use packet::Packet;
pub use reader::Reader;
pub use side::Side;
pub use transport_parameters::TransportParameters;
pub use version::Version;
pub use writer::Writer;
