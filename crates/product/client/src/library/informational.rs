//! Informational responses (1xx) on their way to the program. RFC 9110 §15.2.

use http::{Request, Response};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What the program calls.
type Callback = dyn Fn(&Response<()>) + Send + Sync;

/// What the program does with an informational response: in the extensions of its request.
#[derive(Clone)]
pub(crate) struct OnInformational(Arc<Callback>);

impl fmt::Debug for OnInformational {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OnInformational").finish_non_exhaustive()
    }
}

impl OnInformational {
    /// Calls the program. A panic in there must not end more than this call.
    pub(crate) fn tell(&self, head: &Response<()>) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(head)));
    }
}

/// Has `callback` called with each informational response to `request`, such as 103 (Early Hints), before the response itself is
/// there: over HTTP/3 and HTTP/1.1. Over HTTP/2 hyper passes none on. Requests that follow a redirect keep it.
///
/// It runs on the thread of the connections and must not block. A panic in it is ignored. Source: RFC 9110 §15.2, RFC 8297.
///
/// ```
/// use client::{Body, on_informational};
/// let mut request = http::Request::get("https://example.org/").body(Body::empty())?;
/// on_informational(&mut request, |head| {
///     if let Some(link) = head.headers().get("link") {
///         println!("{} {link:?}", head.status());
///     }
/// });
/// # Ok::<(), http::Error>(())
/// ```
pub fn on_informational<B>(
    request: &mut Request<B>,
    callback: impl Fn(&Response<()>) + Send + Sync + 'static,
) {
    request.extensions_mut().insert(OnInformational(Arc::new(callback)));
}
