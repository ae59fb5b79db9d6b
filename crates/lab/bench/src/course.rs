//! What a server did in the course of a trial: its share of its core, and what left its end of the link, interval by interval.
//!
//! A thread reads two counters of the kernel's: the CPU time of the process, and the bytes that the interface in its network namespace
//! has sent. Any server has both. Kept are sums with their times; when there are too many, every second one goes, so that a long trial
//! has longer intervals and no more of them.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

/// How often the counters are read at first.
const EVERY: Duration = Duration::from_millis(100);
/// No more intervals than this are kept.
const MOST: usize = 64;

/// An interval of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Its middle, in seconds from the beginning of the trial.
    pub at_s: f64,
    /// The share of a core that the process used.
    pub core_share: f64,
    /// 10^6 bytes a second that left its interface, all headers included; none on loopback, which all programs share.
    pub sent_mb_per_second: Option<f64>,
}

/// Counters at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    at_s: f64,
    cpu_s: f64,
    sent: Option<u64>,
}

/// A thread that watches a process; it ends when this does.
#[derive(Debug)]
pub struct CourseWatch {
    end: Sender<()>,
    thread: JoinHandle<Vec<Reading>>,
}

impl CourseWatch {
    /// Begins to watch the process of this id, which sends by `interface` of its network namespace, if that is its own.
    pub fn start(pid: u32, interface: Option<&str>) -> CourseWatch {
        let (end, ended) = channel();
        let interface = interface.map(str::to_owned);
        let thread = std::thread::spawn(move || {
            let (mut readings, mut every) = (Readings::default(), EVERY);
            let began = cpu::clock_seconds();
            loop {
                let Some(cpu_s) = cpu::seconds_of(pid) else { return readings.0 };
                let sent = interface.as_ref().and_then(|interface| sent_by(pid, interface));
                if readings.push(Reading { at_s: cpu::clock_seconds() - began, cpu_s, sent }) == Kept::Halved
                {
                    every *= 2;
                }
                match ended.recv_timeout(every) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return readings.0,
                }
            }
        });
        CourseWatch { end, thread }
    }

    /// Ends, with what was seen.
    pub fn finish(self) -> Vec<Interval> {
        // The thread has ended by itself if the process has.
        let _ = self.end.send(());
        let readings = self.thread.join().unwrap_or_default();
        readings.windows(2).filter_map(interval).collect()
    }
}

#[derive(Default)]
struct Readings(Vec<Reading>);

/// What became of the readings that were there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    All,
    Halved,
}

impl Readings {
    fn push(&mut self, reading: Reading) -> Kept {
        self.0.push(reading);
        if self.0.len() <= MOST {
            return Kept::All;
        }
        let mut number = 0;
        self.0.retain(|_| {
            number += 1;
            number % 2 == 1
        });
        Kept::Halved
    }
}

fn interval(pair: &[Reading]) -> Option<Interval> {
    let [from, to] = pair else { return None };
    let seconds = to.at_s - from.at_s;
    let sent = from.sent.zip(to.sent).map(|(from, to)| to.saturating_sub(from) as f64 / 1e6 / seconds);
    (seconds > 0.0).then_some(Interval {
        at_s: (from.at_s + to.at_s) / 2.0,
        core_share: (to.cpu_s - from.cpu_s) / seconds,
        sent_mb_per_second: sent,
    })
}

/// Bytes that an interface of a process's network namespace has sent so far.
fn sent_by(pid: u32, interface: &str) -> Option<u64> {
    sent_in(&std::fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?, interface)
}

/// The ninth figure behind an interface's name. Source: proc_pid_net(5).
fn sent_in(table: &str, interface: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.trim().split_once(':'));
    let (_, figures) = lines.find(|(name, _)| *name == interface)?;
    figures.split_whitespace().nth(8)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a long trial could fill the results, or the intervals of a halved course stand at the wrong time.
    #[test]
    fn a_long_course_has_longer_intervals_and_no_more_of_them() {
        let mut readings = Readings::default();
        let mut halved = 0;
        for number in 0..1_000_u32 {
            let at_s = f64::from(number);
            // Half a core, and 3 MB a second.
            let reading = Reading { at_s, cpu_s: at_s / 2.0, sent: Some(u64::from(number) * 3_000_000) };
            halved += u32::from(readings.push(reading) == Kept::Halved);
        }
        assert!(halved > 3 && readings.0.len() <= MOST, "{halved}");
        let course: Vec<Interval> = readings.0.windows(2).filter_map(interval).collect();
        for Interval { core_share, sent_mb_per_second, .. } in &course {
            assert!((core_share - 0.5).abs() < 1e-9, "{course:?}");
            assert!((sent_mb_per_second.unwrap() - 3.0).abs() < 1e-9, "{course:?}");
        }
        assert!(course.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
    }

    #[test]
    fn what_an_interface_has_sent_is_read_by_its_name() {
        let table = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n    lo: 1 2 3 4 5 6 7 8 9 10 11\n  veth0: 11 12 13 14 15 16 17 18 4711 20 21\n";
        assert_eq!(
            (sent_in(table, "veth0"), sent_in(table, "lo"), sent_in(table, "eth0")),
            (Some(4_711), Some(9), None)
        );
    }

    #[test]
    fn a_process_that_works_is_seen_to() {
        let watch = CourseWatch::start(std::process::id(), Some("lo"));
        let began = cpu::clock_seconds();
        while cpu::clock_seconds() - began < 0.35 {
            std::hint::spin_loop();
        }
        let course = watch.finish();
        assert!(!course.is_empty() && course.iter().any(|interval| interval.core_share > 0.0), "{course:?}");
        assert!(course.iter().all(|interval| interval.sent_mb_per_second.is_some()), "{course:?}");
        assert_eq!(CourseWatch::start(u32::MAX, None).finish(), []);
    }
}
