//! Local addresses that come and go under the connections of clients. Source: RFC 9000 §9.

use super::Worker;
use crate::app::App;
use base::time::Instant;
use core::net::{IpAddr, SocketAddr};
use datapath::Port;
use transport::Connection;

/// Addresses that connections were told to use, at most: those of the paths of one connection, twice over.
const MAX_PINNED: usize = 8;

/// What the system has told of its addresses and routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressNews {
    /// Some are there that were not.
    Added,
    /// Some are gone.
    Removed,
}

impl<P: Port, A: App> Worker<P, A> {
    /// Whether datagrams can leave from the local address `ip` ([`Port::sends_from`]).
    pub fn sends_from(&self, ip: IpAddr) -> bool {
        self.port.sends_from(ip)
    }

    /// Connections stay at this local address as long as the machine has it, and what they send from there leaves by the interface
    /// with this index, or as the routes say where that is 0.
    pub fn pin(&mut self, ip: IpAddr, interface: u32) {
        self.port.pin(ip, interface);
        self.pinned.retain(|pinned| *pinned != ip);
        if self.pinned.len() >= MAX_PINNED {
            self.pinned.remove(0);
        }
        self.pinned.push(ip);
    }

    /// Moves all connections that clients have opened here to the local address `ip`, out of the interface with this index. Returns
    /// how many will, if the server answers there ([`transport::Connection::migrate`]).
    pub fn migrate(&mut self, ip: IpAddr, interface: u32) -> usize {
        self.pinned.retain(|pinned| pinned.is_ipv6() != ip.is_ipv6());
        self.pin(ip, interface);
        self.each_client(|worker, handle| {
            let now = worker.now;
            let Some(entry) = worker.slab.entry_mut(handle) else { return false };
            let local = SocketAddr::new(ip, entry.connection.addresses().local.port());
            entry.connection.migrate(now, local).is_ok()
        })
    }

    /// Addresses or routes of the machine have changed; `is_ours` says which addresses it still has. Connections of clients
    /// whose address is gone move at once to the one that the system would choose now; those whose route is gone when the server
    /// has answered there. Of several paths at once those end whose address is gone. Returns how many connections are concerned.
    pub fn on_address_news(&mut self, news: AddressNews, is_ours: impl Fn(IpAddr) -> bool) -> usize {
        self.each_client(|worker, handle| {
            let now = worker.now;
            let Some(entry) = worker.slab.entry_mut(handle) else { return false };
            let has_fewer = forget_paths(now, &mut entry.connection, &is_ours);
            let addresses = entry.connection.addresses();
            let old = addresses.local.ip();
            let is_gone = !is_ours(old);
            let stays = news == AddressNews::Added || worker.pinned.contains(&old);
            if old.is_unspecified() || (!is_gone && stays) {
                return has_fewer;
            }
            let next = SocketAddr::new(
                worker.port.local_address_towards(addresses.peer).ip(),
                addresses.local.port(),
            );
            // Without a route there is nowhere to go yet: one that is added later is news too.
            if next.ip().is_unspecified() || next.ip() == old || !worker.port.sends_from(next.ip()) {
                return has_fewer;
            }
            let moved = if is_gone {
                entry.connection.forget_local_address(now, old);
                entry.connection.migrate_at_once(now, next)
            } else {
                entry.connection.migrate(now, next)
            };
            moved.is_ok() || has_fewer
        })
    }

    /// Calls `change` for each connection that a client has opened here, and lets those act for which it says yes.
    fn each_client(&mut self, change: impl Fn(&mut Self, base::slab::Handle) -> bool) -> usize {
        self.now = self.now.max(self.clock());
        let handles: Vec<base::slab::Handle> = self.slab.handles().collect();
        let mut count = 0;
        for handle in handles {
            let is_client =
                self.slab.entry_mut(handle).is_some_and(|entry| entry.connection.side().is_client());
            if is_client && change(self, handle) {
                self.activate(handle);
                count += 1;
            }
        }
        count
    }
}

/// Of several paths that a connection uses at once, those end whose local address is gone. Whether there were any.
fn forget_paths(now: Instant, connection: &mut Connection, is_ours: &impl Fn(IpAddr) -> bool) -> bool {
    if !connection.has_multipath() {
        return false;
    }
    let paths = connection.paths();
    let locals = paths.iter().map(|path| path.addresses.local.ip());
    let gone: Vec<IpAddr> = locals.filter(|ip| !ip.is_unspecified() && !is_ours(*ip)).collect();
    for ip in &gone {
        connection.forget_local_address(now, *ip);
    }
    !gone.is_empty()
}
