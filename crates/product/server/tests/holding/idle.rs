//! What a connection that does nothing holds of a server.

use super::client::{Clients, Pace};
use super::resident::session;
use super::{World, connected, pass, server};
use crate::counting::held;
use base::time::Duration;
use server::handler::FileOptions;
use sim::tls::{TlsChoice, configure};
use sim::{Scenario, StopReason};
use transport::TransportConfig;

/// A network on which connections may be idle for a day.
pub(crate) fn scenario() -> Scenario {
    let idle_timeout = Duration::from_secs(24 * 3_600);
    let quietly = || TransportConfig { idle_timeout, ..TransportConfig::default() };
    Scenario { client: quietly(), server: quietly(), ..Scenario::interop(1) }
}

/// A world whose clients have connected, asked for a little, and been quiet for ten seconds.
pub(crate) fn quiet(scenario: &Scenario, connections: usize) -> World {
    let mut world = scenario.build(server(FileOptions::default()), Clients).unwrap();
    for _ in 0..connections {
        let peer = connected(&mut world, Pace::All);
        let id = peer.get(&mut world, "/bytes/2000");
        assert_eq!(world.run(Duration::from_secs(5), |_| peer.has_ended(id)), StopReason::Done);
    }
    pass(&mut world, Duration::from_secs(10));
    assert_eq!(world.server().connections(), connections);
    world
}

/// The most that an idle connection may hold besides what the TLS library keeps of it, in bytes. Issue 14 asks for 6 KiB.
const MOST: usize = 6_100;

/// What the TLS library keeps of a connection, in bytes: what it allocates by Rust. What it allocates by C is not counted.
fn kept_by_tls() -> usize {
    let (server, client) = configure(&TlsChoice::default()).unwrap();
    let mut sessions = Vec::with_capacity(101);
    sessions.push(session(&server, &client));
    let before = held();
    sessions.extend((0..100).map(|_| session(&server, &client)));
    (held() - before) / 100
}

/// Deleted, a field more here and a larger table there make 10,000 idle clients a gigabyte.
#[test]
fn an_idle_connection_holds_little() {
    let scenario = scenario();
    // What the server holds for all of them together is in both.
    let [few, many] = [20, 220].map(|connections| {
        let mut world = quiet(&scenario, connections);
        let before = held();
        scenario.restart_server(&mut world, server(FileOptions::default())).unwrap();
        before - held()
    });
    let (each, of_tls) = ((many - few) / 200, kept_by_tls());
    println!("{each} bytes for each idle connection, {of_tls} of them the TLS library's");
    // Without the library's part the difference would say nothing.
    assert!((1_000..4_000).contains(&of_tls), "{of_tls} bytes for each TLS session");
    assert!(each - of_tls <= MOST, "{} bytes for each idle connection besides TLS", each - of_tls);
}
