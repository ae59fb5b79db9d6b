//! A client of HTTP/1.1 over TLS that asks one thing.

use crypto::{Identity, Roots, TlsOptions};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// A certificate for these names.
pub(crate) fn certificate(names: &[&str]) -> Identity {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    Identity::from_pem(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).unwrap()
}

/// A connection to `server` under `name`.
pub(crate) fn connect(server: SocketAddr, name: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let options = TlsOptions { alpn: vec![b"http/1.1".to_vec()], ..TlsOptions::default() };
    let config = Arc::unwrap_or_clone(crypto::tcp_client(&Roots::Insecure, &options).unwrap());
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(tls, TcpStream::connect(server).unwrap())
}

/// Sends a request to `server` under `name`, and reads to the end. Returns the text of the response, and the server's certificate.
pub(crate) fn ask(server: SocketAddr, name: &str, request: &str) -> (String, Vec<u8>) {
    let mut stream = connect(server, name);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = Vec::new();
    // The end may come without close_notify.
    let _ = stream.read_to_end(&mut text);
    let certificate = stream.conn.peer_certificates().unwrap()[0].to_vec();
    (String::from_utf8_lossy(&text).into_owned(), certificate)
}

/// A GET that closes the connection.
pub(crate) fn get(server: SocketAddr) -> String {
    ask(server, "localhost", "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").0
}
