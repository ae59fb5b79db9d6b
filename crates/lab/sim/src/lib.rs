//! A virtual clock and virtual links as a data path, and scenarios over them.
//!
//! Everything below HTTP/3's user is the real thing: worker, endpoint, connection, TLS. Only the kernel, the network and
//! the clock are replaced, so that a second of bad network costs milliseconds and a failure can be looked at again:
//! whatever chance decides comes from the scenario's seed.
//!
//! ```text
//! SIM_SEED=4711 cargo test -p tercel-sim --test requests every_seed -- --nocapture      one seed, with what it stands for
//! SIM_FIRST=20000 SIM_SEEDS=100000 cargo test -p tercel-sim --test transfers every_seed  many others
//! SIM_TRACE=t.pcap SSLKEYLOGFILE=t.keys SIM_SEED=4711 …                                  and a capture of it for tshark
//! SIM_QLOG=traces SIM_SEED=4711 …                                                        and traces (qlog) of its connections
//! SIM_ATTACK=10000000 cargo test -p tercel-sim --test attack                             a long siege
//! ```
//!
//! Reading order: the crate `link`, network.rs, port.rs (the network); scenario.rs, lab.rs, draw.rs (a run); transfer/ and
//! requests/ (what is run); contest/, networks/ (the studies); attack/.
#![forbid(unsafe_code)]

pub mod attack;
pub mod contest;
mod datagram;
pub mod digest;
pub mod draw;
pub mod host;
pub mod lab;
pub mod network;
pub mod networks;
mod piece;
pub mod port;
mod protection;
mod qlog_files;
pub mod read_behaviour;
pub mod requests;
mod revision;
pub mod scenario;
pub mod seeds;
pub mod tls;
pub mod trace;
pub mod transfer;

pub use digest::Digest;
pub use host::HostOptions;
pub use lab::{Simulation, StopReason};
pub use link::{Burst, EventRate, LinkCounters, Node, Queue, Renewal};
pub use network::{HostId, Network};

pub use port::{Interface, PortOptions, VirtualPort};
pub use protection::{Code, Measure, Protection};
pub use qlog_files::QlogFiles;
pub use read_behaviour::ReadBehaviour;
pub use revision::revision;
pub use scenario::{Family, Scenario};
pub use seeds::Seeds;
pub use tls::Returning;
pub use trace::Trace;
