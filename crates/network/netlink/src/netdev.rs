//! What an interface's driver says of itself over the `netdev` family of generic netlink (Linux 6.3 and newer).

use crate::generic::{self, Attribute, Message, find};
use std::io;

const DEVICE_GET: u8 = 1;
const INDEX: u16 = 1;
const XDP_FEATURES: u16 = 3;
/// Bits of the feature set. Source: `enum netdev_xdp_act` in Linux `include/uapi/linux/netdev.h`.
const BASIC: u64 = 1;
const REDIRECT: u64 = 2;
const ZERO_COPY: u64 = 8;
const SEVERAL_BUFFERS: u64 = 32;

/// What a driver offers to XDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures {
    /// Programs run in the driver, and may redirect to AF_XDP sockets.
    pub driver_mode: bool,
    /// AF_XDP sockets share their memory with the card.
    pub zero_copy: bool,
    /// Programs see packets of several buffers: those longer than a page.
    pub several_buffers: bool,
}

/// What the driver of interface `ifindex` offers to XDP. Some drivers change their answer with their settings.
///
/// # Errors
/// `Unsupported` on kernels before 6.3, `ENODEV` if there is no such interface.
pub fn xdp_features(ifindex: u32) -> io::Result<XdpFeatures> {
    let index = Attribute::new(INDEX, ifindex.to_ne_bytes().to_vec());
    let family = generic::family("netdev")?;
    let reply = generic::ask(Message { family, command: DEVICE_GET, attributes: vec![index] })?;
    let bits = find(&reply, XDP_FEATURES).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
    let bits = bits.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let has = |wanted: u64| bits & wanted == wanted;
    Ok(XdpFeatures {
        driver_mode: has(BASIC | REDIRECT),
        zero_copy: has(ZERO_COPY),
        several_buffers: has(SEVERAL_BUFFERS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_no_driver_and_an_absent_one_is_an_error() {
        match xdp_features(1) {
            Ok(features) => assert!(!features.driver_mode && !features.zero_copy, "{features:?}"),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}"),
        }
        assert!(xdp_features(0x7fff_fff0).is_err());
    }
}
