//! HTTP/3 connections on one worker, which a thread of its own drives (thread.rs) or the program (driver.rs).
//!
//! ```text
//! QuicEndpoint::connect ─▶ engine.rs ─▶ app.rs: State, one for each connection of client::app ─▶ QuicConnection
//! QuicConnection::send ─▶ link.rs ─▶ State ─▶ http3 ─▶ exchange.rs ─▶ receiver.rs ─▶ response
//! ```

mod alarm;
mod app;
mod call;
mod driver;
mod engine;
mod exchange;
mod fault;
mod link;
mod network;
mod receiver;
mod thread;
mod upload;

pub use driver::ClientDriver;
pub(crate) use engine::{Engine, QuicEndpoint, Setup};
pub(crate) use link::QuicConnection;
pub(crate) use receiver::{Delivered, ToSink};
pub(crate) use thread::start;
