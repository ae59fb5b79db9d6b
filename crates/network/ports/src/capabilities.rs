//! The privileges of a process, as its status file has them.
//!
//! Source: capabilities(7); numbers of Linux `include/uapi/linux/capability.h`.

use core::fmt;

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities(u64);

/// A capability that means something to us, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Privilege {
    pub(crate) name: &'static str,
    bit: u32,
}

pub(crate) const NET_BIND_SERVICE: Privilege = Privilege { name: "cap_net_bind_service", bit: 10 };
pub(crate) const NET_ADMIN: Privilege = Privilege { name: "cap_net_admin", bit: 12 };
pub(crate) const NET_RAW: Privilege = Privilege { name: "cap_net_raw", bit: 13 };
pub(crate) const IPC_LOCK: Privilege = Privilege { name: "cap_ipc_lock", bit: 14 };
pub(crate) const SYS_ADMIN: Privilege = Privilege { name: "cap_sys_admin", bit: 21 };
pub(crate) const BPF: Privilege = Privilege { name: "cap_bpf", bit: 39 };

const ALL: [Privilege; 6] = [NET_RAW, NET_ADMIN, BPF, SYS_ADMIN, IPC_LOCK, NET_BIND_SERVICE];

impl Capabilities {
    /// The effective set of a `/proc/…/status` file.
    pub(crate) fn of_status(status: &str) -> Option<Capabilities> {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok().map(Capabilities)
    }

    pub(crate) fn has(self, privilege: Privilege) -> bool {
        self.0 >> privilege.bit & 1 == 1
    }

    /// Those of `wanted` that are not there. CAP_SYS_ADMIN contains CAP_BPF.
    pub(crate) fn lacks(self, wanted: &[Privilege]) -> Vec<&'static str> {
        let held = |privilege: Privilege| self.has(privilege) || privilege == BPF && self.has(SYS_ADMIN);
        wanted.iter().filter(|privilege| !held(**privilege)).map(|privilege| privilege.name).collect()
    }
}

/// The names of those that mean something to us.
impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = ALL.iter().filter(|privilege| self.has(**privilege)).map(|privilege| privilege.name);
        let Some(first) = names.next() else { return f.write_str("none that matter here") };
        f.write_str(first)?;
        names.try_for_each(|name| write!(f, " {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_process_names_its_privileges() {
        let status = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000008000003000\nCapBnd:\t0\n";
        let held = Capabilities::of_status(status).unwrap();
        assert_eq!(held.to_string(), "cap_net_raw cap_net_admin cap_bpf");
        assert!(held.lacks(&[NET_RAW, NET_ADMIN, BPF]).is_empty());
        assert_eq!(held.lacks(&[IPC_LOCK, NET_RAW]), ["cap_ipc_lock"]);
        assert_eq!(Capabilities::of_status("CapEff:\tnonsense"), None);
        assert_eq!(Capabilities::default().to_string(), "none that matter here");
    }

    #[test]
    fn the_administrator_may_load_programs_too() {
        let held = Capabilities(1 << SYS_ADMIN.bit);
        assert!(held.lacks(&[BPF]).is_empty());
        assert_eq!(held.lacks(&[NET_ADMIN]), ["cap_net_admin"]);
    }
}
