//! A connection that takes requests, by hyper or h2: one exchange at a time on each handle.

use super::clock;
use super::content::Content;
use super::request_failure::RequestFailure;
use super::stream::Stream;
use super::thread_state::{ConnectionHandle, ThreadState};
use crate::plan::Protocol;
use bytes::Bytes;
use h2::{RecvStream, SendStream};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use tokio::task::{JoinHandle, spawn_local};

/// Bytes of content that a server may send ahead on one stream, and on all of a connection together: more than any path
/// between two machines holds, so that flow control is never what is measured.
const WINDOWS: [u32; 2] = [16 << 20, 256 << 20];
/// The longest HTTP/2 frame that a server may send, in bytes.
const LONGEST_FRAME: u32 = 64 << 10;

/// Where requests go.
pub(super) enum Sender {
    One(hyper::client::conn::http1::SendRequest<Content>),
    Two(h2::client::SendRequest<Bytes>),
}

/// Whatever moves a connection's bytes; ends with this.
pub(super) struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Makes a sender of a connection. When the connection ends, `link` says so.
pub(super) async fn open(
    thread_state: &Rc<ThreadState>,
    link: &Rc<ConnectionHandle>,
    stream: Stream,
) -> Result<(Sender, Driver), RequestFailure> {
    let (thread_state, link) = (Rc::clone(thread_state), Rc::clone(link));
    match &thread_state.plan.protocol {
        Protocol::Http2(_) => {
            let [each, all] = WINDOWS;
            let handshake = h2::client::Builder::new()
                .enable_push(false)
                .initial_window_size(each)
                .initial_connection_window_size(all)
                .max_frame_size(LONGEST_FRAME)
                .handshake(stream)
                .await;
            let (sender, connection) = handshake.map_err(|error| RequestFailure::of_h2(&error, false))?;
            let driver = spawn_local(async move {
                // Its error is told by each request.
                let _ = connection.await;
                thread_state.on_gone(&link);
            });
            Ok((Sender::Two(sender), Driver(driver)))
        }
        Protocol::Http1(_) | Protocol::Http3(_) => {
            let io = TokioIo::new(stream);
            let handshake = hyper::client::conn::http1::handshake(io).await;
            let (sender, connection) = handshake.map_err(|error| RequestFailure::of_hyper(&error, false))?;
            let driver = spawn_local(async move {
                let _ = connection.await;
                thread_state.on_gone(&link);
            });
            Ok((Sender::One(sender), Driver(driver)))
        }
    }
}

impl Sender {
    /// Another handle on the same connection, where several requests are possible at a time.
    pub(super) fn another(&self) -> Option<Sender> {
        match self {
            Sender::One(_) => None,
            Sender::Two(sender) => Some(Sender::Two(sender.clone())),
        }
    }

    /// How many requests at a time the server allows on the connection.
    pub(super) fn allowed(&self) -> usize {
        match self {
            Sender::One(_) => 1,
            Sender::Two(sender) => sender.current_max_send_streams(),
        }
    }

    /// Waits until a request may be sent. `false` when the connection takes no more.
    pub(super) async fn is_ready(&mut self) -> bool {
        match self {
            Sender::One(sender) => sender.ready().await.is_ok(),
            Sender::Two(sender) => poll_fn(|cx| sender.poll_ready(cx)).await.is_ok(),
        }
    }

    /// A request and its whole answer, whose status is returned.
    pub(super) async fn exchange(
        &mut self,
        thread_state: &ThreadState,
        which: usize,
    ) -> Result<u16, RequestFailure> {
        let count = thread_state.requests.len().max(1);
        let Some(request) = thread_state.requests.get(which % count).cloned() else {
            return Err(RequestFailure::untouched("there is nothing to ask"));
        };
        let content = thread_state.plan.content;
        match self {
            Sender::One(sender) => {
                let answer = sender.send_request(request.map(|()| Content(content))).await;
                take_one(thread_state, answer.map_err(|error| RequestFailure::of_hyper(&error, false))?).await
            }
            Sender::Two(sender) => {
                let sent = sender.send_request(request, content == 0);
                let (answer, stream) = sent.map_err(|error| match RequestFailure::of_h2(&error, false) {
                    // The handle says so, not the server.
                    request_failure if error.is_io() || error.is_go_away() => {
                        RequestFailure::untouched(request_failure.words)
                    }
                    request_failure => request_failure,
                })?;
                if content == 0 {
                    return take_two(thread_state, answer).await;
                }
                beside(feed(stream, Content(content)), take_two(thread_state, answer)).await
            }
        }
    }
}

/// The content of an answer over HTTP/1.1.
async fn take_one(thread_state: &ThreadState, answer: Response<Incoming>) -> Result<u16, RequestFailure> {
    let status = answer.status().as_u16();
    let mut body = answer.into_body();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| RequestFailure::of_hyper(&error, true))?;
        if let Some(data) = frame.data_ref() {
            thread_state.accounts.borrow_mut().on_content(clock::now(), data.len() as u64);
        }
    }
    Ok(status)
}

/// An answer over HTTP/2.
async fn take_two(
    thread_state: &ThreadState,
    answer: impl Future<Output = Result<Response<RecvStream>, h2::Error>>,
) -> Result<u16, RequestFailure> {
    let answer = answer.await.map_err(|error| RequestFailure::of_h2(&error, false))?;
    let (status, announced) = (answer.status().as_u16(), content_length(answer.headers()));
    let mut body = answer.into_body();
    let mut received = 0;
    let is_short = |received: u64| announced.is_some_and(|announced| received < announced);
    while let Some(data) = body.data().await {
        let data = data.map_err(|error| RequestFailure::of_h2(&error, is_short(received)))?;
        received += data.len() as u64;
        thread_state.accounts.borrow_mut().on_content(clock::now(), data.len() as u64);
        // A stream that has ended needs no room.
        let _ = body.flow_control().release_capacity(data.len());
    }
    if !body.is_end_stream() {
        body.trailers().await.map_err(|error| RequestFailure::of_h2(&error, is_short(received)))?;
    }
    Ok(status)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Hands a request's content over as far as the server takes it. Its failure is told by the answer.
async fn feed(mut stream: SendStream<Bytes>, mut content: Content) {
    while content.0 > 0 {
        stream.reserve_capacity(usize::try_from(content.0).unwrap_or(usize::MAX).min(1 << 20));
        // h2 tells of room once, when it grows: what a piece left of it is not told again.
        if stream.capacity() == 0 {
            let Some(Ok(_)) = poll_fn(|cx| stream.poll_capacity(cx)).await else { return };
        }
        let piece = content.next(stream.capacity());
        let is_last = content.0 == 0;
        if stream.send_data(piece, is_last).is_err() {
            return;
        }
    }
}

/// Does both, and is over when the second is: a server may answer without all of the content.
async fn beside<T>(first: impl Future<Output = ()>, second: impl Future<Output = T>) -> T {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let mut is_first_over = false;
    poll_fn(move |cx| {
        if !is_first_over {
            is_first_over = first.as_mut().poll(cx).is_ready();
        }
        second.as_mut().poll(cx)
    })
    .await
}
