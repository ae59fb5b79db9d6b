//! HTTP clients: that of programs, over HTTP/1.1, 2 and 3, and downloads by it.
//!
//! [`app`] is the worker's application of HTTP/3 clients, with what each of them does on a connection.
//!
//! [`Client`] is the library's: it keeps connections, races QUIC with TCP, follows Alt-Svc and redirects (library/). The rest
//! of this page is about downloads.
//!
//! What a download needs beside its connection: where it goes ([`target`]), where it is put ([`output`], [`destination`],
//! [`part`], [`tally`]), what is still missing ([`pieces`]), whether an answer is what was asked for ([`answer`]), what follows
//! from it ([`download`]), and how it fails ([`error`]). [`Fetcher`] does them by a client (fetch.rs, download_sink.rs).
//!
//! ```text
//! packet ─▶ transport ─▶ http3 ─▶ DownloadSink::on_body ─▶ Download::on_body ─▶ Destination::append
//! ```
#![forbid(unsafe_code)]

pub mod answer;
pub mod app;
pub mod destination;
pub mod download;
mod download_sink;
pub mod error;
pub mod exchange;
pub mod fault;
mod fetch;
pub mod job;
mod library;
mod migration;
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
pub mod tasks;
mod transfer;
pub mod usage;
mod writer;

pub use ::body::Body;
pub use crypto::Roots;
pub use fetch::{FetchOptions, Fetcher};
pub use http3::Protocol;
pub use library::{
    BodySink, BuildError, Builder, Client, ClientDriver, Control, EarlyData, Error, Http3Connection,
    Http3Endpoint, HttpChoice, Kind, Phase, Pool, Received, Redirects, Stats, Timeout, Unanswered, Used,
    on_informational,
};
pub use migration::{LocalPlace, PlannedMove};
pub use ports::DataPath;
pub use report::{PathReport, PathState, UsedPath};
pub use resolve::Family;
pub use transport::Scheduler;
