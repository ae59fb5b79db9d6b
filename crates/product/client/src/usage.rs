//! What a download cost: CPU time, datagrams, system calls.

use crate::Stats;
use datapath::Counters;

/// What the process has used and its data path has counted, at one moment; or, as a difference, in a span of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU seconds in the process's own code.
    pub cpu_user_s: f64,
    /// CPU seconds in the kernel on the process's behalf.
    pub cpu_system_s: f64,
    /// Datagrams that arrived.
    pub received_datagrams: u64,
    /// Datagrams that were sent.
    pub sent_datagrams: u64,
    /// System calls that took datagrams in.
    pub receive_calls: u64,
    /// System calls that sent datagrams.
    pub send_calls: u64,
    /// System calls that waited for something to happen.
    pub waits: u64,
    /// Datagrams that the kernel discarded because we were too slow.
    pub overflowed: u64,
}

impl Usage {
    /// As of now.
    pub fn now(counters: &Counters) -> Usage {
        let (cpu_user_s, cpu_system_s) = cpu::process_seconds_by_mode();
        Usage {
            cpu_user_s,
            cpu_system_s,
            received_datagrams: counters.rx.datagrams,
            sent_datagrams: counters.tx.datagrams,
            receive_calls: counters.rx.calls,
            send_calls: counters.tx.calls,
            waits: counters.waits,
            overflowed: counters.rx.overflowed,
        }
    }

    /// As of now, with what a client has counted.
    pub fn of_client(stats: &Stats) -> Usage {
        Usage {
            received_datagrams: stats.received_datagrams,
            sent_datagrams: stats.sent_datagrams,
            receive_calls: stats.receive_calls,
            send_calls: stats.send_calls,
            waits: stats.waits,
            overflowed: stats.overflowed_datagrams,
            ..Usage::now(&Counters::default())
        }
    }

    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            cpu_user_s: (self.cpu_user_s - earlier.cpu_user_s).max(0.0),
            cpu_system_s: (self.cpu_system_s - earlier.cpu_system_s).max(0.0),
            received_datagrams: self.received_datagrams.saturating_sub(earlier.received_datagrams),
            sent_datagrams: self.sent_datagrams.saturating_sub(earlier.sent_datagrams),
            receive_calls: self.receive_calls.saturating_sub(earlier.receive_calls),
            send_calls: self.send_calls.saturating_sub(earlier.send_calls),
            waits: self.waits.saturating_sub(earlier.waits),
            overflowed: self.overflowed.saturating_sub(earlier.overflowed),
        }
    }

    /// Both together: of several ports.
    pub fn plus(&self, other: &Usage) -> Usage {
        Usage {
            cpu_user_s: self.cpu_user_s + other.cpu_user_s,
            cpu_system_s: self.cpu_system_s + other.cpu_system_s,
            received_datagrams: self.received_datagrams + other.received_datagrams,
            sent_datagrams: self.sent_datagrams + other.sent_datagrams,
            receive_calls: self.receive_calls + other.receive_calls,
            send_calls: self.send_calls + other.send_calls,
            waits: self.waits + other.waits,
            overflowed: self.overflowed + other.overflowed,
        }
    }

    /// System calls of all kinds.
    pub fn calls(&self) -> u64 {
        self.receive_calls + self.send_calls + self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows() {
        let before = Usage::now(&Counters::default());
        let sum = (0..20_000_000u64).fold(0u64, |sum, n| std::hint::black_box(sum ^ n));
        std::hint::black_box(sum);
        let used = Usage::now(&Counters::default()).since(&before);
        assert!(used.cpu_user_s + used.cpu_system_s > 0.001, "{used:?}");
    }
}
