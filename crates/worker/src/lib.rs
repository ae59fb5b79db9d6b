//! One thread: the turn loop, the timer wheel, connections in a slab.
//!
//! A worker knows no HTTP and no kernel: it is generic over the data path that brings packets and over the application
//! that lives on the connections. All state of a connection is in its slab entry, and nothing else holds any of it.
#![forbid(unsafe_code)]

mod alarm;
pub mod wheel;
mod worker;

pub use worker::{App, Config, Next, Turn, Worker};
