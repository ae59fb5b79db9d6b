//! The HTTP server: applications, files, generated bodies, access log, certificates.
//!
//! [`Server::builder`] serves an application, a [`tower_service::Service`], over HTTP/1.1, 2 and 3.
//! [`low::Handler`] is the seam of HTTP/3 below it, which [`service::ServiceHandler`] and [`handler::Files`] implement. The
//! latter answers requests of every HTTP version: [`request::Head`] in, [`response::Response`] out, and its [`body::Body`] is
//! pulled chunk by chunk by what sends it: [`http3`] on a worker, [`tcp`] for HTTP/1.1 and 2.
#![forbid(unsafe_code)]

pub mod access;
pub mod access_log;
mod application;
mod bind_error;
pub mod body;
mod bound;
pub mod budget;
mod builder;
mod caught;
pub mod certificate;
mod certificates;
#[doc(hidden)]
pub mod challenges;
pub mod compress;
mod conditional;
mod connection_info;
mod content_type;
pub mod cores;
mod counters;
pub mod credentials;
mod dash_content;
pub mod date;
mod drain;
mod driver;
mod early_data;
mod endpoint_warnings;
mod file_options;
mod file_requests;
pub mod files;
pub mod generated;
pub mod handler;
mod heads;
pub mod http3;
mod http_settings;
mod informational;
mod kept_work;
pub mod keys;
mod limits;
pub mod listen;
mod listeners;
mod listing;
mod lookups;
pub mod low;
pub mod memory_trimmer;
#[doc(hidden)]
pub mod metrics;
mod monotonic;
mod network;
pub mod packet_sizes;
mod peak;
mod pending_results;
mod pool;
pub mod progress;
#[doc(hidden)]
pub mod proxy_protocol;
mod quic_settings;
mod range;
pub mod readers;
mod recent;
mod records;
mod report;
pub mod request;
pub mod response;
mod response_fields;
mod running;
pub mod served;
pub mod service;
mod service_thread;
mod settings;
mod shutdown;
mod signers;
pub mod sites;
mod stop;
mod target;
pub mod tcp;
mod tcp_thread;
mod thread_counters;
#[doc(hidden)]
pub mod threads;
mod tickets;
#[doc(hidden)]
pub mod upgrade;
pub mod uploads;
mod versions;
mod wake_list;
pub mod warnings;
#[doc(hidden)]
pub mod watch;
mod worker_thread;

pub use application::ThreadIndex;
pub use bind_error::BindError;
pub use bound::Bound;
pub use builder::{Builder, Server};
pub use connection_info::ConnectionInfo;
pub use cores::{Cores, Workers};
pub use counters::Counters;
pub use driver::ServerDriver;
pub use early_data::EarlyData;
pub use http_settings::AltSvc;
pub use informational::{Informational, InformationalError};
pub use keys::KeysError;
pub use limits::Limits;
pub use listen::{Listen, ListenAddress};
pub use network::{Network, NetworkError};
pub use ports::DataPath;
pub use records::{Summary, TcpRecord, WorkerRecord};
pub use report::Report;
pub use running::{Handle, Running, ServeError};
pub use served::Served;
pub use service::HttpService;
#[doc(hidden)]
pub use stop::Stop;
pub use tickets::Tickets;
pub use transport::Scheduler;
pub use udp::SteeringChoice as Steering;
pub use versions::Versions;
