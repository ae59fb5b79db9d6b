//! The HTTP server: applications, files, generated bodies, access log, certificates.
//!
//! [`Server::builder`] serves an application, a [`tower_service::Service`], over HTTP/1.1, 2 and 3.
//! [`low::Handler`] is the seam of HTTP/3 below it, which [`service::ServiceHandler`] and [`handler::Files`] implement. The
//! latter answers requests of every HTTP version: [`request::Head`] in, [`response::Response`] out, and its [`body::Body`] is
//! pulled chunk by chunk by what sends it: [`http3`] on a worker, [`tcp`] for HTTP/1.1 and 2.
#![forbid(unsafe_code)]

pub mod access_log;
mod asked;
pub mod body;
pub mod budget;
mod builder;
mod calls;
pub mod certificate;
mod conditional;
mod content_type;
pub mod date;
mod drain;
mod farewell;
mod file_requests;
pub mod files;
mod film;
pub mod generated;
pub mod handler;
mod heads;
pub mod http3;
pub mod keys;
mod listing;
mod lookups;
pub mod low;
mod monotonic;
pub mod packet_sizes;
mod peak;
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
pub mod surplus;
mod target;
pub mod tcp;
mod threads;
pub mod warnings;

pub use builder::{BindError, Builder, Server};
pub use drain::drain;
pub use running::{Handle, Running, ServeError};
