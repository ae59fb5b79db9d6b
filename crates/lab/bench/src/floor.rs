//! The floor: what it costs to hand a datagram to the kernel with bare system calls, and beside it the same through our
//! ports.
//!
//! Two processes on two cores. One sends for a while, the other receives; every this many datagrams the receiver returns
//! credit on a socket of its own, so that nothing is lost and both stay in the cache. Only the end that is measured
//! changes between the two trials of a pair, its counterpart is always the raw loop: a difference is ours. The figure is CPU
//! time of the measured process per datagram. On loopback and veth that of the sender holds the delivery to the other
//! end's socket as well, since the kernel does both in one go.
//!
//! What the raw loops leave out, a port must do: several peers (addresses), ECN, counting, memory that is lent. That is
//! what the margin of [`AIM`] is for.

mod child;
mod port;
mod raw;
mod rings;
mod table;

use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use child::{BatchReceiver, BatchSender};
use port::PortThroughput;
use raw::{Calls, RawReceiver, RawSender};
use rings::{RingReceiver, RingSender};
use udp::{BindOptions, UdpPort, Variant};
use xdp::Mode;

use crate::environment::Environment;
use crate::method::Method;
use crate::process::{Running, is_interruption};
use crate::site::{End, Site, Trains};
use crate::stats::{Ratio, Summary};

pub use child::child;

/// How much more a port may cost than its floor.
pub const AIM: f64 = 1.15;

/// Which end is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The one that sends.
    Send,
    /// The one that receives.
    Receive,
}

/// Whose code does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MeasuredCode {
    Raw,
    Port,
}

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub struct FloorPlan {
    /// Bytes of UDP payload in each datagram.
    pub datagram_size: usize,
    /// Seconds of one trial.
    pub seconds: f64,
    /// Trials of each way.
    pub trials: usize,
    /// The cores of the measured end and of the other.
    pub cores: [usize; 2],
    /// Payload that may be on its way at once, in bytes.
    pub window: usize,
    /// What is compared.
    pub methods: Vec<Method>,
}

impl FloorPlan {
    /// Five trials of half a second with datagrams of 1,472 bytes.
    pub fn new() -> FloorPlan {
        FloorPlan {
            datagram_size: 1_472,
            seconds: 0.5,
            trials: 5,
            cores: cpu::first_two(),
            window: 1 << 20,
            methods: Method::ALL.to_vec(),
        }
    }
}

impl Default for FloorPlan {
    fn default() -> FloorPlan {
        FloorPlan::new()
    }
}

/// What one process did in one trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Seconds from its first datagram to its last.
    pub seconds: f64,
    /// CPU seconds, its own and the kernel's.
    pub cpu_seconds: f64,
    /// Datagrams sent or received.
    pub datagrams: u64,
    /// System calls that carried them.
    pub calls: u64,
    /// Datagrams for which no credit came.
    pub lost: u64,
}

impl Used {
    fn nanoseconds(&self) -> f64 {
        self.cpu_seconds * 1e9 / self.datagrams.max(1) as f64
    }
}

/// A floor and a port beside it.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// "loopback" or "veth".
    pub site: &'static str,
    /// Which end.
    pub direction: Direction,
    /// Which calls.
    pub method: Method,
    /// CPU nanoseconds per datagram of the raw loop.
    pub raw_ns: Summary,
    /// CPU nanoseconds per datagram through the port.
    pub port_ns: Summary,
    /// The median of the port over that of the raw loop.
    pub ratio: f64,
    /// The same of the means, with an interval.
    pub interval: Option<Ratio>,
    /// Datagrams per call through the port, the median.
    pub port_datagrams_per_call: f64,
    /// Wall-clock nanoseconds per datagram: raw, port; the medians. More than the CPU time where the end waited.
    pub wall_ns: [f64; 2],
    /// Datagrams that got lost in all trials, of those sent.
    pub lost_share: f64,
    /// Why there is no figure.
    pub problem: Option<String>,
}

impl Row {
    /// Whether the port is as near to the floor as it should be.
    pub fn is_within_aim(&self) -> bool {
        self.ratio <= AIM
    }
}

/// The result, or as much of it as there is.
#[derive(Clone, Debug, Serialize)]
pub struct Floor {
    /// What was to be measured.
    pub plan: FloorPlan,
    /// Where.
    pub environment: Environment,
    /// One for each site, direction and method.
    pub rows: Vec<Row>,
}

/// What a child process is told, as JSON in one argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Role {
    part: Part,
    method: Method,
    way: MeasuredCode,
    datagram_size: usize,
    seconds: f64,
    window: usize,
    local: std::net::IpAddr,
    interface: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Part {
    /// To this data socket, hearing of credit from this one.
    Sender(SocketAddr, SocketAddr),
    Receiver,
}

/// Measures on each site until the plan is fulfilled. A method that does not work there is a row with a problem.
/// `launch` makes a command that starts this program again such that it calls [`child()`] with the given argument;
/// `progress` hears a line for each row.
///
/// # Errors
/// `stop` was set.
pub fn run(
    plan: &FloorPlan,
    sites: &[Site],
    launch: &dyn Fn(&str) -> io::Result<Command>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> io::Result<Floor> {
    let mut floor = Floor { plan: plan.clone(), environment: Environment::here(), rows: Vec::new() };
    for site in sites {
        for direction in [Direction::Send, Direction::Receive] {
            for &method in &plan.methods {
                if method.is_xdp() && site.interface(End::Server).is_none() {
                    continue;
                }
                let bench = Bench { plan, site, launch, stop };
                let row = bench.row(direction, method)?;
                progress(&table::row_line(&row));
                floor.rows.push(row);
            }
        }
    }
    Ok(floor)
}

impl Floor {
    /// The first row that has no figures, and why.
    pub fn problem(&self) -> Option<String> {
        let failed = self.rows.iter().find(|row| row.problem.is_some());
        failed.map(table::row_line)
    }
}

fn pusher(role: &Role, peer: SocketAddr) -> io::Result<Box<dyn BatchSender>> {
    let size = role.datagram_size;
    Ok(match (role.way, role.means()) {
        (MeasuredCode::Raw, Means::Calls(calls, _)) => {
            Box::new(RawSender::new(role.local, peer, calls, size)?)
        }
        (MeasuredCode::Port, Means::Calls(_, variant)) => {
            Box::new(PortThroughput::new(role.udp(variant)?, peer, size))
        }
        (MeasuredCode::Raw, Means::Rings(_)) => {
            Box::new(RingSender::new(role.local, role.interface()?, peer, size)?)
        }
        (MeasuredCode::Port, Means::Rings(mode)) => {
            Box::new(PortThroughput::new(rings::port(role.local, role.interface()?, mode)?, peer, size))
        }
    })
}

fn taker(role: &Role) -> io::Result<Box<dyn BatchReceiver>> {
    let size = role.datagram_size;
    // A receiver sends nothing, so any address will do.
    let discard = SocketAddr::new(role.local, 9);
    Ok(match (role.way, role.means()) {
        (MeasuredCode::Raw, Means::Calls(calls, _)) => Box::new(RawReceiver::new(role.local, calls, size)?),
        (MeasuredCode::Port, Means::Calls(_, variant)) => {
            Box::new(PortThroughput::new(role.udp(variant)?, discard, size))
        }
        (MeasuredCode::Raw, Means::Rings(mode)) => {
            Box::new(RingReceiver::new(role.local, role.interface()?, mode)?)
        }
        (MeasuredCode::Port, Means::Rings(mode)) => {
            Box::new(PortThroughput::new(rings::port(role.local, role.interface()?, mode)?, discard, size))
        }
    })
}

/// What a method comes down to.
enum Means {
    Calls(Calls, Variant),
    Rings(Mode),
}

impl Role {
    fn means(&self) -> Means {
        match self.method {
            Method::Plain => Means::Calls(Calls::One, Variant::Plain),
            Method::Mmsg => Means::Calls(Calls::Many, Variant::Mmsg),
            Method::Gso => Means::Calls(Calls::Trains, Variant::Gso),
            Method::Uring => Means::Calls(Calls::Trains, Variant::Uring),
            Method::XdpGeneric => Means::Rings(Mode::Generic),
            Method::XdpDriver => Means::Rings(Mode::Driver),
        }
    }

    fn udp(&self, variant: Variant) -> io::Result<UdpPort> {
        UdpPort::bind(&BindOptions::new((self.local, 0).into(), variant)).map_err(io::Error::other)
    }

    fn interface(&self) -> io::Result<&str> {
        self.interface.as_deref().ok_or_else(|| io::Error::other("AF_XDP needs an interface"))
    }
}

struct Bench<'a> {
    plan: &'a FloorPlan,
    site: &'a Site,
    launch: &'a dyn Fn(&str) -> io::Result<Command>,
    stop: &'a AtomicBool,
}

impl Bench<'_> {
    /// Raw and port in turn, after one uncounted trial of each.
    fn row(&self, direction: Direction, method: Method) -> io::Result<Row> {
        let (mut raw, mut port): (Vec<Used>, Vec<Used>) = (Vec::new(), Vec::new());
        let (mut problem, mut lost, mut sent) = (None, 0, 0);
        'rounds: for round in 0..=self.plan.trials {
            for (way, kept) in [(MeasuredCode::Raw, &mut raw), (MeasuredCode::Port, &mut port)] {
                match self.trial(direction, method, way) {
                    Ok([sender, receiver]) => {
                        (lost, sent) = (lost + sender.lost, sent + sender.datagrams);
                        let used = if direction == Direction::Send { sender } else { receiver };
                        kept.extend((round > 0).then_some(used));
                    }
                    Err(error) if is_interruption(&error, self.stop) => {
                        return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
                    }
                    Err(error) => {
                        problem = Some(error.to_string());
                        break 'rounds;
                    }
                }
            }
        }
        let over = |used: &[Used], figure: fn(&Used) -> f64| Summary::of(used.iter().map(figure));
        let wall = |used: &Used| used.seconds * 1e9 / used.datagrams.max(1) as f64;
        let (raw_ns, port_ns) = (over(&raw, Used::nanoseconds), over(&port, Used::nanoseconds));
        Ok(Row {
            site: self.site.name(),
            direction,
            method,
            ratio: port_ns.median / raw_ns.median,
            interval: Ratio::by_rounds(&port_ns.values, &raw_ns.values),
            raw_ns,
            port_ns,
            port_datagrams_per_call: over(&port, |used| used.datagrams as f64 / used.calls.max(1) as f64)
                .median,
            wall_ns: [over(&raw, wall).median, over(&port, wall).median],
            lost_share: lost as f64 / (sent.max(1)) as f64,
            problem,
        })
    }

    /// One sender, one receiver: what each used.
    fn trial(&self, direction: Direction, method: Method, way: MeasuredCode) -> io::Result<[Used; 2]> {
        let trains = if method == Method::XdpGeneric { Trains::Cut } else { Trains::Whole };
        self.site.let_trains_through(trains)?;
        let patience = Duration::from_secs_f64(20.0 + self.plan.seconds);
        // The measured end is where a server would be.
        let (sending, receiving) = match direction {
            Direction::Send => (End::Server, End::Client),
            Direction::Receive => (End::Client, End::Server),
        };
        let mut receiver = self.start(receiving, direction, (method, way), Part::Receiver)?;
        let addresses = receiver.first_line(patience, self.stop)?;
        let mut words = addresses.split_whitespace().map(str::parse);
        let (Some(Ok(data)), Some(Ok(credit))) = (words.next(), words.next()) else {
            return Err(io::Error::other("the receiver does not say where it is"));
        };
        let sender = self.start(sending, direction, (method, way), Part::Sender(data, credit))?;
        let sent = sender.finish(patience, self.stop)?;
        let received = receiver.finish(patience, self.stop)?;
        let used = |output: &str| {
            let line = output.lines().rfind(|line| line.starts_with('{')).unwrap_or("");
            serde_json::from_str(line).map_err(|_| io::Error::other("a process printed no figures"))
        };
        Ok([used(&sent.output)?, used(&received.output)?])
    }

    fn start(
        &self,
        end: End,
        direction: Direction,
        (method, way): (Method, MeasuredCode),
        part: Part,
    ) -> io::Result<Running> {
        let is_sender = matches!(part, Part::Sender(..));
        let is_measured = is_sender == (direction == Direction::Send);
        // The counterpart: what takes least of the other core. A receiver gets what the sender's path gives.
        let (method, way) = match (is_measured, is_sender) {
            (true, _) => (method, way),
            (false, true) => (Method::Gso, MeasuredCode::Raw),
            (false, false) if method == Method::Gso => (Method::Gso, MeasuredCode::Raw),
            (false, false) => (Method::Mmsg, MeasuredCode::Raw),
        };
        let role = Role {
            part,
            method,
            way,
            datagram_size: self.plan.datagram_size,
            seconds: self.plan.seconds,
            window: self.plan.window,
            local: self.site.ipv4(end),
            interface: self.site.interface(end).map(str::to_owned),
        };
        let mut command = (self.launch)(&serde_json::to_string(&role)?)?;
        let name = if is_sender { "the sender" } else { "the receiver" };
        let core = self.plan.cores[usize::from(!is_measured)];
        let child = self.site.spawn(end, Running::prepare(&mut command))?;
        Running::adopt(name, child, &[core])
    }
}
