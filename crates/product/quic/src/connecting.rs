//! A connection whose handshake is under way, and what becomes of early data.

use crate::config::EarlyData;
use crate::connection::Connection;
use crate::error::ConnectionError;
use crate::shared::{Ending, Guard, Shared};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::net::SocketAddr;
use std::sync::Arc;
use wire::Side;

/// A connection whose handshake is under way: a future of the connection.
///
/// When it is dropped, the attempt ends: a client's with code 0, a server's with CONNECTION_REFUSED.
#[derive(Debug)]
#[must_use = "the attempt ends when it is dropped"]
pub struct Connecting {
    /// `None` once the handshake is complete.
    guard: Option<Arc<Guard>>,
    remote: SocketAddr,
    early_data: EarlyData,
}

impl Connecting {
    pub(crate) fn new(guard: Arc<Guard>, remote: SocketAddr, early_data: EarlyData) -> Connecting {
        Connecting { guard: Some(guard), remote, early_data }
    }

    /// The connection before its handshake is complete, and a future of how that goes.
    ///
    /// On a client, what is written goes with the first packets (0-RTT), up to the limits of an earlier connection to this server;
    /// an attacker may have the server read it twice. If the server does not take it, it goes again by itself, in order, once
    /// the handshake is complete; only datagrams are lost. On a server, what is written goes before the client has proved
    /// anything (0.5-RTT), and streams that have arrived can be read ([`RecvStream::is_0rtt`](crate::RecvStream::is_0rtt)).
    /// Source: RFC 9001 §4.6.
    ///
    /// # Errors
    /// On a client, the attempt itself: [`ClientConfig::early_data`](crate::ClientConfig::early_data) is off, or no ticket of this
    /// server permits early data.
    pub fn into_0rtt(mut self) -> Result<(Connection, ZeroRttAccepted), Connecting> {
        match self.guard.take() {
            Some(guard) if self.early_data == EarlyData::Permitted => {
                let accepted = ZeroRttAccepted(Arc::clone(&guard.0));
                Ok((Connection::new(guard), accepted))
            }
            guard => {
                self.guard = guard;
                Err(self)
            }
        }
    }

    /// Where the peer is said to be.
    pub fn remote_address(&self) -> SocketAddr {
        self.remote
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(guard) = &self.guard else { return Poll::Ready(Err(ConnectionError::LocallyClosed)) };
        match guard.0.change(|state| state.poll_connected(context)) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {
                let guard = self.guard.take();
                Poll::Ready(guard.map(Connection::new).ok_or(ConnectionError::LocallyClosed))
            }
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if let Some(guard) = &self.guard
            && guard.0.change(|state| state.side()) == Side::Server
        {
            guard.0.end_by(Ending::Refuse);
        }
    }
}

/// What became of early data: a future that is ready when the handshake is over. On a client, `true` if the server has taken what
/// was sent early; on a server, `true` if the handshake has succeeded.
#[derive(Debug)]
pub struct ZeroRttAccepted(Arc<Shared>);

impl Future for ZeroRttAccepted {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        self.0.change(|state| state.poll_early_data(context))
    }
}
