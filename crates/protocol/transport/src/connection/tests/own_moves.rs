//! A client's own moves, where they need a server that ours is not.

use super::*;
use crate::{MigrateError, PreferredAddresses};
use core::net::SocketAddr;
use wire::transport_parameters::PreferredAddress;

/// RFC 9000 §9, §18.2: deleted, a client could move where its server has said that this breaks the connection.
#[test]
fn a_server_may_forbid_that_its_clients_move() {
    let mut pair = Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    let mut told = pair.client().handshake.peer_parameters().expect("it is connected").clone();
    told.disable_active_migration = true;
    pair.client().on_peer_parameters(told.clone()).expect("is allowed");
    let (now, local) = (pair.now, SocketAddr::from(([127, 0, 0, 2], 1)));
    assert_eq!(pair.client().migrate(now, local), Err(MigrateError::Disabled));
    assert_eq!(pair.client().migrate_at_once(now, local), Err(MigrateError::Disabled));
    // At the address that it prefers, it supports that.
    let peer = pair.client().paths.active().addresses.peer;
    let preferred = PreferredAddresses::default().with(peer);
    let (cid, reset_token) = (wire::cid::ConnectionId::new(b"number 1").expect("fits"), [1; 16]);
    let PreferredAddresses { ipv4, ipv6 } = preferred;
    told.preferred_address = Some(PreferredAddress { ipv4, ipv6, cid, reset_token });
    pair.client().on_peer_parameters(told).expect("is allowed");
    assert_eq!(pair.client().migrate(now, local), Ok(()));
}

/// RFC 9000 §9.5: deleted, a client without a spare ID of the server would use one from two addresses.
#[test]
fn without_a_spare_connection_id_a_client_stays() {
    let mut pair = Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    let now = pair.now;
    let local = |number| SocketAddr::from(([127, 0, 0, number], 1));
    for number in 2..5 {
        assert_eq!(pair.client().migrate_at_once(now, local(number)), Ok(()), "{number}");
    }
    assert_eq!(pair.client().migrate_at_once(now, local(5)), Err(MigrateError::NoConnectionId));
}
