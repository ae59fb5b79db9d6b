//! Files over QUIC, in the manner of quinn's own example: a client asks for a path on a stream of its own, and the server sends
//! the file.
//!
//! `peers/quinn-peer` compiles this file with quinn. What differs is in `setup`, the name of the library included.

use super::setup::{self, quic};
use quic::{Connection, Endpoint, RecvStream, SendStream, TransportConfig, VarInt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::io::AsyncReadExt;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The application's code for a file that is not there.
const NOT_FOUND: VarInt = VarInt::from_u32(404);
/// Bytes of a request.
const MAX_REQUEST: usize = 64 * 1024;
/// Bytes that are read from a file at a time.
const CHUNK: usize = 64 * 1024;

/// Serves `root` and fetches `names` from there, all at the same time. A file that is not there is `None`.
pub(crate) async fn transfer(root: &Path, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let server = server()?;
    let address = server.local_addr()?;
    tokio::spawn(accept(server, root.to_owned()));

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = client.connect_with(setup::client("files")?, address, "localhost")?.await?;
    let fetches: Vec<_> =
        names.iter().map(|name| tokio::spawn(fetch(connection.clone(), name.clone()))).collect();
    let mut contents = Vec::new();
    for fetch in fetches {
        contents.push(fetch.await??);
    }
    connection.close(0_u8.into(), b"done");
    client.wait_idle().await;
    Ok(contents)
}

fn server() -> Result<Endpoint, Error> {
    let mut config = setup::server("files")?;
    let mut transport = TransportConfig::default();
    transport.max_concurrent_uni_streams(0_u8.into());
    config.transport_config(Arc::new(transport));
    Ok(Endpoint::server(config, "127.0.0.1:0".parse()?)?)
}

async fn accept(server: Endpoint, root: PathBuf) {
    while let Some(incoming) = server.accept().await {
        let root = root.clone();
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok((send, recv)) = connection.accept_bi().await {
                tokio::spawn(answer(send, recv, root.clone()));
            }
        });
    }
}

async fn answer(mut send: SendStream, mut recv: RecvStream, root: PathBuf) -> Result<(), Error> {
    let request = recv.read_to_end(MAX_REQUEST).await?;
    let name = Path::new(core::str::from_utf8(&request)?);
    let is_below = name.components().all(|part| matches!(part, Component::Normal(_)));
    let Some(mut file) = open(&root.join(name)).filter(|_| is_below) else {
        send.reset(NOT_FOUND)?;
        return Ok(());
    };
    let mut chunk = vec![0; CHUNK];
    loop {
        match std::io::Read::read(&mut file, &mut chunk)? {
            0 => break,
            read => send.write_all(chunk.get(..read).unwrap_or_default()).await?,
        }
    }
    send.finish()?;
    Ok(())
}

fn open(path: &Path) -> Option<std::fs::File> {
    path.is_file().then(|| std::fs::File::open(path).ok()).flatten()
}

async fn fetch(connection: Connection, name: String) -> Result<Option<Vec<u8>>, Error> {
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(name.as_bytes()).await?;
    send.finish()?;
    let mut content = Vec::new();
    match recv.read_buf(&mut content).await {
        Ok(_) => {}
        Err(_) if recv.received_reset().await? == Some(NOT_FOUND) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    AsyncReadExt::read_to_end(&mut recv, &mut content).await?;
    Ok(Some(content))
}
