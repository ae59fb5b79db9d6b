//! Someone on the path copies a client's packets and sends them on from another address, faster than the originals travel.
//! The server must not be turned into a weapon against that address, and the client must still be served.
//! Source: RFC 9000 §9.3.1 to §9.3.3, §21.1.1.

#![expect(clippy::unwrap_used, reason = "a helper of a test may panic as the test itself may")]

use base::time::Duration;
use core::net::SocketAddr;
use sim::transfer::{Transfer, TransferPlan, TransferSimulation, Workload, build};
use sim::{HostOptions, Node, ReadBehaviour, Scenario, StopReason};

/// Where the copies claim to come from.
const VICTIM: ([u8; 4], u16) = ([203, 0, 113, 9], 7_000);

/// What passed between the server and the victim's address.
#[derive(Debug, Default)]
struct Traffic {
    copied: u64,
    sent: u64,
}

/// Downloads 3 MB while one of `every` datagrams of the client's is copied. Returns the time it took and the traffic.
fn download(every: u64) -> (Duration, Traffic) {
    let mut scenario = Scenario::interop(9);
    scenario.client.keep_alive = Some(Duration::from_millis(300));
    let mut lab: TransferSimulation = build(&scenario, &Workload::downloads([])).unwrap();
    let victim: SocketAddr = VICTIM.into();
    let (server, client) = lab.hosts();
    let (camp, server_address, client_address) = {
        let mut network = lab.network().borrow_mut();
        let camp = network.add_host(victim, HostOptions { coalesce: Duration::from_micros(1) });
        network.add_link(camp, server, vec![Node::Delay(Duration::from_millis(2))]);
        network.start_tap();
        (camp, network.address(server), network.address(client))
    };
    let read_behaviour = ReadBehaviour::new(scenario.app_rng(), 0);
    lab.connect(TransferPlan::new(read_behaviour, [Transfer::download(3_000_000)], 1)).unwrap();
    let (mut traffic, mut seen) = (Traffic::default(), 0);
    let halt = lab.run(Duration::from_secs(60), |lab| {
        let mut network = lab.network().borrow_mut();
        for sighting in network.take_sightings() {
            if sighting.destination == victim {
                traffic.sent += sighting.bytes.len() as u64;
            }
            let is_short = sighting.bytes.first().is_some_and(|first| first & 0x80 == 0);
            if sighting.source == client_address && is_short {
                seen += 1;
                if seen % every == 0 {
                    traffic.copied += sighting.bytes.len() as u64;
                    let copy = sim::network::CapturedDatagram {
                        source: victim,
                        destination: server_address,
                        ..sighting
                    };
                    network.inject(camp, copy);
                }
            }
        }
        // No host is there; what is sent is counted above.
        drop(network);
        lab.client().app_mut().done == 1 || !lab.client().app_mut().failures.is_empty()
    });
    assert_eq!(halt, StopReason::Done, "{traffic:?} {:?}", lab.client().app_mut().failures);
    assert!(lab.client().app_mut().failures.is_empty(), "{:?}", lab.client().app_mut().failures);
    (lab.age(), traffic)
}

#[test]
fn copies_from_elsewhere_cost_little_and_hit_nobody() {
    for every in [3, 10, 50] {
        let (time, traffic) = download(every);
        println!("one of {every}: {time:?} {traffic:?}");
        assert!(traffic.copied > 0);
        assert!(traffic.sent <= 3 * traffic.copied, "{traffic:?}");
        assert!(time < Duration::from_secs(30), "one of {every}: {time:?}");
    }
}
