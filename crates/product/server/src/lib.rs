//! The HTTP server: applications, files, generated bodies, access log, certificates.
//!
//! [`Server::builder`] serves an application, a [`tower_service::Service`], over HTTP/1.1, 2 and 3.
//! [`low::Handler`] is the seam of HTTP/3 below it, which [`service::ServiceHandler`] and [`handler::Files`] implement. The
//! latter answers requests of every HTTP version: [`request::Head`] in, [`response::Response`] out, and its [`body::Body`] is
//! pulled chunk by chunk by what sends it: [`http3`] on a worker, [`tcp`] for HTTP/1.1 and 2.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod body;
pub mod budget;
mod builder;
pub mod certificate;
mod conditional;
mod content_type;
mod dash_content;
pub mod date;
mod drain;
mod file_requests;
pub mod files;
pub mod generated;
pub mod handler;
mod heads;
pub mod http3;
pub mod keys;
mod listing;
mod lookups;
pub mod low;
pub mod memory_trimmer;
mod monotonic;
pub mod packet_sizes;
mod peak;
mod pending_results;
mod pool;
pub mod progress;
mod range;
pub mod readers;
mod recent;
pub mod request;
pub mod response;
mod running;
pub mod served;
pub mod service;
mod shutdown;
mod target;
pub mod tcp;
mod threads;
mod wake_list;
pub mod warnings;

pub use builder::{BindError, Builder, Server};
pub use drain::drain;
pub use running::{Handle, Running, ServeError};
