//! Informational responses, which handlers of services send before the final response. RFC 9110 §15.2.
//!
//! Data structure: an [`Outlet`] for each request that a connection answers at a time, reused from request to request. Handlers push
//! to its queue from any thread; the connection takes from it. Each entry has the number of its request, so that what a task
//! pushes after the response is not taken for a later request.
//!
//! Invariant: the queue has at most [`MAX_QUEUED`] entries.

use crate::response_fields::remove_connection_fields;
use http::header::{self, HeaderMap};
use http::{StatusCode, Version};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// So many informational responses of a request may wait for their connection.
const MAX_QUEUED: usize = 16;

/// Sends informational responses to one request: [`crate::ConnectionInfo::informational`].
///
/// ```
/// use http::{HeaderMap, StatusCode, header::LINK};
/// use server::ConnectionInfo;
///
/// fn hint(info: &ConnectionInfo) {
///     let style = "</style.css>; rel=preload; as=style".parse().map(|value| (LINK, value));
///     // Without effect where the version of HTTP cannot: the final response says it too.
///     let _ = info.informational().send(StatusCode::EARLY_HINTS, HeaderMap::from_iter(style));
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Informational(Option<(Arc<Outlet>, u64)>);

/// An informational response.
#[derive(Clone, Debug)]
pub struct Interim {
    /// 100, or 102 to 199.
    pub status: u16,
    /// Fields, without those that concern the connection.
    pub fields: HeaderMap,
}

/// Why an informational response was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InformationalError {
    /// The status is none of 100 and 102 to 199. Over HTTP/3 there is no 101: RFC 9114 §4.5.
    Status,
    /// The request was over HTTP/2, where hyper sends none, or over HTTP/1.0, which has none: RFC 9110 §15.2.
    Unsupported,
    /// The final response has begun, or the client has given the request up.
    Late,
    /// 16 wait already.
    Full,
}

impl fmt::Display for InformationalError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            InformationalError::Status => "the status is none of 100 and 102 to 199",
            InformationalError::Unsupported => {
                "no informational response can be sent over this version of HTTP"
            }
            InformationalError::Late => {
                "the final response has begun, or the client has given the request up"
            }
            InformationalError::Full => "16 informational responses wait already",
        })
    }
}

impl std::error::Error for InformationalError {}

impl Informational {
    /// Of a request whose connection sends none.
    pub(crate) const UNSUPPORTED: Informational = Informational(None);

    /// Queues a response with `status`, 100 or 102 to 199, and `fields`. It leaves when the connection has its next turn, before the
    /// final response. Fields that concern the connection, and content-length, are left out (RFC 9110 §7.6.1, §8.6).
    ///
    /// Over HTTP/1.1 it is left out if the final response is there before the connection has sent the response to an earlier
    /// request.
    ///
    /// # Errors
    /// It cannot be sent: see [`InformationalError`].
    pub fn send(&self, status: StatusCode, mut fields: HeaderMap) -> Result<(), InformationalError> {
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(InformationalError::Status);
        }
        let Some((outlet, request)) = &self.0 else { return Err(InformationalError::Unsupported) };
        remove_connection_fields(&mut fields);
        fields.remove(header::CONTENT_LENGTH);
        outlet.push(*request, Interim { status: status.as_u16(), fields })
    }
}

/// The informational responses of the requests that are answered one after the other in one place.
#[derive(Debug, Default)]
pub(crate) struct Outlet {
    /// The number of the request that is answered.
    request: AtomicU64,
    has_queued: AtomicBool,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    entries: Vec<(u64, Interim)>,
    /// Wakes what takes from the queue.
    waker: Option<Waker>,
}

impl Outlet {
    pub(crate) fn lock(&self) -> QueueGuard<'_> {
        QueueGuard(self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The end for the handler of the present request.
    pub(crate) fn informational(self: &Arc<Self>) -> Informational {
        Informational(Some((Arc::clone(self), self.request.load(Ordering::Relaxed))))
    }

    /// The final response has begun: what is pushed for this request is refused from now on.
    pub(crate) fn close(&self) {
        self.request.fetch_add(1, Ordering::Relaxed);
    }

    fn push(&self, request: u64, interim: Interim) -> Result<(), InformationalError> {
        let waker = {
            let QueueGuard(mut queue) = self.lock();
            let present = self.request.load(Ordering::Relaxed);
            if present != request {
                return Err(InformationalError::Late);
            }
            queue.entries.retain(|(request, _)| *request == present);
            if queue.entries.len() >= MAX_QUEUED {
                return Err(InformationalError::Full);
            }
            queue.entries.push((request, interim));
            self.has_queued.store(true, Ordering::Release);
            queue.waker.clone()
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// The next informational response to the present request.
    #[inline]
    pub(crate) fn take(&self) -> Option<Interim> {
        if self.has_queued.load(Ordering::Acquire) { self.take_queued() } else { None }
    }

    #[cold]
    fn take_queued(&self) -> Option<Interim> {
        let QueueGuard(mut queue) = self.lock();
        let present = self.request.load(Ordering::Relaxed);
        queue.entries.retain(|(request, _)| *request == present);
        let next = (!queue.entries.is_empty()).then(|| queue.entries.remove(0).1);
        if queue.entries.is_empty() {
            self.has_queued.store(false, Ordering::Release);
        }
        next
    }
}

/// The queue, locked.
pub(crate) struct QueueGuard<'a>(MutexGuard<'a, Queue>);

impl QueueGuard<'_> {
    /// `waker` hears of what is pushed.
    pub(crate) fn set_waker(mut self, waker: &Waker) {
        match &mut self.0.waker {
            Some(known) => known.clone_from(waker),
            None => self.0.waker = Some(waker.clone()),
        }
    }
}

/// Whether a request of this version may be sent informational responses. RFC 9110 §15.2.
pub(crate) fn is_known_to(version: Version) -> bool {
    version == Version::HTTP_11 || version == Version::HTTP_3
}

/// An informational response as HTTP/1.1 has it. RFC 9112 §4, §5.
pub(crate) fn to_http1(interim: &Interim) -> Vec<u8> {
    let reason = StatusCode::from_u16(interim.status).ok().and_then(|status| status.canonical_reason());
    let mut text = format!("HTTP/1.1 {} {}\r\n", interim.status, reason.unwrap_or_default()).into_bytes();
    for (name, value) in &interim.fields {
        // A HeaderValue has no line breaks.
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
    text.extend_from_slice(b"\r\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Deleted, a task that outlives its request could speak into a later one, or fill the memory.
    #[test]
    fn what_is_sent_belongs_to_one_request_and_is_bounded() {
        let (outlet, count) = (Arc::new(Outlet::default()), Arc::new(Count::default()));
        outlet.lock().set_waker(&Waker::from(Arc::clone(&count)));
        let first = outlet.informational();
        let send =
            |to: &Informational, status| to.send(StatusCode::from_u16(status).unwrap(), HeaderMap::new());
        for status in [101, 200, 404] {
            assert_eq!(send(&first, status), Err(InformationalError::Status));
        }
        assert_eq!(send(&first, 103), Ok(()));
        assert_eq!(send(&first, 102), Ok(()));
        assert_eq!(outlet.take().map(|interim| interim.status), Some(103));
        outlet.close();
        assert_eq!(send(&first, 103), Err(InformationalError::Late));
        assert!(outlet.take().is_none(), "what waited goes with its request");
        let second = outlet.informational();
        (0..MAX_QUEUED).for_each(|_| assert_eq!(send(&second, 100), Ok(())));
        assert_eq!(send(&second, 100), Err(InformationalError::Full));
        assert_eq!(count.0.load(Ordering::Relaxed), 2 + MAX_QUEUED);
        assert_eq!(send(&Informational::UNSUPPORTED, 103), Err(InformationalError::Unsupported));
    }

    #[test]
    fn fields_of_the_connection_are_left_out_and_the_text_is_that_of_http1() {
        let outlet = Arc::new(Outlet::default());
        let fields = [("link", "</a>"), ("connection", "close"), ("content-length", "3"), ("link", "</b>")];
        let fields = fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let mut map = HeaderMap::new();
        fields.into_iter().for_each(|(name, value): (http::HeaderName, _)| _ = map.append(name, value));
        outlet.informational().send(StatusCode::EARLY_HINTS, map).unwrap();
        let text = to_http1(&outlet.take().unwrap());
        assert_eq!(text, b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nlink: </b>\r\n\r\n");
    }
}
