//! How much memory this process may still take: what the machine has, what its control groups leave it, what the shell's limits
//! leave it, whichever is least.
//!
//! The page cache counts as free. A process that goes beyond is not told: it is killed, or an allocation fails and it aborts.

use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::{Path, PathBuf};

/// What may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// In bytes.
    pub bytes: u64,
    /// What bounds it, for people.
    pub bound: &'static str,
}

impl Memory {
    /// What this process may take at present; `None` where the system does not say.
    pub fn available() -> Option<Memory> {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let machine = kibibytes(&read(Path::new("/proc/meminfo")), "MemAvailable:");
        let status = read(Path::new("/proc/self/status"));
        let left = |resource, used: &str| {
            let limit = getrlimit(resource).current?;
            Some(limit.saturating_sub(kibibytes(&status, used).unwrap_or(0)))
        };
        let bounds = [
            (machine, "free memory"),
            (control_groups(&read(Path::new("/proc/self/cgroup")), read), "control group"),
            (left(Resource::As, "VmSize:"), "ulimit -v"),
            (left(Resource::Data, "VmData:"), "ulimit -d"),
        ];
        let known = bounds.into_iter().filter_map(|(bytes, bound)| Some(Memory { bytes: bytes?, bound }));
        known.min_by_key(|memory| memory.bytes)
    }

    /// What a server's connections may hold together by default, in bytes: half.
    pub fn share(self) -> u64 {
        self.bytes / 2
    }
}

/// The value of a line such as `MemAvailable:    7981564 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// What the control groups of a process leave it, by the content of `/proc/self/cgroup`.
fn control_groups(own: &str, read: impl Fn(&Path) -> String) -> Option<u64> {
    let of_group = |group: &Path| {
        // Version 2, then version 1.
        let names = [
            ("memory.max", "memory.current", "active_file ", "inactive_file "),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file ", "total_inactive_file "),
        ];
        names.into_iter().find_map(|(limit, used, active, inactive)| {
            let number = |name: &str| read(&group.join(name)).trim().parse::<u64>().ok();
            let stat = read(&group.join("memory.stat"));
            let line =
                |name| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
            let cache = line(active).unwrap_or(0).saturating_add(line(inactive).unwrap_or(0));
            Some(number(limit)?.saturating_sub(number(used)?.saturating_sub(cache)))
        })
    };
    let places = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            _ if controllers.split(',').any(|name| name == "memory") => "/sys/fs/cgroup/memory",
            _ => return None,
        };
        Some((PathBuf::from(root), PathBuf::from(root).join(path)))
    });
    // Each group on the way up may be the one with the limit.
    let groups = places.flat_map(|(root, group)| {
        let ancestors: Vec<PathBuf> = group.ancestors().map(Path::to_owned).collect();
        ancestors.into_iter().filter(move |place| place.starts_with(&root))
    });
    groups.filter_map(|group| of_group(&group)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        let text = "MemTotal:       16384 kB\nMemAvailable:     100 kB\n";
        assert_eq!(kibibytes(text, "MemAvailable:"), Some(102_400));
        assert_eq!(kibibytes(text, "VmSize:"), None);
        assert!(Memory::available().is_some_and(|memory| memory.bytes > 0 && memory.share() < memory.bytes));
    }

    #[test]
    fn the_tightest_control_group_counts_and_the_page_cache_does_not() {
        let read = |path: &Path| {
            let text = match path.to_str().unwrap() {
                "/sys/fs/cgroup/a/b/memory.max" | "/sys/fs/cgroup/memory/c/memory.limit_in_bytes" => "max",
                "/sys/fs/cgroup/a/memory.max" => "1000\n",
                "/sys/fs/cgroup/a/memory.current" => "700\n",
                "/sys/fs/cgroup/a/memory.stat" => "anon 400\ninactive_file 200\nactive_file 100\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "900",
                "/sys/fs/cgroup/memory/memory.usage_in_bytes" => "800",
                _ => "",
            };
            text.to_owned()
        };
        assert_eq!(control_groups("0::/a/b\n", read), Some(600));
        assert_eq!(control_groups("3:cpu:/x\n4:memory,hugetlb:/c\n", read), Some(100));
        assert_eq!(control_groups("0::/\n", read), None);
    }
}
