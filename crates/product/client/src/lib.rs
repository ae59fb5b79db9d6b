//! HTTP clients: that of programs, over HTTP/1.1, 2 and 3, and downloads over HTTP/3.
//!
//! [`app`] is the worker's application of HTTP/3 clients, with what each of them does on a connection.
//!
//! [`Client`] is the library's: it keeps connections, races QUIC with TCP, follows Alt-Svc and redirects (library/). The rest
//! of this page is about downloads.
//!
//! What a download needs beside its connection: where it goes ([`target`]), where it is put ([`output`], [`destination`],
//! [`part`], [`tally`]), what is still missing ([`pieces`]), whether an answer is what was asked for ([`answer`]), what follows
//! from it ([`download`]), and how it fails ([`error`]). And what makes connections of it: [`Downloader`], whose connections
//! are a worker's application (download_app.rs, messages.rs), found and made by [`resolve`] and [`dial`].
//!
//! ```text
//! packet ─▶ transport ─▶ http3 ─▶ Messages::on_body ─▶ Download::on_body ─▶ Destination::append
//! ```
#![forbid(unsafe_code)]

pub mod answer;
pub mod app;
pub mod destination;
pub mod dial;
pub mod download;
mod download_app;
mod downloader;
pub mod error;
pub mod exchange;
pub mod fault;
mod fetch;
pub mod job;
mod library;
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

pub use crypto::Roots;
pub use downloader::{Downloader, Settings};
pub use fetch::Fetcher;
pub use library::{BuildError, Builder, Client, Error, HttpChoice, Kind, Phase, Pool, Redirects, Used};
pub use resolve::Family;
