//! A server and a client under a flood of datagrams that were changed, made up or forged: neither side panics, memory stays within
//! what the limits on half-open connections allow, and an honest client is served all the while.
//!
//! `SIM_ATTACK=10000000 cargo test --release -p tercel-sim --test attack` for the long run.

#![expect(clippy::panic, reason = "a helper of a test may panic as the test itself may")]

use base::time::Duration;
use sim::Scenario;
use sim::attack::{AttackReport, AttackRun};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use transport::RetryPolicy;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One siege at a time, since they share a count of memory.
static TURN: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;

fn besiege(retry: RetryPolicy, datagrams: u64, per_second: u64) -> (AttackReport, usize) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let datagrams = std::env::var("SIM_ATTACK").ok().and_then(|n| n.parse().ok()).unwrap_or(datagrams);
    let mut scenario = Scenario::interop(77);
    scenario.retry = retry;
    let attack_run = AttackRun { datagrams, per_second, patience: Duration::from_secs(20) };
    let before = HELD.load(Ordering::Relaxed);
    let mut peak = before;
    let outcome = attack_run.run(&scenario, |_| peak = peak.max(HELD.load(Ordering::Relaxed)));
    let peak = peak - before;
    let report = outcome.unwrap_or_else(|error| panic!("{retry:?}: {error}"));
    println!("{retry:?} {report:?}, {} KiB at most", peak / 1024);
    assert!(report.sent >= datagrams && report.served > 0);
    (report, peak)
}

/// As a server is by default: Retry once a hundred handshakes are under way.
#[test]
fn a_server_that_asks_for_proof_when_pressed() {
    let (report, peak) = besiege(RetryPolicy::Above(100), 300_000, 20_000);
    assert!(report.half_open <= 110, "{report:?}");
    assert!(peak < 12 * MIB, "{} MiB", peak / MIB);
}

/// Every handshake starts with a Retry: unknown clients get no state at all.
#[test]
fn a_server_that_always_asks_for_proof() {
    let (_, peak) = besiege(RetryPolicy::Always, 100_000, 20_000);
    assert!(peak < 8 * MIB, "{} MiB", peak / MIB);
}

/// Without Retry only the limit on half-open handshakes stands between a flood and the memory.
#[test]
fn a_server_that_never_asks_for_proof() {
    let (report, peak) = besiege(RetryPolicy::Never, 100_000, 5_000);
    assert!(report.half_open <= 4_096, "{report:?}");
    assert!(peak < 96 * MIB, "{} MiB", peak / MIB);
}
