//! A response's content, pulled from any `http_body::Body`.

use crate::caught::{caught, poll_caught};
use crate::low::{Content, ContentError, Context};
use bytes::Bytes;
use http::HeaderMap;
use std::pin::Pin;
use std::task::{Poll, ready};

/// A response's content. Chunks are handed on, not copied; one that is larger than the stream takes is split by reference.
pub struct ServiceContent<B> {
    /// `None`: nothing (more).
    body: Option<Pin<Box<B>>>,
    /// Pulled, and not handed on yet.
    held: Bytes,
    /// Bytes that are still to be pulled, if that was promised.
    left: Option<u64>,
    /// Boxed, because content is moved and little has any.
    trailers: Option<Box<HeaderMap>>,
}

impl<B> ServiceContent<B> {
    /// No content.
    pub(crate) fn empty() -> ServiceContent<B> {
        ServiceContent { body: None, held: Bytes::new(), left: Some(0), trailers: None }
    }

    /// The content of `body`, `length` bytes if that is known.
    pub(crate) fn new(body: B, length: Option<u64>) -> ServiceContent<B> {
        ServiceContent { body: Some(Box::pin(body)), held: Bytes::new(), left: length, trailers: None }
    }

    fn end(&mut self) {
        if let Some(body) = self.body.take() {
            // A panic in there must not end more than the request.
            let _ = caught(|| drop(body));
        }
    }
}

impl<B: http_body::Body<Data = Bytes>> ServiceContent<B> {
    /// Pulls the next chunk to `held`, which stays empty at the end.
    fn poll_pull(&mut self, cx: &Context<'_>) -> Poll<Result<(), ContentError>> {
        let waker = cx.waker();
        let mut cx = std::task::Context::from_waker(&waker);
        while let Some(body) = &mut self.body {
            let Ok(frame) = ready!(poll_caught(|| body.as_mut().poll_frame(&mut cx))) else {
                return Poll::Ready(Err(ContentError));
            };
            match frame {
                None => self.end(),
                Some(Err(_)) => return Poll::Ready(Err(ContentError)),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if bytes.is_empty() => {}
                    Ok(bytes) => {
                        if let Some(left) = &mut self.left {
                            // More than was promised.
                            *left = left.checked_sub(bytes.len() as u64).ok_or(ContentError)?;
                        }
                        self.held = bytes;
                        if body.is_end_stream() {
                            self.end();
                        }
                        return Poll::Ready(Ok(()));
                    }
                    Err(frame) => {
                        self.trailers = frame.into_trailers().ok().map(Box::new);
                        self.end();
                    }
                },
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<B: http_body::Body<Data = Bytes>> Content for ServiceContent<B> {
    fn poll_chunk(&mut self, max: usize, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        if self.held.is_empty() {
            let pulled = ready!(self.poll_pull(cx));
            if pulled.is_err() {
                self.end();
                return Poll::Ready(Err(ContentError));
            }
        }
        let len = self.held.len().min(max);
        Poll::Ready(Ok((len > 0).then(|| self.held.split_to(len))))
    }

    fn remaining(&self) -> Option<u64> {
        let held = self.held.len() as u64;
        match self.left {
            // Perhaps trailers follow.
            Some(0) if self.body.is_some() && held == 0 => None,
            Some(left) => Some(left.saturating_add(held)),
            None if self.body.is_none() && held == 0 => Some(0),
            None => None,
        }
    }

    fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take().map(|trailers| *trailers)
    }
}

impl<B> Drop for ServiceContent<B> {
    fn drop(&mut self) {
        self.end();
    }
}
