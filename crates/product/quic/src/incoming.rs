//! A client that has begun to connect.

use crate::config::EarlyData;
use crate::connecting::Connecting;
use crate::connection::Connection;
use crate::error::ConnectionError;
use crate::shared::{Ending, Guard};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::net::SocketAddr;
use std::sync::Arc;

/// A client that has begun to connect. Its handshake goes on while the program decides; as a future it is the connection.
///
/// When it is dropped, the client is told CONNECTION_REFUSED.
#[derive(Debug)]
#[must_use = "the client is refused when it is dropped"]
pub struct Incoming {
    /// `None` once the program has decided.
    guard: Option<Arc<Guard>>,
    remote: SocketAddr,
}

impl Incoming {
    pub(crate) fn new(guard: Arc<Guard>) -> Incoming {
        let remote = guard.0.change(|state| state.facts.remote);
        Incoming { guard: Some(guard), remote }
    }

    /// Takes the connection.
    ///
    /// # Errors
    /// The attempt has failed already.
    pub fn accept(mut self) -> Result<Connecting, ConnectionError> {
        let Some(guard) = self.guard.take() else { return Err(ConnectionError::LocallyClosed) };
        match guard.0.change(|state| state.error().cloned()) {
            Some(error) => Err(error),
            None => Ok(Connecting::new(guard, self.remote, EarlyData::Permitted)),
        }
    }

    /// Turns the client away: it is told CONNECTION_REFUSED. Source: RFC 9000 §20.1.
    pub fn refuse(self) {
        drop(self);
    }

    /// Where the client says it is.
    pub fn remote_address(&self) -> SocketAddr {
        self.remote
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(guard) = &self.guard {
            guard.0.end_by(Ending::Refuse);
        }
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, ConnectionError>;
    type IntoFuture = IncomingFuture;

    fn into_future(self) -> IncomingFuture {
        IncomingFuture(self.accept())
    }
}

/// The connection of an [`Incoming`].
#[derive(Debug)]
#[must_use = "the attempt ends when it is dropped"]
pub struct IncomingFuture(Result<Connecting, ConnectionError>);

impl Future for IncomingFuture {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(connecting) => Pin::new(connecting).poll(context),
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}
