//! How a client is made.

use super::alt_svc_file::AltSvcFile;
use super::client::Client;
use super::connector::Connector;
use super::paths::{MAX_PATHS, Paths};
use super::quic::{ClientDriver, Engine};
use super::settings::{EarlyData, HttpChoice, Pool, Redirects, Settings};
use crate::migration::LocalPlace;
use crate::resolve::{ConnectOverride, Family, Flag};
use crate::tasks::spawn_on;
use crypto::{
    ClientTls, ConfigError, Ech, Identity, KeyLog, MemorySessions, Roots, SessionStore, TlsOptions,
};
use ports::{AnyPort, DataPath};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::Instant;
use traces::Qlog;
use transport::{ClientConfig, Scheduler, TransportConfig};

/// Servers whose session tickets are kept for connections over TCP.
const RESUMED: usize = 256;

/// Why a client cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no authority to trust, or the settings of TLS cannot work. The text says what to do.
    Tls(ConfigError),
    /// The system has no thread left.
    System(io::Error),
    /// [`Builder::paths`] names none, or more than four.
    Paths,
    /// The file of [`Builder::alt_svc_cache`] is no cache, or cannot be written: its name, and why. It is left as it is.
    AltSvcCache(PathBuf, String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Tls(error) => write!(out, "{error}"),
            BuildError::Paths => write!(out, "a connection uses one to {MAX_PATHS} paths at once"),
            BuildError::System(error) => write!(out, "cannot start a thread: {error}"),
            BuildError::AltSvcCache(path, why) => {
                let path = path.display();
                write!(
                    out,
                    "{path} cannot be used as a cache of Alt-Svc ({why}): name another file, or remove it"
                )
            }
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Tls(error) => Some(error),
            BuildError::System(error) => Some(error),
            BuildError::Paths | BuildError::AltSvcCache(..) => None,
        }
    }
}

/// The settings of a [`Client`]. Setters take and return it.
///
/// ```
/// # fn main() -> Result<(), client::BuildError> {
/// use client::{Client, HttpChoice, Redirects};
/// use std::time::Duration;
/// let client = Client::builder()
///     .http(HttpChoice::Http3)
///     .redirects(Redirects::None)
///     .timeout(Some(Duration::from_secs(5)))
///     .build()?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "no client is made before `build`"]
pub struct Builder {
    roots: Roots,
    tls: TlsOptions,
    http: HttpChoice,
    family: Family,
    detours: Vec<ConnectOverride>,
    redirects: Redirects,
    connect_timeout: Duration,
    silence: Option<Duration>,
    timeout: Option<Duration>,
    pool: Pool,
    keep_alive: Option<Duration>,
    data_path: DataPath,
    transport: TransportConfig,
    sessions: Arc<dyn SessionStore>,
    early_data: EarlyData,
    alt_svc_cache: Option<PathBuf>,
    qlog: Option<Qlog>,
    paths: Option<Paths>,
}

impl Client {
    /// A client with the settings of [`Builder`]'s defaults.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<Client, BuildError> {
        Client::builder().build()
    }

    /// The settings of a client.
    pub fn builder() -> Builder {
        Builder {
            roots: Roots::System,
            tls: TlsOptions::default(),
            http: HttpChoice::Auto,
            family: Family::Any,
            detours: Vec::new(),
            redirects: Redirects::Limit(10),
            connect_timeout: Duration::from_secs(10),
            silence: Some(Duration::from_secs(30)),
            timeout: None,
            pool: Pool::default(),
            keep_alive: None,
            data_path: DataPath::default(),
            transport: TransportConfig::default(),
            sessions: Arc::new(MemorySessions::default()),
            early_data: EarlyData::Off,
            alt_svc_cache: None,
            qlog: None,
            paths: None,
        }
    }
}

impl Builder {
    /// Which authorities are trusted. Default: those of the system.
    pub fn roots(mut self, trust: Roots) -> Builder {
        self.roots = trust;
        self
    }

    /// Which versions of HTTP are spoken. Default: [`HttpChoice::Auto`].
    pub fn http(mut self, choice: HttpChoice) -> Builder {
        self.http = choice;
        self
    }

    /// Which addresses may be used. Default: all.
    pub fn family(mut self, family: Family) -> Builder {
        self.family = family;
        self
    }

    /// These addresses are used for `host` and `port` instead of those of the system's resolver, in their order. The certificate
    /// must still be for `host`.
    pub fn resolve(mut self, host: &str, port: u16, to: &[IpAddr]) -> Builder {
        let detour = |address: &IpAddr| ConnectOverride {
            flag: Flag::Resolve,
            host: host.to_owned(),
            port: Some(port),
            to_host: address.to_string(),
            to_port: None,
        };
        self.detours.extend(to.iter().map(detour));
        self
    }

    /// Another server is asked for `host` and `port`, both for QUIC and TCP. The certificate must still be for `host`.
    pub fn connect_to(mut self, (host, port): (&str, u16), (to_host, to_port): (&str, u16)) -> Builder {
        self.detours.push(ConnectOverride {
            flag: Flag::ConnectTo,
            host: host.to_owned(),
            port: Some(port),
            to_host: to_host.to_owned(),
            to_port: Some(to_port),
        });
        self
    }

    /// Whether redirects are followed. Default: ten. Fields with credentials stay with their origin, and a redirect from `https`
    /// to `http` is an error.
    pub fn redirects(mut self, policy: Redirects) -> Builder {
        self.redirects = policy;
        self
    }

    /// How long a connection may take, from the resolution of the name to the end of the handshake. Default: 10 s.
    pub fn connect_timeout(mut self, at_most: Duration) -> Builder {
        self.connect_timeout = at_most;
        self
    }

    /// How long a server may send nothing while its response is waited for. Default: 30 s; `None`: without a limit.
    pub fn silence(mut self, at_most: Option<Duration>) -> Builder {
        self.silence = at_most;
        self
    }

    /// How long a request may take in all, redirects and the content of the response included. Default: without a limit.
    pub fn timeout(mut self, whole: Option<Duration>) -> Builder {
        self.timeout = whole;
        self
    }

    /// How long connections without requests are kept. Default: see [`Pool`].
    pub fn pool(mut self, limits: Pool) -> Builder {
        self.pool = limits;
        self
    }

    /// A PING is sent when an HTTP/3 connection was quiet for so long, or for a third of the idle timeout of both ends if that is less,
    /// so that neither that timeout nor a firewall ends it.
    /// Default: `None`, because it wakes radios and servers. An idle connection that has timed out is replaced by the next request.
    pub fn keep_alive(mut self, interval: Option<Duration>) -> Builder {
        self.keep_alive = interval;
        self
    }

    /// Announcements of HTTP/3 (Alt-Svc) are kept in this file, so that the first request of a later client uses HTTP/3 where it was
    /// announced, for as long as it was: at most 1,024 origins, for 30 days at most. Clients may share it. It is made if it is
    /// absent, and written when an announcement changes. Default: they are kept in memory. Source: RFC 7838 §2.2.
    pub fn alt_svc_cache(mut self, file: impl Into<PathBuf>) -> Builder {
        self.alt_svc_cache = Some(file.into());
        self
    }

    /// Traces connections over QUIC (qlog). Default: none.
    pub fn qlog(mut self, to: &Qlog) -> Builder {
        self.qlog = Some(to.clone());
        self
    }

    /// Connections of HTTP/3 use several paths at once, one from each of these places, and begin on the first; `scheduler` says which of
    /// them carries requests, and the server decides for responses. One to four places, each with an address of the server's
    /// family. A server that does not offer it (docs/decisions/013) is reached over the first path alone: see
    /// [`PathReport::paths`](crate::PathReport::paths). For kernel UDP. Source: draft-ietf-quic-multipath. Default: one path, which
    /// the routes choose.
    pub fn paths(mut self, from: &[LocalPlace], scheduler: Scheduler) -> Builder {
        self.paths = Some(Paths { from: from.to_vec(), scheduler });
        self
    }

    /// How datagrams reach the interface. Default: [`DataPath::gso`].
    pub fn data_path(mut self, path: DataPath) -> Builder {
        self.data_path = path;
        self
    }

    /// Where session tickets and address tokens of servers are kept, by which later connections over QUIC resume. Default: in memory,
    /// for 256 servers. Tickets in memory serve one client and its clones only; those of a file (`tercel::quic::FileSessions`) serve the
    /// next process.
    pub fn session_store(mut self, sessions: Arc<dyn SessionStore>) -> Builder {
        self.sessions = sessions;
        self
    }

    /// Which requests may go before the handshake is complete (0-RTT). Default: [`EarlyData::Off`].
    pub fn early_data(mut self, requests: EarlyData) -> Builder {
        self.early_data = requests;
        self
    }

    /// Secrets of all connections are added to this file, for dissectors. Default: they are kept. Source:
    /// draft-ietf-tls-keylogfile.
    pub fn key_log(mut self, file: impl Into<PathBuf>) -> Builder {
        self.tls.key_log = KeyLog::File(file.into());
        self
    }

    /// The certificate and key that are shown to servers which ask for one, over all versions. Default: none.
    /// Source: RFC 8446 §4.4.2.
    pub fn identity(mut self, own: Identity) -> Builder {
        self.tls.client_identity = Some(own);
        self
    }

    /// Whether the server's name is hidden in the handshake, over all versions. Configurations are for one name: such a client should
    /// ask that name only. Default: it is not. Source: RFC 9849.
    pub fn ech(mut self, ech: Ech) -> Builder {
        self.tls.ech = ech;
        self
    }

    /// Settings of TLS; the application protocols are set by [`Builder::http`].
    #[doc(hidden)]
    pub fn tls_options(mut self, options: TlsOptions) -> Builder {
        self.tls = TlsOptions { client_identity: self.tls.client_identity, ech: self.tls.ech, ..options };
        self
    }

    /// As the command line says it.
    #[doc(hidden)]
    pub fn detours(mut self, detours: Vec<ConnectOverride>) -> Builder {
        self.detours = detours;
        self
    }

    /// How QUIC connections behave: windows, idle timeout, congestion control, packet sizes. [`Builder::connect_timeout`] limits the
    /// handshake, whatever `config` says, and [`Builder::keep_alive`] comes first where both are set. DATAGRAM frames are not
    /// received.
    ///
    /// ```
    /// use std::time::Duration;
    /// let mut config = quic::TransportConfig::default();
    /// config.max_idle_timeout(Some(Duration::from_secs(10))).congestion(quic::Congestion::Bbr);
    /// let builder = client::Client::builder().quic(config);
    /// # drop(builder);
    /// ```
    pub fn quic(self, config: quic::TransportConfig) -> Builder {
        let settings = TransportConfig { max_datagram_frame_size: 0, ..config.to_transport() };
        self.transport(settings)
    }

    /// The same for the command. Outside semver.
    #[doc(hidden)]
    pub fn transport(mut self, settings: TransportConfig) -> Builder {
        self.transport = settings;
        self
    }

    /// Starts the thread of TCP connections and timers. That of HTTP/3 is started by the first request that needs it.
    ///
    /// # Errors
    /// There is nothing to trust, or no thread.
    pub fn build(self) -> Result<Client, BuildError> {
        self.start().map(Client::of)
    }

    /// A client whose HTTP/3 connections are driven by the caller, on `port`. Outside semver.
    ///
    /// # Errors
    /// The same.
    #[doc(hidden)]
    pub fn build_on(self, port: AnyPort) -> Result<(Client, ClientDriver), BuildError> {
        let connector = self.start()?;
        let (engine, endpoint) =
            Engine::new(port, connector.settings.quic_setup()).map_err(BuildError::System)?;
        connector.set_quic(endpoint);
        Ok((Client::of(connector), ClientDriver::new(engine)))
    }

    fn start(mut self) -> Result<Arc<Connector>, BuildError> {
        let file = self.alt_svc_cache.take().map(|path| {
            let unusable = |why| BuildError::AltSvcCache(path.clone(), why);
            AltSvcFile::open(path.clone()).map_err(unusable)
        });
        let (file, known) = file.transpose()?.unzip();
        let settings = Settings { alt_svc_file: file, ..self.settings()? };
        let idle = settings.pool.idle;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(BuildError::System)?;
        let (alive, over) = mpsc::channel(1);
        let connector = Arc::new(Connector::new(settings, runtime.handle().clone(), alive));
        connector.remember(known.unwrap_or_default());
        spawn_on(runtime.handle(), Box::pin(sweep(Arc::downgrade(&connector), idle)));
        let thread = std::thread::Builder::new().name("tercel-client".to_owned());
        thread.spawn(move || run(runtime, over)).map_err(BuildError::System)?;
        Ok(connector)
    }

    fn settings(self) -> Result<Settings, BuildError> {
        if self.paths.as_ref().is_some_and(|paths| !(1..=MAX_PATHS).contains(&paths.from.len())) {
            return Err(BuildError::Paths);
        }
        let alpn = |names: &[&[u8]]| TlsOptions {
            alpn: names.iter().map(|name| name.to_vec()).collect(),
            ..self.tls.clone()
        };
        let over_tcp = match self.http {
            HttpChoice::Http1 => Some(alpn(&[b"http/1.1"])),
            HttpChoice::Http2 => Some(alpn(&[b"h2"])),
            HttpChoice::Auto => Some(alpn(&[b"h2", b"http/1.1"])),
            HttpChoice::Http3 => None,
        };
        let tls = over_tcp.map(|options| crypto::tcp_client(&self.roots, &options).map(resuming)).transpose();
        let quic_tls = ClientTls::new(&self.roots, &alpn(&[b"h3"])).map_err(BuildError::Tls)?;
        let quic_tls = quic_tls.with_sessions(self.sessions);
        let quic_tls = match self.early_data {
            EarlyData::Off => quic_tls,
            EarlyData::SafeMethods => quic_tls.with_early_data(),
        };
        let transport = TransportConfig {
            handshake_timeout: self.connect_timeout.into(),
            keep_alive: self.keep_alive.map(Into::into).or(self.transport.keep_alive),
            multipath: self.paths.as_ref().map(|paths| paths.scheduler).or(self.transport.multipath),
            qlog: self.qlog.map(|qlog| qlog.tracer()).or(self.transport.qlog),
            ..self.transport
        };
        Ok(Settings {
            http: self.http,
            family: self.family,
            detours: self.detours,
            redirects: self.redirects,
            connect_timeout: self.connect_timeout,
            silence: self.silence,
            timeout: self.timeout,
            pool: self.pool,
            tls: tls.map_err(BuildError::Tls)?,
            quic: ClientConfig { tls: quic_tls, transport: Arc::new(transport), token: Vec::new() },
            data_path: self.data_path,
            alt_svc_file: None,
            paths: self.paths.map(|paths| paths.from).unwrap_or_default(),
        })
    }
}

/// Keeps session tickets in memory, for as long as the client lives.
fn resuming(config: Arc<rustls::ClientConfig>) -> Arc<rustls::ClientConfig> {
    let mut config = Arc::unwrap_or_clone(config);
    config.resumption = rustls::client::Resumption::in_memory_sessions(RESUMED);
    Arc::new(config)
}

/// The thread of TCP connections and timers: until there is neither a client nor a connection nor content that is read.
fn run(runtime: Runtime, mut over: Receiver<Infallible>) {
    cpu::unpin();
    // Nothing is ever sent: it is over when the last sender is dropped.
    let _ = runtime.block_on(over.recv());
    // A name that is being resolved does not hold up the end.
    runtime.shutdown_background();
}

/// Closes connections that have no requests, as long as there is a client.
async fn sweep(connector: Weak<Connector>, idle: Duration) {
    let interval = (idle / 2).max(Duration::from_millis(10));
    loop {
        tokio::time::sleep(interval).await;
        let Some(connector) = connector.upgrade() else { return };
        connector.pool().sweep(Instant::now());
    }
}
