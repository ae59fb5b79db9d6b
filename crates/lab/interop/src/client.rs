//! The client: downloads, one connection or many.

use crate::{Case, Error};
use quic::{ClientConfig, Connection, EarlyData, Endpoint, MemorySessions, Roots};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of content after which the client updates its keys, or moves.
const CHANGE_AFTER: u64 = 256 * 1_024;
/// How long a client waits for session tickets after its first download.
const TICKET_PATIENCE: Duration = Duration::from_secs(5);

/// What a client is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it does.
    pub case: Case,
    /// Where the server is.
    pub connect: SocketAddr,
    /// The name in its certificate.
    pub name: String,
    /// Trust the certificates in this file, PEM.
    pub cacert: PathBuf,
    /// The folder for what was downloaded.
    pub output: PathBuf,
    /// Where to move or to begin another path, for those cases.
    pub migrate_to: Option<IpAddr>,
    /// What is asked for, each without its slash.
    pub paths: Vec<String>,
}

/// Downloads everything.
///
/// # Errors
/// The first connection or transfer that fails.
pub fn run(options: Options) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(download(Arc::new(options)))
}

/// The same inside a runtime.
pub(crate) async fn download(options: Arc<Options>) -> Result<(), Error> {
    let any: IpAddr =
        if options.connect.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let endpoint = Endpoint::client(SocketAddr::new(any, 0))?;
    let sessions = Arc::new(MemorySessions::default());
    let roots = Roots::Pem(std::fs::read(&options.cacert)?);
    let mut config = ClientConfig::with_roots(roots)?.tls_options(&options.case.tls())?;
    let mut transport = options.case.transport();
    if options.case == Case::ZeroRtt {
        // The public condition counts all bytes in 1-RTT packets, the padding of probes for the packet size included.
        transport.max_mtu(1_200);
    }
    config.transport_config(Arc::new(transport));
    if matches!(options.case, Case::Resumption | Case::ZeroRtt) {
        config.session_store(sessions.clone());
    }
    if options.case == Case::ZeroRtt {
        config.early_data(EarlyData::Permitted);
    }
    endpoint.set_default_client_config(config);
    let all = options.paths.as_slice();
    match options.case {
        Case::MultiConnect => {
            for path in all {
                finish(connect(&endpoint, &options).await?, &options, core::slice::from_ref(path)).await?;
            }
        }
        Case::Resumption | Case::ZeroRtt => {
            let (first, others) = all.split_at(all.len().min(1));
            let connection = connect(&endpoint, &options).await?;
            fetch_all(&connection, &options, first).await?;
            tickets(&sessions).await?;
            connection.close(0_u8.into(), b"done");
            finish(connect(&endpoint, &options).await?, &options, others).await?;
        }
        Case::Multipath => {
            let connection = connect(&endpoint, &options).await?;
            connection.open_path(second_address(&options)?)?;
            finish(connection, &options, all).await?;
        }
        _ => finish(connect(&endpoint, &options).await?, &options, all).await?,
    }
    endpoint.wait_idle().await;
    Ok(())
}

fn second_address(options: &Options) -> Result<IpAddr, Error> {
    options.migrate_to.ok_or_else(|| "--migrate-to is missing".into())
}

/// A connection; an early one where the case and the server permit it.
async fn connect(endpoint: &Endpoint, options: &Options) -> Result<Connection, Error> {
    let connecting = endpoint.connect(options.connect, &options.name)?;
    if options.case != Case::ZeroRtt {
        return Ok(connecting.await?);
    }
    match connecting.into_0rtt() {
        Ok((connection, _)) => Ok(connection),
        Err(connecting) => Ok(connecting.await?),
    }
}

/// Waits for session tickets.
async fn tickets(sessions: &MemorySessions) -> Result<(), Error> {
    let come = async {
        while sessions.tickets() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TICKET_PATIENCE, come)
        .await
        .map_err(|_| "the server has issued no session ticket")?;
    Ok(())
}

async fn finish(connection: Connection, options: &Arc<Options>, paths: &[String]) -> Result<(), Error> {
    fetch_all(&connection, options, paths).await?;
    connection.close(0_u8.into(), b"done");
    Ok(())
}

/// Downloads at the same time, as far as the server's limit of streams permits.
async fn fetch_all(connection: &Connection, options: &Arc<Options>, paths: &[String]) -> Result<(), Error> {
    let received = Arc::new(AtomicU64::new(0));
    let mut fetches = Vec::new();
    for path in paths {
        let (mut send, recv) = connection.open_bi().await?;
        let request = format!("GET /{path}\r\n");
        send.finish_with(request.as_bytes()).await?;
        let fetch = Fetch {
            connection: connection.clone(),
            options: options.clone(),
            received: received.clone(),
            path: path.clone(),
        };
        fetches.push(tokio::spawn(fetch.receive(recv)));
    }
    for fetch in fetches {
        fetch.await??;
    }
    Ok(())
}

/// One download.
struct Fetch {
    connection: Connection,
    options: Arc<Options>,
    /// Bytes of content on this connection so far.
    received: Arc<AtomicU64>,
    path: String,
}

impl Fetch {
    async fn receive(self, mut recv: quic::RecvStream) -> Result<(), Error> {
        let name = Path::new(&self.path).file_name().ok_or("a path without a name")?;
        let mut file = std::fs::File::create(self.options.output.join(name))?;
        while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
            file.write_all(&chunk)?;
            let bytes = u64::try_from(chunk.len())?;
            let before = self.received.fetch_add(bytes, Ordering::Relaxed);
            if before < CHANGE_AFTER && before + bytes >= CHANGE_AFTER {
                self.change()?;
            }
        }
        Ok(())
    }

    /// What the case wants in the middle of the transfer.
    fn change(&self) -> Result<(), Error> {
        match self.options.case {
            Case::KeyUpdate => self.connection.force_key_update(),
            Case::ConnectionMigration => self.connection.migrate(second_address(&self.options)?)?,
            _ => {}
        }
        Ok(())
    }
}
