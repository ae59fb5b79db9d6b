//! Clients that come back to a server that issues tickets.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use quic::{
    ClientConfig, Connection, EarlyData, EarlyStatus, Endpoint, ManualDriver, MemorySessions, Roots,
    ServerConfig, TicketKeys,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Longer than this no test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

fn server_config() -> ServerConfig {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    ServerConfig::with_single_cert(vec![CertificateDer::from(made.cert)], key).unwrap()
}

/// Deleted, a program could not have resumption, or would not know that it has.
#[test]
fn a_client_with_a_store_resumes_and_both_ends_say_so() {
    run(async {
        let mut config = server_config();
        config.ticket_keys(Arc::new(TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S)));
        let server = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let client = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let (sessions, mut config) =
            (Arc::new(MemorySessions::default()), ClientConfig::with_roots(Roots::Insecure).unwrap());
        config.session_store(sessions.clone());
        for expected in [false, true, true] {
            let address = server.local_addr().unwrap();
            let connecting = client.connect_with(config.clone(), address, "localhost").unwrap();
            let (ours, theirs) =
                tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() });
            let ours = ours.unwrap();
            for end in [&ours, &theirs] {
                assert_eq!(end.handshake_data().unwrap().is_resumed, expected);
            }
            // The tickets come before the first byte that the server sends now.
            let mut stream = theirs.open_uni().await.unwrap();
            stream.write_all(b"x").await.unwrap();
            stream.finish().unwrap();
            assert_eq!(ours.accept_uni().await.unwrap().read_to_end(9).await.unwrap(), b"x");
            assert!(sessions.tickets() > 0);
            ours.close(0_u8.into(), b"");
        }
    });
}

/// A server that takes its turns on the thread of the test, a few times in a millisecond, unless it is held up.
struct Server {
    endpoint: Endpoint,
    driver: RefCell<ManualDriver>,
    is_held_up: Cell<bool>,
}

impl Server {
    /// It permits early data, or does not, and has these keys.
    fn new(address: &str, keys: &Arc<TicketKeys>, early_data: EarlyData) -> Server {
        let mut config = SERVER.with(Clone::clone);
        config.ticket_keys(Arc::clone(keys)).early_data(early_data);
        let builder = Endpoint::builder(address.parse().unwrap()).server(config);
        let (endpoint, driver) = builder.build_manual().unwrap();
        Server { endpoint, driver: RefCell::new(driver), is_held_up: Cell::new(false) }
    }

    fn address(&self) -> SocketAddr {
        self.endpoint.local_addr().unwrap()
    }

    /// Turns for as long as `test` lasts.
    async fn while_it_runs<T>(&self, test: impl Future<Output = T>) -> T {
        let turns = async {
            loop {
                if !self.is_held_up.get() {
                    self.driver.borrow_mut().on_woken();
                    self.driver.borrow_mut().turn().unwrap();
                }
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        tokio::select! {
            outcome = test => outcome,
            () = turns => unreachable!("turns have no end"),
        }
    }
}

thread_local! {
    /// One certificate for all servers of a test: tickets are bound to it.
    static SERVER: ServerConfig = server_config();
}

fn client(early_data: EarlyData) -> (Endpoint, ClientConfig, Arc<MemorySessions>) {
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let sessions = Arc::new(MemorySessions::default());
    let mut config = ClientConfig::with_roots(Roots::Insecure).unwrap();
    config.session_store(sessions.clone()).early_data(early_data);
    (endpoint, config, sessions)
}

/// Sends back what arrives on the first stream of each connection. Returns for each whether the stream and the connection were early.
async fn echo(server: &Server, connections: usize) -> Vec<(bool, bool)> {
    let mut seen = Vec::new();
    for _ in 0..connections {
        let incoming = server.endpoint.accept().await.unwrap();
        let (connection, accepted) = incoming.accept().unwrap().into_0rtt().unwrap();
        let (mut send, mut recv) = connection.accept_bi().await.unwrap();
        seen.push((recv.is_0rtt(), connection.is_early()));
        let all = recv.read_to_end(1 << 20).await.unwrap();
        connection.handshake_done().await.unwrap();
        assert!(accepted.await && !connection.is_early(), "the handshake is over");
        send.write_all(&all).await.unwrap();
        send.finish().unwrap();
        connection.closed().await;
    }
    seen
}

async fn ask(connection: &Connection, bytes: &[u8]) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(bytes).await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(1 << 20).await.unwrap(), bytes);
}

/// Asks while the server is held up, until early data has left: of many packets.
async fn ask_early(server: &Server, connection: &Connection, bytes: &[u8]) {
    let leaving = async {
        // The first may hold frames of the connection's own.
        while connection.stats().sent_early_packets < 5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.is_held_up.set(false);
    };
    tokio::join!(ask(connection, bytes), leaving);
}

fn run<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await });
    assert!(outcome.is_ok(), "the test takes too long");
}

/// Deleted, a program could send nothing early, or could not tell on a server what may be a copy.
#[test]
fn early_data_is_taken_once_the_client_has_a_ticket_and_both_ends_say_so() {
    run(async {
        let keys = Arc::new(TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S));
        let server = Server::new("127.0.0.1:0", &keys, EarlyData::Permitted);
        let (endpoint, config, _) = client(EarlyData::Permitted);
        let asking = async {
            let first = endpoint.connect_with(config.clone(), server.address(), "localhost").unwrap();
            let first = first.into_0rtt().expect_err("there is no ticket yet").await.unwrap();
            ask(&first, b"first").await;
            assert_eq!(first.handshake_data().unwrap().early_data, EarlyStatus::None);
            first.close(0_u8.into(), b"");
            server.is_held_up.set(true);
            let second = endpoint.connect_with(config.clone(), server.address(), "localhost").unwrap();
            let (second, accepted) = second.into_0rtt().unwrap();
            ask_early(&server, &second, &[7; 50_000]).await;
            assert!(accepted.await);
            let told = second.handshake_data().unwrap();
            assert_eq!((told.is_resumed, told.early_data), (true, EarlyStatus::Accepted));
            second.close(0_u8.into(), b"");
        };
        let (seen, ()) = server.while_it_runs(async { tokio::join!(echo(&server, 2), asking) }).await;
        assert_eq!(seen, [(false, false), (true, true)]);
    });
}

/// The second server has the keys of the first, and another address behind the name. Deleted, what a program has written would be
/// lost, or come twice.
#[test]
fn early_data_that_the_server_refuses_arrives_all_the_same() {
    run(async {
        let keys = Arc::new(TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S));
        let (endpoint, config, sessions) = client(EarlyData::Permitted);
        let first = Server::new("127.0.0.1:0", &keys, EarlyData::Permitted);
        let asking = async {
            let connecting = endpoint.connect_with(config.clone(), first.address(), "localhost").unwrap();
            let connection = connecting.await.unwrap();
            ask(&connection, b"first").await;
            connection.close(0_u8.into(), b"");
        };
        first.while_it_runs(async { tokio::join!(echo(&first, 1), asking) }).await;
        assert!(sessions.tickets() > 0);
        let second = Server::new(&format!("127.0.0.2:{}", first.address().port()), &keys, EarlyData::Off);
        second.is_held_up.set(true);
        let content = vec![7; 50_000];
        let asking = async {
            let connecting = endpoint.connect_with(config.clone(), second.address(), "localhost").unwrap();
            let (connection, accepted) = connecting.into_0rtt().unwrap();
            ask_early(&second, &connection, &content).await;
            assert!(!accepted.await);
            let told = connection.handshake_data().unwrap();
            assert_eq!((told.is_resumed, told.early_data), (true, EarlyStatus::Rejected));
            connection.close(0_u8.into(), b"");
        };
        let (seen, ()) = second.while_it_runs(async { tokio::join!(echo(&second, 1), asking) }).await;
        assert_eq!(seen, [(false, false)]);
    });
}

/// 0.5-RTT. Deleted, a server could say nothing before it has heard twice from the client.
#[test]
fn a_server_writes_before_the_handshake_is_complete_and_a_client_without_leave_sends_nothing_early() {
    run(async {
        let keys = Arc::new(TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S));
        let server = Server::new("127.0.0.1:0", &keys, EarlyData::Permitted);
        let (endpoint, config, _) = client(EarlyData::Off);
        let test = async {
            for _ in 0..2 {
                let connecting =
                    endpoint.connect_with(config.clone(), server.address(), "localhost").unwrap();
                let connecting = connecting.into_0rtt().expect_err("early data is off");
                let serving = async {
                    let incoming = server.endpoint.accept().await.unwrap().accept().unwrap();
                    let (connection, _) = incoming.into_0rtt().unwrap();
                    let mut stream = connection.open_uni().await.unwrap();
                    stream.write_all(b"at once").await.unwrap();
                    stream.finish().unwrap();
                    connection.closed().await
                };
                let asking = async {
                    let connection = connecting.await.unwrap();
                    let mut stream = connection.accept_uni().await.unwrap();
                    assert!(!stream.is_0rtt());
                    assert_eq!(stream.read_to_end(99).await.unwrap(), b"at once");
                    assert_eq!(connection.stats().sent_early_packets, 0);
                    connection.close(0_u8.into(), b"");
                };
                tokio::join!(serving, asking);
            }
        };
        server.while_it_runs(test).await;
    });
}
