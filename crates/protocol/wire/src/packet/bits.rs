//! The bits of a header's first byte. RFC 9000 §17.2, §17.3.1, RFC 9369 §3.2.

use crate::version::Version;

pub(super) const LONG: u8 = 0x80;
pub(super) const FIXED: u8 = 0x40;
pub(super) const SPIN: u8 = 0x20;
pub(super) const KEY_PHASE: u8 = 0x04;
/// The four type codes of long headers, in QUIC version 1's order.
const CODE_INITIAL: u8 = 0;
const CODE_ZERO_RTT: u8 = 1;
const CODE_HANDSHAKE: u8 = 2;
const CODE_RETRY: u8 = 3;

/// How many bytes the integrity tag at the end of a Retry packet has. RFC 9001 §5.8.
pub const RETRY_TAG_LEN: usize = 16;

/// Whether the header is a long one. RFC 8999 §5.1.
#[inline]
pub const fn is_long(first: u8) -> bool {
    first & LONG != 0
}

/// Whether the bit is set that tells QUIC from other protocols. RFC 9000 §17.2; a peer may clear it under RFC 9287.
#[inline]
pub const fn has_fixed_bit(first: u8) -> bool {
    first & FIXED != 0
}

/// Whether a reserved bit is set in an unmasked long header, which is a PROTOCOL_VIOLATION once the packet is
/// authenticated. RFC 9000 §17.2.
#[inline]
pub const fn has_reserved_bits_long(first: u8) -> bool {
    first & 0x0c != 0
}

/// Whether a reserved bit is set in an unmasked short header, which is a PROTOCOL_VIOLATION once the packet is
/// authenticated. RFC 9000 §17.3.1.
#[inline]
pub const fn has_reserved_bits_short(first: u8) -> bool {
    first & 0x18 != 0
}

/// How many bytes (1 to 4) the packet number takes, from an unmasked first byte of either form.
#[inline]
pub const fn packet_number_size(first: u8) -> usize {
    ((first & 0x03) as usize).wrapping_add(1)
}

/// The latency spin bit of a short header. RFC 9000 §17.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spin {
    /// The bit is clear.
    #[default]
    Zero,
    /// The bit is set.
    One,
}

impl Spin {
    /// From a short header's first byte, masked or not.
    #[inline]
    pub const fn from_first_byte(first: u8) -> Spin {
        if first & SPIN == 0 { Spin::Zero } else { Spin::One }
    }

    /// The other value.
    #[inline]
    pub const fn flipped(self) -> Spin {
        match self {
            Spin::Zero => Spin::One,
            Spin::One => Spin::Zero,
        }
    }

    #[inline]
    pub(super) const fn bits(self) -> u8 {
        match self {
            Spin::Zero => 0,
            Spin::One => SPIN,
        }
    }
}

/// The key phase bit of a short header. RFC 9001 §6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyPhase {
    /// The bit is clear: the first keys, and every second update.
    #[default]
    Zero,
    /// The bit is set.
    One,
}

impl KeyPhase {
    /// From a short header's unmasked first byte.
    #[inline]
    pub const fn from_first_byte(first: u8) -> KeyPhase {
        if first & KEY_PHASE == 0 { KeyPhase::Zero } else { KeyPhase::One }
    }

    /// The other value.
    #[inline]
    pub const fn flipped(self) -> KeyPhase {
        match self {
            KeyPhase::Zero => KeyPhase::One,
            KeyPhase::One => KeyPhase::Zero,
        }
    }

    #[inline]
    pub(super) const fn bits(self) -> u8 {
        match self {
            KeyPhase::Zero => 0,
            KeyPhase::One => KEY_PHASE,
        }
    }
}

/// The packets with a long header and a packet number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LongType {
    /// Carries the first CRYPTO frames; the only one with a token.
    Initial,
    /// Carries application data before the handshake is done.
    ZeroRtt,
    /// Carries the rest of the handshake.
    Handshake,
}

/// What the type bits of a long header say.
pub(super) enum TypeBits {
    Numbered(LongType),
    Retry,
}

impl TypeBits {
    /// Reads the type from the first byte of a packet of a supported version.
    #[inline]
    pub(super) const fn from_first_byte(first: u8, version: Version) -> TypeBits {
        // RFC 9369 §3.2: version 2 numbers the types one higher, modulo 4.
        //= rfc9369/3.2#1
        let shift = if is_v2(version) { 3 } else { 0 };
        match (first >> 4).wrapping_add(shift) & 0x03 {
            CODE_INITIAL => TypeBits::Numbered(LongType::Initial),
            CODE_ZERO_RTT => TypeBits::Numbered(LongType::ZeroRtt),
            CODE_HANDSHAKE => TypeBits::Numbered(LongType::Handshake),
            _ => TypeBits::Retry,
        }
    }

    /// The type bits in their place in the first byte.
    #[inline]
    pub(super) const fn bits(self, version: Version) -> u8 {
        let code = match self {
            TypeBits::Numbered(LongType::Initial) => CODE_INITIAL,
            TypeBits::Numbered(LongType::ZeroRtt) => CODE_ZERO_RTT,
            TypeBits::Numbered(LongType::Handshake) => CODE_HANDSHAKE,
            TypeBits::Retry => CODE_RETRY,
        };
        let shift = if is_v2(version) { 1 } else { 0 };
        (code.wrapping_add(shift) & 0x03) << 4
    }
}

const fn is_v2(version: Version) -> bool {
    version.0 == Version::V2.0
}
