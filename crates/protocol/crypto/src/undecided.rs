//! A server's TLS session that waits for the version: the ClientHello, as long as rustls has not seen it. RFC 9368 §2.3.

use crate::hello;
use rustls::ServerConfig;
use std::sync::Arc;

/// What a server keeps until the version is settled.
pub(crate) struct Undecided {
    pub(crate) config: Arc<ServerConfig>,
    /// The ClientHello, once it is whole.
    pub(crate) hello: Option<Vec<u8>>,
}

impl Undecided {
    pub(crate) fn new(config: Arc<ServerConfig>) -> Undecided {
        Undecided { config, hello: None }
    }

    /// Keeps the client's first message. `None` for a second one.
    pub(crate) fn keep(&mut self, message: &[u8]) -> Option<()> {
        let is_first = self.hello.is_none();
        is_first.then(|| self.hello = Some(message.to_vec()))
    }

    /// The client's transport parameters, once they are there; empty if it has sent none.
    pub(crate) fn parameters(&self) -> Option<&[u8]> {
        Some(hello::client_parameters(self.hello.as_ref()?).unwrap_or(&[]))
    }
}
