//! Steps of a server's handshake that its driver takes elsewhere, because a key signs slowly.

use crate::setup::{Setup, SlowSteps};
use crate::tls;
use crate::world::World;
use base::time::Duration;
use transport::{CloseReason, Event, HandshakeWork, TransportConfig};
use wire::Side;
use wire::error::Code;

fn apart() -> Setup {
    Setup {
        certificate: tls::slow(),
        roots: tls::slow().roots(),
        slow_steps: SlowSteps::Apart,
        ..Setup::default()
    }
}

/// Runs until the server has a step to give away, and takes it.
fn take(world: &mut World) -> HandshakeWork {
    world.run_until("a step", |world| {
        !world.server.peers.is_empty() && world.connection(Side::Server).has_handshake_work()
    });
    let work = world.connection(Side::Server).take_handshake_work().expect("a step");
    assert!(!world.connection(Side::Server).has_handshake_work(), "once");
    work
}

fn give_back(world: &mut World, work: HandshakeWork) {
    let now = world.now;
    let peer = world.server.peer();
    peer.connection.finish_handshake_work(now, Some(work.run()), &mut peer.inbox);
}

/// Deleted, a server could answer half a handshake, spend its credit on acknowledgements, or turn without a pause until the step is back.
#[test]
fn a_server_says_nothing_until_the_step_is_back_and_then_goes_on() {
    // Shorter than the client's probe timeout, and longer: then it says its hello again.
    for out in [Duration::from_millis(500), Duration::from_secs(5)] {
        let mut world = apart().begin();
        let work = take(&mut world);
        let before = world.sent(Side::Server).count();
        world.run_for(out);
        assert_eq!(world.sent(Side::Server).count(), before, "{out:?}");
        assert!(world.server.events.is_empty() && world.connection(Side::Server).alpn().is_none());
        give_back(&mut world, work);
        world.transfer_when_connected(10_000);
        assert_eq!(world.connection(Side::Server).alpn(), Some(&b"h3"[..]));
        assert!(world.connection(Side::Server).take_handshake_work().is_none());
    }
}

#[test]
fn a_server_that_is_not_told_otherwise_takes_each_step_at_once() {
    let mut inline = Setup { slow_steps: SlowSteps::Inline, ..apart() }.connected();
    inline.transfer(Side::Server, 10_000);
    let mut fast = Setup { slow_steps: SlowSteps::Apart, ..Setup::default() }.connected();
    fast.transfer(Side::Server, 10_000);
}

/// Deleted, a client that is gone could keep its state for as long as a step is out.
#[test]
fn a_step_that_is_out_does_not_outlast_the_time_of_a_handshake() {
    let mut world = apart().begin();
    let _work = take(&mut world);
    world.run_for(Duration::from_secs(11));
    assert_eq!(world.server.ends(), [CloseReason::HandshakeTimeout]);
    assert!(world.server.peers.is_empty());
}

/// Deleted, a step that comes back too late could revive a connection.
#[test]
fn a_connection_that_ends_while_the_step_is_out_stays_closed() {
    let mut world = apart().begin();
    let late = take(&mut world);
    let now = world.now;
    world.connection(Side::Client).close(now, 0, b"");
    world.run_until("the client's end", |world| !world.server.ends().is_empty());
    give_back(&mut world, late);
    assert!(world.connection(Side::Server).is_closed());
    world.run_until("the end", |world| world.server.peers.is_empty());
    assert_eq!(world.server.ends().len(), 1);
}

#[test]
fn a_step_that_was_not_given_away_yet_goes_with_its_connection() {
    let mut world = apart().begin();
    world.run_until("a step", |world| {
        !world.server.peers.is_empty() && world.connection(Side::Server).has_handshake_work()
    });
    let now = world.now;
    let server = world.connection(Side::Server);
    server.close(now, 0, b"");
    assert!(!server.has_handshake_work() && server.take_handshake_work().is_none());
}

#[test]
fn a_step_that_nobody_takes_ends_the_connection() {
    let mut world = apart().begin();
    drop(take(&mut world));
    let now = world.now;
    let peer = world.server.peer();
    peer.connection.finish_handshake_work(now, None, &mut peer.inbox);
    world.run_until("the client's end", |world| !world.client.ends().is_empty());
    let told = world.client.ends();
    assert!(
        matches!(&told[..], [CloseReason::PeerTransport { code, .. }] if *code == Code::INTERNAL_ERROR),
        "{told:?}"
    );
}

/// Versions are settled by what is in the ClientHello, before any key signs.
#[test]
fn a_server_that_moves_to_another_version_does_so_before_the_step() {
    let server =
        TransportConfig { preferred_version: Some(wire::version::Version::V2), ..TransportConfig::default() };
    let mut world = Setup { server, ..apart() }.begin();
    let work = take(&mut world);
    assert_eq!(world.connection(Side::Server).version(), wire::version::Version::V2);
    give_back(&mut world, work);
    world.transfer_when_connected(10_000);
    assert!(world.client.events.contains(&Event::Connected));
}
