//! Handles against quinn, an implementation that shares no code with this one: `peers/quinn-peer`.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use quic::{ClientConfig, EarlyData, EarlyStatus, Endpoint, MemorySessions, Roots, ServerConfig, TicketKeys};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a transfer.
const BYTES: u64 = 3_000_000;
/// Longer than this no test waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program, unless it is not built: then the test says so.
fn quinn_peer() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/peers/release/quinn-peer");
    if !program.is_file() {
        requirements::missing("quinn-peer is not built: tests/setup does that");
        return None;
    }
    Some(program)
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await });
    assert!(outcome.is_ok(), "the test takes too long");
}

/// quinn's server with these options, and its address.
async fn quinns_server(program: &Path, options: &[&str]) -> (Running, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready.json");
    let mut command = Command::new(program);
    command.arg("perf-serve").args(options).arg("--ready-file").arg(&ready);
    let server = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    while !ready.is_file() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let told: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&ready).unwrap()).unwrap();
    (server, told["address"].as_str().unwrap().parse().unwrap())
}

/// draft-banks-quic-performance: eight bytes say how many are wanted.
#[test]
fn our_client_reads_a_stream_of_quinns_server() {
    let Some(program) = quinn_peer() else { return };
    run(async {
        let (_server, address) = quinns_server(&program, &["--connections", "1"]).await;
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = ClientConfig::with_roots(Roots::Insecure).unwrap().alpn_protocols(&[b"perf"]).unwrap();
        let connection = endpoint.connect_with(config, address, "localhost").unwrap().await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&BYTES.to_be_bytes()).await.unwrap();
        send.finish().unwrap();
        assert_eq!(recv.read_to_end(BYTES as usize).await.unwrap().len() as u64, BYTES);
        assert_eq!(endpoint.stats().outgoing_handshakes, 1);
        connection.close(0_u8.into(), b"done");
        endpoint.wait_idle().await;
    });
}

/// quinn's server issues tickets as rustls does. Deleted, our client could resume with our server only.
#[test]
fn our_client_resumes_with_quinns_server() {
    let Some(program) = quinn_peer() else { return };
    run(async {
        let (_server, address) = quinns_server(&program, &["--connections", "3"]).await;
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut config =
            ClientConfig::with_roots(Roots::Insecure).unwrap().alpn_protocols(&[b"perf"]).unwrap();
        config.session_store(Arc::new(MemorySessions::default()));
        for expected in [false, true, true] {
            let connection =
                endpoint.connect_with(config.clone(), address, "localhost").unwrap().await.unwrap();
            assert_eq!(connection.handshake_data().unwrap().is_resumed, expected);
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.write_all(&1_000_u64.to_be_bytes()).await.unwrap();
            send.finish().unwrap();
            assert_eq!(recv.read_to_end(1_000).await.unwrap().len(), 1_000);
            connection.close(0_u8.into(), b"done");
        }
        endpoint.wait_idle().await;
    });
}

#[test]
fn quinns_client_reads_a_stream_of_our_server() {
    let Some(program) = quinn_peer() else { return };
    run(async {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::with_single_cert(vec![CertificateDer::from(made.cert)], key).unwrap();
        let config = config.alpn_protocols(&[b"perf"]).unwrap();
        let endpoint = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let address = endpoint.local_addr().unwrap().to_string();
        let mut command = Command::new(program);
        command.args(["perf-get", "--connect", &address, &BYTES.to_string()]);
        let client = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let (mut send, mut recv) = connection.accept_bi().await.unwrap();
        let wanted: [u8; 8] = recv.read_to_end(8).await.unwrap().try_into().unwrap();
        send.write_all(&vec![7; u64::from_be_bytes(wanted) as usize]).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await, Ok(None), "quinn has acknowledged all of it");
        // quinn's client closes the connection only after it has counted the bytes.
        connection.closed().await;
        assert_eq!(endpoint.stats().accepted_handshakes, 1);
        drop(client);
    });
}

/// Whether the program is of a version that knows this option.
fn knows(program: &Path, option: &str) -> bool {
    let help = Command::new(program).arg("--help").output().unwrap();
    let is_known = String::from_utf8_lossy(&help.stdout).contains(option);
    if !is_known {
        requirements::missing("quinn-peer is of an earlier version: tests/setup builds it again");
    }
    is_known
}

/// Deleted, our client could send early data to our server only.
#[test]
fn quinns_server_takes_the_early_data_of_our_client() {
    let Some(program) = quinn_peer().filter(|program| knows(program, "--early-data")) else { return };
    run(async {
        let (_server, address) = quinns_server(&program, &["--connections", "3", "--early-data"]).await;
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut config =
            ClientConfig::with_roots(Roots::Insecure).unwrap().alpn_protocols(&[b"perf"]).unwrap();
        config.session_store(Arc::new(MemorySessions::default())).early_data(EarlyData::Permitted);
        for expected in [EarlyStatus::None, EarlyStatus::Accepted, EarlyStatus::Accepted] {
            let connecting = endpoint.connect_with(config.clone(), address, "localhost").unwrap();
            let connection = match connecting.into_0rtt() {
                Ok((connection, _)) => connection,
                Err(connecting) => connecting.await.unwrap(),
            };
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.write_all(&1_000_u64.to_be_bytes()).await.unwrap();
            send.finish().unwrap();
            assert_eq!(recv.read_to_end(1_000).await.unwrap().len(), 1_000);
            connection.handshake_done().await.unwrap();
            assert_eq!(connection.handshake_data().unwrap().early_data, expected);
            connection.close(0_u8.into(), b"done");
        }
        endpoint.wait_idle().await;
    });
}

/// Without early data, with it, and refused. Deleted, our server could resume and take early data of our client only.
#[test]
fn quinns_client_resumes_with_our_server_and_sends_early_data() {
    let Some(program) = quinn_peer().filter(|program| knows(program, "--early-data")) else { return };
    run(async {
        for (asked, permitted, expected) in [
            (false, EarlyData::Permitted, EarlyStatus::None),
            (true, EarlyData::Off, EarlyStatus::None),
            (true, EarlyData::Permitted, EarlyStatus::Accepted),
        ] {
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
            let config = ServerConfig::with_single_cert(vec![CertificateDer::from(made.cert)], key).unwrap();
            let mut config = config.alpn_protocols(&[b"perf"]).unwrap();
            let keys = TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S);
            config.ticket_keys(Arc::new(keys)).early_data(permitted);
            let endpoint = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
            let address = endpoint.local_addr().unwrap().to_string();
            let mut command = Command::new(&program);
            command.args(["perf-get", "--connect", &address, "1000", "--connections", "3"]);
            command.args(asked.then_some("--early-data"));
            let _client = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
            for is_resumed in [false, true, true] {
                let (connection, _) = endpoint.accept().await.unwrap().accept().unwrap().into_0rtt().unwrap();
                let (mut send, mut recv) = connection.accept_bi().await.unwrap();
                let wanted: [u8; 8] = recv.read_to_end(8).await.unwrap().try_into().unwrap();
                send.write_all(&vec![7; u64::from_be_bytes(wanted) as usize]).await.unwrap();
                // Then, not after the end: quinn's client closes the connection once it has that.
                connection.handshake_done().await.unwrap();
                send.finish().unwrap();
                let told = connection.handshake_data().unwrap();
                let expected = if is_resumed { expected } else { EarlyStatus::None };
                assert_eq!((told.is_resumed, told.early_data), (is_resumed, expected));
                connection.closed().await;
            }
        }
    });
}

/// `examples/ported`: the same source files, compiled with quinn in the place of this crate.
#[test]
fn the_ported_programs_run_on_quinn_as_they_are() {
    let Some(program) = quinn_peer().filter(|program| knows(program, "ported")) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), vec![9; 300_000]).unwrap();
    let output = Command::new(program).arg("ported").arg(folder.path()).output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{complained}");
    assert_eq!(said, "300000 bytes, a file that is missing, and the sum 9900\n");
}

/// Deleted, our client could move with our server only.
#[test]
fn our_client_moves_while_quinns_server_sends() {
    let Some(program) = quinn_peer() else { return };
    run(async {
        let (_server, address) = quinns_server(&program, &["--connections", "1"]).await;
        let endpoint = Endpoint::client("0.0.0.0:0".parse().unwrap()).unwrap();
        let config = ClientConfig::with_roots(Roots::Insecure).unwrap().alpn_protocols(&[b"perf"]).unwrap();
        let connection = endpoint.connect_with(config, address, "localhost").unwrap().await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        let wanted = 10 * BYTES;
        send.write_all(&wanted.to_be_bytes()).await.unwrap();
        send.finish().unwrap();
        let mut received = 0;
        let mut chunk = vec![0; 1 << 16];
        while received < wanted / 10 {
            received += recv.read(&mut chunk).await.unwrap().unwrap() as u64;
        }
        let there: std::net::IpAddr = "127.0.0.2".parse().unwrap();
        connection.migrate(there).unwrap();
        while let Some(more) = recv.read(&mut chunk).await.unwrap() {
            received += more as u64;
        }
        assert_eq!((received, connection.local_ip()), (wanted, Some(there)));
        connection.close(0_u8.into(), b"done");
        endpoint.wait_idle().await;
    });
}
