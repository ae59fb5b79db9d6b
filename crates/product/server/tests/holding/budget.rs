//! A server with little memory, and clients that want all of it.

use super::client::{Clients, Pace};
use super::{Peer, World, connected, folder, options, pass, server, world};
use base::time::{Duration, Instant};
use qlog::{Beginning, Keep, Output, Refused, Trace, Tracer, Triggers};
use server::budget::{Budget, Level};
use server::handler::FileOptions;
use sim::{Scenario, StopReason};
use std::sync::Arc;
use transport::TransportConfig;

const LIMIT: u64 = 6 << 20;

fn within(budget: &Budget, mut options: FileOptions) -> FileOptions {
    options.budget = budget.clone();
    options
}

/// Connections with a hundred requests each and windows of 300 bytes; connections that are refused are not among them.
fn besiege(world: &mut World, count: usize) -> Vec<Peer> {
    let mut besiegers = Vec::new();
    for _ in 0..count {
        let peer = Peer::begin(world, Pace::Slow(0, Duration::from_secs(1_000)));
        if world.run(Duration::from_millis(300), |_| peer.is_up()) == StopReason::Done {
            for _ in 0..100 {
                peer.get(world, "/large");
            }
            besiegers.push(peer);
        }
    }
    besiegers
}

/// Issue 10, row 1.2: with a limit on its address space the process aborted.
#[test]
fn a_small_budget_is_kept_and_honest_clients_are_served() {
    let folder = folder();
    let budget = Budget::new(LIMIT);
    let mut world = world(server(within(&budget, options(folder.path()))), 300);
    let besiegers = besiege(&mut world, 90);
    assert!(besiegers.len() > 20, "{} got in", besiegers.len());
    assert!(budget.held() <= LIMIT && budget.held() > LIMIT / 2, "{} held", budget.held());
    world.client_config_mut().transport = Arc::new(TransportConfig::default());
    let honest = Peer::begin(&mut world, Pace::All);
    let mut most = 0;
    let halt = world.run(Duration::from_secs(10), |_| {
        most = most.max(budget.held());
        honest.is_up()
    });
    assert_eq!(halt, StopReason::Done, "memory is had again within the time that a client waits");
    for path in ["/large", "/small", "/bytes/3000000"] {
        // It has the besiegers' address, whose share is used up: for a moment it may hear 503 with Retry-After.
        let is_served = (0..3).any(|_| {
            let id = honest.get(&mut world, path);
            let halt = world.run(Duration::from_secs(20), |_| {
                most = most.max(budget.held());
                honest.has_ended(id)
            });
            assert_eq!(halt, StopReason::Done, "{path}");
            let status = honest.response(id).0;
            if status == 503 {
                pass(&mut world, Duration::from_secs(1));
            }
            status == 200
        });
        assert!(is_served, "{path}");
    }
    let served = world.server().app_mut().served();
    assert!(served.evicted > 0 && most <= LIMIT, "{served:?}, {most} held");
}

/// All that is held is given back in the books, too.
#[test]
fn the_books_are_empty_when_all_have_gone() {
    let folder = folder();
    let budget = Budget::new(1 << 30);
    let mut world = world(server(within(&budget, options(folder.path()))), 1 << 20);
    let peers: Vec<Peer> = (0..3).map(|_| connected(&mut world, Pace::All)).collect();
    for peer in &peers {
        for _ in 0..20 {
            peer.get(&mut world, "/large");
        }
    }
    pass(&mut world, Duration::from_millis(50));
    assert!(budget.held() > 0 && budget.level() == Level::Ample);
    for peer in &peers {
        let (transport, _) = world.client().connection(peer.handle).unwrap();
        transport.close(Instant::from_nanos(2_000_000_000), 0x100, b"");
    }
    pass(&mut world, Duration::from_secs(20));
    assert_eq!(world.server().connections(), 0);
    // The thread tells of the last bytes when it ends.
    assert!(budget.held() < 64 << 10, "{} held", budget.held());
}

/// When memory is short a request is answered with 503, and who is not connected yet waits.
#[test]
fn requests_and_clients_are_put_off_when_memory_is_short() {
    let budget = Budget::new(100 << 10);
    let mut world = world(server(within(&budget, FileOptions::default())), 1 << 20);
    let peers: Vec<Peer> = (0..4).map(|_| Peer::begin(&mut world, Pace::All)).collect();
    let halt = world.run(Duration::from_secs(1), |_| budget.level() == Level::Short);
    assert_eq!(halt, StopReason::Done);
    let late = Peer::begin(&mut world, Pace::All);
    world.run(Duration::from_secs(1), |_| peers[0].is_up());
    let id = peers[0].get(&mut world, "/bytes/10");
    let halt = world.run(Duration::from_secs(1), |_| peers[0].has_ended(id));
    assert_eq!((halt, peers[0].response(id).0), (StopReason::Done, 503));
    assert!(!late.is_up());
}

/// Keeps the last events of each connection in memory, and writes none of them.
#[derive(Debug)]
struct Rings;

impl Tracer for Rings {
    fn begin(&self, beginning: &Beginning<'_>) -> Option<Trace> {
        let when = Some(Triggers { error: true, ..Triggers::default() });
        Some(Trace::new(beginning, Keep { when, ..Keep::default() }, Box::new(Rings)))
    }
}

impl Output for Rings {
    fn write(&mut self, _: Vec<u8>) -> Result<(), Refused> {
        Ok(())
    }
    fn finish(&mut self, _: Vec<u8>) {}
}

/// Deleted, `--qlog-when` on a busy server could take any memory whatever `--memory` says.
#[test]
fn what_traces_keep_in_memory_is_in_the_books() {
    let held = |qlog: Option<Arc<dyn Tracer>>| {
        let budget = Budget::new(1 << 30);
        let server = server(within(&budget, FileOptions::default()));
        let scenario = Scenario {
            client: TransportConfig::default(),
            server: TransportConfig { qlog, ..TransportConfig::default() },
            ..Scenario::interop(1)
        };
        let mut world = scenario.build(server, Clients).unwrap();
        let peer = connected(&mut world, Pace::All);
        let id = peer.get(&mut world, "/bytes/3000000");
        assert_eq!(world.run(Duration::from_secs(20), |_| peer.has_ended(id)), StopReason::Done);
        pass(&mut world, Duration::from_millis(200));
        budget.held()
    };
    let (without, with) = (held(None), held(Some(Arc::new(Rings))));
    // A thread tells of changes of 64 KiB.
    let more = with.saturating_sub(without);
    assert!((192 << 10..=384 << 10).contains(&more), "{more} more, {without} without");
}
