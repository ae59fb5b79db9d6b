//! A client moves to another local address, and to the one that its server prefers, on loopback.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{client_config, run, server_config};
use quic::{Connection, Endpoint, PathEvent, TransportConfig};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

const EVERYWHERE: &str = "0.0.0.0:0";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A client, bound to `address`, and a server on all addresses.
async fn pair(
    address: &str,
    transport: impl FnOnce(u16, &mut TransportConfig),
) -> (Connection, Connection, [Endpoint; 2]) {
    // The port has to be known before the server is told of it.
    let port = std::net::UdpSocket::bind(EVERYWHERE).unwrap().local_addr().unwrap().port();
    let (mut config, mut settings) = (server_config(), TransportConfig::default());
    transport(port, &mut settings);
    config.transport_config(Arc::new(settings));
    let server = Endpoint::server(config, (Ipv4Addr::UNSPECIFIED, port).into()).unwrap();
    let client = Endpoint::client(address.parse().unwrap()).unwrap();
    let connecting = client.connect_with(client_config(), (HERE, port).into(), "localhost").unwrap();
    let (ours, theirs) = tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() });
    (ours.unwrap(), theirs, [client, server])
}

/// Waits for an event that is not about packet sizes.
async fn event(connection: &Connection) -> PathEvent {
    loop {
        match connection.path_event().await.unwrap() {
            PathEvent::PacketSize(_) => {}
            event => return event,
        }
    }
}

async fn echo(from: &Connection, to: &Connection) {
    let mut sent = from.open_uni().await.unwrap();
    sent.write_all(&[7; 100_000]).await.unwrap();
    sent.finish().unwrap();
    assert_eq!(to.accept_uni().await.unwrap().read_to_end(100_000).await.unwrap().len(), 100_000);
}

/// Deleted, a program could not move a connection, or would not hear of it.
#[test]
fn a_connection_moves_when_it_is_told_to() {
    run(|| async {
        let (client, server, _ends) = pair(EVERYWHERE, |_, _| ()).await;
        assert_eq!(client.local_ip(), Some(HERE));
        client.migrate(THERE).unwrap();
        assert_eq!(event(&client).await, PathEvent::LocalAddress { from: HERE, to: THERE });
        echo(&client, &server).await;
        assert_eq!(client.local_ip(), Some(THERE));
        let PathEvent::Migrated { from, to } = event(&server).await else { panic!("the client has moved") };
        assert_eq!((from.ip(), to.ip()), (HERE, THERE));
        echo(&server, &client).await;
    });
}

#[test]
fn what_cannot_be_is_refused_at_once() {
    run(|| async {
        let (client, server, _ends) = pair("127.0.0.1:0", |_, _| ()).await;
        let refusal = |connection: &Connection, ip: &str| {
            connection.migrate(ip.parse().unwrap()).unwrap_err().to_string()
        };
        assert!(refusal(&client, "127.0.0.2").contains("bound to one address"));
        assert!(refusal(&client, "::1").contains("another family"));
        assert!(refusal(&server, "127.0.0.2").contains("server"));
        let (client, _server, _ends) = pair(EVERYWHERE, |_, _| ()).await;
        assert!(client.migrate("192.0.2.99".parse().unwrap()).is_err());
        client.migrate(HERE).unwrap();
        assert_eq!(event(&client).await, PathEvent::MigrationFailed { to: HERE }, "it is there");
    });
}

/// RFC 9000 §9.6. Deleted, the setting could do nothing.
#[test]
fn a_client_goes_on_where_its_server_prefers_it() {
    run(|| async {
        let prefer = |port, settings: &mut TransportConfig| {
            settings.preferred_address((THERE, port).into());
        };
        let (client, server, _ends) = pair(EVERYWHERE, prefer).await;
        let PathEvent::Migrated { from, to } = event(&client).await else { panic!("the server has moved") };
        assert_eq!((from.ip(), to.ip()), (HERE, THERE));
        echo(&client, &server).await;
        echo(&server, &client).await;
        assert_eq!(client.remote_address().ip(), THERE);
        assert_eq!(server.local_ip(), Some(THERE));
    });
}
