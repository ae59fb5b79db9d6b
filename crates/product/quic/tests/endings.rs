//! What dropping each handle does, how connections end, and what the other end hears of it: the table of the crate's page.

mod common;

use common::{Pair, client, client_config, pair, pair_with, run, server, server_config};
use quic::{ConnectError, ConnectionError, Endpoint, ReadError, TransportConfig, VarInt, WriteError};
use std::net::SocketAddr;
use std::time::Duration;

#[test]
fn a_dropped_send_stream_is_finished_and_what_was_written_is_delivered() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"all of it").await.unwrap();
        drop(send);
        assert_eq!(server.accept_uni().await.unwrap().read_to_end(99).await.unwrap(), b"all of it");
    });
}

#[test]
fn a_dropped_recv_stream_stops_the_peer_with_code_0() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"some").await.unwrap();
        drop(server.accept_uni().await.unwrap());
        assert_eq!(send.stopped().await, Ok(Some(VarInt::from_u32(0))));
        assert_eq!(send.write(b"more").await, Err(WriteError::Stopped(VarInt::from_u32(0))));
    });
}

#[test]
fn a_recv_stream_that_is_dropped_at_its_end_stops_nobody() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"all").await.unwrap();
        send.finish().unwrap();
        let mut recv = server.accept_uni().await.unwrap();
        recv.read_to_end(99).await.unwrap();
        drop(recv);
        assert_eq!(send.stopped().await, Ok(None));
    });
}

#[test]
fn the_last_handle_of_a_connection_closes_it_with_code_0_and_a_stream_is_a_handle() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let (clone, send) = (client.clone(), client.open_uni().await.unwrap());
        drop((client, clone));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(server.close_reason(), None, "a stream keeps the connection open");
        drop(send);
        match server.closed().await {
            ConnectionError::ApplicationClosed(close) => {
                assert_eq!((close.error_code, &close.reason[..]), (VarInt::from_u32(0), &b""[..]));
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_client_that_is_not_accepted_is_refused() {
    run(|| async {
        for how in 0..3 {
            let (server, client) = (server(TransportConfig::default()), client(TransportConfig::default()));
            let connecting = client.connect(server.local_addr().unwrap(), "localhost").unwrap();
            let incoming = server.accept().await.unwrap();
            match how {
                0 => incoming.refuse(),
                1 => drop(incoming),
                _ => drop(incoming.accept().unwrap()),
            }
            let error = match connecting.await {
                Err(error) => error,
                // The server's part of the handshake was done before it refused.
                Ok(connection) => connection.closed().await,
            };
            match error {
                ConnectionError::ConnectionClosed(close) => assert_eq!(close.error_code, 2, "RFC 9000 §20.1"),
                other => panic!("{how}: {other:?}"),
            }
            let stats = server.stats();
            assert_eq!((stats.accepted_handshakes, stats.refused_handshakes), (1, 1));
            assert_eq!(client.stats().outgoing_handshakes, 1);
        }
    });
}

#[test]
fn a_dropped_attempt_of_a_client_ends() {
    run(|| async {
        // The closing period is three probe timeouts: of the initial round trip, as no other is known.
        let mut near = TransportConfig::default();
        near.initial_rtt(Duration::from_millis(10));
        let (server, client) = (server(TransportConfig::default()), client(near));
        drop(client.connect(server.local_addr().unwrap(), "localhost").unwrap());
        client.wait_idle().await;
        // Nowhere, so that the handshake cannot end.
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let connecting = client.connect(silent.local_addr().unwrap(), "localhost").unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(connecting);
        client.wait_idle().await;
        assert_eq!(client.open_connections(), 0);
    });
}

#[test]
fn connections_outlive_their_endpoint() {
    run(|| async {
        let Pair { client, server, endpoints } = pair().await;
        drop(endpoints);
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"still here").await.unwrap();
        send.finish().unwrap();
        assert_eq!(server.accept_uni().await.unwrap().read_to_end(99).await.unwrap(), b"still here");
    });
}

/// quinn says the same: what waits elsewhere is not lost with the future that asked for it.
#[test]
fn a_dropped_future_loses_nothing() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        for wait in [0, 1, 5] {
            let accepting = server.accept_uni();
            assert!(tokio::time::timeout(Duration::from_millis(wait), accepting).await.is_err());
        }
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"1").await.unwrap();
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(&recv.read_chunk(9).await.unwrap().unwrap()[..], b"1");
        for wait in [0, 1, 5] {
            let mut buffer = [0; 9];
            assert!(tokio::time::timeout(Duration::from_millis(wait), recv.read(&mut buffer)).await.is_err());
        }
        send.write_all(b"2").await.unwrap();
        assert_eq!(&recv.read_chunk(9).await.unwrap().unwrap()[..], b"2");
    });
}

#[test]
fn a_close_reaches_every_handle_of_both_ends() {
    run(|| async {
        let Pair { client, server, endpoints } = pair().await;
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        send.write_all(b"x").await.unwrap();
        let (_their_send, mut their_recv) = server.accept_bi().await.unwrap();
        their_recv.read_chunk(1).await.unwrap();
        let waiting = tokio::spawn(async move { their_recv.read(&mut [0; 9]).await });
        client.close(VarInt::from_u32(7), b"enough");
        assert_eq!(client.close_reason(), Some(ConnectionError::LocallyClosed));
        let lost = ConnectionError::LocallyClosed;
        assert_eq!(send.write(b"y").await, Err(WriteError::ConnectionLost(lost.clone())));
        assert_eq!(recv.read(&mut [0; 9]).await, Err(ReadError::ConnectionLost(lost.clone())));
        assert_eq!(client.open_bi().await.err(), Some(lost));
        let error = server.closed().await;
        let ConnectionError::ApplicationClosed(close) = &error else { panic!("{error:?}") };
        assert_eq!((close.error_code, &close.reason[..]), (VarInt::from_u32(7), &b"enough"[..]));
        assert_eq!(waiting.await.unwrap(), Err(ReadError::ConnectionLost(error.clone())));
        assert_eq!(server.accept_uni().await.err(), Some(error));
        endpoints.0.wait_idle().await;
        endpoints.1.wait_idle().await;
    });
}

#[test]
fn what_arrived_before_a_close_can_be_read_after_it() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"in time").await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await, Ok(None));
        client.close(VarInt::from_u32(0), b"");
        server.closed().await;
        assert_eq!(server.accept_uni().await.unwrap().read_to_end(99).await.unwrap(), b"in time");
    });
}

#[test]
fn a_closed_endpoint_closes_its_connections_and_takes_no_others() {
    run(|| async {
        let Pair { client, server, endpoints } = pair().await;
        endpoints.1.close(VarInt::from_u32(3), b"bye");
        assert!(endpoints.1.accept().await.is_none());
        let error = client.closed().await;
        let ConnectionError::ApplicationClosed(close) = error else { panic!("{error:?}") };
        assert_eq!(close.error_code, VarInt::from_u32(3));
        assert_eq!(server.closed().await, ConnectionError::LocallyClosed);
        endpoints.1.wait_idle().await;
        let address = endpoints.0.local_addr().unwrap();
        let refused = endpoints.1.connect_with(client_config(), address, "localhost");
        assert_eq!(refused.err(), Some(ConnectError::EndpointStopping));
    });
}

#[test]
fn what_cannot_be_connected_to_is_said_before_anything_is_sent() {
    run(|| async {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let somewhere: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let error = |outcome: Result<quic::Connecting, ConnectError>| outcome.err().unwrap();
        assert_eq!(error(endpoint.connect(somewhere, "localhost")), ConnectError::NoDefaultClientConfig);
        endpoint.set_default_client_config(client_config());
        let name = "not a name".to_owned();
        assert_eq!(error(endpoint.connect(somewhere, &name)), ConnectError::InvalidServerName(name.clone()));
        for address in ["127.0.0.1:0", "[::1]:9", "0.0.0.0:9"] {
            let address = address.parse().unwrap();
            let refused = error(endpoint.connect(address, "localhost"));
            assert_eq!(refused, ConnectError::InvalidRemoteAddress(address));
        }
    });
}

#[test]
fn a_peer_that_falls_silent_times_out() {
    run(|| async {
        let mut short = TransportConfig::default();
        short.max_idle_timeout(Some(Duration::from_millis(200)));
        let Pair { client, server, endpoints: _endpoints } =
            pair_with(short, TransportConfig::default()).await;
        assert_eq!(client.closed().await, ConnectionError::TimedOut);
        assert_eq!(server.closed().await, ConnectionError::TimedOut);
    });
}

#[test]
fn a_server_that_speaks_another_protocol_ends_the_handshake() {
    run(|| async {
        let config = server_config().alpn_protocols(&[b"one"]).unwrap();
        let server = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let client = client(TransportConfig::default());
        let outcome = client.connect(server.local_addr().unwrap(), "localhost").unwrap().await;
        assert!(matches!(outcome, Err(ConnectionError::ConnectionClosed(_))), "{outcome:?}");
    });
}
