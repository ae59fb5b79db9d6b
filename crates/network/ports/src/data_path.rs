//! How datagrams reach the interface, as a program says it. Servers, clients and endpoints without HTTP take the same type.
//!
//! [`OpenOptions`] says more, and with an address: what the command line asks for. A server adds its addresses and workers to it.

use crate::kinds::{AnyPort, DataPathChoice};
use crate::open::OpenOptions;
use base::time::Duration as Span;
use core::net::{Ipv4Addr, SocketAddr};
use datapath::pcap::{Capture, PcapWriter, unix_time_of_origin};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use udp::SteeringChoice as Steering;

/// Stands for the address until one is bound.
const UNBOUND: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// How datagrams reach the interface: of the HTTP server, of the HTTP client's HTTP/3, of endpoints without HTTP.
///
/// ```
/// use ports::DataPath;
/// let path = DataPath::gso().receive_buffer(1 << 20);
/// # drop(path);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct DataPath {
    options: OpenOptions,
    spin: Span,
    capture: Option<PathBuf>,
}

impl Default for DataPath {
    fn default() -> DataPath {
        DataPath::gso()
    }
}

impl DataPath {
    /// Trains of datagrams, segmented and merged by the kernel (GSO, GRO), as far as the kernel does that. The default.
    pub fn gso() -> DataPath {
        DataPath::named(DataPathChoice::Gso)
    }

    /// The same as [`DataPath::gso`], but long trains leave without a copy (io_uring) where the interface takes them so. For bulk
    /// transfers over network cards; on one machine, between containers too, the kernel copies anyway, and this is `gso` then. Needs Linux
    /// 6.15 and 1.3 MB of locked memory for each worker; without them it is `gso`, which the server and the client's advice say.
    pub fn uring() -> DataPath {
        DataPath::named(DataPathChoice::Uring)
    }

    /// Many datagrams in a system call (sendmmsg, recvmmsg).
    pub fn mmsg() -> DataPath {
        DataPath::named(DataPathChoice::Mmsg)
    }

    /// One datagram in a system call.
    pub fn plain() -> DataPath {
        DataPath::named(DataPathChoice::Plain)
    }

    /// The one of the others that costs least, by a measurement of some hundred datagrams when the ports are opened. AF_XDP takes
    /// part where [`DataPath::interface`] is named.
    pub fn auto() -> DataPath {
        DataPath::named(DataPathChoice::Auto)
    }

    /// AF_XDP on an interface such as `eth0`, past the kernel's network stack. Needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF; reaches
    /// that interface only; each worker needs a queue of it.
    pub fn xdp(interface: &str) -> DataPath {
        DataPath::named(DataPathChoice::Xdp).interface(interface)
    }

    fn named(choice: DataPathChoice) -> DataPath {
        DataPath::of(OpenOptions::new(choice, UNBOUND))
    }

    /// What `options` say; address, device and workers are those of the server or client. Outside semver.
    #[doc(hidden)]
    pub fn of(options: OpenOptions) -> DataPath {
        DataPath { options, spin: Span::ZERO, capture: None }
    }

    /// The interface, for AF_XDP and [`DataPath::auto`]. Default: the one that has the address or the default route.
    pub fn interface(mut self, name: &str) -> DataPath {
        self.options.interface = Some(name.to_owned());
        self
    }

    /// Bytes of each socket's receive buffer that the system is asked for. Default: 8 MiB. For kernel UDP.
    pub fn receive_buffer(mut self, bytes: usize) -> DataPath {
        self.options.receive_buffer = Some(bytes);
        self
    }

    /// How a datagram finds the worker that has its connection. Default: the first way that this machine permits. For servers of
    /// several workers with kernel UDP; clients and endpoints have one worker, to which it means nothing.
    pub fn steering(mut self, how: Steering) -> DataPath {
        self.options.steering = how;
        self
    }

    /// How long a worker polls before it sleeps, which costs CPU time and saves delay: zero, the default, sleeps at once,
    /// [`Duration::MAX`] never does. Where the worker is a task of tokio's, which it is beside services, the other tasks of its thread
    /// and their sockets have their turns meanwhile. Where the program drives the worker, its `turn` asks for another turn at once.
    pub fn spin(mut self, span: Duration) -> DataPath {
        self.spin = span.into();
        self
    }

    /// All datagrams are written to this file, which is created when the ports are opened, by a client with its first connection of
    /// HTTP/3. The second worker of a server writes to the same name with `.1` behind it, and so on. The format is pcapng; with a key log
    /// a dissector can read what is encrypted. For diagnosis: it copies each datagram.
    pub fn capture(mut self, file: impl Into<PathBuf>) -> DataPath {
        self.capture = Some(file.into());
        self
    }

    /// What to open, without an address. Outside semver.
    #[doc(hidden)]
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// How long workers poll before they sleep. Outside semver.
    #[doc(hidden)]
    pub fn spin_span(&self) -> Span {
        self.spin
    }

    /// One port at `address`, of a client or an endpoint. Outside semver.
    ///
    /// # Errors
    /// It cannot be opened, or the capture cannot be written.
    #[doc(hidden)]
    pub fn open(&self, address: SocketAddr) -> io::Result<AnyPort> {
        let options = OpenOptions { address, ..self.options.clone() };
        let outcome = crate::open(&options).map_err(io::Error::other)?;
        let port = self.captured(outcome.ports)?.into_iter().next();
        // There is one.
        port.ok_or_else(|| io::Error::other("the data path has no port"))
    }

    /// The ports of all workers, with their captures if those are asked for. Outside semver.
    ///
    /// # Errors
    /// A file cannot be written.
    #[doc(hidden)]
    pub fn captured(&self, ports: Vec<AnyPort>) -> io::Result<Vec<AnyPort>> {
        let Some(path) = &self.capture else { return Ok(ports) };
        let capture = |(number, port)| {
            let writer = PcapWriter::new(File::create(of_worker(path, number))?)?;
            Ok(AnyPort::other(Capture::new(port, writer, unix_time_of_origin())))
        };
        (0..).zip(ports).map(capture).collect()
    }
}

/// The file of a worker, by its number from 0.
fn of_worker(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if number > 0 {
        name.push(format!(".{number}"));
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::net::{Addresses, Ecn};
    use base::sink::{PacketSink as _, TrainPath};
    use datapath::{Port as _, Tx as _};

    const LOOPBACK: &str = "127.0.0.1:0";

    #[test]
    fn a_path_opens_a_port_as_it_says() {
        for (path, name) in
            [(DataPath::gso(), "udp-gso"), (DataPath::mmsg(), "udp-mmsg"), (DataPath::plain(), "udp-plain")]
        {
            let port = path.receive_buffer(106_496).open(LOOPBACK.parse().unwrap()).unwrap();
            assert_eq!(port.capabilities().name, name);
            assert_eq!(port.into_udp().unwrap().buffer_sizes().unwrap().0, 212_992);
        }
        let refused = DataPath::xdp("nosuch0").open(LOOPBACK.parse().unwrap()).err().unwrap();
        assert!(refused.to_string().contains("there are lo"), "{refused}");
        let spins = DataPath::auto().spin(Duration::from_micros(7));
        assert_eq!((spins.spin_span(), spins.options().choice), (Span::from_micros(7), DataPathChoice::Auto));
    }

    /// Deleted, the workers of a server could write to one file, or what they sent could stay in memory while nothing arrives.
    #[test]
    fn each_worker_writes_a_capture_of_its_own() {
        let folder = std::env::temp_dir().join(format!("tercel-capture-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("c.pcap");
        let path = DataPath::plain().capture(&file);
        let ports = (0..2).map(|_| DataPath::plain().open(LOOPBACK.parse().unwrap()).unwrap()).collect();
        let mut ports = path.captured(ports).unwrap();
        let addresses = Addresses { local: ports[0].local_address(), peer: ports[1].local_address() };
        ports[0].begin(TrainPath::new(addresses, Ecn::NotEct), 100).unwrap();
        ports[0].room().fill(7);
        ports[0].push(100);
        ports[0].end();
        ports[0].flush().unwrap();
        assert_eq!(datapath::Rx::poll(&mut ports[0]).unwrap(), 0, "nothing arrives there");
        let size = |path: &Path| std::fs::metadata(path).unwrap().len();
        // The headers of the file, of the block, of IP and UDP, and the datagram.
        assert_eq!(size(&file), 28 + 32 + 32 + 28 + 100);
        drop(ports);
        assert!(size(&folder.join("c.pcap.1")) >= 60);
        assert!(DataPath::plain().capture(folder.join("no/such")).open(LOOPBACK.parse().unwrap()).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
