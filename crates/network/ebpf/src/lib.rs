//! The eBPF programs, and their loading.
//!
//! There are two, in C beside this crate (`programs/*.c`), each with its compiled object next to it, so that no build needs
//! a compiler for them; `cargo xtask ebpf` rebuilds the objects and `cargo xtask ebpf --check` compares:
//!
//! - [`redirect`]: an XDP program that hands our QUIC datagrams to AF_XDP sockets.
//! - [`steer`]: picks the socket of a reuseport group by connection ID.
//!
//! What the kernel refuses comes back as an [`EbpfError`] that says what to do about it. Loading is by `aya`, so this crate
//! needs no `unsafe`. Rejected: libbpf (a C library to build and ship); BTF in the objects (it holds paths of the machine
//! that built them, and these programs need none).
#![forbid(unsafe_code)]

mod error;
mod holder;
pub mod redirect;
pub mod steer;

pub use error::{Capability, EbpfError};
pub use holder::Holder;
