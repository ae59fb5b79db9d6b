//! The HTTP server: files, generated bodies, access log, certificates.
