//! Connections of HTTP/2 to upstreams, by h2 itself: hyper passes on no informational responses, and takes a stream that was reset for
//! one that has ended.
//!
//! Each exchange has a clone of its connection, so that clones count the streams that are in use.

use crate::address::Scheme;
use crate::content::Sent;
use crate::failure::Refused;
use body::BoxError;
use bytes::Bytes;
use client::tasks::spawn;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason, RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, HeaderMap};
use http::{Request, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

/// The window for each stream, in bytes: what waits for a reader at most.
const STREAM_WINDOW: u32 = 256 << 10;
/// The window for a connection, in bytes.
const CONNECTION_WINDOW: u32 = 8 << 20;
/// The longest head of a response, in bytes.
const LONGEST_HEAD: u32 = 64 << 10;
/// Content of a request that is on its way to the upstream, in bytes.
const SEND_BUFFER: usize = 1 << 20;
/// So many streams are used before the upstream has said how many there may be.
const FIRST_STREAMS: usize = 100;

/// Called with the head of an informational response.
type Callback = dyn Fn(StatusCode, &HeaderMap) + Send + Sync;

/// What hears informational responses to a request, in its extensions.
#[derive(Clone)]
pub(crate) struct OnInformational(pub(crate) Arc<Callback>);

/// A connection. It is closed when the last clone and the last stream have gone.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
    scheme: Scheme,
    /// Asks whether SETTINGS have come; `None` once they have.
    ping: Arc<Mutex<Option<PingPong>>>,
}

impl fmt::Debug for Http2 {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Http2").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// Begins a connection. Called in a runtime of tokio's.
///
/// # Errors
/// The preface cannot be sent.
pub(crate) async fn begin(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    scheme: Scheme,
) -> io::Result<Http2> {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(LONGEST_HEAD)
        .max_send_buffer_size(SEND_BUFFER)
        .initial_max_send_streams(FIRST_STREAMS)
        .enable_push(false);
    let (sender, mut connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
    let ping = Arc::new(Mutex::new(connection.ping_pong()));
    spawn(Box::pin(async move {
        // Its errors are those of its requests.
        let _ = connection.await;
    }));
    Ok(Http2 { sender, scheme, ping })
}

impl Http2 {
    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Whether it takes another request at once. The pool has a clone, and each exchange.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_closed() && Arc::strong_count(&self.ping) <= self.sender.current_max_send_streams()
    }

    pub(crate) fn is_closed(&self) -> bool {
        let mut sender = self.sender.clone();
        matches!(sender.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)))
    }

    /// Whether the upstream takes extended CONNECT, once it has said so. RFC 8441 §3.
    pub(crate) async fn takes_extended_connect(&self) -> bool {
        if !self.sender.is_extended_connect_protocol_enabled() {
            // SETTINGS come before all else (RFC 9113 §3.4), so they are there when the answer to a PING is.
            let mut asked = self.ping.lock().await;
            if let Some(ping) = &mut *asked {
                // One may be on its way.
                let _ = ping.send_ping(Ping::opaque());
                let _ = poll_fn(|cx| ping.poll_pong(cx)).await;
                *asked = None;
            }
        }
        self.sender.is_extended_connect_protocol_enabled()
    }

    /// Sends a request; the head of the response is to come. Dropping the future resets the stream (CANCEL).
    pub(crate) fn send(
        &self,
        request: Request<Sent>,
    ) -> impl Future<Output = Result<Response<Content>, Refused>> + use<> {
        let mut sender = self.sender.clone();
        async move {
            if let Err(error) = poll_fn(|cx| sender.poll_ready(cx)).await {
                return Err(Refused { request: Some(Box::new(request)), error: error.into() });
            }
            let (mut head, content) = request.into_parts();
            let told: Option<OnInformational> = head.extensions.remove();
            let is_empty = content.is_end_stream();
            let sent = sender.send_request(Request::from_parts(head, ()), is_empty);
            let (mut response, stream) = sent.map_err(refused)?;
            let upload = if is_empty { Upload(None) } else { Upload::begin(content, stream).await };
            let answered = poll_fn(|cx| poll_response(&mut response, told.as_ref(), cx));
            let response = answered.await.map_err(refused)?;
            let length = response.headers().get(CONTENT_LENGTH);
            let left = length.and_then(|value| value.to_str().ok()?.parse().ok());
            Ok(response.map(|stream| Content { stream, left, state: State::Data, upload }))
        }
    }
}

fn refused(error: h2::Error) -> Refused {
    Refused { request: None, error: error.into() }
}

fn poll_response(
    response: &mut ResponseFuture,
    told: Option<&OnInformational>,
    cx: &mut Context<'_>,
) -> Poll<Result<Response<RecvStream>, h2::Error>> {
    while let Poll::Ready(Some(Ok(interim))) = response.poll_informational(cx) {
        told.into_iter().for_each(|told| (told.0)(interim.status(), interim.headers()));
    }
    Pin::new(response).poll(cx)
}

/// The task that sends the content of a request. Dropped, it ends, and the stream is reset with it unless it was complete.
struct Upload(Option<AbortHandle>);

impl Upload {
    /// Sends what there is at once, and has a task send the rest.
    async fn begin(content: Sent, stream: SendStream<Bytes>) -> Upload {
        let mut sending = Box::pin(send_content(content, stream));
        let is_over = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx).is_ready())).await;
        Upload((!is_over).then(|| spawn(sending).abort_handle()))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// Sends content until its end, or until the upstream wants no more. No more is kept than the windows permit.
async fn send_content(mut content: Sent, mut stream: SendStream<Bytes>) {
    loop {
        let next = poll_fn(|cx| match stream.poll_reset(cx) {
            Poll::Ready(_) => Poll::Ready(Err(())),
            Poll::Pending => Pin::new(&mut content).poll_frame(cx).map(Ok),
        });
        let mut bytes = match next.await {
            Err(()) => return,
            Ok(Some(Err(_))) => return stream.send_reset(Reason::CANCEL),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(bytes) if bytes.is_empty() => continue,
                Ok(bytes) => bytes,
                Err(frame) => {
                    let _ = stream.send_trailers(frame.into_trailers().unwrap_or_default());
                    return;
                }
            },
            Ok(None) => {
                let _ = stream.send_data(Bytes::new(), true);
                return;
            }
        };
        let is_last = content.is_end_stream();
        while !bytes.is_empty() {
            stream.reserve_capacity(bytes.len());
            let Some(Ok(room)) = poll_fn(|cx| stream.poll_capacity(cx)).await else { return };
            let piece = bytes.split_to(room.min(bytes.len()));
            if stream.send_data(piece, is_last && bytes.is_empty()).is_err() {
                return;
            }
        }
        if is_last {
            return;
        }
    }
}

/// The content of a response. Dropped before its end, it resets the stream.
pub(crate) struct Content {
    stream: RecvStream,
    /// Bytes that are still to come, if that is known.
    left: Option<u64>,
    state: State,
    upload: Upload,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Data,
    Trailers,
    Ended,
}

impl Content {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        while self.state == State::Data {
            match ready!(self.stream.poll_data(cx)).transpose()? {
                Some(bytes) => {
                    // Only what is read makes room for more.
                    self.stream.flow_control().release_capacity(bytes.len())?;
                    self.left = self.left.and_then(|left| left.checked_sub(bytes.len() as u64));
                    if !bytes.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                }
                None => self.state = State::Trailers,
            }
        }
        if self.state == State::Ended {
            return Poll::Ready(None);
        }
        let trailers = ready!(self.stream.poll_trailers(cx))?;
        self.state = State::Ended;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }
}

impl http_body::Body for Content {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.poll_data(cx).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Ended || self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        // What is left of the request may follow a response that is complete.
        if self.is_end_stream() {
            self.upload.0 = None;
        }
    }
}
