//! `serve`: files below a folder and generated bodies, over HTTP/3, with single byte ranges.

use crate::{Error, Listen, endpoint, tls};
use bytes::Bytes;
use clap::{Args, ValueEnum};
use http::{Method, Request, Response, StatusCode, header};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// How much of a file is read at once, in bytes.
const CHUNK: u64 = 256 << 10;

#[derive(Args)]
pub(crate) struct Options {
    /// The folder whose files are served
    root: PathBuf,
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    identity: tls::Identity,
    /// When a client has to prove its address first
    #[arg(long, value_enum, default_value = "never")]
    retry: Retry,
    /// Update the keys after this many bytes of each body
    #[arg(long)]
    key_update_after: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Retry {
    Never,
    Always,
}

impl Options {
    /// The files of a folder, and nothing special.
    pub(crate) fn of_folder(root: PathBuf, listen: Listen, identity: tls::Identity) -> Options {
        Options { root, listen, identity, retry: Retry::Never, key_update_after: None }
    }
}

/// What every connection needs.
struct Shared {
    root: PathBuf,
    key_update_after: Option<u64>,
}

type Stream = h3::server::RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

pub(crate) async fn run(options: Options, quic: endpoint::Options, tls: tls::Options) -> Result<(), Error> {
    let endpoint = quic.server(options.listen.listen, tls.server(&options.identity, &[b"h3"])?)?;
    let root = std::fs::canonicalize(&options.root)
        .map_err(|error| format!("{}: {error}", options.root.display()))?;
    let shared = Arc::new(Shared { root, key_update_after: options.key_update_after });
    options.listen.announce(endpoint.local_addr()?)?;
    while let Some(incoming) = endpoint.accept().await {
        if options.retry == Retry::Always && incoming.may_retry() && !incoming.remote_address_validated() {
            // Only a request that was already retried cannot be, and this one was not.
            let _ = incoming.retry();
            continue;
        }
        let shared = shared.clone();
        tokio::spawn(async move {
            if let Err(error) = serve_connection(incoming, shared).await {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

async fn serve_connection(incoming: quinn::Incoming, shared: Arc<Shared>) -> Result<(), Error> {
    let quic = incoming.await?;
    let mut http = h3::server::Connection::new(h3_quinn::Connection::new(quic.clone())).await?;
    // An error here is the client's way to say that it is done.
    while let Ok(Some(resolver)) = http.accept().await {
        let (shared, quic) = (shared.clone(), quic.clone());
        tokio::spawn(async move {
            let answered = async {
                let (request, stream) = resolver.resolve_request().await?;
                answer(&request, stream, &shared, &quic).await
            };
            if let Err(error) = answered.await {
                eprintln!("request: {error}");
            }
        });
    }
    Ok(())
}

/// Where a body comes from.
enum Source {
    File(tokio::fs::File),
    Generated,
}

async fn answer(
    request: &Request<()>,
    mut stream: Stream,
    shared: &Shared,
    quic: &quinn::Connection,
) -> Result<(), Error> {
    let found = if *request.method() != Method::GET && *request.method() != Method::HEAD {
        Err(StatusCode::METHOD_NOT_ALLOWED)
    } else {
        open(request.uri().path(), &shared.root).await.ok_or(StatusCode::NOT_FOUND)
    };
    let (source, size) = match found {
        Ok(found) => found,
        Err(status) => {
            let response = Response::builder().status(status).header(header::CONTENT_LENGTH, 0).body(())?;
            stream.send_response(response).await?;
            return Ok(stream.finish().await?);
        }
    };
    let range = request.headers().get(header::RANGE).and_then(|value| value.to_str().ok());
    let (response, begin, length) = head(size, range)?;
    stream.send_response(response).await?;
    if *request.method() == Method::GET {
        send_body(&mut stream, source, begin, length, shared.key_update_after.map(|after| (after, quic)))
            .await?;
    }
    Ok(stream.finish().await?)
}

/// The response's head, and which bytes follow it (begin, length).
fn head(size: u64, range: Option<&str>) -> Result<(Response<()>, u64, u64), Error> {
    let response = Response::builder().header(header::ACCEPT_RANGES, "bytes");
    let (response, begin, length) = match range.and_then(|range| parse_range(range, size)) {
        None => (response.status(StatusCode::OK), 0, size),
        Some(None) => {
            let whole = format!("bytes */{size}");
            let response = response.status(StatusCode::RANGE_NOT_SATISFIABLE);
            (response.header(header::CONTENT_RANGE, whole), 0, 0)
        }
        Some(Some((begin, end))) => {
            let part = format!("bytes {begin}-{}/{size}", end - 1);
            let response = response.status(StatusCode::PARTIAL_CONTENT);
            (response.header(header::CONTENT_RANGE, part), begin, end - begin)
        }
    };
    Ok((response.header(header::CONTENT_LENGTH, length).body(())?, begin, length))
}

/// One range as begin and end: `None` if it is not understood (and therefore ignored), `Some(None)` if it cannot be
/// satisfied. RFC 9110 §14.1.2.
fn parse_range(text: &str, size: u64) -> Option<Option<(u64, u64)>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (begin, end) = match (first, last) {
        ("", suffix) => (size.saturating_sub(suffix.parse().ok()?), size),
        (first, "") => (first.parse().ok()?, size),
        (first, last) => (first.parse().ok()?, last.parse::<u64>().ok()?.saturating_add(1).min(size)),
    };
    Some((begin < end).then_some((begin, end)))
}

async fn open(path: &str, root: &Path) -> Option<(Source, u64)> {
    if let Some(size) = site::size_of(path) {
        return Some((Source::Generated, size));
    }
    let relative = Path::new(path.trim_start_matches('/'));
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let file = tokio::fs::File::open(root.join(relative)).await.ok()?;
    let metadata = file.metadata().await.ok()?;
    metadata.is_file().then(|| (Source::File(file), metadata.len()))
}

async fn send_body(
    stream: &mut Stream,
    mut source: Source,
    begin: u64,
    length: u64,
    key_update: Option<(u64, &quinn::Connection)>,
) -> Result<(), Error> {
    let mut generated = site::Body::generated(begin, length);
    if let Source::File(file) = &mut source {
        file.seek(std::io::SeekFrom::Start(begin)).await?;
    }
    let mut sent = 0;
    let mut key_update = key_update;
    while sent < length {
        let chunk = match &mut source {
            Source::Generated => generated.take(),
            Source::File(file) => {
                let mut chunk = Vec::with_capacity(CHUNK as usize);
                (&mut *file).take(CHUNK.min(length - sent)).read_to_end(&mut chunk).await?;
                Bytes::from(chunk)
            }
        };
        if chunk.is_empty() {
            return Err("the file has become shorter".into());
        }
        sent += chunk.len() as u64;
        stream.send_data(chunk).await?;
        if let Some((_, quic)) = key_update.take_if(|(after, _)| sent >= *after) {
            quic.force_key_update();
        }
    }
    Ok(())
}
