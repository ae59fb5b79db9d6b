//! TLS 1.3 by rustls, packet and header protection in batches, tokens.
