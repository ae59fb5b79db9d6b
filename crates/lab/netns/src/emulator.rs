//! A link in user space: delay, rate, queue, loss and the malice of real networks, for kernels without netem.
//!
//! A thread stands between two interfaces of one network namespace (the wire's), each the near end of a veth pair, and passes
//! Ethernet frames from one to the other. The two far ends believe in a cable. Super-packets (UDP GSO, 64 KB) cross whole, which is
//! what makes 5 Gbit/s possible beside the programs under test; a loss takes single datagrams out of them.
//!
//! The way of a frame: `socket` receives a batch → `frame` finds UDP in it → `rebind` may change ports → `train` asks `fate`
//! about each datagram and cuts the frame where they differ → `held` keeps the pieces, in buffers of `pool`, until `bridge` sends them.
//!
//! A host takes no packet above its MTU, be it alone or in a super-packet: `mtu` knows it, and `fate` drops what is longer.
//!
//! What does not cross: VLAN tags that the kernel keeps beside a frame (switch `tx-vlan-offload` off to put them inside). On
//! kernels before 6.2 packet sockets cannot describe UDP super-packets: switch `tx-udp-segmentation` off at the far ends there.
//!
//! docs/decisions/004-link-emulator.md has measurements and what was rejected.

mod bridge;
mod checksum;
mod frame;
mod held;
mod link_state;
mod mtu;
mod options;
mod pool;
mod rebind;
mod socket;
mod train;

use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

pub(crate) use rebind::OUTSIDE;

use bridge::{Bridge, Control, with_control};
pub use link::Waits;
use mtu::Watch;
pub use options::{BurstLoss, Counters, Direction, LinkOptions, Reorder};
use rebind::{OldPorts, Scope};
use socket::PacketSocket;

/// The emulator's scheduling priority (nice), if it may choose: a link keeps its time however busy its ends are.
const NICE: i32 = -15;

/// How long the thread may take to answer: it wakes for each question.
const TO_ANSWER: Duration = Duration::from_secs(2);

/// Where the emulator stands and what it does at first.
#[derive(Clone, Debug, Default)]
pub struct EmulatorOptions {
    /// The interface whose far end is the left host: the one whose ports `Emulator::rebind` changes.
    pub left: String,
    /// The interface whose far end is the right host.
    pub right: String,
    /// From left to right.
    pub to_right: LinkOptions,
    /// From right to left.
    pub to_left: LinkOptions,
    /// The last part of each wait is spent awake, which makes delays exact to a microsecond and costs up to a whole core.
    pub spin: Duration,
}

/// Why there is no emulator.
#[derive(Debug)]
pub enum EmulatorError {
    /// The options contradict themselves; says how.
    Options(&'static str),
    /// The interface cannot be opened; it may be missing or down, or the right to it.
    Interface(String, io::Error),
    /// No thread or no event descriptor.
    Thread(io::Error),
}

impl fmt::Display for EmulatorError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmulatorError::Options(fault) => write!(formatter, "link emulator: {fault}"),
            EmulatorError::Interface(name, error) if error.raw_os_error() == Some(libc::EPERM) => {
                write!(
                    formatter,
                    "link emulator: no packet socket on {name} ({error}): run as root or with CAP_NET_RAW"
                )
            }
            EmulatorError::Interface(name, error) => {
                write!(
                    formatter,
                    "link emulator: cannot open {name} ({error}): create it in this namespace and set it up first"
                )
            }
            EmulatorError::Thread(error) => {
                write!(formatter, "link emulator: cannot start its thread: {error}")
            }
        }
    }
}

impl std::error::Error for EmulatorError {}

/// A running link. Dropped, it stops within a moment; what is under way is lost.
#[derive(Debug)]
pub struct Emulator {
    control: Arc<Mutex<Control>>,
    waker: Arc<OwnedFd>,
    /// The sockets of the left and the right end, to ask the kernel what it dropped.
    ends: [OwnedFd; 2],
    thread: Option<JoinHandle<()>>,
    _watch: Watch,
}

impl Emulator {
    /// Starts a link between two interfaces, both up, of the calling thread's network namespace.
    ///
    /// # Errors
    /// When an interface is missing or down, or packet sockets are not permitted (CAP_NET_RAW).
    pub fn start(options: &EmulatorOptions) -> Result<Emulator, EmulatorError> {
        for link in [&options.to_right, &options.to_left] {
            link.fault().map_or(Ok(()), |fault| Err(EmulatorError::Options(fault)))?;
        }
        let control = Arc::new(Mutex::new(Control {
            options: [options.to_right.clone(), options.to_left.clone()],
            ..Control::default()
        }));
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let waker = Arc::new(waker.map_err(|error| EmulatorError::Thread(error.into()))?);
        let spin = u64::try_from(options.spin.as_nanos()).unwrap_or(u64::MAX);
        let (for_thread, its_waker) = (Arc::clone(&control), Arc::clone(&waker));
        let names = [options.left.clone(), options.right.clone()];
        let limits = mtu::unlimited();
        let watch = Watch::start(&names, &limits);
        let (ready, started) = mpsc::channel();
        let thread = std::thread::Builder::new().name("link".into()).spawn(move || {
            // Both make the link's time better; without the right to them it still is a link.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            let _ = rustix::process::setpriority_process(None, NICE);
            // A new thread is in its parent's namespace.
            match open_ends(&names) {
                Ok((ends, descriptors)) => {
                    let bridge = Bridge::new(ends, for_thread, its_waker, spin).limited_by(limits);
                    let _ = ready.send(Ok(descriptors));
                    bridge.run();
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
        });
        let thread = Some(thread.map_err(EmulatorError::Thread)?);
        let ends = started.recv().map_err(|_| EmulatorError::Thread(io::ErrorKind::BrokenPipe.into()))??;
        Ok(Emulator { control, waker, ends, thread, _watch: watch })
    }

    /// Changes what the link does in one direction, from the next frame on.
    ///
    /// # Errors
    /// When the options contradict themselves; the link stays as it was.
    pub fn set(&self, direction: Direction, link: &LinkOptions) -> Result<(), EmulatorError> {
        link.fault().map_or(Ok(()), |fault| Err(EmulatorError::Options(fault)))?;
        self.tell(|control| control.options[direction.index()] = link.clone());
        Ok(())
    }

    /// What the link does in one direction.
    pub fn link(&self, direction: Direction) -> LinkOptions {
        with_control(&self.control, |control| control.options[direction.index()].clone())
    }

    /// Gives the left host's UDP flows new source ports, once `after_bytes` more bytes of UDP payload came from the left (0: with
    /// the next packet), as a home router does that lost its mappings. Replies to the old ports are dropped and counted.
    pub fn rebind(&self, after_bytes: u64) {
        self.tell(|control| control.rebind = Some((after_bytes, OldPorts::Forgotten, Scope::Port)));
    }

    /// The same with the next packet, and over IPv4 a new address too. The right end must know its Ethernet address, as the server of
    /// a [`Lab`](crate::Lab) does.
    pub fn rebind_address(&self) {
        self.tell(|control| control.rebind = Some((0, OldPorts::Forgotten, Scope::Address)));
    }

    /// As `rebind`, but replies to the old ports still arrive: nothing is lost by it.
    pub fn rebind_gently(&self, after_bytes: u64) {
        self.tell(|control| control.rebind = Some((after_bytes, OldPorts::Kept, Scope::Port)));
    }

    /// What happened so far in one direction; a sleeping link has published all of it.
    pub fn counters(&self, direction: Direction) -> Counters {
        with_control(&self.control, |control| {
            let missed = &mut control.missed[direction.index()];
            *missed += socket::missed(&self.ends[direction.index()]);
            Counters { missed: *missed, ..control.counters[direction.index()] }
        })
    }

    /// How long datagrams in one direction have waited in the queue for the line so far: those that had room there, lost or not. None
    /// without a rate, and of a link that has stopped.
    pub fn waits(&self, direction: Direction) -> Waits {
        let (answer, answered) = mpsc::channel();
        self.tell(|control| control.questions.push((direction, answer)));
        answered.recv_timeout(TO_ANSWER).unwrap_or_default()
    }

    /// Why the link stopped by itself, in one line; none while it runs.
    pub fn failure(&self) -> Option<String> {
        with_control(&self.control, |control| control.failure.clone())
    }

    fn tell(&self, change: impl FnOnce(&mut Control)) {
        with_control(&self.control, |control| {
            change(control);
            control.has_news = true;
        });
        // It fails only when 2^64 news wait already.
        let _ = rustix::io::write(&*self.waker, &1_u64.to_ne_bytes());
    }
}

/// The sockets of both ends, and second descriptors of them for the handle.
fn open_ends(names: &[String; 2]) -> Result<([PacketSocket; 2], [OwnedFd; 2]), EmulatorError> {
    let open = |name: &String| {
        let socket = PacketSocket::open(name).and_then(|socket| Ok((socket.descriptor()?, socket)));
        socket.map_err(|error| EmulatorError::Interface(name.clone(), error))
    };
    let (left_descriptor, left) = open(&names[0])?;
    let (right_descriptor, right) = open(&names[1])?;
    Ok(([left, right], [left_descriptor, right_descriptor]))
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.tell(|control| control.must_end = true);
        if let Some(thread) = self.thread.take() {
            // Its panic was printed already.
            let _ = thread.join();
        }
    }
}
