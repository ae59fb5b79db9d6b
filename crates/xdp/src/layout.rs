//! Where in a frame an outgoing packet lies.
//!
//! ```text
//! 0 … | metadata (24) | Ethernet, IP, UDP | PAYLOAD_AT: payload … 4096
//! ```
//!
//! The payload's place is the same in every frame and begins a cache line; headers end there and begin wherever their size
//! puts them. Incoming packets lie where the kernel puts them, 256 bytes into the frame.

use wire::ip::MAX_HEADERS;

use crate::sys::socket::METADATA_SIZE;
use crate::sys::umem::FRAME_SIZE;

/// Where the payload of an outgoing packet begins.
pub(crate) const PAYLOAD_AT: usize = 128;
const _: () = assert!(PAYLOAD_AT >= MAX_HEADERS + METADATA_SIZE);

/// What the kernel keeps for itself at the start of a frame that it receives into.
const RX_HEADROOM: usize = 256;

/// The longest payload that a frame holds in both directions, whatever its headers.
pub(crate) const MAX_PAYLOAD: usize = FRAME_SIZE - RX_HEADROOM - MAX_HEADERS;
const _: () = assert!(MAX_PAYLOAD <= FRAME_SIZE - PAYLOAD_AT);
