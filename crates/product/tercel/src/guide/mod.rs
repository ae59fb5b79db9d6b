//! The guide: from a first server to tuning and operation.
//!
//! Each chapter stands alone. Its examples run as tests; one that needs a fixed port or a file is compiled only.
//!
//! | chapter | tells |
//! |---|---|
//! | [First server](_01_first_server) | an application on three versions of HTTP, and how to try it |
//! | [Handlers and bodies](_02_handlers_and_bodies) | async functions, streaming in both directions, errors, panics |
//! | [Threads and runtimes](_03_threads_and_runtimes) | where code runs, what may block, who drives QUIC |
//! | [Certificates](_04_certificates) | identities of servers, trust of clients |
//! | [Limits and memory](_05_limits_and_memory) | what a peer can make a program hold, and the settings that bound it |
//! | [QUIC without HTTP](_06_quic) | endpoints, connections, streams, datagrams |
//! | [HTTP client](_07_client) | requests, versions, redirects, time limits |
//! | [The low-level handler](_08_low_level_handler) | HTTP/3 without futures, allocations and copies |
//! | [Data paths and tuning](_09_data_paths_and_tuning) | how datagrams reach the kernel, and settings that change speed |
//! | [Operation](_10_operation) | logs, the end of a server, what the system must allow |
//! | [Dropped handles](_11_dropped_handles) | what happens when a value goes out of scope |

#[doc = include_str!("01_first_server.md")]
pub mod _01_first_server {}
#[doc = include_str!("02_handlers_and_bodies.md")]
pub mod _02_handlers_and_bodies {}
#[doc = include_str!("03_threads_and_runtimes.md")]
pub mod _03_threads_and_runtimes {}
#[doc = include_str!("04_certificates.md")]
pub mod _04_certificates {}
#[doc = include_str!("05_limits_and_memory.md")]
pub mod _05_limits_and_memory {}
#[doc = include_str!("06_quic.md")]
pub mod _06_quic {}
#[doc = include_str!("07_client.md")]
pub mod _07_client {}
#[doc = include_str!("08_low_level_handler.md")]
pub mod _08_low_level_handler {}
#[doc = include_str!("09_data_paths_and_tuning.md")]
pub mod _09_data_paths_and_tuning {}
#[doc = include_str!("10_operation.md")]
pub mod _10_operation {}
#[doc = include_str!("11_dropped_handles.md")]
pub mod _11_dropped_handles {}
