//! Choices that one connection makes for itself, against what its endpoint's configuration says.

use super::*;
use crate::{Algorithm, AlreadySending};

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
        assert_eq!(pair.config.transport.congestion, Algorithm::Cubic);
    }
}

#[test]
fn a_choice_that_comes_too_late_is_refused() {
    let mut pair = pair();
    pair.run(12);
    assert_eq!(pair.client().set_congestion(Algorithm::Bbr), Err(AlreadySending));
    assert_eq!(pair.server().set_congestion(Algorithm::Bbr), Err(AlreadySending));
    assert_eq!(pair.server().congestion(), Algorithm::Cubic);
}
