//! HTTP/3 connections on a thread of their own.
//!
//! ```text
//! QuicThread::connect ─▶ thread.rs ─▶ app.rs: State, one for each connection of client::app ─▶ QuicConnection
//! QuicConnection::send ─▶ link.rs ─▶ State ─▶ http3 ─▶ exchange.rs ─▶ response
//! ```

mod app;
mod call;
mod exchange;
mod fault;
mod link;
mod thread;
mod upload;

pub(crate) use link::{QuicConnection, Refused};
pub(crate) use thread::QuicThread;
