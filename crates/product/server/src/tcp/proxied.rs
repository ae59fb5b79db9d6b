//! The beginning of a connection from a proxy: a header of the PROXY protocol, before TLS.

use super::connection::ConnectionOptions;
use super::limiter::ConnectionPermit;
use super::timeouts::{ConnectionTimeouts, NextAction};
use crate::proxy_protocol::{HeaderReader, Sender};
use crate::warnings::Warning;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;
use tokio::net::TcpStream;

/// So many bytes are looked at at once.
const LOOK: usize = 512;

/// The client of a connection from a proxy and the address that it has reached, as the proxy says; else the ends of the connection. `None`
/// if the connection is to be closed: what it begins with is no header, there is not enough of it in time, or the client has too many
/// connections.
pub(super) async fn client<A>(
    socket: &TcpStream,
    ends: (SocketAddr, SocketAddr),
    timeouts: &ConnectionTimeouts,
    permit: &mut ConnectionPermit,
    options: &ConnectionOptions<A>,
) -> Option<(SocketAddr, SocketAddr)> {
    let mut reader = HeaderReader::default();
    let read = poll_fn(|cx| match timeouts.order(cx.waker()) {
        NextAction::Serve | NextAction::Leave => poll_header(socket, &mut reader, timeouts, cx),
        NextAction::Finish | NextAction::Close => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
    });
    let read = read.await;
    let state = &options.thread_state;
    let ends = match read {
        Ok(Sender::Local) => ends,
        Ok(Sender::Client { from, to }) => (from, to),
        Err(_) => {
            state.counters.borrow_mut().handshakes_failed += 1;
            // Balancers look whether a port is open without a word.
            let is_wrong = reader.has_begun();
            state.warnings.note(Warning::ProxyHeadersWrong, is_wrong.into());
            return None;
        }
    };
    let client = ends.0.ip();
    if !permit.claim(client, &options.limits) {
        state.counters.borrow_mut().refused += 1;
        state.warnings.note(Warning::ConnectionsBeyondLimit, 1);
        return None;
    }
    timeouts.on_peer(client);
    Some(ends)
}

/// Reads the header, and no byte more: what follows is the client's. So bytes are looked at before they are taken.
fn poll_header(
    socket: &TcpStream,
    reader: &mut HeaderReader,
    timeouts: &ConnectionTimeouts,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Sender>> {
    let mut bytes = [0; LOOK];
    loop {
        let mut buffer = ReadBuf::new(&mut bytes);
        let seen = match ready!(socket.poll_peek(cx, &mut buffer)) {
            Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(seen) => seen,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let looked_at = bytes.get(..seen).unwrap_or_default();
        let (taken, sender) =
            reader.take(looked_at).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let mut left = bytes.get_mut(..taken).unwrap_or_default();
        while !left.is_empty() {
            // They are there.
            let read = socket.try_read(left)?;
            timeouts.on_read(read);
            if read == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            left = left.get_mut(read..).unwrap_or_default();
        }
        if let Some(sender) = sender {
            return Poll::Ready(Ok(sender));
        }
    }
}
