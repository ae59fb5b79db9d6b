//! What a connection that does nothing holds of a server.

use super::client::{Clients, Pace};
use super::{World, connected, pass, server};
use crate::counting::held;
use base::time::Duration;
use server::handler::FileOptions;
use sim::{Scenario, StopReason};
use transport::TransportConfig;

/// So many that what the server holds for all of them does not show.
const CONNECTIONS: usize = 200;

/// The server's memory, in bytes for each of the connections, and the world without them.
fn held_each(mut world: World, scenario: &Scenario) -> usize {
    assert_eq!(world.server().connections(), CONNECTIONS);
    let before = held();
    scenario.restart_server(&mut world, server(FileOptions::default())).unwrap();
    (before - held()) / CONNECTIONS
}

/// A world whose clients have connected, asked for a little, and been quiet for `idle`.
fn quiet(scenario: &Scenario, idle: Duration) -> World {
    let mut world = scenario.build(server(FileOptions::default()), Clients).unwrap();
    for _ in 0..CONNECTIONS {
        let peer = connected(&mut world, Pace::All);
        let id = peer.get(&mut world, "/bytes/2000");
        assert_eq!(world.run(Duration::from_secs(5), |_| peer.has_ended(id)), StopReason::Done);
    }
    pass(&mut world, idle);
    world
}

/// Deleted, a field more here and a larger table there make 10,000 idle clients a gigabyte. What the TLS library allocates by Rust is
/// counted too; what it allocates by C is not.
#[test]
fn an_idle_connection_holds_little() {
    let idle_timeout = Duration::from_secs(600);
    let quietly = || TransportConfig { idle_timeout, ..TransportConfig::default() };
    let scenario = Scenario { client: quietly(), server: quietly(), ..Scenario::interop(1) };
    let [soon, later] =
        [10, 60].map(|seconds| held_each(quiet(&scenario, Duration::from_secs(seconds)), &scenario));
    println!("{soon} bytes after 10 s, {later} bytes after a minute");
    assert!(later <= 14_000, "{later} bytes for each idle connection");
}
