//! The thread of a client's HTTP/3 connections: one worker on one socket, and what handles order from it.
//!
//! Invariant: an order is carried out or refused. The thread that ends refuses later orders, so no handle waits for it.

use super::app::{Connections, TellConnected};
use super::call::Calls;
use super::link::QuicConnection;
use crate::app::{ClientApp, ClientConnection};
use crate::library::error::{Error, Kind};
use datapath::Port as _;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use tokio::sync::oneshot;
use transport::{ClientConfig, Endpoint, EndpointConfig, IncomingPolicy};
use udp::{BindOptions, UdpPort, Variant};
use worker::Worker;

/// How long the close of connections may take at the end.
const CLOSE: base::time::Duration = base::time::Duration::from_millis(20);

/// A connection that is to be made.
struct Dial {
    peer: SocketAddr,
    server_name: String,
    tell: TellConnected,
}

#[derive(Default)]
struct Orders {
    dials: Vec<Dial>,
    is_abandoned: bool,
    /// The thread has ended.
    is_over: bool,
}

struct Hub {
    orders: Mutex<Orders>,
    /// Whether the thread must look at `orders`.
    has_orders: AtomicBool,
    calls: Arc<Calls>,
}

impl Hub {
    fn change<R>(&self, change: impl FnOnce(&mut Orders) -> R) -> R {
        change(&mut self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes what the thread shall do, and wakes it.
    fn order(&self, change: impl FnOnce(&mut Orders)) {
        self.change(change);
        self.has_orders.store(true, Ordering::Release);
        self.calls.wake();
    }
}

/// The handle of the thread. Dropped, the thread ends after the last exchange.
pub(crate) struct QuicThread(Arc<Hub>);

impl QuicThread {
    /// Opens a socket for both families, or for IPv4 where there is no IPv6, and starts the thread. Connections without requests
    /// are closed after `idle`.
    ///
    /// # Errors
    /// The system has no socket or thread left.
    pub(crate) fn start(config: ClientConfig, idle: base::time::Duration) -> io::Result<QuicThread> {
        let bind = |address: SocketAddr| UdpPort::bind(&BindOptions::new(address, Variant::Gso));
        let port = bind((Ipv6Addr::UNSPECIFIED, 0).into())
            .or_else(|_| bind((Ipv4Addr::UNSPECIFIED, 0).into()))
            .map_err(io::Error::other)?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let incoming = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        let calls = Arc::new(Calls::new(port.waker()));
        let hub = Arc::new(Hub {
            orders: Mutex::default(),
            has_orders: AtomicBool::new(false),
            calls: Arc::clone(&calls),
        });
        let app = ClientApp(Connections::new(calls, idle));
        let worker = Worker::new(port, app, Endpoint::new(incoming, seed), None, worker::Config::default());
        let engine = Engine { worker, hub: Arc::clone(&hub), config };
        Builder::new().name("tercel-client-3".to_owned()).spawn(move || engine.run())?;
        Ok(QuicThread(hub))
    }

    /// Connects to `peer`, whose certificate must be for `server_name`. Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// The handshake has failed.
    pub(crate) async fn connect(
        &self,
        peer: SocketAddr,
        server_name: &str,
    ) -> Result<Arc<QuicConnection>, Error> {
        let (tell, told) = oneshot::channel();
        let dial = Dial { peer, server_name: server_name.to_owned(), tell };
        self.0.order(|orders| {
            if !orders.is_over {
                orders.dials.push(dial);
            }
        });
        told.await.unwrap_or_else(|_| Err(Error::new(Kind::Connect, "the thread of HTTP/3 has ended")))
    }
}

impl Drop for QuicThread {
    fn drop(&mut self) {
        self.0.order(|orders| orders.is_abandoned = true);
    }
}

/// The worker and its orders.
struct Engine {
    worker: Worker<UdpPort, ClientApp<Connections>>,
    hub: Arc<Hub>,
    config: ClientConfig,
}

impl Engine {
    fn run(mut self) {
        // An error means that the socket is broken: the worker ends, and with it all connections.
        while self.obey() && self.worker.run_turn(None).is_ok() {}
        let until = self.worker.now() + CLOSE;
        let _ = self.worker.run_turn(Some(until));
    }

    /// Carries out orders. Returns whether the thread goes on: not without a client and open connections.
    fn obey(&mut self) -> bool {
        if self.hub.has_orders.swap(false, Ordering::AcqRel) {
            let (dials, is_abandoned) =
                self.hub.change(|orders| (std::mem::take(&mut orders.dials), orders.is_abandoned));
            dials.into_iter().for_each(|dial| self.begin(dial));
            if is_abandoned {
                self.worker.app_mut().is_abandoned = true;
                self.worker.activate_all();
            }
        }
        !self.worker.app_mut().is_abandoned || self.worker.open_connections() > 0
    }

    fn begin(&mut self, dial: Dial) {
        let Dial { peer, server_name, tell } = dial;
        let app = self.worker.app_mut();
        let config = Arc::clone(&app.config);
        let state = ClientConnection::new(config, app.state(Some(tell)), 0, self.worker.now());
        // The name was checked before. Should TLS refuse all the same, the end of `state` tells its requester.
        if let Ok(slot) = self.worker.connect(&self.config, &server_name, peer, state)
            && let Some((_, connection)) = self.worker.connection(slot)
        {
            connection.state().set_slot(slot);
        }
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
