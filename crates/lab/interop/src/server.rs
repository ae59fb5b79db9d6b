//! The server: files below a folder.

use crate::case::requested;
use crate::{Case, Error};
use quic::{
    Connection, EarlyData, Endpoint, Identity, RecvStream, Retry, SendStream, ServerConfig, TicketKeys,
};
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a request.
const MAX_REQUEST: usize = 4_096;
/// Bytes that are read from a file at a time.
const CHUNK: usize = 64 * 1_024;

/// What a server is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it does.
    pub case: Case,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The certificate chain, PEM.
    pub cert: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// The folder whose files are served.
    pub root: PathBuf,
    /// Written once listening: JSON with `port`.
    pub ready_file: Option<PathBuf>,
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Files that cannot be read, an address that cannot be listened on.
pub fn run(options: &Options) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let endpoint = open(options)?;
        if let Some(path) = &options.ready_file {
            let ready = serde_json::json!({ "port": endpoint.local_addr()?.port() });
            let unfinished = path.with_extension("unfinished");
            std::fs::write(&unfinished, ready.to_string())?;
            std::fs::rename(unfinished, path)?;
        }
        tokio::select! {
            () = accept(endpoint.clone(), options.root.clone()) => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        endpoint.close(0_u8.into(), b"stopped");
        Ok(())
    })
}

/// Opens the endpoint of a case.
pub(crate) fn open(options: &Options) -> Result<Endpoint, Error> {
    let identity = Identity::from_files(&options.cert, &options.key)?;
    let mut config = ServerConfig::with_identity(identity)?.tls_options(&options.case.tls())?;
    config.ticket_keys(Arc::new(TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S)));
    if options.case == Case::ZeroRtt {
        config.early_data(EarlyData::Permitted);
    }
    config.transport_config(Arc::new(options.case.transport()));
    let retry = if options.case == Case::Retry { Retry::Always } else { Retry::UnderLoad };
    Ok(Endpoint::builder(options.listen).server(config).retry(retry).build()?)
}

/// Answers until the endpoint is closed.
pub(crate) async fn accept(endpoint: Endpoint, root: PathBuf) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connecting) = incoming.accept() else { continue };
        let root = root.clone();
        tokio::spawn(async move {
            // Early requests are answered before the handshake is complete.
            let connection = match connecting.into_0rtt() {
                Ok((connection, _)) => connection,
                Err(connecting) => match connecting.await {
                    Ok(connection) => connection,
                    Err(_) => return,
                },
            };
            serve(connection, root).await;
        });
    }
}

async fn serve(connection: Connection, root: PathBuf) {
    while let Ok((send, recv)) = connection.accept_bi().await {
        let root = root.clone();
        tokio::spawn(async move {
            // A client that has gone is told by the connection.
            let _ = answer(send, recv, &root).await;
        });
    }
}

async fn answer(mut send: SendStream, mut recv: RecvStream, root: &Path) -> Result<(), Error> {
    let request = recv.read_to_end(MAX_REQUEST).await?;
    let Some(mut file) = requested(&request).ok().and_then(|path| std::fs::File::open(root.join(path)).ok())
    else {
        send.reset(1_u8.into())?;
        return Ok(());
    };
    let (mut left, mut chunk) = (file.metadata()?.len(), vec![0; CHUNK]);
    loop {
        let read = file.read(&mut chunk)?;
        let bytes = chunk.get(..read).unwrap_or_default();
        left = left.saturating_sub(read as u64);
        if read == 0 || left == 0 {
            return Ok(send.finish_with(bytes).await?);
        }
        send.write_all(bytes).await?;
    }
}
