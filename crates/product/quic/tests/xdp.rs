//! Endpoints over AF_XDP, with each driver, between two network namespaces joined by veth. Skipped, with a word about it, without root.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use bytes::Bytes;
use common::{client_config, server_config};
use netns::{Lab, LabOptions, Namespace, Switch};
use quic::{DataPath, Driver, Endpoint, EndpointBuilder};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// The port of the server.
const PORT: u16 = 4433;
/// Bytes in each direction: thousands of packets, many times what the frames of a socket hold at once.
const LEN: usize = 8 << 20;
/// Longer than this no case takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// How an end reaches its interface.
#[derive(Clone, Copy, Debug)]
enum Way {
    Xdp,
    Kernel,
}

impl Way {
    fn endpoint(self, here: &Namespace, port: u16, driver: Driver) -> EndpointBuilder {
        let path = match self {
            Way::Xdp => DataPath::xdp(here.interface()),
            Way::Kernel => DataPath::gso(),
        };
        Endpoint::builder((here.ipv4(), port).into()).data_path(path).driver(driver)
    }
}

/// Runs one end in its namespace, with a runtime of its own.
fn at<T: Send>(place: &Namespace, end: impl Future<Output = T> + Send) -> T {
    place.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(PATIENCE, end).await.unwrap() })
    })
}

/// Sends back a datagram and a stream of its first connection, and waits until that is closed.
async fn serve(endpoint: EndpointBuilder, ready: Sender<()>) {
    let endpoint = endpoint.server(server_config()).build().unwrap();
    ready.send(()).unwrap();
    let connection = endpoint.accept().await.unwrap().await.unwrap();
    connection.send_datagram(connection.read_datagram().await.unwrap()).unwrap();
    let (mut send, mut receive) = connection.accept_bi().await.unwrap();
    while let Some(chunk) = receive.read_chunk(usize::MAX).await.unwrap() {
        send.write_chunk(chunk).await.unwrap();
    }
    send.finish().unwrap();
    connection.closed().await;
    endpoint.wait_idle().await;
}

/// Sends a datagram and a stream to the server, and takes them back.
async fn ask(endpoint: EndpointBuilder, server: SocketAddr) {
    let endpoint = endpoint.build().unwrap();
    let connection = endpoint.connect_with(client_config(), server, "localhost").unwrap().await.unwrap();
    connection.send_datagram(Bytes::from_static(b"a datagram")).unwrap();
    assert_eq!(connection.read_datagram().await.unwrap(), &b"a datagram"[..]);
    let content: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    let write = async {
        send.write_all(&content).await.unwrap();
        send.finish().unwrap();
    };
    let ((), echo) = tokio::join!(write, receive.read_to_end(LEN));
    assert!(echo.unwrap() == content);
    connection.close(0_u8.into(), b"done");
    endpoint.wait_idle().await;
}

/// Deleted, endpoints without HTTP could open AF_XDP and neither send nor receive by it, or a driver sleep while packets lie in its rings.
#[test]
fn a_datagram_and_a_stream_go_both_ways_over_af_xdp_at_either_end_or_both() {
    if !requirements::root("endpoints over AF_XDP in network namespaces") {
        return;
    }
    let ways = [(Way::Xdp, Way::Kernel), (Way::Kernel, Way::Xdp), (Way::Xdp, Way::Xdp)];
    let drivers = [Driver::Thread, Driver::Current];
    for ((server, client), driver) in ways.into_iter().flat_map(|way| drivers.map(|driver| (way, driver))) {
        let options = LabOptions { udp_segmentation: Switch::Off, ..LabOptions::default() };
        let lab = Lab::new(&options).unwrap();
        let address = (lab.server().ipv4(), PORT).into();
        eprintln!("server {server:?}, client {client:?}, {driver:?}");
        std::thread::scope(|scope| {
            let (ready, is_ready) = mpsc::channel();
            let endpoint = server.endpoint(lab.server(), PORT, driver);
            scope.spawn(|| at(lab.server(), serve(endpoint, ready)));
            is_ready.recv_timeout(PATIENCE).unwrap();
            at(lab.client(), ask(client.endpoint(lab.client(), 0, driver), address));
        });
    }
}
