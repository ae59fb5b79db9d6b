//! Cost of each congestion controller: a train of ten packets leaves, an ACK frame for ten comes back, the rate is asked for.
//!
//! A window of 1,000 packets over 20 ms. Prints nanoseconds a packet, best of several runs. `cargo bench -p tercel-recovery`.

use base::time::{Duration, Instant};
use core::hint::black_box;
use recovery::congestion::{AckedBytes, Algorithm, Controller};
use recovery::rtt::Rtt;

const TRAIN: u64 = 10;
const SIZE: u64 = 1_452;
const WINDOW: u64 = 1_000 * SIZE;
const TRAINS: u64 = 300_000;
const RUNS: u32 = 7;
/// So that a window takes a round trip.
const GAP: Duration = Duration::from_micros(200);
const RTT: Duration = Duration::from_millis(20);

fn main() {
    println!("controllers: trains of {TRAIN} packets, ns per packet (sent + acknowledged + rate)");
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague] {
        let best = (0..RUNS).map(|_| run(algorithm)).fold(f64::INFINITY, f64::min);
        println!("{:<8} {best:6.2}", format!("{algorithm:?}"));
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn run(algorithm: Algorithm) -> f64 {
    let mut controller = Controller::new(algorithm, SIZE as u16);
    let mut rtt = Rtt::default();
    rtt.on_sample(Instant::ZERO, RTT, Duration::ZERO);
    let started = std::time::Instant::now();
    for train in 0..TRAINS {
        let now = Instant::ZERO + GAP * (train + 1_000);
        controller.on_sent(now, TRAIN * SIZE, WINDOW);
        let acked = AckedBytes {
            bytes: TRAIN * SIZE,
            packets: TRAIN,
            largest_sent_at: now - RTT,
            app_limited: false,
            rtt: RTT,
            latest_rtt: Some(RTT),
            ack_delay: Duration::ZERO,
            in_flight: WINDOW - TRAIN * SIZE,
            ce: 0,
            spurious: 0,
            spurious_from: None,
        };
        controller.on_ack(now, &acked);
        black_box(controller.pacing_rate(&rtt));
    }
    let elapsed = started.elapsed();
    black_box(controller.window());
    elapsed.as_nanos() as f64 / (TRAINS * TRAIN) as f64
}
