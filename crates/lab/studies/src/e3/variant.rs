//! The ways in which both ends reach the network.

use bench::method::Method;
use bench::site::Trains;

/// A data path and how its workers wait; both ends use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) method: Method,
    wait: Wait,
    /// How trains cross the link between the namespaces.
    pub(super) trains: Trains,
}

/// How a worker that has nothing to do waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// It sleeps until the kernel wakes it.
    Interrupt,
    /// It never sleeps.
    Spin,
    /// It never sleeps, and the kernel's part of receiving runs on its CPU time.
    BusyPoll,
}

const fn variant(name: &'static str, method: Method, wait: Wait) -> Variant {
    Variant { name, method, wait, trains: Trains::Cut }
}

/// Kernel UDP as the published study had it: a system call for each datagram.
pub(super) const PLAIN: Variant = variant("udp, send per packet", Method::Plain, Wait::Interrupt);
/// The best that kernel UDP has.
pub(super) const GSO: Variant = variant("udp, gso", Method::Gso, Wait::Interrupt);
const PLAIN_SPIN: Variant = variant("udp, send per packet, spinning", Method::Plain, Wait::Spin);
/// The same, polling as AF_XDP does.
pub(super) const GSO_SPIN: Variant = variant("udp, gso, spinning", Method::Gso, Wait::Spin);
const GSO_WHOLE: Variant = Variant {
    name: "udp, gso, trains whole",
    method: Method::Gso,
    wait: Wait::Interrupt,
    trains: Trains::Whole,
};
const GENERIC: Variant = variant("xdp generic, interrupt", Method::XdpGeneric, Wait::Interrupt);
/// AF_XDP with low idle cost.
pub(super) const DRIVER: Variant = variant("xdp driver, interrupt", Method::XdpDriver, Wait::Interrupt);
/// AF_XDP polling, as the published study had it.
pub(super) const DRIVER_SPIN: Variant = variant("xdp driver, spinning", Method::XdpDriver, Wait::Spin);
const DRIVER_BUSY: Variant = variant("xdp driver, busy-polling", Method::XdpDriver, Wait::BusyPoll);

/// Those of a full run.
pub(super) const FULL: &[Variant] =
    &[PLAIN, PLAIN_SPIN, GSO, GSO_SPIN, GSO_WHOLE, GENERIC, DRIVER, DRIVER_SPIN, DRIVER_BUSY];
/// Those of a quick run.
pub(super) const QUICK: &[Variant] = &[PLAIN, GSO, GSO_SPIN, DRIVER, DRIVER_SPIN];
/// Those of two connections.
pub(super) const PAIRED: &[Variant] = &[PLAIN, GSO, DRIVER, DRIVER_SPIN];

impl Variant {
    /// What either end is told, AF_XDP on `interface`.
    pub(super) fn flags(self, interface: Option<&str>) -> Vec<String> {
        let mut flags = self.method.flags(interface);
        let more: &[&str] = match self.wait {
            Wait::Interrupt => &["--spin", "0"],
            Wait::Spin => &["--spin", "always"],
            Wait::BusyPoll => &["--spin", "always", "--busy-poll", "50"],
        };
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        flags
    }

    /// Whether it keeps its core busy whatever there is to do.
    pub(super) fn never_sleeps(self) -> bool {
        self.wait != Wait::Interrupt
    }
}
