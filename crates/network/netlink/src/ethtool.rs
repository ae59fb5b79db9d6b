//! What ethtool tells: offloads ("features") and queues ("channels"), over its netlink family.
//!
//! Features travel as a verbose bit set: a list of names, each present or not, each with a value. A reply's HW set has
//! all names that the kernel knows in its mask, its ACTIVE set only those that are on.

use crate::generic::{self, Attribute, Message, attributes, find, nested, number, text};
use std::io;

const LINK_STATE_GET: u8 = 6;
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const CHANNELS_GET: u8 = 17;
/// The header is attribute 1 of every message; in it the interface's name and flags.
const HEADER: u16 = 1;
const HEADER_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
const FLAG_OMIT_REPLY: u32 = 2;
const LINK_STATE_LINK: u16 = 2;
const FEATURES_HW: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_NOCHANGE: u16 = 5;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;
const CHANNELS_RX: u16 = 6;
const CHANNELS_TX: u16 = 7;
const CHANNELS_COMBINED: u16 = 9;

/// Whether something is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is, or shall be.
    On,
    /// It is not, or shall not be.
    Off,
}

/// An offload of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// What it is now.
    pub switch: Switch,
    /// Whether the driver lets it be changed.
    pub is_changeable: bool,
}

/// How many queues an interface has in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Channels {
    /// Queues that only receive.
    pub rx: u32,
    /// Queues that only send.
    pub tx: u32,
    /// Pairs of both.
    pub combined: u32,
}

impl Channels {
    /// All queues that receive.
    #[must_use]
    pub fn receiving(&self) -> u32 {
        self.rx + self.combined
    }

    /// All queues that send.
    #[must_use]
    pub fn sending(&self) -> u32 {
        self.tx + self.combined
    }
}

/// An offload of an interface by its name in ethtool, such as "tx-udp-segmentation" or "rx-gro".
///
/// # Errors
/// `NotFound` if the kernel knows no such feature, `ENODEV` if there is no such interface.
pub fn feature(interface: &str, feature: &str) -> io::Result<Feature> {
    let reply = ask(FEATURES_GET, interface)?;
    let has = |set: u16| find(&reply, set).is_some_and(|bits| value_of(&bits, feature) == Some(Switch::On));
    let hardware = find(&reply, FEATURES_HW).unwrap_or_default();
    let Some(in_hardware) = value_of(&hardware, feature) else {
        let message = format!("this kernel knows no offload named {feature}");
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    };
    Ok(Feature {
        switch: if has(FEATURES_ACTIVE) { Switch::On } else { Switch::Off },
        is_changeable: in_hardware == Switch::On && !has(FEATURES_NOCHANGE),
    })
}

/// Switches an offload of an interface.
///
/// # Errors
/// `Unsupported` if the driver left it as it was, else the kernel's; CAP_NET_ADMIN is needed.
pub fn set_feature(interface: &str, name: &str, switch: Switch) -> io::Result<()> {
    let mut bit = vec![text(BIT_NAME, name)];
    if switch == Switch::On {
        bit.push(Attribute::new(BIT_VALUE, Vec::new()));
    }
    let wanted = nested(FEATURES_WANTED, &[nested(BITSET_BITS, &[nested(BITS_BIT, &bit)])]);
    let flags = Attribute::new(HEADER_FLAGS, FLAG_OMIT_REPLY.to_ne_bytes().to_vec());
    let header = nested(HEADER, &[text(HEADER_NAME, interface), flags]);
    let family = generic::family("ethtool")?;
    generic::order(Message { family, command: FEATURES_SET, attributes: vec![header, wanted] })?;
    if feature(interface, name)?.switch == switch {
        return Ok(());
    }
    let message = format!("{interface} does not let {name} be changed");
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

/// Whether an interface has a carrier. To ask makes the kernel finish what a change of the carrier entails: until then,
/// for up to a second, an interface that just got its carrier drops all that is sent.
///
/// # Errors
/// `EOPNOTSUPP` if its driver does not tell, `ENODEV` if there is no such interface.
pub fn has_carrier(interface: &str) -> io::Result<bool> {
    let reply = ask(LINK_STATE_GET, interface)?;
    match find(&reply, LINK_STATE_LINK).as_deref() {
        Some([state]) => Ok(*state != 0),
        _ => Err(io::Error::from(io::ErrorKind::Unsupported)),
    }
}

/// How many queues an interface uses.
///
/// # Errors
/// `EOPNOTSUPP` if its driver does not tell (then the queues of [`crate::Link`] are all there is to know), `ENODEV` if
/// there is no such interface.
pub fn channels(interface: &str) -> io::Result<Channels> {
    let reply = ask(CHANNELS_GET, interface)?;
    let count = |kind: u16| find(&reply, kind).and_then(|bytes| number(&bytes)).unwrap_or(0);
    Ok(Channels { rx: count(CHANNELS_RX), tx: count(CHANNELS_TX), combined: count(CHANNELS_COMBINED) })
}

fn ask(command: u8, interface: &str) -> io::Result<Vec<u8>> {
    let header = nested(HEADER, &[text(HEADER_NAME, interface)]);
    generic::ask(Message { family: generic::family("ethtool")?, command, attributes: vec![header] })
}

/// The value of a named bit in a verbose bit set; `None` if the name is not listed. In a set without a mask the bits
/// that are listed are on, and none of them carries a value.
fn value_of(set: &[u8], wanted: &str) -> Option<Switch> {
    const NO_MASK: u16 = 1;
    let listed_is_on = find(set, NO_MASK).is_some();
    let bits = find(set, BITSET_BITS)?;
    attributes(&bits).filter(|(kind, _)| *kind == BITS_BIT).find_map(|(_, bit)| {
        let name = find(&bit, BIT_NAME)?;
        if name.strip_suffix(&[0]) != Some(wanted.as_bytes()) {
            return None;
        }
        let on = listed_is_on || find(&bit, BIT_VALUE).is_some();
        Some(if on { Switch::On } else { Switch::Off })
    })
}
