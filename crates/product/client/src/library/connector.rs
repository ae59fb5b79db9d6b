//! Where connections come from: the pool, or an attempt over QUIC, TCP or both. RFC 8305, RFC 9114 §3.1.

use super::alt_svc;
use super::alt_svc_file::Known;
use super::connection::{Channel, Connection, Facts};
use super::error::{Error, Kind, Phase};
use super::knowledge::{ConnectOrder, Http3Address, Knowledge};
use super::origin::Origin;
use super::pool::{Attempt, Pool, Wanted};
use super::quic::{self, QuicConnection, QuicEndpoint};
use super::quota::Quotas;
use super::race::{HEAD_START, race};
use super::settings::{HttpChoice, Settings};
use super::stats::Stats;
use super::tcp;
use crate::error::GetError;
use crate::fault::Fault;
use crate::probe::{Probe, is_about_address};
use crate::resolve;
use crate::target::Target;
use crate::tasks::{spawn, spawn_on};
use http::HeaderMap;
use http::header::ALT_SVC;
use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use transport::ClientConfig;

/// A server that was silent for so long is asked about at the network, and so often after that.
const PROBE_AFTER: Duration = Duration::from_millis(60);

/// While one of these exists, the thread of TCP connections and timers goes on.
pub(crate) type Alive = mpsc::Sender<Infallible>;

/// An attempt to connect.
type Connecting = Pin<Box<dyn Future<Output = Result<Connection, Error>> + Send>>;

/// All that the handles of a client share.
pub(crate) struct Connector {
    pub(crate) settings: Settings,
    pub(crate) runtime: Handle,
    pub(crate) alive: Alive,
    pool: Mutex<Pool>,
    knowledge: Mutex<Knowledge>,
    pub(crate) quotas: Quotas,
    /// Started by the first attempt over QUIC, unless the program drives it.
    quic: Mutex<Option<Arc<QuicEndpoint>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connector {
    pub(crate) fn new(settings: Settings, runtime: Handle, alive: Alive) -> Connector {
        let pool = Mutex::new(Pool::new(settings.pool));
        let quotas = Quotas::new(settings.pool.requests_per_origin);
        let (knowledge, quic) = (Mutex::default(), Mutex::default());
        Connector { settings, runtime, alive, pool, knowledge, quotas, quic }
    }

    /// What earlier clients have heard.
    pub(crate) fn remember(&self, known: Vec<Known>) {
        let (mut knowledge, now) = (lock(&self.knowledge), Instant::now());
        known.into_iter().for_each(|(origin, found)| knowledge.on_remembered(&origin, found, now));
    }

    /// HTTP/3 connections are those of this endpoint.
    pub(crate) fn set_quic(&self, endpoint: QuicEndpoint) {
        *lock(&self.quic) = Some(Arc::new(endpoint));
    }

    pub(crate) fn stats(&self) -> Stats {
        lock(&self.quic).as_ref().map_or_else(Stats::default, |endpoint| endpoint.counters().read())
    }

    /// The connections of HTTP/3 move to this local address.
    pub(crate) fn migrate(&self, ip: IpAddr) {
        if let Some(endpoint) = &*lock(&self.quic) {
            endpoint.migrate(ip);
        }
    }

    pub(crate) fn pool(&self) -> MutexGuard<'_, Pool> {
        lock(&self.pool)
    }

    /// A connection to `origin`, out of the pool or a new one.
    ///
    /// # Errors
    /// None can be made.
    pub(crate) async fn connection(self: &Arc<Self>, origin: &Origin) -> Result<Connection, Error> {
        loop {
            let now = Instant::now();
            if let Some(connection) = self.pool().ready(origin, self.wanted(origin, now), now) {
                return Ok(connection);
            }
            let (told, attempt) = self.pool().wait(origin);
            if attempt == Attempt::Begin {
                let (this, origin) = (Arc::clone(self), origin.clone());
                // It goes on when the request is cancelled: others may wait for it.
                let attempt = async move {
                    let result = this.connect(&origin).await;
                    this.pool().on_attempt(&origin, result, Instant::now());
                };
                spawn_on(&self.runtime, Box::pin(attempt));
            }
            match told.await {
                Ok(Ok(Some(connection))) => return Ok(connection),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(Error::new(Kind::Connect, "the thread of the client has ended")),
            }
        }
    }

    /// Which connections of the pool will do. Where HTTP/3 is announced, TCP is asked again only beside QUIC.
    fn wanted(&self, origin: &Origin, now: Instant) -> Wanted {
        let is_announced =
            || matches!(lock(&self.knowledge).connect_order(origin, now), ConnectOrder::Announced(_));
        match self.settings.http {
            HttpChoice::Auto if origin.is_secure() && is_announced() => Wanted::Quic,
            _ => Wanted::Any,
        }
    }

    /// A response has come over `connection`.
    pub(crate) fn on_response(&self, origin: &Origin, connection: &Connection, fields: &HeaderMap) {
        if self.settings.http != HttpChoice::Auto || !origin.is_secure() {
            return;
        }
        let values = fields.get_all(ALT_SVC).iter().filter_map(|value| value.to_str().ok());
        let announced = alt_svc::parse(values);
        if announced.is_none() && connection.is_quic() {
            return;
        }
        let news = lock(&self.knowledge).on_response(origin, announced, Instant::now());
        if let (Some(news), Some(file)) = (news, &self.settings.alt_svc_file) {
            // What cannot be kept is heard again by a later client.
            let _ = file.keep(origin, &news);
        }
    }

    /// The server wants the request over another version than HTTP/3.
    pub(crate) fn on_fallback(&self, origin: &Origin) {
        let (mut known, now) = (lock(&self.knowledge), Instant::now());
        let address = known.address(origin, now);
        known.on_quic_failed(origin, address, now);
        drop(known);
        self.pool().drop_quic(origin);
    }

    async fn connect(self: &Arc<Self>, origin: &Origin) -> Result<Connection, Error> {
        let timeout = self.settings.connect_timeout;
        let connecting: Connecting = match (self.settings.http, origin.is_secure()) {
            (HttpChoice::Http1, _) | (HttpChoice::Auto, false) | (HttpChoice::Http2, true) => {
                Box::pin(Arc::clone(self).connect_tcp(origin.clone()))
            }
            (HttpChoice::Http3, true) => {
                let address = lock(&self.knowledge).address(origin, Instant::now());
                Box::pin(Arc::clone(self).connect_quic(origin.clone(), address))
            }
            (HttpChoice::Auto, true) => Box::pin(Arc::clone(self).connect_both(origin.clone())),
            (HttpChoice::Http2 | HttpChoice::Http3, false) => {
                let text = "HTTP/2 and HTTP/3 need TLS: write https:// in the URI";
                return Err(Error::new(Kind::Request, text));
            }
        };
        tokio::time::timeout(timeout, connecting).await.unwrap_or_else(|_| Err(late(timeout)))
    }

    /// QUIC and TCP, in the order that is known to be good.
    async fn connect_both(self: Arc<Self>, origin: Origin) -> Result<Connection, Error> {
        let (order, address) = {
            let (known, now) = (lock(&self.knowledge), Instant::now());
            (known.connect_order(&origin, now), known.address(&origin, now))
        };
        let tcp: Connecting = Box::pin(Arc::clone(&self).reuse_or_connect_tcp(origin.clone()));
        if order == ConnectOrder::TcpOnly {
            return tcp.await;
        }
        let quic: Connecting =
            Box::pin(Arc::clone(&self).connect_quic_to_the_end(origin.clone(), address.clone()));
        let attempts = if order == ConnectOrder::TcpFirst { [tcp, quic] } else { [quic, tcp] };
        let connection = race(attempts.into(), HEAD_START).await?;
        if order != ConnectOrder::TcpFirst && !connection.is_quic() {
            lock(&self.knowledge).on_quic_failed(&origin, address, Instant::now());
        }
        Ok(connection)
    }

    /// An attempt over QUIC that goes on when TCP was faster: what comes of it serves later requests.
    async fn connect_quic_to_the_end(
        self: Arc<Self>,
        origin: Origin,
        address: Http3Address,
    ) -> Result<Connection, Error> {
        let (tell, told) = oneshot::channel();
        spawn(Box::pin(async move {
            let timeout = self.settings.connect_timeout;
            let connecting = Arc::clone(&self).connect_quic(origin.clone(), address);
            let result =
                tokio::time::timeout(timeout, connecting).await.unwrap_or_else(|_| Err(late(timeout)));
            let result = match tell.send(result) {
                Ok(()) => return,
                Err(unwanted) => unwanted,
            };
            if let Ok(connection) = result {
                lock(&self.knowledge).on_quic_connected(&origin);
                self.pool().add_quic(&origin, &connection);
            }
        }));
        told.await.unwrap_or_else(|_| Err(Error::new(Kind::Connect, "the attempt over QUIC has ended")))
    }

    async fn connect_quic(
        self: Arc<Self>,
        origin: Origin,
        address: Http3Address,
    ) -> Result<Connection, Error> {
        let began = Instant::now();
        let addresses = self.resolve(origin.target(address.host.as_deref(), address.port)?).await?;
        let endpoint = self.quic_endpoint()?;
        let attempts = addresses.into_iter().map(|peer| {
            let (endpoint, origin, config) =
                (Arc::clone(&endpoint), origin.clone(), self.settings.quic.clone());
            async move {
                let connection = probed(&endpoint, (peer, origin.host()), &config).await?;
                Ok((peer, Channel::Http3(connection)))
            }
        });
        let (peer, channel) = race(attempts.collect(), HEAD_START).await?;
        let facts = Facts { peer, connect_time: began.elapsed() };
        Ok(Connection { channel, facts, is_reused: false })
    }

    async fn reuse_or_connect_tcp(self: Arc<Self>, origin: Origin) -> Result<Connection, Error> {
        let now = Instant::now();
        let found = self.pool().ready(&origin, Wanted::Tcp, now);
        match found {
            Some(connection) => Ok(connection),
            None => self.connect_tcp(origin).await,
        }
    }

    async fn connect_tcp(self: Arc<Self>, origin: Origin) -> Result<Connection, Error> {
        let began = Instant::now();
        let addresses = self.resolve(origin.target(None, origin.port())?).await?;
        let attempts = addresses.into_iter().map(|peer| {
            let tls = self.settings.tls.clone().filter(|_| origin.is_secure());
            let (origin, alive) = (origin.clone(), self.alive.clone());
            async move {
                let connection = tcp::connect(peer, origin.host(), tls, alive).await?;
                Ok((peer, Channel::from(connection)))
            }
        });
        let (peer, channel) = race(attempts.collect(), HEAD_START).await?;
        let facts = Facts { peer, connect_time: began.elapsed() };
        Ok(Connection { channel, facts, is_reused: false })
    }

    async fn resolve(&self, target: Target) -> Result<Vec<SocketAddr>, Error> {
        let (family, detours) = (self.settings.family, self.settings.detours.clone());
        let found = tokio::task::spawn_blocking(move || resolve::resolve(&target, family, &detours)).await;
        match found {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(GetError::Resolve(host, reason))) => {
                Err(Error::new(Kind::Resolve, format!("cannot resolve {host}: {reason}")))
            }
            Ok(Err(error)) => Err(Error::new(Kind::Resolve, error.to_string())),
            Err(error) => Err(Error::caused(Kind::Resolve, "the name of the host cannot be resolved", error)),
        }
    }

    fn quic_endpoint(&self) -> Result<Arc<QuicEndpoint>, Error> {
        let mut shared = lock(&self.quic);
        if let Some(endpoint) = &*shared {
            return Ok(Arc::clone(endpoint));
        }
        let unavailable =
            |error| Error::caused(Kind::Connect, "HTTP/3 is not available on this machine", error);
        let endpoint =
            quic::start(&self.settings.data_path, self.settings.quic_setup()).map_err(unavailable)?;
        let endpoint = Arc::new(endpoint);
        *shared = Some(Arc::clone(&endpoint));
        Ok(endpoint)
    }
}

fn late(timeout: Duration) -> Error {
    Error::new(Kind::Timeout(Phase::Connect), format!("no connection after {timeout:?}"))
}

/// Connects to `peer`, whose certificate must be for `host`, unless the network says that nothing is there.
///
/// # Errors
/// As [`QuicEndpoint::connect`]; or nothing listens at the address.
pub(crate) async fn probed(
    endpoint: &QuicEndpoint,
    (peer, host): (SocketAddr, &str),
    config: &ClientConfig,
) -> Result<Arc<QuicConnection>, Error> {
    let mut connecting = std::pin::pin!(endpoint.connect(peer, host, config));
    let mut probe: Option<Probe> = None;
    loop {
        if let Ok(result) = tokio::time::timeout(PROBE_AFTER, connecting.as_mut()).await {
            return result;
        }
        let verdict = match &probe {
            Some(probe) => probe.verdict(),
            None => match Probe::send(peer) {
                Ok(sent) => {
                    probe = Some(sent);
                    None
                }
                Err(error) => Some(error),
            },
        };
        if let Some(error) = verdict.filter(|error| is_about_address(error.kind())) {
            let text = format!("cannot connect to UDP {peer}: {error}");
            return Err(Error::new(Kind::Connect, text).because(Fault::Network(peer, error.kind())));
        }
    }
}
