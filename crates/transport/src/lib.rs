//! QUIC version 1 and 2, sans-IO: RFC 9000, RFC 9001, RFC 9369.
