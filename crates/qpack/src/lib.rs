//! QPACK field compression, RFC 9204.
