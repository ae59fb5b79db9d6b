//! HTTP/3 connections on a thread of their own.
//!
//! ```text
//! QuicThread::connect ─▶ thread.rs ─▶ app.rs: State, one for each connection ─▶ QuicConnection
//! QuicConnection::send ─▶ link.rs ─▶ State ─▶ http3 ─▶ messages.rs ─▶ response
//! ```

mod app;
mod call;
mod fault;
mod link;
mod messages;
mod thread;
mod upload;

pub(crate) use link::{QuicConnection, Refused};
pub(crate) use thread::QuicThread;
