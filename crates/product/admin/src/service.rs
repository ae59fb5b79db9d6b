//! What the admin address answers, on a thread of its own.
//!
//! Bounds: [`CONNECTIONS`] connections at a time, a head within [`HEAD`], a connection's life within [`LIFE`]. What is asked of
//! the server may wait for its threads, so it is asked on a thread for calls that block. One reload is under way at a time, and those that
//! wait for it have no thread.

use crate::exposition::Format;
use crate::metrics::exposition;
use crate::reload::{self, Reach};
use crate::snapshot::{Source, Stage};
use crate::status::status;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// Connections at a time; more wait in the kernel's queue.
const CONNECTIONS: usize = 32;
/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long a connection lives.
const LIFE: Duration = Duration::from_secs(300);
/// How long accepting pauses when descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);
/// Threads for calls that block.
const BLOCKING: usize = 4;

const TEXT: &str = "text/plain; charset=utf-8";
const PLACES: &str = "/metrics\n/healthz\n/readyz\n/status\n/reload (POST)\n";

/// A socket of one of two kinds.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

/// Dropped, no more connections are accepted.
#[derive(Debug)]
pub(crate) struct Open {
    _sender: oneshot::Sender<()>,
}

/// What answers.
struct Service {
    source: Arc<dyn Source>,
    reach: Reach,
    /// One reload at a time.
    turn: Semaphore,
}

/// Starts the thread.
pub(crate) fn start(socket: Socket, reach: Reach, source: Arc<dyn Source>) -> io::Result<Open> {
    let runtime =
        Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(BLOCKING).build()?;
    let (sender, closed) = oneshot::channel();
    let service = Arc::new(Service { source, reach, turn: Semaphore::new(1) });
    let serve = move || serve(&runtime, socket, service, closed);
    std::thread::Builder::new().name("admin".to_owned()).spawn(serve)?;
    Ok(Open { _sender: sender })
}

fn serve(runtime: &Runtime, socket: Socket, service: Arc<Service>, closed: oneshot::Receiver<()>) {
    runtime.block_on(async {
        let accepting = tokio::spawn(accept(socket, service));
        // An error: what keeps it open was dropped.
        let _ = closed.await;
        accepting.abort();
        // What is under way is answered.
        sleep(HEAD).await;
    });
}

/// Accepts connections. Returns only where the socket cannot be used.
async fn accept(socket: Socket, service: Arc<Service>) -> io::Result<()> {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    match socket {
        Socket::Tcp(socket) => {
            let listener = TcpListener::from_std(socket)?;
            loop {
                let permit = permit(&permits).await?;
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(answer(stream, Arc::clone(&service), permit))),
                    Err(_) => sleep(PAUSE).await,
                }
            }
        }
        Socket::Unix(socket) => {
            let listener = UnixListener::from_std(socket)?;
            loop {
                let permit = permit(&permits).await?;
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(answer(stream, Arc::clone(&service), permit))),
                    Err(_) => sleep(PAUSE).await,
                }
            }
        }
    }
}

async fn permit(permits: &Arc<Semaphore>) -> io::Result<OwnedSemaphorePermit> {
    Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)
}

/// Answers the requests of one connection.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    service: Arc<Service>,
    permit: OwnedSemaphorePermit,
) {
    let service = service_fn(|request| respond(request, Arc::clone(&service)));
    let mut settings = http1::Builder::new();
    settings.timer(TokioTimer::new()).header_read_timeout(HEAD);
    // What becomes of a client that has gone does not matter.
    let _ = timeout(LIFE, settings.serve_connection(TokioIo::new(stream), service)).await;
    drop(permit);
}

async fn respond(request: Request<Incoming>, service: Arc<Service>) -> Result<Response<Content>, Infallible> {
    let is_reload = request.uri().path() == reload::PATH;
    match *request.method() {
        Method::POST if is_reload => return Ok(reload(&request, &service).await),
        Method::GET | Method::HEAD if !is_reload => {}
        _ if is_reload => return Ok(only("POST")),
        _ => return Ok(only("GET, HEAD")),
    }
    let source = Arc::clone(&service.source);
    let path = request.uri().path().to_owned();
    let accept = request.headers().get("accept").and_then(|value| value.to_str().ok());
    let format = Format::of(accept.unwrap_or_default());
    let answered = tokio::task::spawn_blocking(move || look(&path, format, &*source)).await;
    Ok(answered.unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, "see standard error\n")))
}

/// The answer to a request with another method than one of `methods`.
fn only(methods: &'static str) -> Response<Content> {
    let mut response = full(StatusCode::METHOD_NOT_ALLOWED, TEXT, format!("only {methods}\n"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

/// Has the server read its files again, when those that have asked before have been answered.
async fn reload(request: &Request<Incoming>, service: &Service) -> Response<Content> {
    if let Some(why) = reload::refusal(service.reach, request.headers()) {
        return text(StatusCode::FORBIDDEN, why);
    }
    let _turn = service.turn.acquire().await;
    let source = Arc::clone(&service.source);
    match tokio::task::spawn_blocking(move || source.reload()).await {
        Ok(outcome) => full(outcome.status(), "application/json", format!("{:#}\n", outcome.to_json())),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "see standard error\n"),
    }
}

/// The answer to a request for `path`. May wait.
fn look(path: &str, format: Format, source: &dyn Source) -> Response<Content> {
    match path {
        "/" => text(StatusCode::OK, PLACES),
        "/metrics" => full(StatusCode::OK, format.content_type(), exposition(&source.snapshot(), format)),
        "/status" => {
            let json = format!("{:#}\n", status(&source.snapshot()));
            full(StatusCode::OK, "application/json", json)
        }
        "/healthz" => match source.silent() {
            0 => text(StatusCode::OK, "alive\n"),
            silent => {
                let what = format!("{silent} threads of the server do not answer\n");
                full(StatusCode::SERVICE_UNAVAILABLE, TEXT, what)
            }
        },
        "/readyz" => {
            let stage = source.stage();
            let is_ready = stage == Stage::Ready;
            let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            full(code, TEXT, format!("{}\n", stage.name()))
        }
        _ => full(StatusCode::NOT_FOUND, TEXT, format!("there are\n{PLACES}")),
    }
}

fn text(code: StatusCode, content: &'static str) -> Response<Content> {
    full(code, TEXT, content.to_owned())
}

fn full(code: StatusCode, content_type: &'static str, content: String) -> Response<Content> {
    let content = Content(Some(Bytes::from(content)));
    let length = content.0.as_ref().map_or(0, Bytes::len);
    let mut response = Response::new(content);
    *response.status_mut() = code;
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    fields.insert(CONTENT_LENGTH, length.into());
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Content in one piece.
struct Content(Option<Bytes>);

impl http_body::Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        std::task::Poll::Ready(self.0.take().map(|bytes| Ok(http_body::Frame::data(bytes))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
