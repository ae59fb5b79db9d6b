//! CPUs: which ones a process may run on, what it has used of them, and the clock beside that.
#![forbid(unsafe_code)]

pub mod times;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;

/// Keeps the calling thread on one core, so that two processes do not share one and caches stay warm.
///
/// # Errors
/// When there is no such core, or it is not ours.
pub fn pin(core: usize) -> std::io::Result<()> {
    UNPINNED.get_or_init(allowed);
    pin_to(&[core])
}

/// The cores of the thread that was the first to be pinned, before it was.
static UNPINNED: OnceLock<Vec<usize>> = OnceLock::new();

/// The cores that a thread may run on which [`pin`] has not bound to one.
pub fn unpinned() -> Vec<usize> {
    UNPINNED.get().cloned().unwrap_or_else(allowed)
}

/// Undoes what the calling thread has inherited of [`pin`] from the thread that started it. Where the system refuses, it stays there.
pub fn unpin() {
    if let Some(cores) = UNPINNED.get() {
        let _ = pin_to(cores);
    }
}

/// Keeps the calling thread on these cores.
///
/// # Errors
/// When one does not exist, or none is ours.
pub fn pin_to(cores: &[usize]) -> std::io::Result<()> {
    pin_process(None, cores)
}

/// Keeps the main thread of a process, and what it starts from now on, on these cores; `None` is the calling thread.
///
/// # Errors
/// When a core does not exist, none is ours, or the process has gone.
pub fn pin_process(pid: Option<Pid>, cores: &[usize]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores {
        if core >= CpuSet::MAX_CPU {
            return Err(std::io::Error::other(format!("there is no core {core}")));
        }
        set.set(core);
    }
    sched_setaffinity(pid, &set)?;
    Ok(())
}

/// The cores that the calling thread may run on, in order; empty when the system does not say.
pub fn allowed() -> Vec<usize> {
    let Ok(cores) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&core| cores.is_set(core)).collect()
}

/// The first two cores that we may use, or the only one twice.
pub fn first_two() -> [usize; 2] {
    let allowed = allowed();
    let first = allowed.first().copied().unwrap_or(0);
    [first, allowed.get(1).copied().unwrap_or(first)]
}

/// Seconds on the system's monotonic clock: for measurements, which no data path's clock is there for.
pub fn clock_seconds() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// CPU seconds that this process has used so far, its own and the kernel's on its behalf: what getrusage sums up,
/// with a resolution of nanoseconds.
pub fn process_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// CPU seconds that the calling thread has used so far, its own and the kernel's on its behalf.
pub fn thread_seconds() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// The same as [`process_seconds`] in two parts: in the process's own code, and in the kernel on its behalf. The sum has the clock's
/// resolution; the kernel tells the shares in ticks of 10 ms.
pub fn process_seconds_by_mode() -> (f64, f64) {
    let total = process_seconds();
    let (user, system) = ticks().unwrap_or((1, 0));
    let share = user as f64 / (user + system).max(1) as f64;
    (total * share, total * (1.0 - share))
}

/// Fields 14 and 15 of /proc/self/stat (proc_pid_stat(5)). The second field is a name in parentheses, with anything in it.
fn ticks() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user = fields.next()?.parse().ok()?;
    let system = fields.next()?.parse().ok()?;
    Some((user, system)).filter(|(user, system)| user + system > 0)
}

/// CPU seconds that a process has used so far: the sum over its threads as the scheduler counts them, in nanoseconds. `None`
/// when it has gone.
pub fn seconds_of(pid: u32) -> Option<f64> {
    let mut nanoseconds = 0_u64;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread that ends meanwhile is not there any more.
        let counted = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        nanoseconds += counted.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0);
    }
    Some(nanoseconds as f64 / 1e9)
}

/// Seconds that a core has been busy since the machine started, for any user: processes, interrupts, the kernel's own
/// threads. In steps of 10 ms.
pub fn busy_seconds(core: usize) -> f64 {
    let all = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let name = format!("cpu{core}");
    let line = all.lines().find(|line| line.split(' ').next() == Some(name.as_str())).unwrap_or("");
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user, nice, system, (idle, iowait,) irq, softirq
    let busy: u64 = [0, 1, 2, 5, 6].iter().filter_map(|&field| ticks.get(field)).sum();
    busy as f64 / 100.0
}
