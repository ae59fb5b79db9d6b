//! A connection of any version of HTTP: a request in the form that the version has, and its response.

use super::error::{Error, Kind};
use super::informational::OnInformational;
use super::quic::{Delivered, QuicConnection, ToSink};
use super::refused::Refused;
use super::sink::{BodySink, Flow, IsFinal, Lent, cancelled};
use super::tcp::{self, Http1, Http2, TcpConnection};
use ::body::Body;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, Uri, Version, request};
use http_body::Body as _;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// What is the same for all requests of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) peer: SocketAddr,
    /// From the resolution of the name to the end of the handshake.
    pub(crate) connect_time: Duration,
}

/// How requests are sent.
pub(crate) enum Channel {
    Http1(Http1),
    Http2(Http2),
    Http3(Arc<QuicConnection>),
}

impl From<TcpConnection> for Channel {
    fn from(connection: TcpConnection) -> Channel {
        match connection {
            TcpConnection::Http1(connection) => Channel::Http1(connection),
            TcpConnection::Http2(connection) => Channel::Http2(connection),
        }
    }
}

/// A connection.
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    pub(crate) facts: Facts,
    /// It has served requests before.
    pub(crate) is_reused: bool,
}

impl Connection {
    /// Another handle, where a connection takes several requests at a time.
    pub(crate) fn share(&self) -> Option<Connection> {
        let channel = match &self.channel {
            Channel::Http1(_) => return None,
            Channel::Http2(connection) => Channel::Http2(connection.clone()),
            Channel::Http3(connection) => Channel::Http3(Arc::clone(connection)),
        };
        Some(Connection { channel, facts: self.facts, is_reused: true })
    }

    /// Whether requests can be sent.
    pub(crate) fn is_open(&self) -> bool {
        match &self.channel {
            Channel::Http1(connection) => connection.sender.is_ready(),
            Channel::Http2(connection) => !connection.sender.is_closed(),
            Channel::Http3(connection) => connection.is_open(),
        }
    }

    /// Whether it is one of HTTP/3.
    pub(crate) fn is_quic(&self) -> bool {
        matches!(self.channel, Channel::Http3(_))
    }

    /// Sends a request. Over HTTP/3 content of a response that is final goes to the sink. Dropping the future cancels it.
    pub(crate) async fn send<K: BodySink>(
        &mut self,
        mut head: request::Parts,
        content: Body,
        lent: Lent<K>,
        is_final: IsFinal,
    ) -> Delivered<K> {
        let flow = Arc::clone(lent.flow());
        let sent = match &mut self.channel {
            Channel::Http1(connection) => match shape_http1(&mut head) {
                Ok(()) => {
                    let mut request = Request::from_parts(head, content);
                    pass_informational(&mut request);
                    let sending = tcp::send_http1(connection, request);
                    unless_cancelled(sending, &flow).await
                }
                Err(error) => Err(Refused { error, content: Some(Box::new(content)) }),
            },
            Channel::Http2(connection) => {
                head.version = Version::HTTP_2;
                // The authority of the URI says it.
                head.headers.remove(HOST);
                let sending = tcp::send_http2(connection, Request::from_parts(head, content));
                unless_cancelled(sending, &flow).await
            }
            Channel::Http3(connection) => {
                add_length(&mut head, &content);
                let (receiver, told) = ToSink::new(lent, is_final);
                connection.send(head, content, Box::new(receiver));
                let lost = |_| Error::new(Kind::Lost, "the connection has ended").into();
                return told.await.unwrap_or_else(|gone| Delivered::Failed(lost(gone), None));
            }
        };
        match sent {
            Ok(response) => Delivered::Undecided(Box::new(response), lent),
            Err(refused) => Delivered::Failed(refused, Some(lent)),
        }
    }
}

/// Waits for a response until the program gives it up.
async fn unless_cancelled<T>(
    sending: impl Future<Output = Result<T, Refused>>,
    flow: &Flow,
) -> Result<T, Refused> {
    let mut sending = pin!(sending);
    let waiting = poll_fn(|cx| {
        flow.set_waker(cx.waker());
        if flow.is_cancelled() { Poll::Ready(Err(cancelled().into())) } else { sending.as_mut().poll(cx) }
    });
    waiting.await
}

/// Has hyper tell the program of informational responses.
fn pass_informational(request: &mut Request<Body>) {
    if let Some(program) = request.extensions_mut().remove::<OnInformational>() {
        hyper::ext::on_informational(request, move |interim| {
            let mut head = Response::new(());
            (*head.status_mut(), *head.version_mut()) = (interim.status(), interim.version());
            head.headers_mut().clone_from(interim.headers());
            program.tell(&head);
        });
    }
}

/// RFC 9112 §3.2.1: the target is path and query, and the host stands in a field.
fn shape_http1(head: &mut request::Parts) -> Result<(), Error> {
    let unusable = |error| Error::caused(Kind::Request, "HTTP/1.1 cannot carry the request", error);
    head.version = Version::HTTP_11;
    if !head.headers.contains_key(HOST)
        && let Some(authority) = head.uri.authority()
    {
        let host = authority.as_str().rsplit('@').next().unwrap_or_default();
        let value = HeaderValue::from_str(host).map_err(http::Error::from).map_err(unusable)?;
        head.headers.insert(HOST, value);
    }
    let path = head.uri.path_and_query().cloned();
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    head.uri = Uri::from(path);
    Ok(())
}

/// RFC 9110 §8.6: the length of content, as hyper says it for the other versions.
pub(crate) fn add_length(head: &mut request::Parts, content: &Body) {
    let expects = matches!(head.method, Method::POST | Method::PUT | Method::PATCH);
    if let Some(length) = content.size_hint().exact().filter(|length| *length > 0 || expects) {
        head.headers.entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
}
