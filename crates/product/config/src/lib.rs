//! The configuration file: TOML, its keys, its faults, and its JSON schema.
//!
//! One table of [`shape::Key`]s says which keys there are. The reader, the schema for editors and the printer all go by it, so that
//! none of them knows a key that another does not. A file is read in two steps: [`read::read`] checks names and types against the
//! table and finds every fault at once, then the caller turns values into settings and notes what those do not permit. Each fault has
//! the place in the file.
//!
//! Rejected: structs with serde's derive. It stops at the first fault, and only values that are wrapped one by one have a place.
#![forbid(unsafe_code)]

pub mod fault;
pub mod print;
pub mod read;
pub mod schema;
pub mod shape;
pub mod sites;
pub mod suggest;
pub mod units;
