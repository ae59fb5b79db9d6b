//! Connections over TCP after the first one.

use rustls::pki_types::PrivateKeyDer;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use tercel::Client;
use tercel::client::HttpChoice;
use tercel::tls::Roots;

/// A foreign server that closes after each response and tells what kind of handshake there was.
fn serve() -> (String, String, mpsc::Receiver<HandshakeKind>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(tls, connection));
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).unwrap();
            }
            let stream = stream.get_mut();
            let _ = tell.send(stream.conn.handshake_kind().unwrap());
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").unwrap();
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (url, made.cert.pem(), told)
}

/// RFC 8446 §2.2. Deleted, each connection of a client over TCP could cost a full handshake.
#[tokio::test]
async fn a_client_resumes_over_tcp() {
    let (url, certificate, told) = serve();
    let client = Client::builder().http(HttpChoice::Http1).roots(Roots::Pem(certificate.into_bytes()));
    let client = client.build().unwrap();
    for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
        let response = client.get(&url).await.unwrap();
        assert_eq!(response.into_body().collect(10).await.unwrap(), "ok");
        assert_eq!(told.recv_timeout(Duration::from_secs(20)).unwrap(), expected);
    }
}
