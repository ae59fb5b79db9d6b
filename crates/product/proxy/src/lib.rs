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
//! | upstream.rs | an upstream of a route: how busy it is, and its connections |
//! | health.rs, check.rs, watch.rs | whether an upstream answers; requests of our own that tell so, one after the other |
//! | tally.rs, report.rs | what is counted; what is known, for the metrics |
//! | balance.rs | which upstream gets a request |
//! | connect.rs | new connections |
//! | tls.rs | how upstreams with TLS are known |
//! | http2.rs | connections of HTTP/2 |
//! | http3.rs, quic.rs | connections of HTTP/3; how they behave |
//! | pool.rs | connections that wait for the next request |
//! | forward.rs | heads on their way: hop-by-hop fields, X-Forwarded-*, Forwarded, Via |
//! | edit.rs | what an operator changes of requests |
//! | exchange.rs | one request |
//! | content.rs | the content of a request |
//! | again.rs | the head of a request that may be sent once more |
//! | silence.rs | how long an upstream may be silent before it answers |
//! | response.rs | the content of a response, with its timeout |
//! | informational.rs | informational responses, which come before it |
//! | route.rs | what the exchanges of a route share |
//! | proxy.rs | a proxied route, as the server knows it |
//! | upgrade.rs | other protocols than HTTP: what is offered, and agreed |
//! | tunnel.rs | what is said by another protocol |
//! | websocket.rs | the key of a WebSocket, where the client sends none |
//! | auth.rs | another server is asked whether a request may go on |
//! | failure.rs | why there is no response |
//! | log.rs | what is said of failures |
//! | runtime.rs | where exchanges run |
//!
//! Threads of HTTP/1.1 and 2 are tokio's: what they proxy runs on them, with connections of their own, and crosses no threads. The
//! workers of HTTP/3 have no runtime: what they proxy runs on one that they share. Connections of HTTP/3 to upstreams are driven by a thread
//! of their own, whatever the client speaks.
//!
//! What a client can make the proxy hold is bounded: connections to each upstream ([`Settings::connections`]), content in each
//! direction (a queue of the server's, and a buffer of hyper's), heads (the server's limits, and hyper's for responses).
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::indexing_slicing))]

mod address;
mod again;
mod auth;
mod balance;
mod check;
mod connect;
mod content;
mod edit;
mod exchange;
mod failure;
mod forward;
mod health;
mod http2;
mod http3;
mod informational;
mod log;
mod pool;
mod proxy;
mod quic;
mod report;
mod response;
mod route;
mod runtime;
mod settings;
mod silence;
mod tally;
mod tls;
mod tunnel;
mod upgrade;
mod upstream;
mod watch;
mod websocket;

pub use address::{Address, AddressError, Scheme};
pub use auth::ForwardAuth;
pub use balance::MOST;
pub use check::Check;
pub use edit::{RequestEdit, field_name};
pub use log::log_to;
pub use proxy::Proxy;
pub use report::{UpstreamReport, upstreams};
pub use server::{Network, NetworkError};
pub use settings::{Balance, Retries, Settings, Timeouts};
pub use tls::Tls;
