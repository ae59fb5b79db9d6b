//! Types of unidirectional streams. RFC 9114 §6.2, RFC 9204 §4.2.

pub(crate) const CONTROL: u64 = 0x00;
pub(crate) const PUSH: u64 = 0x01;
pub(crate) const QPACK_ENCODER: u64 = 0x02;
pub(crate) const QPACK_DECODER: u64 = 0x03;
