//! Where in a frame an outgoing packet lies.
//!
//! ```text
//! 0 … | metadata (24) | Ethernet, IP, UDP | PAYLOAD_AT: payload … 4096 × pages
//! ```
//!
//! The payload's place is the same in every frame and begins a cache line; headers end there and begin wherever their size
//! puts them. Incoming packets lie where the kernel puts them, 256 bytes into the frame.

use datapath::trains::MAX_TRAIN_BYTES;
use wire::ip::MAX_HEADERS;

use crate::sys::umem::{FRAME_SIZE, METADATA_SIZE};

/// Where the payload of an outgoing packet begins.
pub(crate) const PAYLOAD_AT: usize = 128;
const _: () = assert!(PAYLOAD_AT >= MAX_HEADERS + METADATA_SIZE);

/// What the kernel keeps for itself at the start of a frame that it receives into.
const RX_HEADROOM: usize = 256;

/// The longest payload that one frame of the kernel's holds in both directions, whatever its headers.
pub const MAX_PAYLOAD: usize = FRAME_SIZE - RX_HEADROOM - MAX_HEADERS;
const _: () = assert!(MAX_PAYLOAD <= FRAME_SIZE - PAYLOAD_AT);

/// How long the payloads of a port are at most, and what that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes of the longest.
    pub(crate) payload: usize,
    /// Pages of a frame to send from. More than one: packets come and go in several of the kernel's frames.
    pub(crate) pages: u32,
}

impl Sizes {
    /// A packet in a frame, as every kernel and every driver can.
    pub(crate) const ONE: Sizes = Sizes { payload: MAX_PAYLOAD, pages: 1 };

    /// What an interface of this MTU carries.
    pub(crate) fn of_mtu(mtu: usize) -> Sizes {
        let payload = mtu.saturating_sub(28).min(MAX_TRAIN_BYTES);
        if payload <= MAX_PAYLOAD {
            return Sizes::ONE;
        }
        // Two at least, since what arrives may need as many where it would fit one when sent.
        Sizes { payload, pages: (PAYLOAD_AT + payload).div_ceil(FRAME_SIZE).max(2) as u32 }
    }

    /// Whether packets may be in several frames.
    pub(crate) fn is_several(self) -> bool {
        self.pages > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_to_send_from_hold_what_the_interface_carries() {
        for mtu in [0, 1500, 3798] {
            assert_eq!(Sizes::of_mtu(mtu), Sizes::ONE);
        }
        let pages = [(3799, 2), (4096, 2), (9000, 3), (65_535, 17), (65_536, 17)];
        for (mtu, pages) in pages {
            let sizes = Sizes::of_mtu(mtu);
            assert_eq!((sizes.payload, sizes.pages), ((mtu - 28).min(65_507), pages));
            assert!(PAYLOAD_AT + sizes.payload <= pages as usize * FRAME_SIZE);
        }
    }
}
