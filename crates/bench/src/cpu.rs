//! What a process may run on, and what it has used.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Keeps the calling thread on one core, so that two processes do not share one and caches stay warm.
///
/// # Errors
/// When there is no such core, or it is not ours.
pub fn pin(core: usize) -> std::io::Result<()> {
    pin_to(&[core])
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

/// CPU seconds that this process has used so far, its own and the kernel's on its behalf: what getrusage sums up,
/// with a resolution of nanoseconds.
pub fn process_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
