//! Requests that hyper still sends over HTTP/1.1 when the response is not read any more.

use ::body::{Body, BodyError};
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use tokio::task::AbortHandle;

/// Content of a request. hyper drops it when all of it is in hyper's buffer.
pub(crate) struct Upload {
    content: Body,
    _unsent: Arc<()>,
}

/// Ends the connection when it is dropped before the upload is complete. hyper alone would wait until the server takes the rest,
/// and would read nothing meanwhile.
pub(crate) struct EndWithUpload {
    /// None when the response is complete: what is left of the request may follow then.
    task: Option<AbortHandle>,
    unsent: Weak<()>,
}

impl Upload {
    /// The same content, and what ends the connection of `task` with it.
    pub(crate) fn watch(content: Body, task: &AbortHandle) -> (Body, EndWithUpload) {
        let task = Some(task.clone());
        if content.is_end_stream() {
            return (content, EndWithUpload { task, unsent: Weak::new() });
        }
        let unsent = Arc::new(());
        let end = EndWithUpload { task, unsent: Arc::downgrade(&unsent) };
        (Body::new(Upload { content, _unsent: unsent }), end)
    }
}

impl EndWithUpload {
    /// The response is complete.
    pub(crate) fn disarm(&mut self) {
        self.task = None;
    }
}

impl Drop for EndWithUpload {
    fn drop(&mut self) {
        if self.unsent.strong_count() > 0 {
            self.task.iter().for_each(AbortHandle::abort);
        }
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.content).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}
