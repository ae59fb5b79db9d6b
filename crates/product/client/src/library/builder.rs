//! How a client is made.

use super::client::Client;
use super::connector::Connector;
use super::settings::{HttpChoice, Pool, Redirects, Settings};
use crate::resolve::{ConnectOverride, Family, Flag};
use crypto::{ClientTls, ConfigError, Roots, TlsOptions};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::Instant;
use transport::{ClientConfig, TransportConfig};

/// A connection of QUIC says so often that it is there, so that a slow response does not end it.
const KEEP_ALIVE: base::time::Duration = base::time::Duration::from_secs(10);

/// Why a client cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no authority to trust, or the settings of TLS cannot work. The text says what to do.
    Tls(ConfigError),
    /// The system has no thread left.
    System(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Tls(error) => write!(out, "{error}"),
            BuildError::System(error) => write!(out, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Tls(error) => Some(error),
            BuildError::System(error) => Some(error),
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

    /// Settings of TLS; the application protocols are set by [`Builder::http`].
    #[doc(hidden)]
    pub fn tls_options(mut self, options: TlsOptions) -> Builder {
        self.tls = options;
        self
    }

    /// As the command line says it.
    #[doc(hidden)]
    pub fn detours(mut self, detours: Vec<ConnectOverride>) -> Builder {
        self.detours = detours;
        self
    }

    /// Starts the thread of TCP connections and timers. That of HTTP/3 is started by the first request that needs it.
    ///
    /// # Errors
    /// There is nothing to trust, or no thread.
    pub fn build(self) -> Result<Client, BuildError> {
        let alpn = |names: &[&[u8]]| TlsOptions {
            alpn: names.iter().map(|name| name.to_vec()).collect(),
            ..self.tls.clone()
        };
        let over_tcp = match self.http {
            HttpChoice::Http1 => alpn(&[b"http/1.1"]),
            HttpChoice::Http2 => alpn(&[b"h2"]),
            HttpChoice::Auto | HttpChoice::Http3 => alpn(&[b"h2", b"http/1.1"]),
        };
        let tls = crypto::tcp_client(&self.roots, &over_tcp).map_err(BuildError::Tls)?;
        let quic_tls = ClientTls::new(&self.roots, &alpn(&[b"h3"])).map_err(BuildError::Tls)?;
        let transport = TransportConfig {
            handshake_timeout: self.connect_timeout.into(),
            keep_alive: Some(KEEP_ALIVE),
            ..TransportConfig::default()
        };
        let settings = Settings {
            http: self.http,
            family: self.family,
            detours: self.detours,
            redirects: self.redirects,
            connect_timeout: self.connect_timeout,
            silence: self.silence,
            timeout: self.timeout,
            pool: self.pool,
            tls,
            quic: ClientConfig { tls: quic_tls, transport: Arc::new(transport), token: Vec::new() },
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(BuildError::System)?;
        let (alive, over) = mpsc::channel(1);
        let connector = Arc::new(Connector::new(settings, runtime.handle().clone(), alive));
        runtime.spawn(sweep(Arc::downgrade(&connector), self.pool.idle));
        let thread = std::thread::Builder::new().name("tercel-client".to_owned());
        thread.spawn(move || run(runtime, over)).map_err(BuildError::System)?;
        Ok(Client::of(connector))
    }
}

/// The thread of TCP connections and timers: until there is neither a client nor a connection nor content that is read.
fn run(runtime: Runtime, mut over: Receiver<Infallible>) {
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
