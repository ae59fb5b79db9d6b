//! A choice and an address become ports, one for each worker.

use crate::auto;
use crate::bind_address::{self, BindAddress, Interface};
use crate::kinds::{AnyPort, DataPathChoice};
use crate::measure;
use crate::open_error::explain;
use crate::queues_or_socket::{QueuesOrSocket, XdpOpener, share};
use crate::selection::{Candidate, PathCost, Selection};
use core::net::{IpAddr, SocketAddr};
use datapath::Port;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use udp::{BindOptions, Group, Steered, Steering, SteeringChoice, Variant, Without};
use xdp::{BusyPoll, Mode};

/// What is to be opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The data path.
    pub choice: DataPathChoice,
    /// Where; port 0 is any free one, an unspecified IP address all of its family.
    pub address: SocketAddr,
    /// The interface that kernel UDP is bound to. Default: none, datagrams may come by any.
    pub device: Option<String>,
    /// The interface, for `auto` and `xdp`. Default: the one that leads to `towards`, that has the address, or that has the
    /// default route.
    pub interface: Option<String>,
    /// Whom a client will talk to, where that is known.
    pub towards: Option<IpAddr>,
    /// How many ports.
    pub workers: Workers,
    /// How datagrams find the port of their worker. With AF_XDP the interface's queues decide, and workers hand over.
    pub steering: SteeringChoice,
    /// How AF_XDP sockets share packets with the driver.
    pub xdp_mode: Mode,
    /// Whether the kernel polls the interface's queues on our CPU time; AF_XDP only. Default: it waits for interrupts.
    pub busy_poll: Option<BusyPoll>,
    /// The longest UDP payload that will be sent, in bytes.
    pub largest_payload: usize,
    /// The receive buffer that sockets of the kernel's UDP ask for, in bytes; the kernel grants twice as many. Default: what
    /// suits a busy endpoint ([`BindOptions::new`]).
    pub receive_buffer: Option<usize>,
    /// What ports through the kernel's UDP do without. Default: nothing.
    pub without: Without,
    /// Whether the kernel may hold trains back until they depart, where it does that. Default: yes.
    pub departure_times: bool,
}

/// How many ports are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// This many; 0 is taken as 1.
    Exactly(u8),
    /// One for each of this many cores; with AF_XDP no more than the interface has queues.
    OnePerCore(u8),
}

impl Workers {
    fn most(self) -> u8 {
        let (Workers::Exactly(count) | Workers::OnePerCore(count)) = self;
        count
    }
}

impl OpenOptions {
    /// One port at `address`.
    pub fn new(choice: DataPathChoice, address: SocketAddr) -> OpenOptions {
        OpenOptions {
            choice,
            address,
            device: None,
            interface: None,
            towards: None,
            workers: Workers::Exactly(1),
            steering: SteeringChoice::default(),
            xdp_mode: Mode::default(),
            busy_poll: None,
            largest_payload: 1_472,
            receive_buffer: None,
            without: Without::default(),
            departure_times: true,
        }
    }

    fn bind_options(&self, variant: Variant) -> BindOptions {
        let usual = BindOptions::new(self.address, variant);
        BindOptions {
            device: self.device.clone(),
            departure_times: self.departure_times,
            without: self.without,
            receive_buffer: self.receive_buffer.unwrap_or(usual.receive_buffer),
            ..usual
        }
    }

    /// Of the kernel's socket that takes the place of AF_XDP's during an upgrade. It holds no trains back, as those do not.
    fn beside_xdp(&self) -> BindOptions {
        BindOptions { departure_times: false, ..self.bind_options(Variant::Gso) }
    }

    fn xdp(&self, interface: &str, address: SocketAddr) -> xdp::Options {
        xdp::Options {
            mode: self.xdp_mode,
            busy_poll: self.busy_poll,
            largest_payload: self.largest_payload,
            ..xdp::Options::new(interface, address)
        }
    }
}

/// What [`open`] did.
pub struct OpenOutcome {
    /// The ports, one for each worker; there is at least one.
    pub ports: Vec<AnyPort>,
    /// Where they are bound.
    pub address: SocketAddr,
    /// How many there are.
    pub workers: usize,
    /// The path in use; never [`DataPathChoice::Auto`].
    pub choice: DataPathChoice,
    /// What was measured for [`DataPathChoice::Auto`].
    pub verdict: Option<Selection>,
    /// The interface that the ports are tied to, if they are.
    pub interface: Option<String>,
    /// How datagrams find their worker.
    pub steering: Steering,
    /// Why something better is not in use, one line each.
    pub declined: Vec<String>,
    /// With AF_XDP: opens its sockets anew after an upgrade.
    pub xdp: Option<Arc<XdpOpener>>,
}

impl OpenOutcome {
    /// Each worker drives its port of `next` too: the same server at one more address.
    ///
    /// # Errors
    /// One line for users: ports of this data path cannot be joined, or a worker would have more than [`udp::MAX_SOCKETS`].
    pub fn add_address(&mut self, next: OpenOutcome) -> Result<(), String> {
        let pairs = core::mem::take(&mut self.ports).into_iter().zip(next.ports);
        self.ports = pairs.map(|(port, next)| port.join(next)).collect::<Option<_>>().ok_or_else(|| {
            format!(
                "a server has at most {} addresses with kernel UDP, and one with xdp: use fewer, or one that includes others, such as \
                 a port alone",
                udp::MAX_SOCKETS
            )
        })?;
        self.declined.extend(next.declined);
        self.declined.dedup();
        Ok(())
    }
}

/// Opens ports as `options` say.
///
/// # Errors
/// One line for users: what is wrong and what to do.
pub fn open(options: &OpenOptions) -> Result<OpenOutcome, String> {
    match (options.choice, options.choice.variant()) {
        (_, Some(variant)) => open_udp(options, variant),
        (DataPathChoice::Auto, None) => open_best(options),
        (_, None) => open_xdp(options),
    }
}

/// Takes sockets of UDP that another process has bound: one for each worker, in their order. The address is theirs; of `options` the rest
/// counts. [`DataPathChoice::Auto`] means [`DataPathChoice::Gso`]. With [`DataPathChoice::Xdp`] the workers begin with these sockets, and
/// [`OpenOutcome::xdp`] opens those of AF_XDP when the other process has left its own.
///
/// # Errors
/// One line for users: there are not as many as workers, one is no bound socket of UDP, or the data path takes none.
pub fn adopt(options: &OpenOptions, sockets: Vec<OwnedFd>, steered: Steered) -> Result<OpenOutcome, String> {
    let variant = match (options.choice, options.choice.variant()) {
        (DataPathChoice::Auto, _) => Variant::Gso,
        (_, Some(variant)) => variant,
        (_, None) => return adopt_for_xdp(options, sockets),
    };
    let count = options.workers.most();
    check_count(sockets.len(), count)?;
    let group = udp::adopt_group(&options.bind_options(variant), sockets, steered);
    Ok(OpenOutcome::of(group.map_err(|error| error.to_string())?, options, variant))
}

fn check_count(passed: usize, asked: u8) -> Result<(), String> {
    let asked = asked.max(1);
    if passed == usize::from(asked) {
        return Ok(());
    }
    Err(format!(
        "{passed} UDP sockets were passed for {asked} workers: pass one for each (systemd: ReusePort=yes, and ListenDatagram= as often), \
         or say --workers {passed}"
    ))
}

fn adopt_for_xdp(options: &OpenOptions, sockets: Vec<OwnedFd>) -> Result<OpenOutcome, String> {
    let place = Place::find(options)?;
    check_count(sockets.len(), u8::try_from(place.workers).unwrap_or(u8::MAX))?;
    let port = |socket| QueuesOrSocket::of_socket(socket, options.beside_xdp());
    let ports: Vec<QueuesOrSocket> = sockets.into_iter().map(port).collect::<Result<_, _>>()?;
    Ok(place.outcome(options, ports))
}

fn open_udp(options: &OpenOptions, variant: Variant) -> Result<OpenOutcome, String> {
    let bind = options.bind_options(variant);
    let group = udp::bind_group(&bind, options.workers.most(), options.steering);
    Ok(OpenOutcome::of(group.map_err(|error| error.to_string())?, options, variant))
}

impl OpenOutcome {
    fn of(group: Group, options: &OpenOptions, variant: Variant) -> OpenOutcome {
        OpenOutcome {
            address: group.ports.first().map_or(options.address, Port::local_address),
            workers: group.ports.len(),
            choice: variant.into(),
            verdict: None,
            interface: None,
            steering: group.steering,
            declined: group.declined,
            xdp: None,
            ports: group.ports.into_iter().map(AnyPort::Udp).collect(),
        }
    }
}

fn open_xdp(options: &OpenOptions) -> Result<OpenOutcome, String> {
    let place = Place::find(options)?;
    let ports = xdp::open(&options.xdp(&place.interface, options.address));
    let ports = ports.map_err(|error| explain(&error, place.queues))?;
    let port = |queues| QueuesOrSocket::of_queues(queues, options.beside_xdp());
    let ports =
        share(ports, place.workers).into_iter().map(port).collect::<io::Result<Vec<QueuesOrSocket>>>();
    let ports = ports.map_err(|error| error.to_string())?;
    Ok(place.outcome(options, ports))
}

/// Where AF_XDP is, and for how many workers.
struct Place {
    interface: String,
    queues: u32,
    workers: usize,
}

impl Place {
    fn find(options: &OpenOptions) -> Result<Place, String> {
        let (interface, queues) = match bind_address_of(options)? {
            BindAddress::Loopback => ("lo".to_owned(), 1),
            BindAddress::Interface(interface) => (interface.name, interface.queues),
        };
        let workers = xdp_workers(options, &interface, queues)?;
        if matches!(options.steering, SteeringChoice::Ebpf | SteeringChoice::Classic) {
            return Err(format!(
                "--steering {} is for kernel UDP: with xdp the queues of {interface} decide, and workers hand over; leave it out",
                options.steering
            ));
        }
        Ok(Place { interface, queues, workers })
    }

    fn outcome(self, options: &OpenOptions, ports: Vec<QueuesOrSocket>) -> OpenOutcome {
        let address = ports.first().map_or(options.address, Port::local_address);
        let options = options.xdp(&self.interface, address);
        OpenOutcome {
            address,
            workers: ports.len(),
            choice: DataPathChoice::Xdp,
            verdict: None,
            interface: Some(self.interface),
            steering: if ports.len() > 1 { Steering::HandOff } else { Steering::Single },
            declined: Vec::new(),
            xdp: XdpOpener::new(options, self.queues, &ports).map(Arc::new),
            ports: ports.into_iter().map(AnyPort::Xdp).collect(),
        }
    }
}

/// How many workers share the queues of an interface: none can be without one.
fn xdp_workers(options: &OpenOptions, name: &str, queues: u32) -> Result<usize, String> {
    let queues = queues.max(1) as usize;
    match options.workers {
        Workers::OnePerCore(cores) => Ok(usize::from(cores.max(1)).min(queues)),
        Workers::Exactly(count) if usize::from(count) <= queues => Ok(usize::from(count.max(1))),
        Workers::Exactly(count) => Err(format!(
            "with xdp each worker needs a queue of its own, and {name} has {queues}: use --workers {queues}, or if the card \
             can, sudo ethtool -L {name} combined {count}"
        )),
    }
}

/// Opens whichever path costs least.
fn open_best(options: &OpenOptions) -> Result<OpenOutcome, String> {
    // A name that was given must be right; a place that cannot be told otherwise is no reason not to run.
    let verdict = match (bind_address_of(options), &options.interface) {
        (Ok(place), _) => measure(options, &place),
        (Err(why), Some(_)) => return Err(why),
        (Err(why), None) => Selection::unmeasured(why),
    };
    let interface = verdict.place.as_ref().ok().cloned().or_else(|| options.interface.clone());
    let chosen = OpenOptions { choice: verdict.choice, interface, ..options.clone() };
    let mut paths = open(&chosen).or_else(|refused| match verdict.choice {
        DataPathChoice::Xdp => {
            // It could be opened a moment ago, on one queue.
            let mut paths = open_udp(options, Variant::Gso)?;
            paths.declined.push(format!("no xdp after all: {refused}"));
            Ok(paths)
        }
        _ => Err(refused),
    })?;
    paths.verdict = Some(verdict);
    Ok(paths)
}

fn bind_address_of(options: &OpenOptions) -> Result<BindAddress, String> {
    match (&options.interface, options.towards) {
        (Some(name), _) => bind_address::named(name),
        (None, Some(peer)) => bind_address::towards(peer),
        (None, None) => bind_address::of(options.address.ip()),
    }
}

/// Finds the path that costs least in `place`.
fn measure(options: &OpenOptions, place: &BindAddress) -> Selection {
    let (contestants, refused) = match place {
        BindAddress::Loopback => (Vec::new(), None),
        BindAddress::Interface(interface) => match xdp_contestant(options, interface) {
            Ok(contestant) => (vec![contestant], None),
            Err(why) => (Vec::new(), Some(why)),
        },
    };
    let mut verdict = auto::among(place, contestants);
    if let Some(why) = refused.filter(|_| !verdict.measured.is_empty()) {
        verdict.measured.push(PathCost {
            choice: DataPathChoice::Xdp,
            name: "xdp".to_owned(),
            cost: Err(why),
        });
    }
    verdict
}

/// AF_XDP on the first queue and a free port of the interface, for a measurement.
///
/// Only on an interface that was named: AF_XDP reaches no peer on the others, be it this machine itself, and attaching to a
/// driver interrupts some cards for a moment. A program that is attached already stays where it is, and nothing is measured.
fn xdp_contestant(options: &OpenOptions, interface: &Interface) -> Result<Candidate<'static>, String> {
    if options.interface.is_none() {
        return Err("without --interface".to_owned());
    }
    xdp_workers(options, &interface.name, interface.queues)?;
    let mut burst = auto::burst_on(interface)?;
    let asked = options.xdp(&interface.name, burst.addresses.local);
    let opened = xdp::open(&xdp::Options { queues: Some(0..1), ..asked });
    let mut port = opened.map_err(|error| explain(&error, 1))?.into_iter().next().ok_or("no queue")?;
    burst.addresses.local = port.local_address();
    Ok(Candidate {
        choice: DataPathChoice::Xdp,
        name: format!("xdp {}", port.mode()),
        burst: Box::new(move || measure::send(&mut port, &burst)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(choice: DataPathChoice) -> OpenOptions {
        OpenOptions::new(choice, "127.0.0.1:0".parse().unwrap())
    }

    #[test]
    fn every_kernel_path_opens_a_port_for_each_worker() {
        for variant in Variant::ALL {
            let workers = Workers::Exactly(3);
            let steering = SteeringChoice::HandOff;
            let paths = open(&OpenOptions { workers, steering, ..options(variant.into()) }).unwrap();
            assert_eq!((paths.workers, paths.choice), (3, variant.into()));
            assert_ne!(paths.address.port(), 0);
            let ports: Vec<_> = paths.ports.into_iter().filter_map(AnyPort::into_udp).collect();
            assert!(ports.iter().all(|port| port.local_address() == paths.address));
        }
    }

    /// Deleted, --receive-buffer could be taken and mean nothing.
    #[test]
    fn sockets_get_the_receive_buffer_that_is_asked_for() {
        for (receive_buffer, granted) in [(Some(106_496), 212_992..212_993), (None, 212_993..usize::MAX)] {
            let paths = open(&OpenOptions { receive_buffer, ..options(DataPathChoice::Plain) }).unwrap();
            let ports: Vec<_> = paths.ports.into_iter().filter_map(AnyPort::into_udp).collect();
            let sizes: Vec<usize> = ports.iter().map(|port| port.buffer_sizes().unwrap().0).collect();
            assert!(sizes.iter().all(|size| granted.contains(size)), "{receive_buffer:?} {sizes:?}");
        }
    }

    #[test]
    fn auto_opens_what_it_has_measured() {
        let paths = open(&options(DataPathChoice::Auto)).unwrap();
        let verdict = paths.verdict.unwrap();
        assert_eq!(paths.choice, verdict.choice);
        assert_eq!(verdict.place.as_deref(), Ok("lo"));
    }

    #[test]
    fn workers_without_a_queue_are_refused_with_the_command_for_more() {
        let asked =
            |workers| xdp_workers(&OpenOptions { workers, ..options(DataPathChoice::Xdp) }, "eth9", 2);
        assert_eq!(asked(Workers::Exactly(1)), Ok(1));
        assert_eq!(asked(Workers::Exactly(2)), Ok(2));
        assert_eq!(asked(Workers::OnePerCore(8)), Ok(2));
        let refused = asked(Workers::Exactly(4)).unwrap_err();
        assert!(refused.contains("ethtool -L eth9 combined 4"), "{refused}");
    }

    #[test]
    fn what_cannot_be_opened_says_what_can() {
        let refused = open(&options(DataPathChoice::Xdp)).err().unwrap();
        assert!(refused.contains("gso"), "{refused}");
        for choice in [DataPathChoice::Xdp, DataPathChoice::Auto] {
            let unknown = OpenOptions { interface: Some("nosuch0".to_owned()), ..options(choice) };
            assert!(open(&unknown).err().unwrap().contains("there are lo"), "{choice}");
        }
    }
}
