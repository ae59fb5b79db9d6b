//! Time, addresses, ranges, slabs, token buckets, randomness: what every room needs and no room owns.
//!
//! Nothing here knows a protocol, reads a clock or asks the operating system for anything.
#![forbid(unsafe_code)]

pub mod net;
pub mod network;
pub mod pattern;
pub mod ranges;
pub mod rng;
pub mod sink;
pub mod slab;
pub mod sparse;
pub mod time;
pub mod token_bucket;
