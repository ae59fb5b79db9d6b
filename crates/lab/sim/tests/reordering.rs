//! A path that delivers everything, but a part of it late.

use base::time::Duration;
use sim::transfer::{Workload, build, drive, verify};
use sim::{Node, Scenario};
use transport::Counters;

/// A download of 10 MB over 20 ms, of which each datagram arrives up to `by` late with this chance.
fn download(ppm: u32, by: Duration) -> Result<(f64, Counters), String> {
    let mut scenario = Scenario::interop(11);
    scenario.to_client = vec![
        Node::Rate { bits_per_second: 100_000_000, queue_bytes: 500_000 },
        Node::Delay(Duration::from_millis(10)),
        Node::Reorder { ppm, by },
    ];
    scenario.to_server = vec![Node::Delay(Duration::from_millis(10))];
    let plan = Workload::downloads([10_000_000]);
    let mut lab = build(&scenario, &plan)?;
    let time = drive(&mut lab, &scenario, &plan)?;
    verify(&mut lab, &plan)?;
    Ok((time.as_secs_f64(), lab.server().app_mut().counters))
}

/// With thresholds that never grow, packets that are only late are declared lost all the time, and sent again.
#[test]
fn packets_that_are_late_are_soon_no_longer_taken_for_lost() {
    let (orderly, _) = download(0, Duration::ZERO).expect("a download");
    let (seconds, counters) = download(300_000, Duration::from_millis(8)).expect("a download");
    println!("{seconds} s instead of {orderly}, {counters:?}");
    assert!(counters.lost_packets < 700, "a tenth of 7,000: {counters:?}");
    assert!(seconds < orderly * 2.0, "{seconds} s instead of {orderly}");
}
