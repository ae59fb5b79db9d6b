//! Records of TLS on the wire, as a client sees them.

use super::super::counters::Traffic;
use super::*;
use crate::budget::Budget;
use crate::signers::Signers;
use base::time::Instant;
use crypto::{Identity, SharedIdentities};
use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::future::poll_fn;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread::JoinHandle;
use tokio::runtime::Runtime;

mod signing;

/// What a record has beside its content: its type and the tag.
const OVERHEAD: usize = 17;

/// A server, the thread that signs for it, and what its clients need.
struct Ends {
    server: Handshakes,
    signers: Signers,
    roots: RootCertStore,
    alpn: Vec<Vec<u8>>,
}

impl Ends {
    /// That speak `alpn`, for a server with a key of this kind that knows the group X25519 alone.
    fn new(alpn: &[u8], kind: &'static SignatureAlgorithm) -> Ends {
        let key = KeyPair::generate_for(kind).unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let identity =
            Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        let identities = SharedIdentities::from(&identity);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(certificate.der().to_vec())).unwrap();
        let config = ServerConfig::builder_with_provider(provider(&[kx_group::X25519]));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = config.with_cert_resolver(Arc::new(identities.clone()));
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![alpn.to_vec()];
        let signers = Signers::new(1);
        let server = Handshakes::new(Arc::new(config), identities, signers.clone(), 1);
        Ends { server, signers, roots, alpn: vec![alpn.to_vec()] }
    }

    /// A client that knows these groups, and offers a share of the first one alone.
    fn client(
        &self,
        version: &'static SupportedProtocolVersion,
        groups: &[&'static dyn SupportedKxGroup],
    ) -> Arc<ClientConfig> {
        let client = ClientConfig::builder_with_provider(provider(groups));
        let client = client.with_protocol_versions(&[version]).unwrap();
        let mut client = client.with_root_certificates(self.roots.clone()).with_no_client_auth();
        client.alpn_protocols.clone_from(&self.alpn);
        Arc::new(client)
    }
}

fn provider(groups: &[&'static dyn SupportedKxGroup]) -> Arc<CryptoProvider> {
    let kx_groups = groups.to_vec();
    Arc::new(CryptoProvider { kx_groups, ..rustls::crypto::aws_lc_rs::default_provider() })
}

/// Both ends of connections that speak `alpn`.
fn configs(alpn: &[u8]) -> (Handshakes, Arc<ClientConfig>) {
    let ends = Ends::new(alpn, &rcgen::PKCS_ECDSA_P256_SHA256);
    let client = ends.client(&TLS13, &[kx_group::X25519]);
    (ends.server, client)
}

/// The client's end.
struct Client {
    socket: std::net::TcpStream,
    session: ClientConnection,
}

impl Client {
    fn connect(address: SocketAddr, config: Arc<ClientConfig>) -> Client {
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut session = ClientConnection::new(config, name).unwrap();
        session.complete_io(&mut socket).unwrap();
        Client { socket, session }
    }

    /// Receives so many bytes of content. Returns them, and the content of each record in bytes.
    fn receive(mut self, len: usize) -> (Vec<u8>, Vec<usize>) {
        let (mut content, mut records) = (Vec::new(), Vec::new());
        while content.len() < len {
            let mut record = vec![0; 5];
            self.socket.read_exact(&mut record).unwrap();
            let size = usize::from(u16::from_be_bytes([record[3], record[4]]));
            record.resize(5 + size, 0);
            self.socket.read_exact(&mut record[5..]).unwrap();
            let mut rest = record.as_slice();
            while !rest.is_empty() {
                self.session.read_tls(&mut rest).unwrap();
            }
            let state = self.session.process_new_packets().unwrap();
            let before = content.len();
            content.resize(before + state.plaintext_bytes_to_read(), 0);
            self.session.reader().read_exact(&mut content[before..]).unwrap();
            records.push(size - OVERHEAD);
        }
        (content, records)
    }
}

/// The server's end of the next connection, behind its handshake.
async fn accepted(listener: &TcpListener, server: &Handshakes) -> Stream {
    accepted_by(&Rc::default(), listener, server).await
}

/// The same, in the traffic of a thread.
async fn accepted_by(traffic: &Rc<Traffic>, listener: &TcpListener, server: &Handshakes) -> Stream {
    let stream = begun(traffic, listener, server);
    assert_eq!(poll_fn(|cx| stream.poll_handshake(cx)).await.unwrap(), Handshake::Done);
    stream
}

/// The same before its handshake.
fn begun(traffic: &Rc<Traffic>, listener: &TcpListener, server: &Handshakes) -> Stream {
    let (socket, peer) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let share = Budget::default().portion(peer.ip());
    let timeouts = Rc::new(ConnectionTimeouts::new(Rc::clone(traffic), share, Instant::ZERO));
    let socket = TcpStream::from_std(socket).unwrap();
    Stream::new(socket, server, None, timeouts).unwrap()
}

/// What a client receives of writes of such lengths, all in one turn, and the records that it is in.
fn records_of(alpn: &[u8], lengths: &[usize]) -> Vec<usize> {
    let (server, client) = configs(alpn);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let content: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|at| (at % 251) as u8).collect();
    let len = content.len();
    let client = std::thread::spawn(move || Client::connect(address, client).receive(len));
    runtime().block_on(async {
        let mut stream = accepted(&listener, &server).await;
        let mut rest = content.as_slice();
        for len in lengths {
            let (mut write, others) = rest.split_at(*len);
            while !write.is_empty() {
                let taken = poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, write)).await.unwrap();
                write = &write[taken..];
                assert!(stream.0.borrow().gathered.len() <= RECORD);
            }
            rest = others;
        }
        poll_fn(|cx| stream.poll_send(cx)).await.unwrap();
        assert_eq!(stream.0.borrow().gathered.capacity(), 0, "an idle connection has no memory for it");
    });
    let (received, records) = client.join().unwrap();
    assert!(received == content, "{lengths:?}: bytes differ");
    records
}

/// Deleted, each small response could be a record of its own again, or content that waits could be lost, or exceed its bound.
#[test]
fn short_writes_of_http2_share_a_record() {
    assert_eq!(records_of(b"h2", &[700; 10]), [7_000]);
    assert_eq!(
        records_of(b"h2", &[9, RECORD - 9]),
        [RECORD],
        "a long one goes on in the record of a short one"
    );
    assert_eq!(records_of(b"h2", &[4_000; 5]), [16_000, 4_000], "no record is longer than it may be");
    // 23 at a time, but where the socket takes no more.
    let many = records_of(b"h2", &[700; 1_000]);
    assert!(many.len() < 60 && many[0] == 16_100, "{many:?}");
    assert_eq!(records_of(b"http/1.1", &[700; 10]), [700; 10]);
}

/// A listener, what its server is configured with, and a client of HTTP/1.1 that connects.
fn connecting() -> (TcpListener, Handshakes, JoinHandle<Client>) {
    let (server, client) = configs(b"http/1.1");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, server, std::thread::spawn(move || Client::connect(address, client)))
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// How often a waker was called.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Calls>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Deleted, one connection whose client reads as fast as the server writes could keep the thread from all others, or, once it has given
/// way, never be polled again.
#[test]
fn a_connection_gives_way_when_it_has_had_its_share() {
    let (listener, server, client) = connecting();
    runtime().block_on(async {
        let mut stream = accepted(&listener, &server).await;
        assert_eq!(stream.0.borrow().left, TURN);
        let calls = Arc::new(Calls::default());
        let waker = Waker::from(Arc::clone(&calls));
        let cx = &mut Context::from_waker(&waker);
        stream.0.borrow_mut().left = 900;
        for (left, taken) in [(900, Poll::Ready(700)), (200, Poll::Ready(700)), (0, Poll::Pending)] {
            assert_eq!(stream.0.borrow().left, left);
            assert_eq!(Pin::new(&mut stream).poll_write(cx, &[1; 700]).map(Result::unwrap), taken);
        }
        let mut room = [0; 100];
        let mut buffer = hyper::rt::ReadBuf::new(&mut room);
        assert!(Pin::new(&mut stream).poll_read(cx, buffer.unfilled()).is_pending());
        assert_eq!(calls.0.load(Ordering::Relaxed), 2, "it is polled again, after others");
        stream.begin_turn();
        assert_eq!(Pin::new(&mut stream).poll_write(cx, &[1; 700]).map(Result::unwrap), Poll::Ready(700));
    });
    drop(client.join().unwrap());
}

/// What a connection holds whose client reads nothing, where so much content waits for the sockets of others.
fn held_beside(waiting: u64) -> u64 {
    let (listener, server, client) = connecting();
    runtime().block_on(async {
        let traffic = Rc::new(Traffic::default());
        traffic.on_waiting(0, waiting);
        let mut stream = accepted_by(&traffic, &listener, &server).await;
        let client = client.join().unwrap();
        let before = stream.0.borrow().timeouts.held();
        let cx = &mut Context::from_waker(Waker::noop());
        let mut refused = 0;
        // After the first refusal there is room again for what the socket took then.
        while refused < 2 {
            stream.begin_turn();
            let is_taken = Pin::new(&mut stream).poll_write(cx, &[1; RECORD]).is_ready();
            refused = if is_taken { 0 } else { refused + 1 };
        }
        let held = stream.0.borrow().timeouts.held() - before;
        drop((stream, client));
        traffic.on_waiting(waiting, 0);
        assert!(!traffic.is_crowded(), "what a connection held is forgotten with it");
        held
    })
}

/// Deleted, a thousand clients that read slowly could make a thread hold, and fetch from memory once more, four times as much.
#[test]
fn a_connection_holds_less_where_many_wait() {
    let (alone, in_crowd) = (held_beside(0), held_beside(17 << 20));
    assert!(alone > HELD as u64 / 2 && alone <= HELD as u64, "{alone}");
    assert!(in_crowd > 0 && in_crowd <= HELD_IN_CROWD as u64, "{in_crowd}");
}
