//! The content of a request on its way to a [`Body`].

use crate::low::{Context, Received, Upload};
use body::queue::Producer;
use body::{Body, BodyError};
use http3::Trailers;

/// So many bytes wait for the application to read them. What the peer may send beyond them is its window.
const CAPACITY: usize = 256 << 10;

/// Puts content into a queue that is made with the first byte, or when the service is called. Boxed, because a request without content
/// is handed from list to list.
#[derive(Debug, Default)]
pub struct Inlet(Option<Box<Queue>>);

#[derive(Debug)]
struct Queue {
    producer: Producer,
    /// The other end, until the service is called.
    body: Option<Body>,
    has_ended: bool,
}

impl Inlet {
    fn open(&mut self) -> &mut Queue {
        self.0.get_or_insert_with(|| {
            let (producer, body) = Body::queue(CAPACITY);
            Box::new(Queue { producer, body: Some(body), has_ended: false })
        })
    }

    fn producer(&self) -> Option<&Producer> {
        self.0.as_ref().map(|queue| &queue.producer)
    }

    /// The content for the application, once. The connection hears that it was read, or dropped.
    pub(crate) fn body(&mut self, received: Received, cx: &Context<'_>) -> Body {
        if received == Received::Whole && self.0.is_none() {
            return Body::empty();
        }
        let queue = self.open();
        queue.producer.set_waker(&cx.waker());
        queue.body.take().unwrap_or_default()
    }
}

impl Upload for Inlet {
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        self.open().producer.push_copy(bytes)
    }

    fn on_trailers(&mut self, trailers: &Trailers<'_>) {
        // Fields that cannot be expressed are left out, as RFC 9110 §6.5.1 permits.
        let trailers = trailers.to_headers().ok();
        let queue = self.open();
        queue.has_ended = true;
        queue.producer.end(trailers);
    }

    fn on_end(&mut self) {
        if let Some(queue) = self.0.as_mut().filter(|queue| !queue.has_ended) {
            queue.producer.end(None);
        }
    }

    fn on_abort(&mut self) {
        if let Some(queue) = &mut self.0 {
            queue.producer.abort(BodyError::Aborted);
        }
    }

    fn has_room(&self) -> bool {
        self.producer().is_none_or(Producer::has_room)
    }

    fn is_wanted(&self) -> bool {
        // Of a service that was not called, nothing will read it.
        self.0.as_ref().is_some_and(|queue| queue.body.is_none() && queue.producer.has_reader())
    }

    fn is_awaited(&self) -> bool {
        self.producer().is_some_and(Producer::is_awaited)
    }

    fn memory(&self) -> usize {
        self.producer().map_or(0, Producer::queued)
    }
}
