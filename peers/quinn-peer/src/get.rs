//! `get`: requests over one HTTP/3 connection, one after the other; what came back is told as a JSON list.

use crate::{Error, endpoint, tls};
use bytes::{Buf, Bytes};
use clap::Args;
use http::{Method, Request, Uri, header};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use tokio::io::AsyncWriteExt;

#[derive(Args)]
pub(crate) struct Options {
    /// https://HOST:PORT/PATH, all of one server
    #[arg(required = true)]
    urls: Vec<Uri>,
    /// Trust the certificates in this file; without, any certificate will do
    #[arg(long)]
    cacert: Option<PathBuf>,
    /// Keep the last body in this file
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Ask for a part, as in 0-99
    #[arg(long, allow_hyphen_values = true)]
    range: Option<String>,
    /// Ask for the head only
    #[arg(long)]
    head: bool,
    /// Update the keys after this many bytes of the body
    #[arg(long)]
    key_update_after: Option<u64>,
}

/// Host name for TLS, and address, of a URL.
fn server_of(url: &Uri) -> Result<(String, SocketAddr), Error> {
    let host = url.host().ok_or("the URL has no host")?.trim_matches(['[', ']']).to_owned();
    let address = (host.as_str(), url.port_u16().unwrap_or(443)).to_socket_addrs()?.next();
    Ok((host, address.ok_or("the host has no address")?))
}

/// Files of one server, each into a file of its name.
pub(crate) struct Downloads {
    pub(crate) server: SocketAddr,
    pub(crate) name: String,
    pub(crate) cacert: PathBuf,
    pub(crate) output: PathBuf,
    pub(crate) paths: Vec<String>,
}

/// Downloads them, one after the other.
pub(crate) async fn download(
    what: &Downloads,
    quic: endpoint::Options,
    tls: tls::Options,
) -> Result<(), Error> {
    let endpoint = quic.client(what.server, tls.client(Some(&what.cacert), b"h3")?)?;
    let connection = endpoint.connect(what.server, &what.name)?.await?;
    let (mut driver, mut requests) =
        h3::client::new::<_, _>(h3_quinn::Connection::new(connection.clone())).await?;
    let driving = tokio::spawn(async move { driver.wait_idle().await });
    for path in &what.paths {
        let url = format!("https://{}:{}/{path}", what.name, what.server.port()).parse()?;
        let options = Options {
            urls: Vec::new(),
            cacert: None,
            output: Some(what.output.join(path)),
            range: None,
            head: false,
            key_update_after: None,
        };
        exchange(&options, &url, &mut requests, &connection).await?;
    }
    drop(requests);
    let _ = driving.await;
    endpoint.wait_idle().await;
    Ok(())
}

pub(crate) async fn run(options: Options, quic: endpoint::Options, tls: tls::Options) -> Result<(), Error> {
    let (host, address) = server_of(options.urls.first().ok_or("no URL")?)?;
    let endpoint = quic.client(address, tls.client(options.cacert.as_deref(), b"h3")?)?;
    let connection = endpoint.connect(address, &host)?.await?;
    let (mut driver, mut requests) =
        h3::client::new::<_, _>(h3_quinn::Connection::new(connection.clone())).await?;
    // The connection ends when `requests` is dropped; how is of no interest then.
    let driving = tokio::spawn(async move { driver.wait_idle().await });
    let mut outcomes = Vec::with_capacity(options.urls.len());
    for url in &options.urls {
        outcomes.push(exchange(&options, url, &mut requests, &connection).await?);
    }
    drop(requests);
    let _ = driving.await;
    endpoint.wait_idle().await;
    println!("{}", serde_json::Value::from(outcomes));
    Ok(())
}

async fn exchange(
    options: &Options,
    url: &Uri,
    requests: &mut h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>,
    connection: &quinn::Connection,
) -> Result<serde_json::Value, Error> {
    let method = if options.head { Method::HEAD } else { Method::GET };
    let mut request = Request::builder().method(method).uri(url.clone());
    if let Some(range) = &options.range {
        request = request.header(header::RANGE, format!("bytes={range}"));
    }
    let mut stream = requests.send_request(request.body(())?).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    let mut output = match &options.output {
        Some(path) => Some(tokio::fs::File::create(path).await?),
        None => None,
    };
    let (mut received, mut hash) = (0_u64, Sha256::new());
    let mut key_update_after = options.key_update_after;
    while let Some(mut data) = stream.recv_data().await? {
        while data.has_remaining() {
            let chunk = data.chunk();
            hash.update(chunk);
            if let Some(file) = &mut output {
                file.write_all(chunk).await?;
            }
            let length = chunk.len();
            received += length as u64;
            data.advance(length);
        }
        if key_update_after.take_if(|after| received >= *after).is_some() {
            connection.force_key_update();
        }
    }
    if let Some(mut file) = output {
        file.flush().await?;
    }
    let digest = hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    let length = response.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    Ok(serde_json::json!({
        "status": response.status().as_u16(),
        "content_length": length.and_then(|text| text.parse::<u64>().ok()),
        "bytes": received,
        "sha256": digest,
    }))
}
