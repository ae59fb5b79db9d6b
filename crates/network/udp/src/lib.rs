//! Kernel UDP as a data path: GSO, GRO, recvmmsg, ECN and packet-info control messages.
//!
//! [`UdpPort`] is the whole of it: bind it with [`BindOptions`], then drive it as a [`datapath::Port`]. Which system
//! calls it makes is a run-time choice, [`Variant`]; whatever the kernel or an interface turns down it does without,
//! at start or in the middle of a transfer, and loses nothing by it. For several workers [`bind_group`] binds a port each
//! to one address, and has datagrams find the worker that their connection ID names.

mod control;
mod departures;
mod group;
mod interfaces;
mod name;
mod options;
mod pins;
mod port;
mod receiver;
mod refusals;
mod sender;
mod socket;
mod sockets;
mod steering;
mod sys;

pub use group::{Group, Steered, adopt_group, bind_group};
pub use options::{BindError, BindOptions, Variant, Without};
pub use port::UdpPort;
pub use sockets::{MAX_SOCKETS, Sockets};
pub use steering::{Steering, SteeringChoice};
pub use sys::{return_freed_memory, take_passed, unacknowledged};
