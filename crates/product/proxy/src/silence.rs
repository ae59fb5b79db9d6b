//! How long an upstream may be silent before it answers.
//!
//! The timer stays with its connection from request to request. A later request is due no earlier, so the timer is left as it is until it
//! rings, and set anew then: once in the time that an upstream may be silent, and not with each request.

use crate::content::Progress;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::{Duration, Instant, Sleep, sleep_until};

/// The timer of a connection, made with its first request.
#[derive(Debug, Default)]
pub(crate) struct Silence(Option<Pin<Box<Sleep>>>);

impl Silence {
    /// Ready when the upstream has been silent for `patience`, which all requests of a connection have. Polled in a runtime of tokio's.
    pub(crate) fn poll(&mut self, progress: &Progress, patience: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(progress.due(patience))));
        while timer.as_mut().poll(cx).is_ready() {
            let due = progress.due(patience);
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Sent;
    use body::Body;
    use std::future::poll_fn;
    use tokio::runtime::Builder;
    use tokio::time::sleep;

    /// Deleted, the timer of an earlier request could end a later one before its time, or no timer could.
    #[test]
    fn each_request_of_a_connection_has_its_own_time() {
        let patience = Duration::from_millis(100);
        let mut silence = Silence::default();
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            for _ in 0..3 {
                let began = Instant::now();
                let (_content, progress) = Sent::new(Body::empty(), 0);
                let is_pending =
                    poll_fn(|cx| Poll::Ready(silence.poll(&progress, patience, cx).is_pending()));
                assert!(is_pending.await);
                // Answered before its time. The timer of the first rings while the third waits.
                sleep(patience / 2).await;
                assert!(began.elapsed() >= patience / 2);
            }
            let began = Instant::now();
            let (_content, progress) = Sent::new(Body::empty(), 0);
            poll_fn(|cx| silence.poll(&progress, patience, cx)).await;
            assert!(began.elapsed() >= patience);
        });
    }
}
