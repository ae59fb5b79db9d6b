//! Packets: the headers in front of protected payloads. RFC 8999, RFC 9000 §17, RFC 9369 §3.2.
//!
//! Reading gives offsets into the datagram instead of borrows, because the caller goes on to decrypt the same bytes in
//! place. What header protection hides (packet number and its size, reserved bits, key phase) is read afterwards, from the
//! unmasked first byte, by the small functions here. Writing leaves the first byte unmasked; protection comes with sealing.
//!
//! Retry is a packet of its own kind, not a [`LongType`]: it has no length, no packet number and no keys.

mod bits;
mod parse;
mod write;

#[cfg(test)]
mod tests;

pub use bits::{
    KeyPhase, LongType, RETRY_TAG_LEN, Spin, has_fixed_bit, has_reserved_bits_long, has_reserved_bits_short,
    is_long, packet_number_size,
};
pub use parse::{Packet, ShortHeader, sample, versions};
pub use write::{
    LengthMark, LongHeader, patch_length, retry_size, short_header_size, write_retry, write_short,
    write_version_negotiation,
};
