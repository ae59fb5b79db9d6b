//! The batch traits behind which kernel UDP, AF_XDP and the simulator are interchangeable, and middleware that writes a capture of
//! any of them. More middleware is in the laboratory's crate `link`.
//!
//! A worker owns one [`Port`] and drives it turn by turn: `poll` takes a batch of trains in, the [`base::sink`] methods
//! fill trains that leave at the next `flush`, `wait` sleeps until something arrives or a deadline passes. Memory is
//! lent in both directions and nothing here allocates per packet; the middleware, which copies, is for tests and
//! diagnosis.
#![forbid(unsafe_code)]

/// Lets the crate `link` share `test_port.rs`.
#[cfg(test)]
extern crate self as datapath;

pub mod pcap;
pub mod port;
#[cfg(test)]
mod test_port;
pub mod trains;
mod waker;

pub use port::{
    Capabilities, Counters, Frames, Intake, Port, Refused, Rx, RxCounters, SendFault, Tx, TxCounters,
};
pub use waker::Waker;
