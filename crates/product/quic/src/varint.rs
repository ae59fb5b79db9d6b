//! Integers of up to 62 bits, as QUIC carries them. Source: RFC 9000 §16.

use core::fmt;

/// An integer below 2^62: application error codes, for example. Source: RFC 9000 §16.
///
/// ```
/// use quic::VarInt;
/// assert_eq!(VarInt::from_u32(7).into_inner(), 7);
/// assert!(VarInt::from_u64(1 << 62).is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarInt(u64);

impl VarInt {
    /// The largest, 2^62 - 1.
    pub const MAX: VarInt = VarInt(wire::varint::MAX);

    /// Any integer of 32 bits.
    pub const fn from_u32(value: u32) -> VarInt {
        VarInt(value as u64)
    }

    /// An integer of 64 bits, if it fits.
    ///
    /// # Errors
    /// It is 2^62 or more.
    pub const fn from_u64(value: u64) -> Result<VarInt, VarIntBoundsExceeded> {
        if value > VarInt::MAX.0 { Err(VarIntBoundsExceeded) } else { Ok(VarInt(value)) }
    }

    /// The integer.
    pub const fn into_inner(self) -> u64 {
        self.0
    }

    /// What a frame has carried, or what is cut to what a frame can carry.
    pub(crate) fn saturating(value: u64) -> VarInt {
        VarInt(value.min(VarInt::MAX.0))
    }
}

impl fmt::Display for VarInt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl From<VarInt> for u64 {
    fn from(value: VarInt) -> u64 {
        value.0
    }
}

impl From<u8> for VarInt {
    fn from(value: u8) -> VarInt {
        VarInt(value.into())
    }
}

impl From<u16> for VarInt {
    fn from(value: u16) -> VarInt {
        VarInt(value.into())
    }
}

impl From<u32> for VarInt {
    fn from(value: u32) -> VarInt {
        VarInt(value.into())
    }
}

impl TryFrom<u64> for VarInt {
    type Error = VarIntBoundsExceeded;

    fn try_from(value: u64) -> Result<VarInt, VarIntBoundsExceeded> {
        VarInt::from_u64(value)
    }
}

/// An integer is 2^62 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VarIntBoundsExceeded;

impl fmt::Display for VarIntBoundsExceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the value is 2^62 or more")
    }
}

impl core::error::Error for VarIntBoundsExceeded {}
