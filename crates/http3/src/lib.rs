//! HTTP/3, RFC 9114, sans-IO over the transport.
