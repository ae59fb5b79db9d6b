//! The HTTP/3 client: downloads.
//!
//! What a download needs beside its connection: where it goes ([`target`]), where it is put ([`output`], [`destination`],
//! [`part`], [`tally`]), what is still missing ([`pieces`]), whether an answer is what was asked for ([`answer`]), what follows
//! from it ([`download`]), and how it fails ([`error`]). And what makes connections of it: [`Client`], whose connections
//! are a worker's application (fleet.rs, messages.rs), found and made by [`resolve`] and [`dial`].
//!
//! ```text
//! packet ─▶ transport ─▶ http3 ─▶ Messages::on_body ─▶ Download::on_body ─▶ Destination::append
//! ```
#![forbid(unsafe_code)]

pub mod answer;
mod client;
pub mod destination;
pub mod dial;
pub mod download;
mod download_app;
pub mod error;
pub mod exchange;
pub mod fault;
pub mod job;
mod messages;
pub mod output;
pub mod part;
pub mod pieces;
pub mod probe;
pub mod proxy;
pub mod report;
pub mod request;
pub mod resolve;
pub mod tally;
pub mod target;
mod transfer;
pub mod usage;

pub use client::{Client, Settings};
