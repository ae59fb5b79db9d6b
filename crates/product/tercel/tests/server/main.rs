//! The server of the library as applications and clients see it, over all versions of HTTP.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod addresses;
mod clients;
mod data_path;
mod driven;
mod ends;
mod fields;
mod interim;
mod low;
mod threads;
mod world;
