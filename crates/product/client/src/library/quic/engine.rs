//! A client's worker and what handles order from it: the same on a thread of its own and on that of the program.
//!
//! Invariant: an order is carried out or refused. The engine that ends refuses later orders, so no handle waits for it.

use super::alarm::Alarm;
use super::app::{Connections, TellConnected};
use super::call::Calls;
use super::link::QuicConnection;
use super::network::{Network, interface_of, is_own, own_addresses};
use crate::app::{ClientApp, ClientConnection};
use crate::library::error::{Error, Kind};
use crate::library::paths;
use crate::library::stats::Published;
use crate::migration::LocalPlace;
use base::net::Addresses;
use base::time::{Duration, Instant};
use datapath::Port;
use netlink::Changes;
use ports::AnyPort;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;
use transport::{ClientConfig, EarlyStatus, Endpoint, EndpointConfig, IncomingPolicy};
use worker::{AddressNews, Worker};

/// How long the close of connections may take at the end.
const CLOSE: Duration = Duration::from_millis(20);
/// The same where tickets are kept for the next process: they come with the confirmation of the handshake, a round trip after the answer to
/// early data.
const CLOSE_WITH_TICKETS: Duration = Duration::from_secs(1);
/// How long after the first CONNECTION_CLOSE the second is sent: what loses one of two that follow at once may lose both.
const REPEAT_CLOSE: Duration = Duration::from_millis(5);

/// A connection that is to be made.
struct Dial {
    config: ClientConfig,
    peer: SocketAddr,
    server_name: String,
    tell: TellConnected,
}

#[derive(Default)]
struct Orders {
    dials: Vec<Dial>,
    /// Local addresses to move to.
    moves: Vec<IpAddr>,
    /// What has happened to the addresses and routes of this machine.
    changes: Changes,
    is_abandoned: bool,
    /// The engine has ended.
    is_over: bool,
}

struct Hub {
    orders: Mutex<Orders>,
    /// Whether the engine must look at `orders`.
    has_orders: AtomicBool,
    alarm: Arc<Alarm>,
    counters: Published,
}

impl Hub {
    fn change<R>(&self, change: impl FnOnce(&mut Orders) -> R) -> R {
        change(&mut self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes what the engine shall do, and wakes it.
    fn order(&self, change: impl FnOnce(&mut Orders)) {
        self.change(change);
        self.has_orders.store(true, Ordering::Release);
        self.alarm.raise();
    }
}

/// What a worker is made with.
pub(crate) struct Setup {
    /// Whether tickets that come are kept beyond the life of the process.
    pub(crate) writes_tickets: bool,
    /// A connection without requests is closed after so long.
    pub(crate) idle: Duration,
    /// How long the worker polls before it sleeps.
    pub(crate) spin: Duration,
    /// From where connections have a path each; empty: from where the routes say, one path.
    pub(crate) paths: Vec<LocalPlace>,
}

/// The handle of an engine. Dropped, the engine ends after the last exchange.
pub(crate) struct QuicEndpoint(Arc<Hub>);

impl QuicEndpoint {
    /// Connects to `peer`, whose certificate must be for `server_name`, with the TLS and QUIC of `config`. Dropping the future gives the
    /// attempt up.
    ///
    /// # Errors
    /// The handshake has failed.
    pub(crate) async fn connect(
        &self,
        peer: SocketAddr,
        server_name: &str,
        config: &ClientConfig,
    ) -> Result<Arc<QuicConnection>, Error> {
        let (tell, told) = oneshot::channel();
        let dial = Dial { config: config.clone(), peer, server_name: server_name.to_owned(), tell };
        self.0.order(|orders| {
            if !orders.is_over {
                orders.dials.push(dial);
            }
        });
        told.await.unwrap_or_else(|_| Err(Error::new(Kind::Connect, "the thread of HTTP/3 has ended")))
    }

    /// Whether it takes orders: the engine has not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.0.change(|orders| !orders.is_over)
    }

    /// All connections move to this local address, those of the other family excepted.
    pub(crate) fn migrate(&self, ip: IpAddr) {
        self.0.order(|orders| orders.moves.push(ip));
    }

    /// What the data path has counted, as of the last turn.
    pub(crate) fn counters(&self) -> &Published {
        &self.0.counters
    }
}

impl Drop for QuicEndpoint {
    fn drop(&mut self) {
        self.0.order(|orders| orders.is_abandoned = true);
    }
}

/// The worker and its orders.
pub(crate) struct Engine {
    worker: Worker<AnyPort, ClientApp<Connections>>,
    hub: Arc<Hub>,
    /// See [`Setup::writes_tickets`].
    writes_tickets: bool,
    /// See [`Setup::paths`].
    paths: Vec<LocalPlace>,
    /// Tells of changes, as long as the engine lives.
    _network: Option<Network>,
}

impl Engine {
    /// A worker on `port`, and its handle.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn new(port: AnyPort, setup: Setup) -> io::Result<(Engine, QuicEndpoint)> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let incoming = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        let alarm = Alarm::new(port.waker());
        let app = ClientApp(Connections::new(Arc::new(Calls::new(Arc::clone(&alarm))), setup.idle));
        let worker_config = worker::Config { spin: setup.spin };
        let worker = Worker::new(port, app, Endpoint::new(incoming, seed), None, worker_config);
        let hub = Arc::new(Hub {
            orders: Mutex::default(),
            has_orders: AtomicBool::new(false),
            alarm,
            counters: Published::default(),
        });
        let told = Arc::clone(&hub);
        let tell = move |changes: Changes| {
            told.order(|orders| {
                orders.changes.added |= changes.added;
                orders.changes.removed |= changes.removed;
            });
        };
        // A port that is bound to one address, or to an interface, has nowhere to go.
        let may_move =
            worker.sends_from(Ipv4Addr::LOCALHOST.into()) && worker.sends_from([127, 0, 0, 2].into());
        let network = may_move.then(|| Network::watch(tell)).flatten();
        let Setup { writes_tickets, paths, .. } = setup;
        let engine = Engine { worker, hub: Arc::clone(&hub), writes_tickets, paths, _network: network };
        Ok((engine, QuicEndpoint(hub)))
    }

    pub(super) fn alarm(&self) -> &Arc<Alarm> {
        &self.hub.alarm
    }

    pub(super) fn now(&self) -> Instant {
        self.worker.now()
    }

    /// One turn, and sleep unless something is to be done on this thread: by the worker, or by the driver as `is_wanted` says.
    ///
    /// # Errors
    /// The socket is broken.
    pub(super) fn run_turn(
        &mut self,
        until: Option<Instant>,
        is_wanted: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let _ = self.hub.alarm.take();
        let now = self.worker.clock();
        let turn = self.worker.turn(now)?;
        self.hub.counters.publish(&self.worker.counters());
        if self.hub.alarm.take() || is_wanted() { Ok(()) } else { self.worker.sleep(&turn, until) }
    }

    /// Carries out orders. Returns whether the engine goes on: not without a client and open connections.
    pub(super) fn obey(&mut self) -> bool {
        if self.hub.has_orders.swap(false, Ordering::AcqRel) {
            let Orders { dials, moves, changes, is_abandoned, .. } = self.hub.change(|orders| Orders {
                is_abandoned: orders.is_abandoned,
                is_over: orders.is_over,
                ..std::mem::take(orders)
            });
            self.follow(changes);
            for ip in moves {
                self.worker.migrate(ip, interface_of(ip));
            }
            dials.into_iter().for_each(|dial| self.begin(dial));
            if is_abandoned {
                self.abandon();
            }
        }
        !self.worker.app_mut().is_abandoned || self.worker.open_connections() > 0
    }

    /// Connections whose address or route is gone move.
    fn follow(&mut self, changes: Changes) {
        let news = match changes {
            Changes { removed: true, .. } => AddressNews::Removed,
            Changes { added: true, .. } => AddressNews::Added,
            Changes { .. } => return,
        };
        let listed = own_addresses();
        self.worker.on_address_news(news, |ip| is_own(ip, &listed));
    }

    /// From now on connections are closed when they have no request.
    pub(super) fn abandon(&mut self) {
        self.worker.app_mut().is_abandoned = true;
        self.worker.activate_all();
    }

    /// Ends all connections: waits for [`CLOSE`] or [`CLOSE_WITH_TICKETS`] at most until they are closed, and sends each CONNECTION_CLOSE twice, so that the
    /// loss of one datagram does not leave a server to its idle timeout.
    ///
    /// # Errors
    /// The socket is broken.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.abandon();
        let patience = if self.writes_tickets { CLOSE_WITH_TICKETS } else { CLOSE };
        let until = self.now() + patience;
        while self.obey() && self.now() < until {
            self.run_turn(Some(until), &|| false)?;
        }
        if self.worker.connections() == 0 {
            return Ok(());
        }
        let again = self.now() + REPEAT_CLOSE;
        while self.now() < again {
            self.run_turn(Some(again), &|| false)?;
        }
        self.worker.repeat_closes();
        self.run_turn(Some(again), &|| false)
    }

    fn begin(&mut self, dial: Dial) {
        let Dial { config, peer, server_name, tell } = dial;
        let own = match self.own_addresses(peer) {
            Ok(own) => own,
            Err(error) => return drop(tell.send(Err(error))),
        };
        let app = self.worker.app_mut();
        let http3 = Arc::clone(&app.config);
        let mut own = own.into_iter();
        let first = own.next();
        let state = app.state(Some(tell), own.collect());
        let state = ClientConnection::new(http3, state, 0, self.worker.now());
        let port = self.worker.port();
        let local = match first {
            None => port.local_address_towards(peer),
            Some(ip) => SocketAddr::new(ip, port.local_address().port()),
        };
        let addresses = Addresses { local, peer };
        // The name was checked before. Should TLS refuse all the same, the end of `state` tells its requester.
        if let Ok(slot) = self.worker.connect_between(&config, &server_name, addresses, state)
            && let Some((quic, connection)) = self.worker.connection(slot)
        {
            connection.state().set_slot(slot);
            if quic.early_status() == EarlyStatus::Offered {
                connection.state().hand_out();
            }
        }
    }
}

impl Engine {
    /// The local addresses from which a connection to `peer` shall have a path each: what leaves from them leaves by their interfaces.
    ///
    /// # Errors
    /// One of them is not there, or datagrams cannot leave from it.
    fn own_addresses(&mut self, peer: SocketAddr) -> Result<Vec<IpAddr>, Error> {
        let found = paths::addresses_towards(&self.paths, peer)?;
        for ip in &found {
            if !self.worker.sends_from(*ip) {
                let text = format!("the data path cannot send from {ip}: several paths need kernel UDP");
                return Err(Error::new(Kind::Connect, text));
            }
            self.worker.pin(*ip, interface_of(*ip));
        }
        Ok(found)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let refused = self.hub.change(|orders| {
            orders.is_over = true;
            std::mem::take(&mut orders.dials)
        });
        drop(refused);
    }
}
