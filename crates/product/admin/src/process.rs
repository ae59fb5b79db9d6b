//! What the system says of the process: proc_pid_stat(5), proc_pid_status(5).

use rustix::process::{Resource, getrlimit};
use std::fs;

/// The process, as far as the system tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process {
    pub(crate) cpu_s: f64,
    pub(crate) start_s: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) virtual_bytes: u64,
    pub(crate) open_descriptors: u64,
    pub(crate) max_descriptors: Option<u64>,
}

/// Times in proc_pid_stat(5) are in such parts of a second (USER_HZ), whatever the kernel's own clock.
const TICKS: f64 = 100.0;

impl Process {
    /// This process, now.
    pub(crate) fn of_self() -> Process {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program may have spaces and parentheses.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        // The fields are numbered from 1, and the first behind the name is the third.
        let started = rest.split_whitespace().nth(22 - 3).and_then(|field| field.parse().ok());
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Process {
            cpu_s: cpu::process_seconds(),
            start_s: boot_s() + started.unwrap_or(0.0) / TICKS,
            resident_bytes: kibibytes(&status, "VmRSS:"),
            virtual_bytes: kibibytes(&status, "VmSize:"),
            // Without the descriptor by which they are counted.
            open_descriptors: fs::read_dir("/proc/self/fd")
                .map_or(0, |all| all.count().saturating_sub(1) as u64),
            max_descriptors: getrlimit(Resource::Nofile).current,
        }
    }
}

/// What a line of proc_pid_status(5) says, in bytes.
fn kibibytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1_024)
}

/// When the machine was started, in seconds since 1970.
fn boot_s() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    line.and_then(|text| text.trim().parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_of_a_test_is_young_small_and_has_descriptors() {
        let process = Process::of_self();
        let now = server::date::unix_now() as f64;
        assert!(process.start_s > now - 100_000.0 && process.start_s < now + 5.0, "{process:?}");
        assert!(
            process.resident_bytes > 100_000 && process.virtual_bytes > process.resident_bytes,
            "{process:?}"
        );
        assert!(process.open_descriptors >= 3, "{process:?}");
        assert!(process.max_descriptors.is_none_or(|most| most >= process.open_descriptors), "{process:?}");
    }
}
