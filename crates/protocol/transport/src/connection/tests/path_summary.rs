//! What a connection was told of its path is free for the next when it is over, however it ends.

use super::*;
use crate::connection::PathSummary;
use crate::{Algorithm, Switch};
use recovery::congestion::{ResumeReport, SavedParameters, SavedParametersUpdate};

/// A client on its way to a server that knows the path; the first packets have arrived.
fn accepted() -> Pair {
    let transport = TransportConfig { careful_resume: Switch::On, ..TransportConfig::default() };
    let mut pair = Pair::new(&TlsOptions::default(), transport, RetryPolicy::Never);
    leave(&mut pair, addresses(2, 1), None);
    let now = pair.now;
    for datagram in pair.client.send(now) {
        pair.server.receive(now, datagram, Some(&pair.config));
    }
    assert_eq!(pair.server.endpoint.counters().resumes.offered, 1);
    assert!(!is_free(&mut pair), "the connection relies on it");
    pair
}

/// A connection that is over leaves something to remember.
fn leave(pair: &mut Pair, path: Addresses, recalled: Option<Addresses>) {
    let saved = SavedParameters {
        capacity: 400_000,
        rtt: Duration::from_millis(2),
        valid_until: Instant::FAR_FUTURE,
    };
    pair.server.endpoint.learn(&PathSummary {
        addresses: path,
        saved_parameters: Some(SavedParametersUpdate::Learned(saved)),
        recalled,
        report: ResumeReport::default(),
        seen_at: pair.now,
    });
}

fn is_free(pair: &mut Pair) -> bool {
    let now = pair.now;
    pair.server.endpoint.recall(now, &addresses(2, 1)).is_some()
}

fn close(pair: &mut Pair) {
    let now = pair.now;
    pair.server().close(now, 0, b"");
    pair.server.send(now);
}

/// Lost without it: one packet from a forged address would take from a client what is known of its path.
#[test]
fn a_handshake_that_dies_gives_the_path_back() {
    let mut pair = accepted();
    close(&mut pair);
    assert_eq!(
        pair.server.endpoint.counters().resumes.learned,
        1,
        "nothing was learned of an unknown client"
    );
    assert!(is_free(&mut pair));
}

#[test]
fn a_controller_that_does_not_resume_gives_the_path_back() {
    let mut pair = accepted();
    pair.server().set_congestion(Algorithm::Bbr).expect("nothing was sent yet");
    pair.run(12);
    close(&mut pair);
    assert!(is_free(&mut pair));
}

#[test]
fn a_connection_that_has_moved_gives_back_where_it_began() {
    let mut pair = accepted();
    let elsewhere = Addresses { peer: core::net::SocketAddr::from(([127, 9, 9, 9], 1)), ..addresses(2, 1) };
    leave(&mut pair, elsewhere, None);
    assert!(!is_free(&mut pair), "what others learn elsewhere changes nothing");
    leave(&mut pair, elsewhere, Some(addresses(2, 1)));
    assert!(is_free(&mut pair));
}
