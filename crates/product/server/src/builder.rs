//! A server in a few lines: addresses, identity and limits, then a service for HTTP/1.1, 2 and 3.
//!
//! ```no_run
//! # async fn hello(_: http::Request<body::Body>) -> Result<http::Response<body::Body>, std::convert::Infallible> {
//! #     Ok(http::Response::new("hello".into()))
//! # }
//! let server = server::Server::builder().serve(server::service::service_fn(hello))?;
//! println!("https://{}/", server.local_addr());
//! server.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::access_log::{AccessLog, Target};
use crate::budget::Budget;
use crate::certificate::{self, Development};
use crate::date::unix_now;
use crate::low::Shared;
use crate::running::{Running, Stop};
use crate::tcp::{self, ShutdownSignal};
use crate::threads::{self, Quic, Tcp};
use body::Body;
use bytes::Bytes;
use crypto::{Identity, ServerTls, TlsOptions};
use datapath::Port as _;
use http::{Request, Response};
use std::fmt::{self, Display};
use std::io;
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;
use tower_service::Service;
use udp::{BindOptions, UdpPort, Variant};

/// Where a server listens if nothing else is said: all addresses of both families.
const PORT: u16 = 4_433;
/// How often a free port is looked for that TCP and UDP both have.
const TRIES: usize = 32;

/// A server of an application: [`Server::builder`].
#[derive(Debug)]
pub struct Server;

impl Server {
    /// A server of HTTP/1.1, 2 and 3 with the defaults.
    pub fn builder() -> Builder {
        Builder {
            listen: (Ipv6Addr::UNSPECIFIED, PORT).into(),
            identity: None,
            budget: Budget::default(),
            access_log: Target::Off,
            drain: None,
        }
    }
}

/// What a server is made with. Setters take and return it.
#[derive(Debug)]
#[must_use]
pub struct Builder {
    listen: SocketAddr,
    identity: Option<Identity>,
    budget: Budget,
    access_log: Target,
    drain: Option<Duration>,
}

/// Why a server cannot begin.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError {
    /// The port cannot be had. Another program may have it, or this user may not.
    Listen(SocketAddr, io::Error),
    /// There is no certificate that can be served. The text says what to do.
    Identity(String),
    /// The access log cannot be written.
    AccessLog(io::Error),
    /// A thread, or randomness, cannot be had.
    System(io::Error),
}

impl Display for BindError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindError::Listen(at, error) => write!(out, "cannot listen on {at}, TCP and UDP: {error}"),
            BindError::Identity(text) => write!(out, "no certificate to serve: {text}"),
            BindError::AccessLog(error) => write!(out, "cannot write the access log: {error}"),
            BindError::System(error) => write!(out, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BindError::Listen(_, error) | BindError::AccessLog(error) | BindError::System(error) => {
                Some(error)
            }
            BindError::Identity(_) => None,
        }
    }
}

impl Builder {
    /// Where to listen, for TCP and UDP. Port 0: one that is free for both. Default: `[::]:4433`.
    pub fn listen(mut self, at: SocketAddr) -> Builder {
        self.listen = at;
        self
    }

    /// The certificate and its key. Default: the development certificate, which `tercel serve` makes and uses too.
    pub fn identity(mut self, of: Identity) -> Builder {
        self.identity = Some(of);
        self
    }

    /// The memory, in bytes, that all connections may hold together. Default: without a limit.
    pub fn memory(mut self, bytes: u64) -> Builder {
        self.budget = Budget::new(bytes);
        self
    }

    /// Where requests are logged. Default: nowhere.
    pub fn access_log(mut self, to: Target) -> Builder {
        self.access_log = to;
        self
    }

    /// How long connections have to finish after [`crate::Handle::stop`]. Default: as long as they take.
    pub fn drain(mut self, at_most: Option<Duration>) -> Builder {
        self.drain = at_most;
        self
    }

    /// Opens the port and serves by a service, such as a `Router` of axum, on two threads: one for HTTP/3, one for HTTP/1.1
    /// and 2. Futures run on the thread of their connection and need not be `Send`.
    ///
    /// Tasks, timers and sockets of tokio work in them: those of the runtime in which this is called, or else of one that the
    /// server starts on a thread of its own.
    ///
    /// # Errors
    /// The port cannot be had, or there is no certificate to serve.
    pub fn serve<S, B>(self, service: S) -> Result<Running, BindError>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Display,
        S::Future: 'static,
        B: http_body::Body<Data = Bytes> + 'static,
        B::Error: Display,
    {
        let identity = match self.identity {
            Some(identity) => identity,
            None => development()?,
        };
        let refused = |error: crypto::ConfigError| BindError::Identity(error.to_string());
        let tls = ServerTls::new(&identity, &TlsOptions::default()).map_err(refused)?;
        let alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tcp_tls =
            crypto::tcp_server(&identity, &TlsOptions { alpn, ..TlsOptions::default() }).map_err(refused)?;
        let (listener, port) = open(self.listen).map_err(|error| BindError::Listen(self.listen, error))?;
        let address = port.local_address();
        let log = AccessLog::start(self.access_log).map_err(BindError::AccessLog)?;
        let stop = Stop::new(port.waker().into_iter().collect(), vec![ShutdownSignal::default()]);
        let shared = Shared { budget: self.budget, ..Shared::default() };
        let quic =
            Quic { port, tls, service: service.clone(), recorder: log.recorder(), shared: shared.clone() };
        let tcp = Tcp { listener, tls: tcp_tls, service, recorder: log.recorder(), shared };
        threads::start(quic, tcp, stop, self.drain, log)
            .map(|over| Running::new(address, over.stop, over.result))
            .map_err(BindError::System)
    }
}

fn development() -> Result<Identity, BindError> {
    let text = |error: certificate::CertificateError| BindError::Identity(error.to_string());
    let folder = certificate::default_folder(|name| std::env::var_os(name)).map_err(text)?;
    let made = Development::load_or_make(&folder, unix_now()).map_err(text)?.identity;
    let chain = made.chain.iter().map(|certificate| certificate.to_vec()).collect();
    let identity = Identity::from_der(chain, made.key.secret_der().to_vec());
    identity.map_err(|error| BindError::Identity(error.to_string()))
}

/// One port number for TCP and UDP.
fn open(at: SocketAddr) -> io::Result<(TcpListener, UdpPort)> {
    let mut tries = 0;
    loop {
        let listener = tcp::listen(at, None, 1)?.pop().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let bound = listener.local_addr()?;
        tries += 1;
        match UdpPort::bind(&BindOptions::new(bound, Variant::Gso)) {
            Ok(port) => return Ok((listener, port)),
            // A port that the system chose for TCP may be in use for UDP.
            Err(error) if at.port() > 0 || tries == TRIES => return Err(io::Error::other(error)),
            Err(_) => {}
        }
    }
}
