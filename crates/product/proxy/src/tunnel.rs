//! Another protocol between a client and an upstream, once both have agreed to it: bytes in both directions, each with its own end.
//!
//! Over HTTP/1.1 they are those of the upstream's connection, and a task sends the client's. Over HTTP/2 and 3 they are the content of a
//! request and of its response, an extended CONNECT (RFC 8441, RFC 9220); the content of the request is a [`Gate`] before the upstream has
//! agreed. The client's end and the upstream's are passed on as they are: a stream that was reset resets the other one, and a connection
//! that broke off breaks off the other one.

use crate::connect::{Connection, Incoming};
use crate::log::Target;
use crate::response::BrokenOff;
use crate::upstream::Underway;
use body::{Body, BoxError};
use bytes::{Bytes, BytesMut};
use client::tasks::spawn;
use http_body::{Body as _, Frame};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf, ReadHalf, WriteHalf};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Duration, Instant, Sleep};

/// So many bytes are read at once.
const READ: usize = 16 << 10;

/// When bytes last moved, in either direction.
#[derive(Debug)]
struct Activity {
    began: Instant,
    /// Milliseconds since `began`.
    moved: AtomicU64,
    patience: Duration,
}

impl Activity {
    fn new(patience: Duration) -> Arc<Activity> {
        Arc::new(Activity { began: Instant::now(), moved: AtomicU64::new(0), patience })
    }

    fn on_moved(&self) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(elapsed, Ordering::Relaxed);
    }

    fn due(&self) -> Instant {
        self.began + Duration::from_millis(self.moved.load(Ordering::Relaxed)) + self.patience
    }

    /// A timer of one direction. Called in a runtime of tokio's.
    fn timer(&self) -> Pin<Box<Sleep>> {
        Box::pin(tokio::time::sleep_until(self.due()))
    }

    /// Ready when nothing has moved for too long. `sleep` is this direction's own.
    fn poll_idle(&self, mut sleep: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
        while sleep.as_mut().poll(cx).is_ready() {
            let due = self.due();
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
        Poll::Pending
    }
}

/// What ends with a tunnel.
pub(crate) struct Held<'a> {
    pub(crate) underway: Underway,
    /// How long nothing may move.
    pub(crate) patience: Duration,
    /// For the log.
    pub(crate) target: &'a Target,
}

type Io = TokioIo<Upgraded>;

/// Begins to move bytes between the client, whose bytes are `sent`, and the connection of an upstream. Returns what goes to the client.
/// Called in a runtime of tokio's.
pub(crate) fn join(upgraded: Upgraded, sent: Body, held: Held<'_>) -> Body {
    let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
    let activity = Activity::new(held.patience);
    let task = spawn(Box::pin(send(sent, writer, Arc::clone(&activity)))).abort_handle();
    Receiving::body(Source::Connection { reader, buffer: BytesMut::new(), task }, activity, held)
}

/// The same on a stream of `connection`, on which `received` comes. The client's bytes go through the gate that `opener` opens.
pub(crate) fn join_stream(
    (received, connection): (Incoming, Connection),
    (opener, sent): (Opener, Body),
    held: Held<'_>,
) -> Body {
    let activity = Activity::new(held.patience);
    let opened = Opened { sent, activity: Arc::clone(&activity), idle: activity.timer() };
    // Without a reader the stream is over, which `received` tells.
    let _ = opener.0.send(opened);
    Receiving::body(Source::Stream { received, _connection: connection }, activity, held)
}

/// Sends what the client sends, until either of the two ends.
async fn send(mut sent: Body, mut writer: WriteHalf<Io>, activity: Arc<Activity>) {
    let mut idle = activity.timer();
    let mut moved = pin!(async {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut sent).poll_frame(cx)).await {
            // The client breaks off: so does this, with all that is dropped here.
            let Ok(frame) = frame else { return Err(io::ErrorKind::ConnectionAborted.into()) };
            let Ok(mut bytes) = frame.into_data() else { continue };
            activity.on_moved();
            writer.write_all_buf(&mut bytes).await?;
            writer.flush().await?;
            activity.on_moved();
        }
        writer.shutdown().await
    });
    let _: io::Result<()> = poll_fn(|cx| {
        let moved = moved.as_mut().poll(cx);
        if moved.is_pending() && activity.poll_idle(idle.as_mut(), cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        moved
    })
    .await;
}

/// What the client sends on a stream, from when the upstream has agreed.
struct Opened {
    sent: Body,
    activity: Arc<Activity>,
    idle: Pin<Box<Sleep>>,
}

/// Opens a [`Gate`]. Dropped, it ends the content.
pub(crate) struct Opener(oneshot::Sender<Opened>);

/// The content of an extended CONNECT: nothing before the upstream has agreed, and then what the client sends.
pub(crate) struct Gate {
    opening: oneshot::Receiver<Opened>,
    opened: Option<Opened>,
}

impl Gate {
    /// One that is shut, as content, and what opens it.
    pub(crate) fn shut() -> (Opener, Body) {
        let (opener, opening) = oneshot::channel();
        (Opener(opener), Body::new(Gate { opening, opened: None }))
    }
}

impl http_body::Body for Gate {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        if this.opened.is_none() {
            match ready!(Pin::new(&mut this.opening).poll(cx)) {
                Ok(opened) => this.opened = Some(opened),
                // The upstream has not agreed.
                Err(_) => return Poll::Ready(None),
            }
        }
        let Some(Opened { sent, activity, idle }) = &mut this.opened else { return Poll::Ready(None) };
        loop {
            let Poll::Ready(frame) = Pin::new(&mut *sent).poll_frame(cx) else {
                ready!(activity.poll_idle(idle.as_mut(), cx));
                return Poll::Ready(Some(Err(BrokenOff::Silent)));
            };
            activity.on_moved();
            match frame {
                // It has no trailers: RFC 9114 §4.4.
                Some(Ok(frame)) if !frame.is_data() => {}
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(error)) => return Poll::Ready(Some(Err(BrokenOff::Tunnel(error.into())))),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// Whether more comes of the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The client's direction goes on.
    Ended,
}

/// Where an upstream's bytes come from.
enum Source {
    /// A connection; a task sends on it.
    Connection { reader: ReadHalf<Io>, buffer: BytesMut, task: AbortHandle },
    /// A stream of a connection, which lasts as long. Dropped before its end, it is reset.
    Stream { received: Incoming, _connection: Connection },
}

impl Source {
    /// The next bytes; none at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, BoxError>> {
        match self {
            Source::Connection { reader, buffer, .. } => {
                let mut bytes = [0; READ];
                let mut read = ReadBuf::new(&mut bytes);
                ready!(Pin::new(reader).poll_read(cx, &mut read))?;
                buffer.extend_from_slice(read.filled());
                Poll::Ready(Ok(buffer.split().freeze()))
            }
            Source::Stream { received, .. } => loop {
                let frame = ready!(Pin::new(&mut *received).poll_frame(cx)).transpose()?;
                match frame.map(Frame::into_data) {
                    None => return Poll::Ready(Ok(Bytes::new())),
                    Some(Ok(bytes)) if !bytes.is_empty() => return Poll::Ready(Ok(bytes)),
                    Some(_) => {}
                }
            },
        }
    }
}

/// What an upstream sends, as the content of the response 101.
struct Receiving {
    source: Source,
    activity: Arc<Activity>,
    idle: Pin<Box<Sleep>>,
    underway: Underway,
    state: State,
    /// For the log.
    target: Target,
}

impl Receiving {
    fn body(source: Source, activity: Arc<Activity>, held: Held<'_>) -> Body {
        let Held { underway, target, .. } = held;
        let idle = activity.timer();
        Body::new(Receiving { source, activity, idle, underway, state: State::Open, target: target.clone() })
    }
}

impl http_body::Body for Receiving {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        let Poll::Ready(read) = this.source.poll_read(cx) else {
            ready!(this.activity.poll_idle(this.idle.as_mut(), cx));
            return Poll::Ready(Some(Err(BrokenOff::Silent)));
        };
        this.activity.on_moved();
        Poll::Ready(match read {
            Ok(bytes) if bytes.is_empty() => {
                this.state = State::Ended;
                None
            }
            Ok(bytes) => Some(Ok(Frame::data(bytes))),
            Err(error) => {
                let upstream = this.underway.upstream();
                let say = || {
                    let (address, target) = (upstream.address(), this.target.shown());
                    format!("{address}: {target}: the connection broke off: {error}")
                };
                upstream.notice().warn(Instant::now(), say);
                Some(Err(BrokenOff::Tunnel(error)))
            }
        })
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // The client has gone, or nothing moves any more.
        if let (State::Open, Source::Connection { task, .. }) = (self.state, &self.source) {
            task.abort();
        }
    }
}
