//! Questions and orders to the kernel about links, addresses, routes and neighbours, over rtnetlink and ethtool.
//!
//! All calls are synchronous: each opens a netlink socket in the caller's network namespace, asks, reads the whole
//! answer and closes it. They are made at start-up and when a path changes, never per packet, so a socket per question
//! costs nothing that matters and spares a connection type with a lifetime of its own. A thread that has entered
//! another namespace therefore asks about that namespace.
//!
//! Errors are the kernel's own, as [`std::io::Error`] with its number: `EPERM` means that CAP_NET_ADMIN is missing,
//! `NotFound` that no such interface, neighbour or feature exists. Callers add what they were about.
//!
//! Messages are encoded by `netlink-packet-route`; ethtool's, which no synchronous library has, are written here as
//! attributes over generic netlink ([`ethtool`]). The ethtool ioctl was rejected: it needs `unsafe`.
#![forbid(unsafe_code)]

mod address;
mod congestion;
mod conversation;
pub mod ethtool;
mod far_end;
mod generic;
mod link;
mod mac;
mod neighbour;
mod netdev;
mod qdisc;
mod route;
#[cfg(test)]
mod tests;
mod veth;
mod watch;

pub use address::{Address, add_address, addresses, all_addresses, delete_address};
pub use congestion::{set_tcp_congestion_control, tcp_congestion_control_to};
pub use far_end::FarEnd;
pub use link::{
    Link, XdpAttached, XdpMode, delete_link, link_by_index, link_by_name, links, move_to_namespace, set_mtu,
    set_up,
};
pub use mac::Mac;
pub use neighbour::{add_neighbour, neighbour, provoke_neighbour};
pub use netdev::{XdpFeatures, xdp_features};
pub use qdisc::{qdiscs, set_qdisc};
pub use route::{Route, route_to};
pub use veth::{VethOptions, create_veth};
pub use watch::{Changes, Watch};
