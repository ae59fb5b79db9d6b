//! Which process keeps a program on an interface.
//!
//! A link lives in a descriptor, and `/proc/PID/fdinfo` tells what a descriptor of a link attaches to. Looked up only to
//! word an error. A program that was attached by hand (`ip link set dev X xdp …`) has no owner and is not found;
//! neither are processes that we may not look into.

use std::fs;
use std::path::{Path, PathBuf};

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its ID.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// The process that holds an XDP link to the interface `ifindex`.
pub(crate) fn of(ifindex: u32) -> Option<Holder> {
    // An index means something else in another network namespace. Our own threads may be in several, so this process holds it only
    // if no other one does.
    let namespace = |process: &str| fs::read_link(Path::new("/proc").join(process).join("ns/net")).ok();
    let here = namespace("thread-self");
    let ours = std::process::id();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut others = pids.filter(|&pid| pid != ours && namespace(&pid.to_string()) == here);
    let pid = others.find(|&pid| holds(pid, ifindex)).or_else(|| holds(ours, ifindex).then_some(ours))?;
    let name = fs::read_to_string(process(pid).join("comm")).unwrap_or_default();
    Some(Holder { pid, name: name.trim().to_owned() })
}

fn process(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

fn holds(pid: u32, ifindex: u32) -> bool {
    let descriptors = fs::read_dir(process(pid).join("fdinfo")).into_iter().flatten().flatten();
    let mut infos = descriptors.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    infos.any(|info| is_xdp_link(&info, ifindex))
}

fn is_xdp_link(info: &str, ifindex: u32) -> bool {
    let value = |key: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.map(str::trim)
    };
    value("link_type") == Some("xdp") && value("ifindex") == Some(ifindex.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_xdp_link_to_that_interface_counts() {
        let info = "pos:\t0\nlink_type:\txdp\nlink_id:\t4\nprog_id:\t9\nifindex:\t12\n";
        assert!(is_xdp_link(info, 12) && !is_xdp_link(info, 1));
        assert!(!is_xdp_link(&info.replace("xdp", "tcx"), 12) && !is_xdp_link("pos:\t0\n", 12));
    }
}
