//! Requests that hyper still sends over HTTP/1.1 when the response is not read any more.

use super::holding::Holding;
use ::body::Body;
use http_body::Body as _;
use std::sync::{Arc, Weak};
use tokio::task::AbortHandle;

/// Ends the connection when it is dropped before the upload is complete. hyper alone would wait until the server takes the rest,
/// and would read nothing meanwhile.
pub(crate) struct EndWithUpload {
    /// None when the response is complete: what is left of the request may follow then.
    task: Option<AbortHandle>,
    /// Held by the content until hyper has all of it.
    unsent: Weak<()>,
}

impl EndWithUpload {
    /// The same content, and what ends the connection of `task` with it.
    pub(crate) fn watch(content: Body, task: &AbortHandle) -> (Body, EndWithUpload) {
        let task = Some(task.clone());
        if content.is_end_stream() {
            return (content, EndWithUpload { task, unsent: Weak::new() });
        }
        let unsent = Arc::new(());
        let end = EndWithUpload { task, unsent: Arc::downgrade(&unsent) };
        (Holding::wrap(content, unsent), end)
    }

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
