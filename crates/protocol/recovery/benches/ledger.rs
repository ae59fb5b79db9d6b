//! Cost of the ledger for a packet's whole life: sent, acknowledged, looked over for losses.
//!
//! A sender keeps a window of 1,000 packets full; the receiver acknowledges every 2, 10 or 40 packets with one
//! cumulative range, or with a hole that stays open for a while so that the range lies above it. Prints nanoseconds a
//! packet, best of several runs. `cargo bench -p tercel-recovery`.

use base::time::{Duration, Instant};
use core::hint::black_box;
use recovery::ledger::Ledger;
use recovery::packet::{PacketFlags, SentPacket};
use recovery::rtt::{PACKET_THRESHOLD, Rtt};

/// As large as what transport keeps for a STREAM frame.
#[derive(Clone, Copy)]
struct Frame {
    stream: u64,
    offset: u64,
    len: u32,
    kind: u32,
}

const WINDOW: u64 = 1_000;
const PACKETS: u64 = 2_000_000;
const RUNS: u32 = 7;

/// What the receiver leaves out.
#[derive(Clone, Copy, PartialEq)]
enum Holes {
    None,
    /// Of every 1,000 packets, one is never acknowledged.
    EveryThousandth,
}

fn main() {
    println!("ledger: window of {WINDOW} packets, one frame each, ns per packet (send + ack + loss check)");
    for holes in [Holes::None, Holes::EveryThousandth] {
        for every in [2, 10, 40] {
            let best = (0..RUNS).map(|_| run(every, holes)).fold(f64::INFINITY, f64::min);
            let name = if holes == Holes::None { "no loss" } else { "0.1 % loss" };
            println!("ack every {every:>2} packets, {name:<10}  {best:6.2}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn run(every: u64, holes: Holes) -> f64 {
    let mut ledger: Ledger<Frame> = Ledger::new();
    let mut rtt = Rtt::default();
    rtt.on_sample(Instant::ZERO, Duration::from_millis(1), Duration::ZERO);
    let mut seen = 0u64;
    let mut turn = |from: u64, count: u64, ledger: &mut Ledger<Frame>| {
        let now = Instant::from_nanos(from * 1_000);
        for pn in from..from + count {
            let packet = SentPacket { pn, sent_at: now, size: 1452, flags: PacketFlags::DATA };
            ledger.on_sent(packet, &[Frame { stream: 4, offset: pn * 1400, len: 1400, kind: 8 }]);
        }
        let Some(largest) = (from + count).checked_sub(WINDOW + 1) else { return };
        // The ranges above the last few holes, as a receiver that remembers them would send them.
        let low = largest / 1_000 * 1_000 + 1;
        let first = if holes == Holes::None { 0..=largest } else { low.min(largest)..=largest };
        let second = low.saturating_sub(1_000)..=low.saturating_sub(2);
        let ranges = if holes == Holes::None || low < 1_000 { 1 } else { 2 };
        let acked = ledger.on_ack([first, second].into_iter().take(ranges), &mut |packet, _, frames| {
            for frame in frames {
                seen = seen.wrapping_add(frame.offset ^ frame.stream ^ u64::from(frame.len ^ frame.kind));
            }
            seen = seen.wrapping_add(packet.pn);
        });
        assert!(acked.is_ok());
        let thresholds = rtt.loss_thresholds();
        black_box((thresholds.packets == PACKET_THRESHOLD, acked.map(|acked| acked.bytes).ok()));
        black_box(ledger.detect_losses(now, thresholds, &mut |_, _| {}).packets);
    };
    let started = std::time::Instant::now();
    for from in (0..PACKETS).step_by(every as usize) {
        turn(from, every, &mut ledger);
    }
    let elapsed = started.elapsed();
    black_box(seen);
    elapsed.as_nanos() as f64 / PACKETS as f64
}
