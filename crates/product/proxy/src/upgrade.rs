//! Other protocols than HTTP, such as WebSocket: a request offers one, and an upstream that answers 101 speaks it. RFC 9110 §7.8.
//!
//! From there on bytes go in both directions, each with its own end: the client's by a task, the upstream's as the content of the
//! response. Nothing that the client sends reaches the upstream before its 101 has come, so that what follows a refusal is a request to
//! this server and to no other.

use crate::log::shown;
use crate::response::BrokenOff;
use crate::upstream::Underway;
use crate::websocket::SentKey;
use body::Body;
use bytes::{Bytes, BytesMut};
use client::tasks::spawn;
use http::HeaderMap;
use http::header::{self, HeaderValue};
use http_body::{Body as _, Frame};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use server::sites::{OfferedBy, UpgradeOffer};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf, ReadHalf, WriteHalf};
use tokio::task::AbortHandle;
use tokio::time::{Duration, Instant, Sleep};

/// So many bytes are read at once.
const READ: usize = 16 << 10;

/// Protocols that no proxy may pass on: other versions of HTTP, in which requests would pass that were not judged, and TLS. Without
/// their versions, in lower case.
const REFUSED: [&[u8]; 4] = [b"h2c", b"h2", b"http", b"tls"];

/// What a request offers, and what the client sends by it.
pub(crate) struct Offered {
    pub(crate) protocols: HeaderValue,
    content: Body,
    /// The key of the proxy's own, where the client has sent none.
    key: Option<SentKey>,
}

impl Offered {
    /// What goes on of an offer; `None` if nothing does.
    pub(crate) fn new(offer: &UpgradeOffer) -> Option<Offered> {
        Some(Offered { protocols: permitted(offer.protocols())?, content: offer.content(), key: None })
    }

    /// Says in the head of a request what is offered, `by` which means the client has done so.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn say(&mut self, fields: &mut HeaderMap, by: OfferedBy) -> io::Result<()> {
        name(fields, self.protocols.clone());
        if by == OfferedBy::Connect {
            self.key = Some(SentKey::add(fields)?);
        }
        Ok(())
    }

    /// The protocol that the fields of a response 101 agree to, and what the client sends by it. `None` if they do not agree.
    pub(crate) fn agreed(self, fields: &mut HeaderMap) -> Option<(HeaderValue, Body)> {
        let protocol = agreed(fields, &self.protocols)?;
        let is_accepted = self.key.is_none_or(|key| key.take_answer(fields));
        is_accepted.then_some((protocol, self.content))
    }
}

/// The protocols of the field Upgrade that may go on; `None` if there are none.
fn permitted(offered: &HeaderValue) -> Option<HeaderValue> {
    let all = offered.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let may_pass = |protocol: &&[u8]| {
        let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
        !name.is_empty() && !REFUSED.iter().any(|refused| refused.eq_ignore_ascii_case(name))
    };
    let kept: Vec<&[u8]> = all.filter(may_pass).collect();
    if kept.is_empty() { None } else { HeaderValue::from_bytes(&kept.join(&b", "[..])).ok() }
}

/// The protocol that a response 101 agrees to, if it is one of those that were `offered`.
fn agreed(fields: &HeaderMap, offered: &HeaderValue) -> Option<HeaderValue> {
    let mut named = fields.get_all(header::UPGRADE).iter();
    let (Some(protocol), None) = (named.next(), named.next()) else { return None };
    let mut all = offered.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    all.any(|one| one.eq_ignore_ascii_case(protocol.as_bytes().trim_ascii())).then(|| protocol.clone())
}

/// Says in a head that it is about `protocols`.
pub(crate) fn name(fields: &mut HeaderMap, protocols: HeaderValue) {
    fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(header::UPGRADE, protocols);
}

/// When bytes last moved, in either direction.
#[derive(Debug)]
struct Activity {
    began: Instant,
    /// Milliseconds since `began`.
    moved: AtomicU64,
    patience: Duration,
}

impl Activity {
    fn on_moved(&self) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(elapsed, Ordering::Relaxed);
    }

    fn due(&self) -> Instant {
        self.began + Duration::from_millis(self.moved.load(Ordering::Relaxed)) + self.patience
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

type Io = TokioIo<Upgraded>;

/// Begins to move bytes between the client, whose bytes are `sent`, and an upstream. Returns what goes to the client. Called in a runtime
/// of tokio's.
pub(crate) fn join(
    upgraded: Upgraded,
    sent: Body,
    underway: Underway,
    patience: Duration,
    target: &str,
) -> Body {
    let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
    let activity = Arc::new(Activity { began: Instant::now(), moved: AtomicU64::new(0), patience });
    let task = spawn(Box::pin(send(sent, writer, Arc::clone(&activity))));
    let idle = Box::pin(tokio::time::sleep_until(activity.due()));
    let (buffer, target) = (BytesMut::new(), target.into());
    Body::new(Receiving {
        reader,
        buffer,
        activity,
        idle,
        underway,
        task: task.abort_handle(),
        state: State::Open,
        target,
    })
}

/// Sends what the client sends, until either of the two ends.
async fn send(mut sent: Body, mut writer: WriteHalf<Io>, activity: Arc<Activity>) {
    let mut idle = pin!(tokio::time::sleep_until(activity.due()));
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

/// Whether more comes of the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The client's direction goes on.
    Ended,
}

/// What an upstream sends, as the content of the response 101.
struct Receiving {
    reader: ReadHalf<Io>,
    buffer: BytesMut,
    activity: Arc<Activity>,
    idle: Pin<Box<Sleep>>,
    underway: Underway,
    /// The other direction.
    task: AbortHandle,
    state: State,
    /// For the log.
    target: Box<str>,
}

impl Receiving {
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let mut bytes = [0; READ];
        let mut read = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.reader).poll_read(cx, &mut read))?;
        self.activity.on_moved();
        self.buffer.extend_from_slice(read.filled());
        Poll::Ready(Ok(self.buffer.split().freeze()))
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
        let Poll::Ready(read) = this.poll_read(cx) else {
            ready!(this.activity.poll_idle(this.idle.as_mut(), cx));
            return Poll::Ready(Some(Err(BrokenOff::Silent)));
        };
        Poll::Ready(match read {
            Ok(bytes) if bytes.is_empty() => {
                this.state = State::Ended;
                None
            }
            Ok(bytes) => Some(Ok(Frame::data(bytes))),
            Err(error) => {
                let upstream = this.underway.upstream();
                let say = || {
                    format!(
                        "{}: {}: the connection broke off: {error}",
                        upstream.address(),
                        shown(&this.target)
                    )
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
        if self.state == State::Open {
            self.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).unwrap()
    }

    /// Deleted, a client could speak HTTP/2 with an upstream, past all that this server judges.
    #[test]
    fn other_versions_of_http_are_not_passed_on() {
        for text in ["h2c", "H2C", "h2", "HTTP/2.0", "http/3", "TLS/1.0", "", " , ,"] {
            assert_eq!(permitted(&value(text)), None, "{text}");
        }
        assert_eq!(permitted(&value("h2c, websocket")), Some(value("websocket")));
        assert_eq!(permitted(&value("WebSocket")), Some(value("WebSocket")));
        assert_eq!(permitted(&value("SPDY/3.1,tcp")), Some(value("SPDY/3.1, tcp")));
    }

    /// Deleted, an upstream could speak what no client has asked for.
    #[test]
    fn an_upstream_agrees_to_one_of_the_protocols_that_were_offered() {
        let agreed = |named: &[&str], offered| {
            let mut fields = HeaderMap::new();
            named.iter().for_each(|named| _ = fields.append(header::UPGRADE, value(named)));
            super::agreed(&fields, &value(offered))
        };
        assert_eq!(agreed(&["websocket"], "a, WebSocket"), Some(value("websocket")));
        assert_eq!(agreed(&["a"], "websocket"), None);
        assert_eq!(agreed(&["h2c"], "websocket"), None);
        assert_eq!(agreed(&["a", "a"], "a"), None);
        assert_eq!(agreed(&["a, b"], "a, b"), None);
        assert_eq!(agreed(&[], "a"), None);
    }
}
