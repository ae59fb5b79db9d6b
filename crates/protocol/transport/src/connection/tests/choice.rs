//! Choices that one connection makes for itself, against what its endpoint's configuration says.

use super::hostile::frames;
use super::*;
use crate::space::SpaceId;
use crate::{Algorithm, AlreadySending};
use wire::Side;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::transport_parameters::PreferredAddress;

fn pair() -> Pair {
    Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never)
}

/// Lost without it: a server that tells its clients apart could not serve some with another controller.
#[test]
fn each_end_of_each_connection_may_have_a_controller_of_its_own() {
    for (client, server) in [(Algorithm::Bbr, Algorithm::NewReno), (Algorithm::Cubic, Algorithm::Prague)] {
        let mut pair = pair();
        pair.client().set_congestion(client).expect("nothing was sent yet");
        let now = pair.now;
        for datagram in pair.client.send(now) {
            pair.server.receive(now, datagram, Some(&pair.config));
        }
        pair.server().set_congestion(server).expect("nothing was sent yet");
        let path = pair.server().paths.active();
        assert_eq!(path.ecn.mark(), path.congestion.ecn_mark(), "the controller's own mark");
        pair.run(12);
        pair.transfer(300_000);
        assert_eq!((pair.client().congestion(), pair.server().congestion()), (client, server));
        // The choice is the connection's, not the configuration's.
        assert_eq!(pair.config.transport.congestion, Algorithm::Auto);
    }
}

#[test]
fn a_choice_that_comes_too_late_is_refused() {
    let mut pair = pair();
    pair.run(12);
    assert_eq!(pair.client().set_congestion(Algorithm::Bbr), Err(AlreadySending));
    assert_eq!(pair.server().set_congestion(Algorithm::Bbr), Err(AlreadySending));
    assert_eq!(pair.server().congestion(), Algorithm::Auto);
}

/// RFC 9000 §5.1.1: lost, the client would retire one ID where the server asks for two, and be closed for it.
#[test]
fn the_preferred_address_brings_a_connection_id() {
    let mut pair = pair();
    pair.step();
    let mut told = pair.client().handshake.peer_parameters().expect("the server's flight has them").clone();
    let cid = ConnectionId::new(b"number 1").expect("fits");
    told.preferred_address = Some(PreferredAddress { ipv4: None, ipv6: None, cid, reset_token: [1; 16] });
    pair.client().on_peer_parameters(told.clone()).expect("is allowed");
    assert_eq!(pair.client().components.peer_cids.held(), (2, 0));
    let retire_two = [&[0x18, 2, 2, 8][..], b"number 2", &[2; 16]].concat();
    frames(&mut pair, Side::Client, SpaceId::Application, &retire_two).expect("replaces both");
    assert_eq!(pair.client().components.peer_cids.held(), (1, 2), "0 and 1 are retired");
    // A server that calls itself nothing has no ID for another address either.
    let mut pair = self::pair();
    pair.step();
    pair.client().handshake.forget_peer_cid();
    told.initial_source_connection_id = Some(ConnectionId::EMPTY);
    let refused = pair.client().on_peer_parameters(told).expect_err("is a contradiction");
    assert_eq!(refused.code, Code::TRANSPORT_PARAMETER_ERROR);
}
