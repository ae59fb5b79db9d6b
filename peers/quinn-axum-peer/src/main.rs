//! An axum application over HTTP/3 on the published quinn and h3, put together as programs do: a task for each connection, a task
//! for each request, `tower::ServiceExt::oneshot`, content streamed in both directions.
//!
//! The runtime has one thread, because the server has one core in a comparison. ring encrypts, quinn's default.

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::{Buf, Bytes};
use clap::Parser;
use h3::server::{RequestResolver, RequestStream};
use http::Response;
use http_body::Frame;
use http_body_util::BodyExt;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, TransportConfig, VarInt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::signal::unix::{SignalKind, signal};
use tower::ServiceExt;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// What the application answers; tercel's benchmark serves the same bytes.
const GREETING: &str = "Hello over HTTP/1.1, 2 and 3\n";
/// More than any client here opens.
const STREAMS: u32 = 1_000;

#[derive(Parser)]
#[command(version, about = "An axum application over HTTP/3 on quinn and h3: GET /hello")]
struct Options {
    /// Address and port; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The certificate chain, PEM
    #[arg(long)]
    cert: PathBuf,
    /// Its key, PEM
    #[arg(long)]
    key: PathBuf,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(Error::from).and_then(|runtime| runtime.block_on(run(&options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quinn-axum-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGTERM.
async fn run(options: &Options) -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = serve(options) => outcome,
        _ = terminate.recv() => Ok(()),
    }
}

async fn serve(options: &Options) -> Result<(), Error> {
    let app = Router::new().route("/hello", get(async || GREETING));
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(VarInt::from_u32(STREAMS));
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(tls(options)?));
    server.transport_config(Arc::new(transport));
    let socket = site::bind(options.listen)?;
    let runtime = Arc::new(quinn::TokioRuntime);
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(server), socket, runtime)?;
    site::announce(endpoint.local_addr()?, &["quinn", "h3", "h3-quinn", "axum"]);
    while let Some(incoming) = endpoint.accept().await {
        let app = app.clone();
        tokio::spawn(async move {
            // How a connection ends is for its client to tell.
            let _ = converse(incoming, app).await;
        });
    }
    Ok(())
}

async fn converse(incoming: quinn::Incoming, app: Router) -> Result<(), Error> {
    let mut http = h3::server::Connection::new(h3_quinn::Connection::new(incoming.await?)).await?;
    while let Ok(Some(resolver)) = http.accept().await {
        let app = app.clone();
        tokio::spawn(async move {
            // So is how a request ends.
            let _ = answer(resolver, app).await;
        });
    }
    Ok(())
}

async fn answer(resolver: RequestResolver<h3_quinn::Connection, Bytes>, app: Router) -> Result<(), Error> {
    let (request, stream) = resolver.resolve_request().await?;
    let (mut send, receive) = stream.split();
    let response = app.oneshot(request.map(|()| Body::new(Upload(receive)))).await?;
    let (head, mut body) = response.into_parts();
    send.send_response(Response::from_parts(head, ())).await?;
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => send.send_data(data).await?,
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    send.send_trailers(trailers).await?;
                }
            }
        }
    }
    Ok(send.finish().await?)
}

/// The content of a request.
struct Upload(RequestStream<h3_quinn::RecvStream, Bytes>);

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match ready!(self.0.poll_recv_data(context)) {
            Ok(Some(mut data)) => {
                let bytes = data.copy_to_bytes(data.remaining());
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Ok(None) => {
                let trailers = ready!(self.0.poll_recv_trailers(context));
                Poll::Ready(
                    trailers.map(|trailers| trailers.map(Frame::trailers)).map_err(Error::from).transpose(),
                )
            }
            Err(error) => Poll::Ready(Some(Err(error.into()))),
        }
    }
}

fn tls(options: &Options) -> Result<QuicServerConfig, Error> {
    let chain = CertificateDer::pem_file_iter(&options.cert)
        .and_then(Iterator::collect)
        .map_err(|error| format!("{}: {error}", options.cert.display()))?;
    let key = PrivateKeyDer::from_pem_file(&options.key)
        .map_err(|error| format!("{}: {error}", options.key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h3".to_vec()];
    Ok(QuicServerConfig::try_from(config)?)
}
