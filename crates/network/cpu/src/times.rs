//! What threads have used of the machine, as the scheduler counts it: time on a core, and time spent waiting for one.
//!
//! The second figure tells a generator that had nothing to do from one that was not let do it: where client and server
//! share cores, neither need ever reach 100 %. Source: /proc/PID/task/TID/schedstat, nanoseconds.

use serde::Serialize;
use std::fs;

/// Of one thread, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// Seconds on a core.
    pub cpu_s: f64,
    /// Seconds in which it could have run and another had the core.
    pub waited_s: f64,
}

impl Times {
    /// The calling thread's, so far.
    pub fn of_this_thread() -> Times {
        let counted = fs::read_to_string("/proc/thread-self/schedstat").ok().and_then(|text| parse(&text));
        // The clock works without /proc, and is exact within a time slice.
        Times { cpu_s: crate::thread_seconds(), waited_s: counted.map_or(0.0, |times| times.waited_s) }
    }

    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Times) -> Times {
        Times {
            cpu_s: (self.cpu_s - earlier.cpu_s).max(0.0),
            waited_s: (self.waited_s - earlier.waited_s).max(0.0),
        }
    }

    /// Both figures together.
    pub fn plus(&self, other: &Times) -> Times {
        Times { cpu_s: self.cpu_s + other.cpu_s, waited_s: self.waited_s + other.waited_s }
    }
}

fn parse(text: &str) -> Option<Times> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let (cpu, waited) = (fields.next()??, fields.next()??);
    Some(Times { cpu_s: cpu as f64 / 1e9, waited_s: waited as f64 / 1e9 })
}

/// All threads of a process at one moment.
#[derive(Clone, Debug, Default)]
pub struct ProcessTimes(Vec<(u32, Times)>);

impl ProcessTimes {
    /// Of the process, now; `None` when there is none, or /proc does not say.
    pub fn of(pid: u32) -> Option<ProcessTimes> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let read = |entry: fs::DirEntry| {
            let thread = entry.file_name().to_str()?.parse().ok()?;
            let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
            Some((thread, parse(&text)?))
        };
        let times: Vec<_> = tasks.flatten().filter_map(read).collect();
        (!times.is_empty()).then_some(ProcessTimes(times))
    }

    /// What each thread used since `earlier`; a thread that is new has used all it has.
    pub fn since(&self, earlier: &ProcessTimes) -> Vec<Times> {
        let before =
            |thread: u32| earlier.0.iter().find(|(known, _)| *known == thread).map(|(_, times)| *times);
        self.0.iter().map(|(thread, times)| times.since(&before(*thread).unwrap_or_default())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_thread_and_in_the_process() {
        let (thread, process) = (Times::of_this_thread(), ProcessTimes::of(std::process::id()).unwrap());
        let sum = (0..30_000_000u64).fold(0u64, |sum, n| std::hint::black_box(sum ^ n));
        std::hint::black_box(sum);
        let used = Times::of_this_thread().since(&thread);
        // The scheduler books a running thread's time at its next tick: give it one.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let threads = ProcessTimes::of(std::process::id()).unwrap().since(&process);
        let busiest = threads.iter().map(|times| times.cpu_s).fold(0.0, f64::max);
        assert!(used.cpu_s > 0.001 && busiest > used.cpu_s / 2.0, "{used:?} {threads:?}");
        assert!(ProcessTimes::of(u32::MAX).is_none());
        assert_eq!(parse("2000000000 500000000 7\n"), Some(Times { cpu_s: 2.0, waited_s: 0.5 }));
        assert_eq!(parse("nonsense"), None);
    }
}
