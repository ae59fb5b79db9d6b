//! What follows a response 101 over HTTP/1.1, or one of 2xx to an extended CONNECT over HTTP/2: another protocol, whose bytes go to and
//! from the handler, on the connection or on the stream. RFC 9110 §7.8, RFC 8441 §5.
//!
//! The handler sees content of the request and of the response, as of any other, so that a slow end holds back the other one. Either
//! direction ends by itself: the client's with its close_notify, the handler's with the end of its content. What follows a request that
//! was not answered by 101 is the next request, as ever: no byte of it reached the handler.
//!
//! hyper has a stream of HTTP/2 sent by a task of its own, for which the end of what it is given is the end of the stream. One that breaks
//! off must not look complete: that task is dropped (cut.rs), and h2 resets the stream with CANCEL.

use super::body::RequestGuard;
use super::cut::Cut;
use super::exchange::{PIECE, Receiving, context};
use super::places::Place;
use super::stream::{NextProtocol, Stream};
use crate::caught::poll_caught;
use crate::low::{Content as _, Handler, Upload as _};
use bytes::{Buf as _, Bytes};
use http::header::{self, HeaderValue};
use http::{HeaderMap, Request};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::rt::{ReadBuf, Write as _};
use hyper::upgrade::{OnUpgrade, Upgraded};
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

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
    place: Place<H::Head>,
}

impl<H: Handler> Tunnel<H> {
    pub(super) fn new(
        body: H::Content,
        receiving: Receiving<H::Upload>,
        account: RequestGuard,
        place: Place<H::Head>,
    ) -> Tunnel<H> {
        let (receiving, sending) = (Some(receiving), Sending::Open(body));
        Tunnel { receiving, sending, outgoing: Bytes::new(), account, place }
    }

    /// Has the handler take what the client sends.
    fn receive(&mut self, stream: &mut impl Ends, cx: &mut Context<'_>) -> io::Result<()> {
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
                match stream.poll_ended(cx) {
                    Poll::Pending => break,
                    // Dropped, the upload is aborted.
                    Poll::Ready(ended) => ended?,
                }
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
    fn poll_send(&mut self, stream: &mut impl Ends, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = Pin::new(stream);
        loop {
            while !self.outgoing.is_empty() {
                let taken = ready!(stream.as_mut().poll_write(cx, &self.outgoing))?;
                self.outgoing.advance(taken.min(self.outgoing.len()));
            }
            match &mut self.sending {
                Sending::Open(body) => match ready!(body.poll_chunk(PIECE, &context(self.place.waker()))) {
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

    /// Moves bytes in both directions. Ready when no more will; an error if they were not all.
    fn poll_both(&mut self, stream: &mut impl Ends, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.place.set_task(cx);
        let polled = poll_caught(|| {
            if let Err(error) = self.receive(stream, cx) {
                return Poll::Ready(Err(error));
            }
            let sent = ready!(self.poll_send(stream, cx));
            if sent.is_ok() && self.receiving.is_some() { Poll::Pending } else { Poll::Ready(sent) }
        });
        polled.map(|ended| ended.unwrap_or_else(|()| Err(io::Error::other("the handler has panicked"))))
    }

    /// Goes on by the protocol on a stream of HTTP/2, until that ends or the connection does.
    pub(super) async fn run(mut self, stream: OnUpgrade, cut: Cut) {
        let context = Rc::clone(&self.account.context);
        let Ok(io) = stream.await else { return };
        let mut stream = Http2Stream { io, end: StreamEnd::Unknown };
        let mut finishes = pin!(context.timeouts.finishes());
        let mut is_told = false;
        let ended = poll_fn(|cx| {
            if !is_told && finishes.as_mut().poll(cx).is_ready() {
                is_told = true;
                self.finish();
            }
            self.poll_both(&mut stream, cx)
        });
        if ended.await.is_err()
            && let Some(task) = cut.get()
        {
            task.abort();
        }
    }
}

/// Where a protocol is spoken.
pub(super) trait Ends: hyper::rt::Read + hyper::rt::Write + Unpin {
    /// Nothing more can be read. An error if the client has broken off.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl Ends for Stream {
    /// Without a close_notify, reading has failed.
    fn poll_ended(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A stream of HTTP/2.
struct Http2Stream {
    io: Upgraded,
    end: StreamEnd,
}

/// How a stream has ended, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
    Unknown,
    /// The task that sends has been polled since.
    Told,
}

impl Ends for Http2Stream {
    /// hyper reads the end of the stream where the client has reset it with CANCEL. Its task that sends has then ended.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.end == StreamEnd::Unknown {
            self.end = StreamEnd::Told;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match Pin::new(&mut self.io).poll_flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(())),
        }
    }
}

impl hyper::rt::Read for Http2Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl hyper::rt::Write for Http2Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<H: Handler> NextProtocol for Tunnel<H> {
    fn on_early(&mut self, bytes: Bytes) {
        if let Some(receiving) = &mut self.receiving {
            receiving.put(bytes);
        }
    }

    fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<()> {
        // Whatever ended it, no one is left to be told.
        self.poll_both(stream, cx).map(drop)
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
