//! What one datagram costs on a port: a burst through the port's own `begin`, `room`, `push`, `end`, `flush`, and the CPU
//! time that this thread spent on it, in user space and in the kernel.
//!
//! CPU time, not time: another program that takes the core for a moment does not count, and neither does waiting for a
//! queue. What the kernel does elsewhere on the datagrams' behalf (on another core, in an interrupt) is not seen. On `lo` the
//! kernel delivers within the send call, so that delivery is part of the figure.

use base::net::{Addresses, Ecn};
use base::sink::TrainPath;
use base::time::{Duration, Instant};
use datapath::Port;
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// Datagrams of one burst: where they go, how long, how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    pub(crate) addresses: Addresses,
    /// Bytes of UDP payload of each.
    pub(crate) size: usize,
    pub(crate) datagrams: u64,
}

/// How often a burst goes on although the port has no room, before it is given up.
const PATIENCE: u32 = 64;

/// Sends a burst on `port`. Returns nanoseconds of CPU for each datagram that left.
///
/// # Errors
/// The port has failed, or it did not take the datagrams.
pub(crate) fn send<P: Port>(port: &mut P, burst: &Burst) -> io::Result<f64> {
    let before = port.counters().tx;
    let began = cpu_time();
    let mut left = burst.datagrams;
    let mut held_up = 0;
    while left > 0 {
        let path = TrainPath::new(burst.addresses, Ecn::NotEct);
        let Some(most) = port.begin(path, burst.size) else {
            port.flush()?;
            held_up += 1;
            if held_up > PATIENCE {
                break;
            }
            continue;
        };
        for _ in 0..left.min(most as u64) {
            // Nothing of ours goes out by accident: the room may hold what was there before.
            port.room().fill(0);
            port.push(burst.size);
            left -= 1;
        }
        port.end();
    }
    port.flush()?;
    let spent = cpu_time().saturating_since(began);
    let after = port.counters().tx;
    let sent = after.datagrams - before.datagrams;
    if sent < burst.datagrams {
        let lost = after.lost() - before.lost();
        return Err(io::Error::other(if lost > 0 {
            "the interface refuses what is sent"
        } else {
            "the interface takes too little"
        }));
    }
    Ok(spent.as_nanos() as f64 / sent as f64)
}

/// CPU time of this thread so far.
fn cpu_time() -> Instant {
    read(ClockId::ThreadCPUTime)
}

/// The clock that deadlines are on.
pub(crate) fn clock() -> Instant {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Instant {
    let time = clock_gettime(clock);
    let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
    Instant::ZERO + seconds + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}
