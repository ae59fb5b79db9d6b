//! Handshakes whose signature another thread makes.

use super::*;
use crate::tcp::stream::hello::Stage;
use rustls::version::TLS12;
use rustls::{AlertDescription, Error};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

const SLOW: &SignatureAlgorithm = &rcgen::PKCS_ECDSA_P384_SHA384;
/// No handshake of these tests takes longer.
const BOUND: Duration = Duration::from_secs(30);

/// Keeps the only thread that signs busy until what it returns is dropped.
fn keep_busy(signers: &Signers) -> Sender<()> {
    let (end, ended) = channel();
    signers.run(move || {
        let _ = ended.recv();
    });
    end
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn connect(address: SocketAddr, config: Arc<ClientConfig>) -> JoinHandle<Client> {
    std::thread::spawn(move || Client::connect(address, config))
}

/// Goes on with the handshake until this is so of its ClientHello.
async fn until(stream: &Stream, is_so: impl Fn(&Hello) -> bool) {
    let wait = poll_fn(|cx| {
        assert!(stream.poll_handshake(cx).is_pending());
        let is_so = stream.0.borrow().hello.as_ref().is_some_and(|hello| is_so(hello));
        if is_so { Poll::Ready(()) } else { Poll::Pending }
    });
    tokio::time::timeout(BOUND, wait).await.unwrap();
}

/// The same, until another thread shall take a step.
async fn until_out(stream: &Stream) {
    until(stream, |hello| matches!(hello.stage, Stage::Out(_))).await;
}

async fn finish(stream: &Stream) -> io::Result<Handshake> {
    tokio::time::timeout(BOUND, poll_fn(|cx| stream.poll_handshake(cx))).await.unwrap()
}

/// Deleted, each signature with an RSA key could keep all connections of the thread waiting.
#[test]
fn a_signature_that_takes_long_holds_up_no_other_connection() {
    let slow = Ends::new(b"h2", SLOW);
    let fast = Ends::new(b"h2", &rcgen::PKCS_ECDSA_P256_SHA256);
    for version in [&TLS13, &TLS12] {
        let busy = keep_busy(&slow.signers);
        let (listener, address) = listen();
        runtime().block_on(async {
            let waiting = connect(address, slow.client(version, &[kx_group::X25519]));
            let stream = begun(&Rc::default(), &listener, &slow.server);
            until_out(&stream).await;
            let other = connect(address, fast.client(version, &[kx_group::X25519]));
            drop(accepted(&listener, &fast.server).await);
            drop(other.join().unwrap());
            until_out(&stream).await;
            drop(busy);
            assert_eq!(finish(&stream).await.unwrap(), Handshake::Done);
            assert!(stream.0.borrow().is_http2 && stream.0.borrow().hello.is_none());
            drop(waiting.join().unwrap());
        });
    }
}

/// RFC 8446 §4.1.4. Deleted, a client could have each signature made where all connections wait for it.
#[test]
fn the_answer_to_a_second_hello_is_signed_apart_however_it_arrives() {
    let ends = Ends::new(b"http/1.1", SLOW);
    let (listener, address) = listen();
    let config = ends.client(&TLS13, &[kx_group::SECP384R1, kx_group::X25519]);
    let (go_on, may_go_on) = channel();
    let client = std::thread::spawn(move || {
        let socket = std::net::TcpStream::connect(address).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut session = ClientConnection::new(config, name).unwrap();
        session.write_tls(&mut &socket).unwrap();
        session.read_tls(&mut &socket).unwrap();
        session.process_new_packets().unwrap();
        let mut second = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut second).unwrap();
        }
        for part in second.chunks(second.len().div_ceil(2)) {
            may_go_on.recv().unwrap();
            io::Write::write_all(&mut &socket, part).unwrap();
        }
        session.complete_io(&mut &socket).unwrap();
        assert!(!session.is_handshaking());
    });
    runtime().block_on(async {
        let stream = begun(&Rc::default(), &listener, &ends.server);
        for _part in 0..2 {
            until(&stream, |hello| hello.is_second && matches!(hello.stage, Stage::ReadingSecond)).await;
            let busy = keep_busy(&ends.signers);
            go_on.send(()).unwrap();
            until_out(&stream).await;
            drop(busy);
        }
        assert_eq!(finish(&stream).await.unwrap(), Handshake::Done);
    });
    client.join().unwrap();
}

/// Deleted, clients that connect and go away could take all places, or have signatures made that no client waits for.
#[test]
fn the_places_of_clients_that_are_gone_go_to_others() {
    let ends = Ends::new(b"h2", SLOW);
    let busy = keep_busy(&ends.signers);
    let (listener, address) = listen();
    runtime().block_on(async {
        let mut begun_ones = Vec::new();
        for _ in 0..2 * worker::MOST_OUT {
            let socket = std::net::TcpStream::connect(address).unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let config = ends.client(&TLS13, &[kx_group::X25519]);
            ClientConnection::new(config, name).unwrap().write_tls(&mut &socket).unwrap();
            let stream = begun(&Rc::default(), &listener, &ends.server);
            until_out(&stream).await;
            begun_ones.push((stream, socket));
        }
        let last = connect(address, ends.client(&TLS13, &[kx_group::X25519]));
        let stream = begun(&Rc::default(), &listener, &ends.server);
        until_out(&stream).await;
        drop(begun_ones);
        drop(busy);
        assert_eq!(finish(&stream).await.unwrap(), Handshake::Done);
        drop(last.join().unwrap());
    });
}

#[test]
fn a_client_that_is_refused_apart_hears_why() {
    let ends = Ends::new(b"h2", SLOW);
    let other = Ends::new(b"http/1.1", SLOW);
    let (listener, address) = listen();
    let config = other.client(&TLS13, &[kx_group::X25519]);
    let client = std::thread::spawn(move || {
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        let mut session = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
        let error = session.complete_io(&mut socket).unwrap_err();
        error.get_ref().unwrap().downcast_ref::<Error>().cloned()
    });
    runtime().block_on(async {
        let stream = begun(&Rc::default(), &listener, &ends.server);
        assert_eq!(finish(&stream).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    });
    let heard = client.join().unwrap();
    assert_eq!(heard, Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)));
}
