//! The largest packets that the hosts at the link's ends take.
//!
//! A cable delivers what both of its ends take. Here the far ends are interfaces of other namespaces, and their owner may
//! change the MTU at any time. A veth drops a packet above the MTU of its other end, but a super-packet passes whatever the
//! size of its segments is. So the emulator judges each datagram by its own size. A thread asks the kernel for the MTUs:
//! the answer may wait for a lock of the kernel, and the link's thread must not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use netlink::FarEnd;

/// How often the MTUs are asked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The largest IP packet, in bytes, that the left and the right host take.
pub(crate) type Limits = Arc<[AtomicU32; 2]>;

/// No limit that is known.
pub(crate) fn unlimited() -> Limits {
    Arc::new([AtomicU32::new(u32::MAX), AtomicU32::new(u32::MAX)])
}

/// Keeps [`Limits`] up to date until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the far ends of these interfaces of the calling thread's namespace. The first look is over when this returns.
    pub(crate) fn start(names: &[String; 2], limits: &Limits) -> Watch {
        let ends = names.clone().map(|name| (FarEnd::of(&name).ok().flatten(), name));
        look(&ends, limits);
        let (stop, stopped) = channel();
        let limits = Arc::clone(limits);
        let watching = move || {
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                look(&ends, &limits);
            }
        };
        // Without the thread the limits stay as they are.
        let thread = std::thread::Builder::new().name("link mtu".into()).spawn(watching).ok();
        Watch { stop: Some(stop), thread }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was printed already.
            let _ = thread.join();
        }
    }
}

fn look(ends: &[(Option<FarEnd>, String); 2], limits: &Limits) {
    for ((far, near), limit) in ends.iter().zip(limits.iter()) {
        let near = netlink::link_by_name(near).map(|link| link.mtu);
        let far = far.map(FarEnd::mtu);
        // An interface that is gone takes nothing, which the sockets find out.
        let known = [near.ok(), far.and_then(Result::ok)].into_iter().flatten().min();
        limit.store(known.unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}
