//! A client uses several paths at once, on loopback. Source: draft-ietf-quic-multipath.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{client_config, run, server_config};
use quic::{Connection, Endpoint, OpenPathError, PathEvent, Scheduler, TransportConfig};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// Bytes. A path that gets no more carried no data to speak of.
const INITIAL_WINDOW: u64 = 12_000;

fn settings(scheduler: Option<Scheduler>) -> Arc<TransportConfig> {
    let mut settings = TransportConfig::default();
    settings.multipath(scheduler);
    Arc::new(settings)
}

/// A client and a server on all addresses, of which each offers several paths or does not.
async fn pair(ours: Option<Scheduler>, theirs: Option<Scheduler>) -> (Connection, Connection, [Endpoint; 2]) {
    let (mut for_server, mut for_client) = (server_config(), client_config());
    for_server.transport_config(settings(theirs));
    for_client.transport_config(settings(ours));
    let server = Endpoint::server(for_server, (Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
    let client = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
    let port = server.local_addr().unwrap().port();
    let connecting = client.connect_with(for_client, (HERE, port).into(), "localhost").unwrap();
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

/// Deleted, a program could not open a path, not hear of it, or nothing would go there.
#[test]
fn a_second_path_carries_data_and_is_counted() {
    run(|| async {
        let scheduler = Some(Scheduler::RoundRobin);
        let (client, server, _ends) = pair(scheduler, scheduler).await;
        client.open_path(THERE).unwrap();
        let PathEvent::Opened { id, local, .. } = event(&client).await else { panic!("no path") };
        assert_eq!((id, local.ip()), (1, THERE));
        let PathEvent::Opened { id, remote, .. } = event(&server).await else { panic!("no path") };
        assert_eq!((id, remote.ip()), (1, THERE));
        let content = vec![7; 2_000_000];
        let mut sent = server.open_uni().await.unwrap();
        let writing = async {
            sent.write_all(&content).await.unwrap();
            sent.finish().unwrap();
        };
        let reading = async { client.accept_uni().await.unwrap().read_to_end(3_000_000).await.unwrap() };
        let ((), received) = tokio::join!(writing, reading);
        assert!(received == content, "{} bytes", received.len());
        let paths = client.paths();
        let local: Vec<IpAddr> = paths.iter().map(|path| path.local.ip()).collect();
        assert_eq!(local, [HERE, THERE]);
        // How the bytes divide is the congestion controllers' choice: the loopback of a busy machine loses packets.
        for path in &paths {
            assert!(path.is_validated && path.received_bytes > INITIAL_WINDOW, "{paths:?}");
            assert!(path.rtt > std::time::Duration::ZERO && path.sent_packets > 0, "{paths:?}");
        }
        assert!(paths.iter().map(|path| path.received_bytes).sum::<u64>() > 2_000_000);
        // There is a path from there already.
        client.open_path(THERE).unwrap();
        assert_eq!(
            event(&client).await,
            PathEvent::OpenFailed { from: THERE, error: OpenPathError::SamePath }
        );
    });
}

/// Deleted, a program could wait for ever for a path that cannot be.
#[test]
fn a_path_that_cannot_be_is_refused() {
    run(|| async {
        let offered = Some(Scheduler::LowestRtt);
        for (ours, theirs) in [(offered, None), (None, offered)] {
            let (client, server, _ends) = pair(ours, theirs).await;
            client.open_path(THERE).unwrap();
            let failed = PathEvent::OpenFailed { from: THERE, error: OpenPathError::Unsupported };
            assert_eq!(event(&client).await, failed);
            assert!(client.paths().is_empty());
            let refusal = |connection: &Connection, ip: &str| {
                connection.open_path(ip.parse().unwrap()).unwrap_err().to_string()
            };
            assert!(refusal(&client, "::1").contains("another family"));
            assert!(refusal(&server, "127.0.0.2").contains("server opens no paths"));
            assert!(client.open_path("192.0.2.99".parse().unwrap()).is_err());
        }
    });
}
