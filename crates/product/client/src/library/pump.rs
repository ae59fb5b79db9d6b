//! Content that comes in chunks, lent to a sink: of HTTP/1.1 and 2, and of responses that might have been redirects.

use super::content::of_content;
use super::error::Error;
use super::sink::{BodySink, Lent, Received};
use ::body::Body;
use bytes::{Buf as _, Bytes};
use http::{HeaderMap, Response};
use http_body::Body as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Lends the content of a response to the sink until it is complete.
///
/// # Errors
/// The content is not complete, or the sink has panicked or given it up.
pub(crate) async fn pump<K: BodySink>(
    (response, lent): (Response<Body>, Lent<K>),
) -> Result<Received<K>, Error> {
    let (parts, content) = response.into_parts();
    let head = Response::from_parts(parts, ());
    let mut pump = Pump { lent, content, rest: Bytes::new(), trailers: None };
    pump.lent.on_head(&head);
    poll_fn(|cx| pump.poll(cx)).await?;
    Ok(pump.lent.received(head, pump.trailers))
}

struct Pump<K> {
    lent: Lent<K>,
    content: Body,
    /// What the sink did not take.
    rest: Bytes,
    trailers: Option<HeaderMap>,
}

impl<K: BodySink> Pump<K> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.lent.flow().set_waker(cx.waker());
        loop {
            if let Some(error) = self.lent.failure() {
                return Poll::Ready(Err(error));
            }
            if !self.rest.is_empty() {
                if self.lent.flow().is_paused() && !self.lent.flow().is_resumed() {
                    return Poll::Pending;
                }
                let taken = self.lent.on_body(&self.rest);
                self.rest.advance(taken);
                continue;
            }
            let frame = match Pin::new(&mut self.content).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(of_content(error))),
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            match frame.into_data() {
                Ok(bytes) => self.rest = bytes,
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
    }
}
