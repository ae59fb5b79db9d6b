//! Why a port cannot be opened, in one line that says what to do.

use core::fmt;
use core::net::SocketAddr;
use std::error::Error;
use std::io;

use ebpf::EbpfError;

use crate::layout::MAX_PAYLOAD;
use crate::options::Mode;

/// Why no port was opened.
#[derive(Debug)]
pub enum XdpError {
    /// There is no such interface in this network namespace.
    NoInterface {
        /// Its name.
        interface: String,
    },
    /// The interface is not up.
    Down {
        /// Its name.
        interface: String,
    },
    /// The interface has no Ethernet address, as tunnels do not.
    NoEthernet {
        /// Its name.
        interface: String,
    },
    /// IPv4 over the loopback interface: the kernel drops packets from 127.0.0.0/8 that a socket did not send.
    Loopback {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The interface has no such receive queue.
    NoQueue {
        /// Its name.
        interface: String,
        /// The first queue asked for that it has not.
        queue: u32,
        /// How many it has.
        there: u32,
    },
    /// Another AF_XDP socket has the queue.
    QueueBusy {
        /// The interface's name.
        interface: String,
        /// The queue.
        queue: u32,
    },
    /// A payload of this size does not fit a frame.
    FrameTooSmall {
        /// The size asked for, in bytes.
        payload: usize,
        /// The largest that fits.
        most: usize,
    },
    /// The UDP port cannot be had.
    Port {
        /// Address and port.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The process may not open AF_XDP sockets.
    NotPermitted,
    /// This kernel has no AF_XDP.
    NoKernelSupport,
    /// The frames are more than the process may lock in memory.
    Memlock {
        /// Bytes of all frames of a queue.
        needed: u64,
    },
    /// The interface does not do AF_XDP in this mode.
    NoMode {
        /// Its name.
        interface: String,
        /// The mode.
        mode: Mode,
        /// What the system said.
        source: io::Error,
    },
    /// The program in front of the sockets is not in place.
    Program(EbpfError),
    /// Anything else.
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl XdpError {
    /// Whether the same mode may do with packets of one frame what it did not with packets of several. A kernel without them
    /// (before Linux 5.18) does not take the program; one before 6.6 does not bind the socket, which concerns the mode as well.
    pub(crate) fn concerns_buffers(&self) -> bool {
        matches!(self, XdpError::Program(EbpfError::Failed { .. }) | XdpError::Memlock { .. })
    }

    /// Whether another mode may do better.
    pub(crate) fn concerns_mode(&self) -> bool {
        matches!(
            self,
            XdpError::NoMode { .. }
                | XdpError::Program(EbpfError::NoSupport { .. } | EbpfError::Unsuitable { .. })
        )
    }
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpError::NoInterface { interface } => {
                write!(f, "there is no interface {interface} here; see: ip link")
            }
            XdpError::Down { interface } => {
                write!(f, "interface {interface} is down; bring it up: ip link set dev {interface} up")
            }
            XdpError::NoEthernet { interface } => write!(
                f,
                "interface {interface} has no Ethernet address, which AF_XDP needs; use the interface below it, or the \
                 data path gso"
            ),
            XdpError::Loopback { address } => write!(
                f,
                "AF_XDP cannot serve {address} over lo: the kernel drops such packets unless a socket sent them; use \
                 [::1], or the data path gso, which works there"
            ),
            XdpError::NoQueue { interface, queue, there } => write!(
                f,
                "interface {interface} has {there} receive queues, counted from 0, and no queue {queue}; see: ethtool -l \
                 {interface}"
            ),
            XdpError::QueueBusy { interface, queue } => write!(
                f,
                "another AF_XDP socket has queue {queue} of interface {interface}; stop that program, or use other queues"
            ),
            XdpError::FrameTooSmall { payload, most } => write!(
                f,
                "datagrams of {payload} bytes are too long for AF_XDP here: at most {most} (the interface's MTU decides, but in \
                 zero-copy mode {MAX_PAYLOAD}); or use the data path gso"
            ),
            XdpError::Port { address, source } => {
                write!(f, "cannot reserve UDP {address}: {source}")?;
                f.write_str(match source.kind() {
                    io::ErrorKind::AddrInUse => {
                        "; another program listens there: stop it, or choose another port"
                    }
                    io::ErrorKind::AddrNotAvailable => "; no interface of this machine has that address",
                    io::ErrorKind::PermissionDenied => "; ports below 1024 need root or CAP_NET_BIND_SERVICE",
                    _ => "",
                })
            }
            XdpError::NotPermitted => f.write_str(
                "cannot open an AF_XDP socket: the process lacks CAP_NET_RAW; run it as root, or grant all it needs: \
                 setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM",
            ),
            XdpError::NoKernelSupport => f.write_str(
                "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS, Linux 5.4 or newer); use the data path gso",
            ),
            XdpError::Memlock { needed } => write!(
                f,
                "cannot register {} MiB of packet memory: more than RLIMIT_MEMLOCK allows; raise it (ulimit -l {}), grant \
                 CAP_IPC_LOCK, or use fewer frames per queue",
                needed >> 20,
                needed >> 10
            ),
            XdpError::NoMode { interface, mode, source } => write!(
                f,
                "interface {interface} does not do AF_XDP in {mode} mode ({source}); use the mode auto or generic"
            ),
            XdpError::Program(error) => error.fmt(f),
            XdpError::System { doing, source } => write!(f, "cannot {doing}: {source}"),
        }
    }
}

impl Error for XdpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            XdpError::Port { source, .. }
            | XdpError::NoMode { source, .. }
            | XdpError::System { source, .. } => Some(source),
            XdpError::Program(error) => Some(error),
            _ => None,
        }
    }
}

impl From<EbpfError> for XdpError {
    fn from(error: EbpfError) -> XdpError {
        XdpError::Program(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_one_line_that_says_what_to_do() {
        let interface = || "eth7".to_owned();
        let errno = |code| io::Error::from_raw_os_error(code);
        let address: SocketAddr = "127.0.0.1:443".parse().unwrap();
        let cases = [
            (XdpError::NoInterface { interface: interface() }, "ip link"),
            (XdpError::Down { interface: interface() }, "ip link set dev eth7 up"),
            (XdpError::NoEthernet { interface: interface() }, "gso"),
            (XdpError::Loopback { address }, "gso"),
            (XdpError::NoQueue { interface: interface(), queue: 4, there: 2 }, "ethtool -l eth7"),
            (XdpError::QueueBusy { interface: interface(), queue: 1 }, "stop that program"),
            (XdpError::FrameTooSmall { payload: 9000, most: 3770 }, "at most 3770"),
            (XdpError::Port { address, source: errno(libc::EADDRINUSE) }, "choose another port"),
            (XdpError::NotPermitted, "CAP_NET_RAW"),
            (XdpError::NoKernelSupport, "gso"),
            (XdpError::Memlock { needed: 16 << 20 }, "ulimit -l 16384"),
            (
                XdpError::NoMode {
                    interface: interface(),
                    mode: Mode::ZeroCopy,
                    source: errno(libc::EOPNOTSUPP),
                },
                "auto or generic",
            ),
            (XdpError::Program(EbpfError::Down { interface: interface() }), "ip link set"),
        ];
        for (error, advice) in cases {
            let text = error.to_string();
            assert!(text.contains(advice), "{text:?} lacks {advice:?}");
            assert!(!text.contains('\n') && text.len() < 250, "{text:?}");
        }
    }
}
