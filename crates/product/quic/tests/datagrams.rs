//! What a connection has beside streams: datagrams, keying material, facts and numbers.

mod common;

use bytes::Bytes;
use common::{Pair, client, client_config, pair, pair_with, run, server, server_by, server_config};
use quic::{ConnectionError, Endpoint, ExportError, PathEvent, SendDatagramError, Side, TransportConfig};

/// RFC 9221: on loopback none is lost.
#[test]
fn datagrams_arrive_in_both_directions() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        for number in 0..100_u8 {
            client.send_datagram(Bytes::from(vec![number; 100])).unwrap();
            assert_eq!(server.read_datagram().await.unwrap(), vec![number; 100]);
            server.send_datagram(Bytes::from(vec![number; 9])).unwrap();
            assert_eq!(client.read_datagram().await.unwrap(), vec![number; 9]);
        }
        let most = client.max_datagram_size().unwrap();
        assert!(most > 1_100, "{most}");
        client.send_datagram(Bytes::from(vec![1; most])).unwrap();
        assert_eq!(server.read_datagram().await.unwrap().len(), most);
    });
}

#[test]
fn what_the_peer_does_not_take_is_an_error() {
    run(|| async {
        let mut without = TransportConfig::default();
        without.receive_datagrams(false);
        let Pair { client, server, endpoints: _endpoints } =
            pair_with(TransportConfig::default(), without).await;
        assert_eq!(client.max_datagram_size(), None);
        let refused = client.send_datagram(Bytes::new());
        assert_eq!(refused, Err(SendDatagramError::UnsupportedByPeer));
        let large = Bytes::from(vec![0; 65_000]);
        assert_eq!(server.send_datagram(large), Err(SendDatagramError::TooLarge));
        client.close(0_u8.into(), b"");
        let lost = SendDatagramError::ConnectionLost(ConnectionError::LocallyClosed);
        assert_eq!(client.send_datagram(Bytes::new()), Err(lost));
    });
}

/// Memory that a peer fills is bounded: the oldest datagrams give way.
#[test]
fn datagrams_that_are_not_read_give_way_to_later_ones() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        for _ in 0..30 {
            for _ in 0..100 {
                client.send_datagram(Bytes::from(vec![1; 1_000])).unwrap();
            }
            // A stream's answer says that the datagrams in front have arrived.
            let (mut send, mut recv) = client.open_bi().await.unwrap();
            send.finish().unwrap();
            drop(server.accept_bi().await.unwrap());
            recv.read_to_end(0).await.unwrap();
        }
        client.close(0_u8.into(), b"");
        server.closed().await;
        let mut left = 0;
        while server.read_datagram().await.is_ok() {
            left += 1;
        }
        assert!(left * 1_000 <= 1 << 20, "{left} datagrams");
    });
}

/// As quinn's `send_datagram_wait`. What does not wait makes older ones give way.
#[test]
fn a_sender_that_waits_loses_no_datagram_before_it_is_sent() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let most = client.datagram_send_buffer_space();
        assert!(most > 100_000, "{most}");
        for _ in 0..4_000 {
            client.send_datagram_wait(Bytes::from(vec![1; 1_000])).await.unwrap();
            assert!(client.datagram_send_buffer_space() <= most);
        }
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        send.finish().unwrap();
        drop(server.accept_bi().await.unwrap());
        recv.read_to_end(0).await.unwrap();
        assert_eq!(client.stats().dropped_datagrams, 0);
        let large = client.send_datagram_wait(Bytes::from(vec![0; 65_000])).await;
        assert_eq!(large, Err(SendDatagramError::TooLarge));
        client.close(0_u8.into(), b"");
        let lost = SendDatagramError::ConnectionLost(ConnectionError::LocallyClosed);
        assert_eq!(client.send_datagram_wait(Bytes::new()).await, Err(lost));
    });
}

/// RFC 8446 §7.5.
#[test]
fn keying_material_is_the_same_at_both_ends_and_depends_on_label_and_context() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let mut material = [[0; 32]; 4];
        let [one, two, three, four] = &mut material;
        client.export_keying_material(one, b"label", b"context").await.unwrap();
        server.export_keying_material(two, b"label", b"context").await.unwrap();
        client.export_keying_material(three, b"label", b"another").await.unwrap();
        client.export_keying_material(four, b"other", b"context").await.unwrap();
        assert_eq!(material[0], material[1]);
        assert!(material[0] != material[2] && material[0] != material[3] && material[0] != [0; 32]);
        client.close(0_u8.into(), b"");
        let late = client.export_keying_material(&mut [0; 32], b"label", b"context").await;
        assert_eq!(late, Err(ExportError));
    });
}

#[test]
fn both_ends_say_what_the_handshake_settled_and_what_was_sent() {
    run(|| async {
        let server = server(TransportConfig::default());
        let client = client(TransportConfig::default());
        let address = server.local_addr().unwrap();
        let connecting = client.connect(address, "localhost").unwrap();
        let (ours, theirs) =
            tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() });
        let ours = ours.unwrap();
        assert_eq!((ours.side(), theirs.side()), (Side::Client, Side::Server));
        assert_eq!((ours.remote_address(), theirs.remote_address()), (address, client.local_addr().unwrap()));
        assert_eq!(ours.local_ip(), Some(address.ip()));
        assert_eq!((ours.peer_identity().len(), theirs.peer_identity().len()), (1, 0));
        let data = theirs.handshake_data().unwrap();
        assert_eq!(data.protocol.as_deref(), Some(&b"tercel"[..]));
        assert_eq!((data.server_name.as_deref(), data.version), (Some("localhost"), 1));
        let mut send = ours.open_uni().await.unwrap();
        send.write_all(&[0; 100_000]).await.unwrap();
        send.finish().unwrap();
        theirs.accept_uni().await.unwrap().read_to_end(100_000).await.unwrap();
        send.stopped().await.unwrap();
        let stats = ours.stats();
        assert!(stats.sent_bytes > 100_000 && stats.received_packets > 0, "{stats:?}");
        assert!(ours.rtt() > std::time::Duration::ZERO);
        assert_ne!(ours.stable_id(), theirs.stable_id());
    });
}

/// RFC 8899: on loopback larger packets are found.
#[test]
fn a_larger_packet_size_is_a_path_event() {
    run(|| async {
        let mut larger = TransportConfig::default();
        larger.max_mtu(9_000);
        let Pair { client, server, endpoints: _endpoints } =
            pair_with(larger, TransportConfig::default()).await;
        let reader =
            tokio::spawn(async move { server.accept_uni().await.unwrap().read_to_end(1 << 20).await });
        let mut send = client.open_uni().await.unwrap();
        send.write_all(&[0; 1 << 20]).await.unwrap();
        send.finish().unwrap();
        let event = client.path_event().await.unwrap();
        assert!(matches!(event, PathEvent::PacketSize(size) if size > 1_200), "{event:?}");
        reader.await.unwrap().unwrap();
    });
}

/// draft-huitema-quic-ts: both ends must want it.
#[test]
fn delays_of_each_way_are_statistics_of_a_connection() {
    run(|| async {
        for timestamps in [[true, true], [true, false], [false, true]] {
            let [ours, theirs] = timestamps.map(|is_on| {
                let mut settings = TransportConfig::default();
                settings.timestamps(is_on);
                settings
            });
            let Pair { client, server, endpoints: _endpoints } = pair_with(ours, theirs).await;
            let mut send = client.open_uni().await.unwrap();
            send.write_all(&[0; 10_000]).await.unwrap();
            send.finish().unwrap();
            server.accept_uni().await.unwrap().read_to_end(10_000).await.unwrap();
            send.stopped().await.unwrap();
            let stats = client.stats();
            let delays = stats.delay_to_peer.zip(stats.delay_from_peer);
            assert_eq!(delays.is_some(), timestamps == [true, true], "{stats:?}");
            assert!(delays.is_none_or(|(to, from)| to + from > std::time::Duration::ZERO), "{stats:?}");
        }
    });
}

/// RFC 9001 §6.
#[test]
fn a_key_update_is_carried_out() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        for _ in 0..100 {
            let (mut send, mut recv) = client.open_bi().await.unwrap();
            send.write_all(b"x").await.unwrap();
            let (mut their_send, _their_recv) = server.accept_bi().await.unwrap();
            their_send.write_all(b"y").await.unwrap();
            recv.read_chunk(1).await.unwrap();
            client.force_key_update();
            if server.stats().key_updates > 0 {
                return;
            }
        }
        panic!("no key update");
    });
}

/// A program without a runtime's driver: it turns both endpoints and polls their futures by itself.
#[test]
fn a_program_drives_endpoints_in_a_loop_of_its_own() {
    use quic::Progress;
    use std::future::Future;
    use std::task::{Context, Poll, Waker};
    let address = "127.0.0.1:0".parse().unwrap();
    let (server, mut server_driver) =
        Endpoint::builder(address).server(server_config()).build_manual().unwrap();
    let (client, mut client_driver) = Endpoint::builder(address).build_manual().unwrap();
    let to = server.local_addr().unwrap();
    let mut program = Box::pin(async move {
        let connecting = client.connect_with(client_config(), to, "localhost").unwrap();
        let theirs = server.accept().await.unwrap().accept().unwrap();
        let (ours, theirs) = (connecting.await.unwrap(), theirs.await.unwrap());
        let mut send = ours.open_uni().await.unwrap();
        send.write_all(b"by hand").await.unwrap();
        send.finish().unwrap();
        assert_eq!(theirs.accept_uni().await.unwrap().read_to_end(99).await.unwrap(), b"by hand");
    });
    let mut context = Context::from_waker(Waker::noop());
    let mut is_done = false;
    for _ in 0..1_000_000 {
        is_done = is_done || matches!(program.as_mut().poll(&mut context), Poll::Ready(()));
        let progress = (client_driver.turn().unwrap(), server_driver.turn().unwrap());
        if is_done && progress == (Progress::Ended, Progress::Ended) {
            return;
        }
        client_driver.on_woken();
        server_driver.on_woken();
    }
    panic!("the drivers go on although all handles are gone");
}

/// RFC 8446 §4.4.2.
#[test]
fn a_server_sees_the_certificate_of_a_client_that_it_asks() {
    run(|| async {
        let made = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).unwrap();
        let accepted = quic::Authorities::from_pem(made.cert.pem().as_bytes()).unwrap();
        let key = made.signing_key.serialize_pem();
        let own = quic::Identity::from_pem(made.cert.pem().as_bytes(), key.as_bytes()).unwrap();
        let asking = server_config().client_auth(quic::ClientAuth::Required(accepted)).unwrap();
        let (server, client) = (server_by(asking), client(TransportConfig::default()));
        let config = client_config().client_identity(own).unwrap();
        let connecting = client.connect_with(config, server.local_addr().unwrap(), "localhost").unwrap();
        let (ours, theirs) =
            tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() });
        assert_eq!(theirs.peer_identity(), [made.cert.der().clone()]);
        drop(ours);
    });
}
