//! The content of requests: this many bytes of the pattern that all of tercel sends.

use base::pattern;
use bytes::Bytes;
use core::convert::Infallible;
use core::pin::Pin;
use core::task::{Context, Poll};
use http_body::{Body, Frame, SizeHint};

/// Content that was not handed over yet, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content(pub(super) u64);

impl Content {
    /// The next piece, of at most `most` bytes; empty at the end.
    pub(super) fn next(&mut self, most: usize) -> Bytes {
        let length = usize::try_from(self.0).unwrap_or(usize::MAX).min(most);
        let whole = pattern::at(0);
        let piece = whole.get(..length).unwrap_or(whole);
        self.0 -= piece.len() as u64;
        Bytes::from_static(piece)
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.next(pattern::PERIOD);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0 == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}
