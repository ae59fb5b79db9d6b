//! What the handles of an endpoint and its driver share: cold, unlike a connection's shared state.
//!
//! Invariant: an order is carried out or refused. The driver that ends takes all orders first and refuses later ones, so no
//! handle waits for a thread that is gone.

use crate::calls::Calls;
use crate::config::ClientConfig;
use crate::shared::{Guard, Shared};
use crate::stats::EndpointStats;
use crate::varint::VarInt;
use crate::wakers::Wakers;
use bytes::Bytes;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections that wait to be accepted, at most. The clients of others hear nothing and try again.
const MAX_INCOMING: usize = 1_024;

/// A connection that an endpoint was asked for.
pub(crate) struct Connect {
    pub(crate) config: ClientConfig,
    pub(crate) peer: SocketAddr,
    pub(crate) server_name: String,
    pub(crate) shared: Arc<Shared>,
}

/// Whether an endpoint goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum EndpointPhase {
    #[default]
    Open,
    /// The last handle is gone: nothing is accepted any more, and the driver ends after the last connection.
    Abandoned,
    /// All connections are closed with this code and reason, and no others begin.
    Closed { code: VarInt, reason: Bytes },
}

/// What the driver does before its next turn.
pub(crate) struct Orders {
    pub(crate) connects: Vec<Connect>,
    pub(crate) phase: EndpointPhase,
}

#[derive(Default)]
struct State {
    connects: Vec<Connect>,
    phase: EndpointPhase,
    /// The driver has ended.
    is_over: bool,
    incoming: VecDeque<Arc<Guard>>,
    accepting: Wakers,
    /// Connections that have state.
    connections: usize,
    idle: Wakers,
    default_client: Option<ClientConfig>,
    stats: EndpointStats,
    /// What to wake once the mutex is free.
    woken: Vec<Waker>,
}

/// An endpoint as its handles and its driver see it.
pub(crate) struct Hub {
    state: Mutex<State>,
    has_orders: AtomicBool,
    waiting: AtomicUsize,
    pub(crate) calls: Arc<Calls>,
    pub(crate) local: SocketAddr,
}

impl Hub {
    pub(crate) fn new(calls: Calls, local: SocketAddr) -> Hub {
        Hub {
            state: Mutex::default(),
            has_orders: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            calls: Arc::new(calls),
            local,
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = change(&mut state);
        self.waiting.store(state.incoming.len(), Ordering::Relaxed);
        let woken = core::mem::take(&mut state.woken);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        outcome
    }

    fn order(&self) {
        self.has_orders.store(true, Ordering::Release);
        self.calls.alarm().ring();
    }

    /// The client's configuration of [`crate::Endpoint::connect`].
    pub(crate) fn set_default_client(&self, config: ClientConfig) {
        self.change(|state| state.default_client = Some(config));
    }

    pub(crate) fn default_client(&self) -> Option<ClientConfig> {
        self.change(|state| state.default_client.clone())
    }

    /// A connection shall begin. Returns whether it will: not when the endpoint is closed.
    pub(crate) fn connect(&self, connect: Connect) -> bool {
        let is_taken = self.change(|state| {
            let is_open = !state.is_over && !matches!(state.phase, EndpointPhase::Closed { .. });
            if is_open {
                state.connects.push(connect);
                state.stats.outgoing_handshakes += 1;
                state.connections += 1;
            }
            is_open
        });
        if is_taken {
            self.order();
        }
        is_taken
    }

    /// The endpoint goes on like this; a closed one stays closed. Connections that were not accepted are refused.
    pub(crate) fn set_phase(&self, phase: EndpointPhase) {
        let refused = self.change(|state| {
            if !matches!(state.phase, EndpointPhase::Closed { .. }) {
                state.phase = phase;
            }
            state.accepting.hand_to(&mut state.woken);
            core::mem::take(&mut state.incoming)
        });
        for guard in refused {
            guard.0.end_by(crate::shared::Ending::Refuse);
        }
        self.order();
    }

    /// What the driver has to do; `None` when nothing has changed.
    #[inline]
    pub(crate) fn take_orders(&self) -> Option<Orders> {
        if !self.has_orders.load(Ordering::Acquire) {
            return None;
        }
        self.has_orders.store(false, Ordering::Release);
        Some(self.change(|state| Orders {
            connects: core::mem::take(&mut state.connects),
            phase: state.phase.clone(),
        }))
    }

    /// The driver has ended. Returns what it has not done.
    pub(crate) fn on_driver_gone(&self) -> Vec<Connect> {
        let left = self.change(|state| {
            state.is_over = true;
            state.accepting.hand_to(&mut state.woken);
            state.connections = 0;
            state.idle.hand_to(&mut state.woken);
            (core::mem::take(&mut state.connects), core::mem::take(&mut state.incoming))
        });
        left.0
    }

    /// Whether a connection may wait to be accepted.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < MAX_INCOMING
    }

    /// A client has begun to connect.
    pub(crate) fn on_incoming(&self, guard: Arc<Guard>) {
        let refused = self.change(|state| {
            state.connections += 1;
            if state.phase != EndpointPhase::Open {
                return Some(guard);
            }
            state.incoming.push_back(guard);
            state.accepting.hand_to(&mut state.woken);
            None
        });
        if let Some(guard) = refused {
            guard.0.end_by(crate::shared::Ending::Refuse);
        }
    }

    /// The next client; `None` when there will be none.
    pub(crate) fn poll_accept(&self, context: &Context<'_>) -> Poll<Option<Arc<Guard>>> {
        self.change(|state| {
            if let Some(guard) = state.incoming.pop_front() {
                state.stats.accepted_handshakes += 1;
                return Poll::Ready(Some(guard));
            }
            if state.is_over || state.phase != EndpointPhase::Open {
                return Poll::Ready(None);
            }
            state.accepting.note(context);
            Poll::Pending
        })
    }

    /// A connection has no state any more.
    pub(crate) fn on_gone(&self) {
        self.change(|state| {
            state.connections = state.connections.saturating_sub(1);
            if state.connections == 0 {
                state.idle.hand_to(&mut state.woken);
            }
        });
    }

    /// A client was told CONNECTION_REFUSED.
    pub(crate) fn on_refused(&self) {
        self.change(|state| state.stats.refused_handshakes += 1);
    }

    pub(crate) fn stats(&self) -> EndpointStats {
        self.change(|state| state.stats)
    }

    pub(crate) fn connections(&self) -> usize {
        self.change(|state| state.connections)
    }

    /// Ready when no connection has state.
    pub(crate) fn poll_idle(&self, context: &Context<'_>) -> Poll<()> {
        self.change(|state| {
            if state.connections == 0 {
                return Poll::Ready(());
            }
            state.idle.note(context);
            Poll::Pending
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarm::Alarm;
    use crate::error::ConnectionError;
    use crate::facts::Facts;
    use wire::Side;

    fn hub() -> Hub {
        Hub::new(Calls::new(Alarm::Port(None)), "127.0.0.1:1".parse().unwrap())
    }

    fn client(hub: &Hub) -> Arc<Shared> {
        let facts = Facts::new(hub.local, hub.local);
        Arc::new(Shared::new(Side::Server, facts, Arc::clone(&hub.calls)))
    }

    /// Deleted, clients that a program does not accept would pile up.
    #[test]
    fn clients_that_wait_to_be_accepted_are_bounded() {
        let hub = hub();
        let mut waiting = 0;
        while hub.has_room() {
            hub.on_incoming(Arc::new(Guard(client(&hub))));
            waiting += 1;
        }
        assert_eq!((waiting, hub.connections()), (MAX_INCOMING, MAX_INCOMING));
        assert!(hub.poll_accept(&Context::from_waker(Waker::noop())).is_ready());
        assert!(hub.has_room());
    }

    #[test]
    fn clients_that_wait_when_the_endpoint_ends_are_refused_and_so_are_later_ones() {
        let hub = hub();
        let (first, second) = (client(&hub), client(&hub));
        hub.on_incoming(Arc::new(Guard(Arc::clone(&first))));
        hub.set_phase(EndpointPhase::Abandoned);
        hub.on_incoming(Arc::new(Guard(Arc::clone(&second))));
        for client in [first, second] {
            let error = client.change(|state| state.error().cloned());
            assert_eq!(error, Some(ConnectionError::LocallyClosed));
        }
        let accepted = hub.poll_accept(&Context::from_waker(Waker::noop()));
        assert!(matches!(accepted, Poll::Ready(None)));
    }
}
