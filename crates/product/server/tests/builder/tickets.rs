//! Session tickets, and servers that share their keys.

use crate::{builder, certificate, hello};
use crypto::{Roots, TlsOptions};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, StreamOwned};
use server::service::service_fn;
use server::{Running, Tickets};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

fn handshake(config: &Arc<ClientConfig>, server: SocketAddr) -> Option<HandshakeKind> {
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut stream = StreamOwned::new(tls, TcpStream::connect(server).unwrap());
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    // The end may come without close_notify.
    let _ = stream.read_to_end(&mut Vec::new());
    stream.conn.handshake_kind()
}

fn client() -> Arc<ClientConfig> {
    let options = TlsOptions { alpn: vec![b"http/1.1".to_vec()], ..TlsOptions::default() };
    let mut config = Arc::unwrap_or_clone(crypto::tcp_client(&Roots::Insecure, &options).unwrap());
    config.resumption = Resumption::in_memory_sessions(8);
    Arc::new(config)
}

/// Deleted, a client that a balancer sends to another server than before would make a full handshake each time.
#[test]
fn a_client_of_one_server_resumes_at_another_that_shares_its_ticket_keys_and_at_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (file, identity) = (folder.path().join("tickets"), certificate(&["localhost"]));
    let start = |shares: bool| -> Running {
        let builder = builder().identity(identity.clone());
        let builder = if shares { builder.tickets(Tickets::default().keys(&file)) } else { builder };
        builder.bind().unwrap().serve(service_fn(hello)).unwrap()
    };
    let (one, other, apart) = (start(true), start(true), start(false));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let client = client();
    assert_eq!(handshake(&client, one.local_addr()), Some(HandshakeKind::Full));
    assert_eq!(handshake(&client, other.local_addr()), Some(HandshakeKind::Resumed));
    assert_eq!(handshake(&client, apart.local_addr()), Some(HandshakeKind::Full));
}

/// Deleted, clients could resume at a server that wants full handshakes.
#[test]
fn a_server_without_tickets_makes_a_full_handshake_each_time() {
    for (tickets, second) in
        [(Tickets::off(), HandshakeKind::Full), (Tickets::default().count(1), HandshakeKind::Resumed)]
    {
        let server = builder().identity(certificate(&["localhost"])).tickets(tickets);
        let server = server.bind().unwrap().serve(service_fn(hello)).unwrap();
        let client = client();
        assert_eq!(handshake(&client, server.local_addr()), Some(HandshakeKind::Full));
        assert_eq!(handshake(&client, server.local_addr()), Some(second));
    }
}

#[test]
fn a_file_that_holds_no_ticket_keys_is_refused_with_a_word_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tickets");
    std::fs::write(&file, "my notes").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let refused = builder().tickets(Tickets::default().keys(&file)).bind().unwrap_err().to_string();
    assert!(refused.contains("is no file of ticket keys") && refused.contains("tickets"), "{refused}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "my notes");
}
