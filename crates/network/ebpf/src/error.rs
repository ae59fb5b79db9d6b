//! What can go wrong with a program, and what to do about it.
//!
//! `aya` wraps the system's answer in several layers; [`Step::failed`] digs it out. "Not permitted" is turned into the
//! capabilities that are really missing, since the kernel says the same of all of them.

use core::error::Error;
use core::fmt;
use std::io;

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

use crate::holder::Holder;

/// A privilege that the kernel asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// CAP_BPF: loading programs and making maps. CAP_SYS_ADMIN, which it was part of before Linux 5.8, does as well.
    Bpf,
    /// CAP_NET_ADMIN: programs that see everyone's packets.
    NetAdmin,
}

impl Capability {
    /// As the manual writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Capability::Bpf => "CAP_BPF",
            Capability::NetAdmin => "CAP_NET_ADMIN",
        }
    }

    fn is_held(self, held: CapabilitySet) -> bool {
        let wanted = match self {
            Capability::Bpf => CapabilitySet::BPF,
            Capability::NetAdmin => CapabilitySet::NET_ADMIN,
        };
        held.intersects(wanted | CapabilitySet::SYS_ADMIN)
    }
}

/// Why a program is not in place.
#[derive(Debug)]
pub enum EbpfError {
    /// The process may not.
    NotPermitted {
        /// What was being done.
        doing: &'static str,
        /// What it lacks. Empty when it has all it needs and something else forbids it.
        missing: Vec<Capability>,
    },
    /// The kernel is too old.
    OldKernel {
        /// The first version that can.
        needs: &'static str,
    },
    /// There is no such interface in this network namespace.
    NoInterface {
        /// Its index.
        index: u32,
    },
    /// The interface is not up, so nothing would arrive.
    Down {
        /// Its name.
        interface: String,
    },
    /// The interface has an XDP program already.
    Occupied {
        /// The interface's name.
        interface: String,
        /// The process that holds it there, if one does.
        holder: Option<Holder>,
    },
    /// The interface's driver runs no programs.
    NoSupport {
        /// The interface's name.
        interface: String,
        /// The mode that was asked for.
        mode: &'static str,
    },
    /// The interface could run programs, but not as it is set up.
    Unsuitable {
        /// The interface's name.
        interface: String,
        /// The mode that was asked for.
        mode: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else.
    Failed {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
        /// What the loader said, on one line.
        detail: String,
    },
}

impl fmt::Display for EbpfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EbpfError::NotPermitted { doing, missing } if missing.is_empty() => write!(
                f,
                "cannot {doing}: not permitted, with all capabilities; a container's policy or a user namespace forbids \
                 bpf(2), or, before Linux 5.11, too little memory may be locked (ulimit -l unlimited)"
            ),
            EbpfError::NotPermitted { doing, missing } => {
                let names: Vec<&str> = missing.iter().map(|capability| capability.name()).collect();
                write!(
                    f,
                    "cannot {doing}: the process lacks {}; run it as root, or grant them: setcap {}+ep PROGRAM",
                    names.join(" and "),
                    names.join(",").to_lowercase()
                )
            }
            EbpfError::OldKernel { needs } => {
                write!(f, "XDP needs Linux {needs}; upgrade, or use another data path")
            }
            EbpfError::NoInterface { index } => {
                write!(f, "there is no interface with index {index} here; see: ip link")
            }
            EbpfError::Down { interface } => {
                write!(f, "interface {interface} is down; bring it up: ip link set dev {interface} up")
            }
            EbpfError::Occupied { interface, holder: Some(Holder { pid, name }) } => write!(
                f,
                "process {pid} ({name}) has an XDP program on interface {interface}; stop that process, or use another \
                 interface"
            ),
            EbpfError::Occupied { interface, holder: None } => write!(
                f,
                "interface {interface} has an XDP program already; detach it: ip link set dev {interface} xdp off (in \
                 generic mode: xdpgeneric off), or stop the program that holds it"
            ),
            EbpfError::NoSupport { interface, mode } => {
                write!(f, "the driver of interface {interface} has no XDP {mode} mode; use generic mode")
            }
            EbpfError::Unsuitable { interface, mode, source } => {
                write!(f, "interface {interface} refuses XDP in {mode} mode")?;
                let mtu = format_args!("its MTU is too large for it (ip link set dev {interface} mtu 1500)");
                let queues = format_args!("it has too few queues (ethtool -L {interface})");
                // Which of the two it is some drivers say by their choice of code, veth among them.
                match source.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::RANGE) => write!(f, ": {mtu}")?,
                    Some(Errno::NOSPC) => write!(f, ": {queues}")?,
                    _ => write!(f, " ({source}): {mtu}, or {queues}")?,
                }
                f.write_str("; or use generic mode")
            }
            EbpfError::Failed { doing, source, detail } => write!(f, "cannot {doing}: {source} ({detail})"),
        }
    }
}

impl Error for EbpfError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            EbpfError::Unsuitable { source, .. } | EbpfError::Failed { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Something that is being done, to make errors of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) doing: &'static str,
    pub(crate) needs: &'static [Capability],
}

impl Step {
    /// Refuses at once when the process lacks something that the step needs. `aya` tries out what the kernel can do and
    /// remembers it for good: a first attempt without privileges would spoil all later ones.
    pub(crate) fn permitted(self) -> Result<(), EbpfError> {
        let missing = self.missing();
        if missing.is_empty() { Ok(()) } else { Err(EbpfError::NotPermitted { doing: self.doing, missing }) }
    }

    fn missing(self) -> Vec<Capability> {
        let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
        self.needs.iter().filter(|needed| !needed.is_held(held)).copied().collect()
    }

    /// The step failed with `error`.
    pub(crate) fn failed(self, error: &(dyn Error + 'static)) -> EbpfError {
        let detail = all_causes(error);
        let Some(code) = code(error) else {
            return EbpfError::Failed { doing: self.doing, source: io::Error::other("refused"), detail };
        };
        let source = io::Error::from_raw_os_error(code);
        if code == Errno::PERM.raw_os_error() {
            return EbpfError::NotPermitted { doing: self.doing, missing: self.missing() };
        }
        EbpfError::Failed { doing: self.doing, source, detail }
    }

    /// The object lacks something that this crate knows to be in it.
    pub(crate) fn incomplete(self) -> EbpfError {
        let source = io::Error::other("the object is not the one that this program was built with");
        EbpfError::Failed { doing: self.doing, source, detail: "see cargo xtask ebpf --check".to_owned() }
    }
}

/// What an error and those below it say, on one line. The kernel tells its whole way through a program that it rejects,
/// and why last: of long texts the beginning and the end are kept.
fn all_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let words = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        // Some wrappers say again what is below them.
        if !text.contains(&words) {
            let separator = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{separator}{words}");
        }
        next = error.source();
    }
    const KEPT: usize = 150;
    let characters: Vec<char> = text.chars().collect();
    match (characters.first_chunk::<KEPT>(), characters.last_chunk::<KEPT>()) {
        (Some(first), Some(last)) if characters.len() > 2 * KEPT => {
            first.iter().chain(&[' ', '…', ' ']).chain(last).collect()
        }
        _ => text,
    }
}

/// The system's error code, from however deep.
fn code(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(code) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Some(code);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_one_line_that_says_what_to_do() {
        let interface = || "eth7".to_owned();
        let source = || io::Error::from_raw_os_error(Errno::RANGE.raw_os_error());
        let holder = Holder { pid: 12, name: "katran".to_owned() };
        let cases = [
            (
                EbpfError::NotPermitted {
                    doing: "load the program",
                    missing: vec![Capability::Bpf, Capability::NetAdmin],
                },
                "cannot load the program: the process lacks CAP_BPF and CAP_NET_ADMIN; run it as root, or grant them: \
                 setcap cap_bpf,cap_net_admin+ep PROGRAM",
            ),
            (EbpfError::NotPermitted { doing: "load", missing: vec![] }, "ulimit -l"),
            (EbpfError::NoInterface { index: 77 }, "index 77"),
            (EbpfError::Down { interface: interface() }, "ip link set dev eth7 up"),
            (EbpfError::Occupied { interface: interface(), holder: None }, "ip link set dev eth7 xdp off"),
            (EbpfError::Occupied { interface: interface(), holder: Some(holder) }, "process 12 (katran)"),
            (EbpfError::NoSupport { interface: interface(), mode: "driver" }, "use generic mode"),
            (
                EbpfError::Unsuitable { interface: interface(), mode: "driver", source: source() },
                "ip link set dev eth7 mtu 1500",
            ),
        ];
        for (error, part) in cases {
            let text = error.to_string();
            assert!(text.contains(part) && !text.contains('\n') && !text.contains("  "), "{text}");
        }
    }

    #[test]
    fn the_systems_answer_is_found_below_all_wrapping() {
        #[derive(Debug)]
        struct Wrapped(io::Error);
        impl fmt::Display for Wrapped {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("wrapped\n  twice")
            }
        }
        impl Error for Wrapped {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let step = Step { doing: "try", needs: &[] };
        let error = step.failed(&Wrapped(io::Error::from_raw_os_error(28)));
        assert!(matches!(&error, EbpfError::Failed { source, .. } if source.raw_os_error() == Some(28)));
        assert!(error.to_string().contains("(wrapped twice: "), "{error}");
        let error = step.failed(&Wrapped(io::Error::other(format!("{} at last", "on and ".repeat(200)))));
        assert!(error.to_string().len() < 400 && error.to_string().ends_with(" at last)"), "{error}");
        let error = step.failed(&Wrapped(io::Error::from_raw_os_error(1)));
        assert!(matches!(error, EbpfError::NotPermitted { .. }));
    }
}
