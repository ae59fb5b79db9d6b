//! The loss of every single datagram, and of every pair in a row: handshake, Retry, key updates, path challenges, MTU probes,
//! the close. Others have crashed or stalled when the one packet was lost whose loss was never tried.

use base::time::Duration;
use crypto::KeyExchange;
use sim::transfer::{Report, Workload, run};
use sim::{Node, Renewal, Scenario};
use transport::{RetryPolicy, Switch};
use wire::Version;

/// Losing one or two datagrams must not cost more than this: the first probe timeout is 1 s, the second 2 s.
const PATIENCE: Duration = Duration::from_millis(3_500);

/// Datagrams of each direction that are lost in turn: all there are in most scenarios.
const DATAGRAMS: u64 = 90;

fn scenarios() -> Vec<(&'static str, Scenario, Workload)> {
    let plain = Scenario::interop(1);
    let small = Workload::downloads([1, 3_000, 30_000]);
    let mut retry = plain.clone();
    retry.retry = RetryPolicy::Always;
    let mut large = plain.clone();
    large.tls.key_exchange = KeyExchange::PostQuantum;
    large.tls.chain = 4;
    let mut v2 = plain.clone();
    (v2.client.version, v2.client.ecn) = (Version::V2, Switch::Off);
    let mut updates = plain.clone();
    (updates.client.key_update_after, updates.server.key_update_after) = (5, 11);
    let mut moving = plain.clone();
    moving.client.keep_alive = Some(Duration::from_millis(200));
    let [at, every] = [30, 70].map(Duration::from_millis);
    moving.to_server.insert(0, Node::Rebind { at, every, times: 2, what: Renewal::Address });
    let mut tight = plain.clone();
    for streams in [&mut tight.client.streams, &mut tight.server.streams] {
        streams.initial_stream_window = 2_000;
        streams.initial_connection_window = 3_000;
        streams.max_bidi_streams = 1;
    }
    vec![
        ("plain", plain, small.clone()),
        ("retry", retry, small.clone()),
        ("large first flights", large, small.clone()),
        ("version 2 without ECN", v2, small.clone()),
        ("key updates", updates, small.clone()),
        ("a client that moves", moving, Workload::downloads([200_000])),
        ("tight windows", tight, small),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Way {
    ToServer,
    ToClient,
}

/// Runs `scenario` without the datagrams `lost`, counted from 1, of one direction.
fn without(scenario: &Scenario, plan: &Workload, lost: &[u64], way: Way) -> Result<Report, String> {
    let mut scenario = scenario.clone();
    let nodes = match way {
        Way::ToServer => &mut scenario.to_server,
        Way::ToClient => &mut scenario.to_client,
    };
    nodes.insert(0, Node::Drop(lost.to_vec()));
    run(&scenario, plan)
}

#[test]
fn no_datagram_is_indispensable() {
    let mut failures = Vec::new();
    for (name, scenario, plan) in scenarios() {
        let whole = run(&scenario, &plan).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut worst = Duration::ZERO;
        for first in 1..=DATAGRAMS {
            for way in [Way::ToServer, Way::ToClient] {
                for lost in [&[first][..], &[first, first + 1]] {
                    match without(&scenario, &plan, lost, way) {
                        Ok(report) if report.time <= whole.time + PATIENCE => worst = worst.max(report.time),
                        Ok(report) => failures.push(format!("{name}, {lost:?} {way:?}: {:?}", report.time)),
                        Err(error) => failures.push(format!("{name}, {lost:?} {way:?}: {error}")),
                    }
                }
            }
        }
        println!("{name}: {:?} whole, {worst:?} at worst", whole.time);
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
