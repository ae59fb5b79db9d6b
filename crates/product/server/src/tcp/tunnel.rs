//! What follows a response 101: another protocol, whose bytes go to and from the handler. RFC 9110 §7.8.
//!
//! The handler sees content of the request and of the response, as of any other, so that a slow end holds back the other one. Either
//! direction ends by itself: the client's with its close_notify, the handler's with the end of its content. What follows a request that
//! was not answered by 101 is the next request, as ever: no byte of it reached the handler.

use super::body::RequestGuard;
use super::exchange::{PIECE, Receiving, RequestWaker, context};
use super::stream::{NextProtocol, Stream};
use crate::caught::poll_caught;
use crate::low::{Content as _, Handler, Upload as _};
use bytes::{Buf as _, Bytes};
use http::header::{self, HeaderValue};
use http::{HeaderMap, Request};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::rt::{Read as _, ReadBuf, Write as _};
use hyper::upgrade::OnUpgrade;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

/// So many bytes are read at once.
const READ: usize = 16 << 10;

/// The protocols by which the client would go on after `request`. hyper has looked for the field, so most requests cost nothing here.
pub(super) fn offer(request: &Request<Incoming>) -> Option<HeaderValue> {
    request.extensions().get::<OnUpgrade>()?;
    // Content would have to be received before the protocol changes.
    let is_plain = request.body().is_end_stream() && !request.headers().contains_key(header::EXPECT);
    if is_plain { protocols(request.headers()) } else { None }
}

/// The field Upgrade, if the field Connection says that it is meant.
fn protocols(fields: &HeaderMap) -> Option<HeaderValue> {
    let mut options = fields.get_all(header::CONNECTION).iter();
    let is_meant = options.any(|value| {
        let mut options = value.as_bytes().split(|byte| *byte == b',');
        options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
    });
    let lines: Vec<&[u8]> = fields.get_all(header::UPGRADE).iter().map(HeaderValue::as_bytes).collect();
    if is_meant { HeaderValue::from_bytes(&lines.join(&b", "[..])).ok() } else { None }
}

/// What the handler sends.
enum Sending<C> {
    Open(C),
    /// All is there; the end is to be told.
    Ending,
    Over,
}

/// A protocol that a handler speaks.
pub(super) struct Tunnel<H: Handler> {
    /// `None`: nothing more is read.
    receiving: Option<Receiving<H::Upload>>,
    sending: Sending<H::Content>,
    /// Pulled from the handler, and not sent.
    outgoing: Bytes,
    account: RequestGuard,
    /// What the handler wakes.
    waker: (Arc<RequestWaker>, Waker),
}

impl<H: Handler> Tunnel<H> {
    pub(super) fn new(
        body: H::Content,
        receiving: Receiving<H::Upload>,
        account: RequestGuard,
        waker: (Arc<RequestWaker>, Waker),
    ) -> Tunnel<H> {
        let (receiving, sending) = (Some(receiving), Sending::Open(body));
        Tunnel { receiving, sending, outgoing: Bytes::new(), account, waker }
    }

    /// Has the handler take what the client sends.
    fn receive(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> io::Result<()> {
        while let Some(receiving) = &mut self.receiving {
            if !receiving.upload.is_wanted() {
                self.receiving = None;
                return Ok(());
            }
            if !receiving.lend() {
                break;
            }
            let mut bytes = [0; READ];
            let mut read = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *stream).poll_read(cx, read.unfilled()) {
                Poll::Pending => break,
                Poll::Ready(ended) => ended?,
            }
            if read.filled().is_empty() {
                receiving.upload.on_end();
                self.receiving = None;
                return Ok(());
            }
            receiving.put(Bytes::copy_from_slice(read.filled()));
        }
        if let Some(receiving) = &mut self.receiving {
            receiving.note_kept(0);
        }
        Ok(())
    }

    /// Sends what the handler has, and then the end.
    fn poll_send(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = Pin::new(stream);
        loop {
            while !self.outgoing.is_empty() {
                let taken = ready!(stream.as_mut().poll_write(cx, &self.outgoing))?;
                self.outgoing.advance(taken.min(self.outgoing.len()));
            }
            match &mut self.sending {
                Sending::Open(body) => match ready!(body.poll_chunk(PIECE, &context(&self.waker.1))) {
                    Ok(Some(chunk)) => {
                        self.account.sent += chunk.len() as u64;
                        self.outgoing = chunk;
                    }
                    Ok(None) => self.sending = Sending::Ending,
                    Err(error) => return Poll::Ready(Err(io::Error::other(error))),
                },
                Sending::Ending => {
                    ready!(stream.as_mut().poll_shutdown(cx))?;
                    self.sending = Sending::Over;
                }
                Sending::Over => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<H: Handler> NextProtocol for Tunnel<H> {
    fn on_early(&mut self, bytes: Bytes) {
        if let Some(receiving) = &mut self.receiving {
            receiving.put(bytes);
        }
    }

    fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<()> {
        self.waker.0.set(cx);
        let polled = poll_caught(|| {
            if let Err(error) = self.receive(stream, cx) {
                return Poll::Ready(Err(error));
            }
            let sent = ready!(self.poll_send(stream, cx));
            if sent.is_ok() && self.receiving.is_some() { Poll::Pending } else { Poll::Ready(sent) }
        });
        // Whatever ended it, no one is left to be told.
        polled.map(drop)
    }

    fn finish(&mut self) {
        self.receiving = None;
        if matches!(self.sending, Sending::Open(_)) {
            self.outgoing = Bytes::new();
            self.sending = Sending::Ending;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a field that another proxy did not mean could change the protocol. RFC 9110 §7.8.
    #[test]
    fn protocols_are_offered_by_upgrade_and_connection_together() {
        let offered = |lines: &[(&str, &str)]| {
            let line = |(name, value): &(&str, &str)| {
                (name.parse::<header::HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
            };
            let fields: HeaderMap =
                lines.iter().map(line).fold(HeaderMap::new(), |mut map, (name, value)| {
                    map.append(name, value);
                    map
                });
            protocols(&fields).map(|value| value.to_str().unwrap().to_owned())
        };
        let websocket = Some("websocket".to_owned());
        assert_eq!(offered(&[("connection", "Upgrade"), ("upgrade", "websocket")]), websocket);
        assert_eq!(offered(&[("connection", "keep-alive ,\tupgrade"), ("upgrade", "websocket")]), websocket);
        assert_eq!(
            offered(&[("connection", "upgrade"), ("upgrade", "a/1"), ("upgrade", "b, c")]),
            Some("a/1, b, c".to_owned())
        );
        assert_eq!(offered(&[("upgrade", "websocket")]), None);
        assert_eq!(offered(&[("connection", "x-upgrade"), ("upgrade", "websocket")]), None);
    }
}
