//! The reverse proxy: routes whose requests go on to upstream servers.
//!
//! ```text
//! request ──▶ forward.rs: its head for the upstream ──▶ balance.rs: which upstream ──▶ pool.rs: a connection
//!                                                            ▲                              ▼
//!                       response ◀── response.rs ◀─ exchange.rs: send, wait, try another upstream
//! ```
//!
//! | file | holds |
//! |---|---|
//! | settings.rs | what an operator says |
//! | address.rs | where an upstream is |
//! | upstream.rs | an upstream: how busy it is, and whether it fails |
//! | balance.rs | which upstream gets a request |
//! | connect.rs | new connections |
//! | pool.rs | connections that wait for the next request |
//! | forward.rs | heads on their way: hop-by-hop fields, X-Forwarded-*, Forwarded, Via |
//! | trusted.rs | the proxies whose word counts |
//! | exchange.rs | one request |
//! | content.rs | the content of a request |
//! | response.rs | the content of a response, with its timeout |
//! | route.rs | what the exchanges of a route share |
//! | proxy.rs | a proxied route, as the server knows it |
//! | failure.rs | why there is no response |
//! | log.rs | what is said of failures |
//! | runtime.rs | where exchanges run |
//!
//! Threads of HTTP/1.1 and 2 are tokio's: what they proxy runs on them, with connections of their own, and crosses no threads. The
//! workers of HTTP/3 have no runtime: what they proxy runs on one that they share.
//!
//! What a client can make the proxy hold is bounded: connections to each upstream ([`Settings::connections`]), content in each
//! direction (a queue of the server's, and a buffer of hyper's), heads (the server's limits, and hyper's for responses).
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::indexing_slicing))]

mod address;
mod balance;
mod connect;
mod content;
mod exchange;
mod failure;
mod forward;
mod log;
mod pool;
mod proxy;
mod response;
mod route;
mod runtime;
mod settings;
mod trusted;
mod upstream;

pub use address::{Address, AddressError, Scheme};
pub use balance::MOST;
pub use connect::Tls;
pub use log::log_to;
pub use proxy::Proxy;
pub use settings::{Balance, Retries, Settings, Timeouts};
pub use trusted::{Network, NetworkError};
