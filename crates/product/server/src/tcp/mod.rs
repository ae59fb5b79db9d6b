//! HTTP/1.1 and HTTP/2 over TLS and TCP, by hyper: the same handler, files and log as HTTP/3.
//!
//! | file | holds |
//! |---|---|
//! | listen.rs | listening sockets that share a port |
//! | tcp_server.rs, shutdown_signal.rs | a thread: accepting, checking connections, ending; the shutdown signal |
//! | connection.rs | a connection: handshake, hyper, close |
//! | stream.rs, frames.rs | TLS between hyper and the socket, first bytes included; what of it is content |
//! | handshakes.rs | TLS's configuration; steps of handshakes that other threads take |
//! | openings.rs, proxied.rs | what a connection may begin with: the header of a proxy |
//! | plain.rs | the answer to a client that speaks no TLS |
//! | answer.rs | the seam between hyper and what answers |
//! | service.rs, body.rs, fields.rs | a request to the handler of files and back |
//! | application.rs | a request to a service of the application's and back |
//! | low_level.rs, exchange.rs | a request to a low-level handler and back |
//! | tunnel.rs, cut.rs | another protocol after a response 101, or 2xx to an extended CONNECT; the task by which hyper sends on its stream |
//! | places.rs | memory of requests that is used again |
//! | thread_state.rs | what the connections of a thread share |
//! | limiter.rs | how many connections there may be, in all and from each network |
//! | timeouts.rs, limits.rs | time limits of connections |
//! | counters.rs, publisher.rs | what was done, in numbers, and how it is published |
//!
//! Each thread has a handler and connections of its own and shares nothing with others. It has a runtime of its own, which a worker
//! of HTTP/3 shares where services answer (service_thread.rs).

mod answer;
mod application;
mod body;
mod connection;
mod counters;
mod cut;
mod exchange;
mod fields;
mod frames;
mod handshakes;
mod holding;
mod limiter;
mod limits;
mod listen;
mod low_level;
mod openings;
mod places;
mod plain;
mod proxied;
mod publisher;
mod service;
mod shutdown_signal;
mod stream;
mod tcp_server;
mod thread_state;
mod timeouts;
mod tunnel;

pub use crate::thread_counters::ThreadCounters;
pub(crate) use application::serve_application_here;
pub use fields::alt_svc;
pub use handshakes::Handshakes;
pub use limits::Limits;
pub use listen::listen;
pub(crate) use low_level::serve_handler;
pub use openings::Openings;
pub use shutdown_signal::ShutdownSignal;
pub use tcp_server::{Setup, serve};
