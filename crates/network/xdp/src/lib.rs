//! AF_XDP as a data path: packets between the driver and our own memory, past the kernel's network stack.
//!
//! [`open`] gives an [`XdpPort`] for each queue of an interface, to be driven as a [`datapath::Port`]. The frames of the memory
//! that the kernel shares with us are the engine's packet memory in both directions: packets are encrypted straight into the
//! frame that leaves and decrypted in the frame they arrived in. Reading order: `sys` (memory, rings, socket), [`XdpPort`],
//! `sender`, `receiver`, then where packets go (`paths`, `neighbours`, `resolver`) and `open`. docs/decisions/003 has the
//! reasons and the measurements.
//!
//! **Checksums.** In copy mode the kernel is asked to complete UDP checksums (Linux 6.8), which between two ends of a veth pair
//! means that they are not computed; otherwise we do. *Those of received packets are not verified*: a neighbour on the same
//! machine sends half-made ones, which look wrong and are not. QUIC's AEAD authenticates all that is acted on.
//!
//! **Limits.** A socket receives from its own queue only: a connection whose packets move to another queue has to be
//! handed over between workers. Packets are as long as the interface's MTU where kernel (Linux 6.6) and driver have multi-buffer
//! XDP, and hold 3,770 bytes of payload elsewhere and in zero-copy mode; the kernel drops longer ones. In generic mode
//! (veth, lo) trains of a peer whose segmentation offload is on arrive uncut: those of QUIC packets with a connection ID of 8 bytes
//! are taken apart (`uncut`), others are dropped (`ethtool -K IF tx-udp-segmentation off` mends that). VLAN tags that the card strips are invisible in generic mode (`ethtool -K IF rxvlan off`). Addresses
//! that the machine is given after `open` are not ours until it is called again.

mod error;
mod header_cache;
mod interface;
mod joiner;
mod layout;
mod neighbours;
mod open;
mod options;
mod port;
pub mod raw;
mod receiver;
mod resolver;
mod sender;
mod sys;
mod uncut;

pub use error::XdpError;
pub use layout::MAX_PAYLOAD as FRAME_PAYLOAD;
pub use open::{open, open_at};
pub use options::{BusyPoll, Checksums, Mode, Options};
pub use port::XdpPort;
