//! The HTTP server: files, generated bodies, access log, certificates.
//!
//! One handler answers requests of every HTTP version: [`request::Head`] in, [`response::Response`] out, and its
//! [`body::Body`] is pulled chunk by chunk by whoever sends it: [`http3`] on a worker, [`tcp`] for HTTP/1.1 and 2. Nothing
//! else here knows a socket, TLS or a stream.
#![forbid(unsafe_code)]

pub mod access_log;
mod asked;
pub mod body;
pub mod budget;
mod calls;
pub mod certificate;
mod conditional;
mod content_type;
pub mod date;
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
pub mod served;
pub mod surplus;
mod target;
pub mod tcp;
pub mod warnings;
