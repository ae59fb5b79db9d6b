//! The TLS alert by which a server ends a connection over TCP. hyper hands on an error of the socket to some requests only, and
//! without its cause; so it is noted where it is read.
//!
//! A client of TLS 1.3 has completed its handshake when it hears that its certificate is missed or not accepted: RFC 8446 §4.4.2.4.

use super::error::{Error, Kind};
use crate::fault::refusal;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The alert that came, if one did. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedAlert(Arc<OnceLock<u8>>);

impl ReceivedAlert {
    /// What the server has said by it.
    pub(crate) fn error(&self) -> Option<Error> {
        self.0.get().map(|alert| Error::new(Kind::Tls, refusal(*alert)))
    }
}

/// The alert in an error of a TLS stream.
pub(crate) fn of(error: &io::Error) -> Option<u8> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(alert) => Some(u8::from(*alert)),
        _ => None,
    }
}

/// A stream that notes the alert at its end.
pub(crate) struct Noting<S> {
    stream: S,
    received: ReceivedAlert,
}

impl<S> Noting<S> {
    pub(crate) fn new(stream: S) -> Noting<S> {
        Noting { stream, received: ReceivedAlert::default() }
    }

    pub(crate) fn received(&self) -> ReceivedAlert {
        self.received.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noting<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Poll::Ready(Err(error)) = &polled
            && let Some(alert) = of(error)
        {
            let _ = self.received.0.set(alert);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noting<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
