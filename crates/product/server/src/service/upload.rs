//! The content of a request on its way to a [`Body`].

use crate::low::{Context, Received, Upload};
use body::queue::Producer;
use body::{Body, BodyError};
use http3::Trailers;

/// So many bytes wait for the application to read them. What the peer may send beyond them is its window.
const CAPACITY: usize = 256 << 10;

/// Puts content into a queue that is made with the first byte, or when the service is called.
#[derive(Debug, Default)]
pub struct Inlet {
    producer: Option<Producer>,
    /// The other end, until the service is called.
    body: Option<Body>,
    has_ended: bool,
}

impl Inlet {
    fn open(&mut self) -> &mut Producer {
        let body = &mut self.body;
        self.producer.get_or_insert_with(|| {
            let (producer, reader) = Body::queue(CAPACITY);
            *body = Some(reader);
            producer
        })
    }

    /// The content for the application, once. The connection hears that it was read, or dropped.
    pub(super) fn body(&mut self, received: Received, cx: &Context<'_>) -> Body {
        if received == Received::Whole && self.producer.is_none() {
            return Body::empty();
        }
        self.open().set_waker(&cx.waker());
        self.body.take().unwrap_or_default()
    }
}

impl Upload for Inlet {
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        self.open().push_copy(bytes)
    }

    fn on_trailers(&mut self, trailers: &Trailers<'_>) {
        // Fields that cannot be expressed are left out, as RFC 9110 §6.5.1 permits.
        let trailers = trailers.to_headers().ok();
        self.has_ended = true;
        self.open().end(trailers);
    }

    fn on_end(&mut self) {
        if let Some(producer) = self.producer.as_mut().filter(|_| !self.has_ended) {
            producer.end(None);
        }
    }

    fn on_abort(&mut self) {
        if let Some(producer) = &mut self.producer {
            producer.abort(BodyError::Aborted);
        }
    }

    fn has_room(&self) -> bool {
        self.producer.as_ref().is_none_or(Producer::has_room)
    }

    fn is_wanted(&self) -> bool {
        self.producer.as_ref().is_some_and(Producer::has_reader)
    }

    fn is_awaited(&self) -> bool {
        self.producer.as_ref().is_some_and(Producer::is_awaited)
    }

    fn memory(&self) -> usize {
        self.producer.as_ref().map_or(0, Producer::queued)
    }
}
