//! How a client's datagrams reach the interface.

use datapath::pcap::{PcapWriter, unix_time_of_origin};
use ports::{DataPathChoice, OpenOptions};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Stands for the address until one is bound.
const UNBOUND: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// How a client's datagrams reach the interface. For HTTP/3 alone.
///
/// ```
/// use client::DataPath;
/// let path = DataPath::gso().receive_buffer(1 << 20);
/// # drop(path);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct DataPath {
    options: OpenOptions,
    spin: base::time::Duration,
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
        DataPath::of(DataPathChoice::Gso)
    }

    /// Many datagrams in a system call (sendmmsg, recvmmsg).
    pub fn mmsg() -> DataPath {
        DataPath::of(DataPathChoice::Mmsg)
    }

    /// One datagram in a system call.
    pub fn plain() -> DataPath {
        DataPath::of(DataPathChoice::Plain)
    }

    /// AF_XDP on an interface such as `eth0`, past the kernel's network stack. Needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, and
    /// reaches that interface only.
    pub fn xdp(interface: &str) -> DataPath {
        let mut path = DataPath::of(DataPathChoice::Xdp);
        path.options.interface = Some(interface.to_owned());
        path
    }

    fn of(choice: DataPathChoice) -> DataPath {
        let options = OpenOptions::new(choice, UNBOUND);
        DataPath { options, spin: base::time::Duration::ZERO, capture: None }
    }

    /// Bytes of the socket's receive buffer that the system is asked for. Default: 8 MiB. For kernel UDP.
    pub fn receive_buffer(mut self, bytes: usize) -> DataPath {
        self.options.receive_buffer = Some(bytes);
        self
    }

    /// How long the worker polls before it sleeps, which costs CPU time and saves delay: zero, the default, sleeps at once,
    /// [`Duration::MAX`] never does.
    pub fn spin(mut self, span: Duration) -> DataPath {
        self.spin = span.into();
        self
    }

    /// All datagrams are written to this file, which is created with the first connection of HTTP/3. Its format is pcap; with
    /// [`Builder::key_log`](crate::Builder::key_log) a dissector can read what is encrypted.
    pub fn capture(mut self, file: impl Into<PathBuf>) -> DataPath {
        self.capture = Some(file.into());
        self
    }

    pub(crate) fn options(&self, address: SocketAddr) -> OpenOptions {
        OpenOptions { address, ..self.options.clone() }
    }

    pub(crate) fn polls(&self) -> base::time::Duration {
        self.spin
    }

    /// The capture that was asked for, and what the wall clock showed at the origin of the port's clock.
    pub(crate) fn open_capture(&self) -> io::Result<Option<(PcapWriter<File>, base::time::Duration)>> {
        let Some(path) = &self.capture else { return Ok(None) };
        let writer = PcapWriter::new(File::create(path)?)?;
        Ok(Some((writer, unix_time_of_origin())))
    }
}
