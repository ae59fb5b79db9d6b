//! Changes of this machine's addresses and routes, for connections whose own are gone.
//!
//! A thread waits for what the kernel tells and wakes the engine; it ends with the engine. Where the kernel tells nothing, as in some
//! sandboxes, connections stay where they are.

use base::time::Duration;
use netlink::{Changes, Watch};
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::thread::Builder;

/// Changes come in groups: an address goes, and its routes after it.
const SETTLE: Duration = Duration::from_millis(5);

/// The thread that waits for changes. Dropped, it ends.
pub(super) struct Network(datapath::Waker);

impl Network {
    /// Has `tell` called after each change; `None` where nothing will be told.
    pub(super) fn watch(tell: impl Fn(Changes) + Send + 'static) -> Option<Network> {
        let mut watch = Watch::new().ok()?;
        let end = datapath::Waker::new().ok()?;
        let ended = end.clone();
        let run = move || while wait(&mut watch, &ended, &tell).is_ok_and(|goes_on| goes_on) {};
        Builder::new().name("tercel-client-net".to_owned()).spawn(run).ok()?;
        Some(Network(end))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Waits for the next change and tells it. Returns whether there may be others to wait for.
fn wait(watch: &mut Watch, end: &datapath::Waker, tell: &impl Fn(Changes)) -> io::Result<bool> {
    let mut events = [PollFd::new(&*watch, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
    match poll(&mut events, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if !events[1].revents().is_empty() {
        return Ok(false);
    }
    std::thread::sleep(SETTLE.into());
    let changes = watch.take()?;
    if changes != Changes::default() {
        tell(changes);
    }
    Ok(true)
}

/// The addresses that this machine can send from now: those of interfaces that run.
pub(super) fn own_addresses() -> Vec<IpAddr> {
    let links = netlink::links().unwrap_or_default();
    let runs = |index| links.iter().any(|link| link.index == index && link.is_running);
    let all = netlink::all_addresses().unwrap_or_default();
    all.into_iter().filter(|(index, _)| runs(*index)).map(|(_, address)| address.ip).collect()
}

/// Whether `ip` is an address of this machine: its interfaces list it, or the system lets a socket have it, as it does all of
/// 127.0.0.0/8.
pub(super) fn is_own(ip: IpAddr, listed: &[IpAddr]) -> bool {
    listed.contains(&ip) || (ip.is_loopback() && UdpSocket::bind((ip, 0)).is_ok())
}

/// The index of the interface that has the address; 0, which leaves the choice to the routes, where none lists it.
pub(super) fn interface_of(ip: IpAddr) -> u32 {
    let all = netlink::all_addresses().unwrap_or_default();
    all.into_iter().find(|(_, address)| address.ip == ip).map_or(0, |(index, _)| index)
}
