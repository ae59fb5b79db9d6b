//! Clients of HTTP/1.1, written out by hand, and of HTTP/2, by h2.

use crate::message::{Answer, Ask, Who};
use bytes::Bytes;
use crypto::Roots;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a client to its end.
pub(crate) fn run<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(PATIENCE, client).await.expect("it takes too long") })
}

/// A connection on which `protocol` was agreed.
pub(crate) async fn connect(port: u16, protocol: &str) -> TlsStream<TcpStream> {
    connect_as(&Who::default(), port, protocol).await
}

pub(crate) async fn connect_as(who: &Who, port: u16, protocol: &str) -> TlsStream<TcpStream> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    socket.set_nodelay(true).expect("no delay");
    socket.write_all(&who.header).await.expect("the header is taken");
    secure(who, socket, protocol).await
}

/// The same on a connection that has begun.
pub(crate) async fn secure(who: &Who, socket: TcpStream, protocol: &str) -> TlsStream<TcpStream> {
    let config = crypto::tcp_client(&Roots::Insecure, &who.tls(protocol)).expect("a configuration");
    let name = ServerName::try_from(who.name).expect("a name");
    let stream = TlsConnector::from(Arc::clone(&config)).connect(name, socket).await.expect("TLS");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
    stream
}

/// Asks one after the other on one connection of HTTP/1.1.
pub(crate) async fn http1(port: u16, asks: &[Ask]) -> Vec<Answer> {
    http1_as(&Who::default(), port, asks).await
}

pub(crate) async fn http1_as(who: &Who, port: u16, asks: &[Ask]) -> Vec<Answer> {
    let mut stream = BufReader::new(connect_as(who, port, "http/1.1").await);
    let mut answers = Vec::new();
    for ask in asks {
        let host = ask.authority(port);
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {host}\r\n", ask.method, ask.target);
        for (name, value) in &ask.fields {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        stream.write_all(head.as_bytes()).await.expect("the head is taken");
        // The server may refuse it and close.
        let _ = stream.write_all(&ask.content).await;
        stream.flush().await.expect("sent");
        let answer = read_answer(&mut stream, ask.method).await;
        let is_last = answer.fields.contains_key("connection");
        answers.push(answer);
        if is_last {
            stream = BufReader::new(connect_as(who, port, "http/1.1").await);
        }
    }
    answers
}

/// Reads one response of HTTP/1.1.
pub(crate) async fn read_answer(stream: &mut BufReader<TlsStream<TcpStream>>, method: &str) -> Answer {
    let mut answer = Answer::default();
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("a status line");
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).expect(&line);
    answer.status = status.parse().expect("three digits");
    loop {
        line.clear();
        stream.read_line(&mut line).await.expect("a line");
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        answer.add(name.as_bytes(), value.as_bytes());
    }
    let length = match (method, answer.status) {
        ("HEAD", _) | (_, 204 | 304) => 0,
        _ => answer.field("content-length").parse().expect("a length"),
    };
    answer.content = vec![0; length];
    stream.read_exact(&mut answer.content).await.expect("the content");
    answer
}

/// Asks one after the other on one connection of HTTP/2.
pub(crate) async fn http2(port: u16, asks: &[Ask]) -> Vec<Answer> {
    http2_as(&Who::default(), port, asks).await
}

pub(crate) async fn http2_as(who: &Who, port: u16, asks: &[Ask]) -> Vec<Answer> {
    let stream = connect_as(who, port, "h2").await;
    let (client, connection) = h2::client::handshake(stream).await.expect("a preface");
    let driver = tokio::spawn(connection);
    let mut client = client.ready().await.expect("a connection");
    let mut answers = Vec::new();
    for ask in asks {
        let uri = format!("https://{}{}", ask.authority(port), ask.target);
        let mut request = http::Request::builder().method(ask.method).uri(uri);
        for (name, value) in &ask.fields {
            request = request.header(*name, value);
        }
        let request = request.body(()).expect("a request");
        let (response, mut sender) = client.send_request(request, ask.content.is_empty()).expect("a stream");
        if !ask.content.is_empty() {
            // The server may refuse it and reset.
            let _ = sender.send_data(Bytes::from(ask.content.clone()), true);
        }
        let response = response.await.expect("a response");
        let mut answer = Answer { status: response.status().as_u16(), ..Answer::default() };
        for (name, value) in response.headers() {
            answer.add(name.as_str().as_bytes(), value.as_bytes());
        }
        let mut body = response.into_body();
        while let Some(data) = body.data().await {
            let data = data.expect("content");
            body.flow_control().release_capacity(data.len()).expect("credit");
            answer.content.extend_from_slice(&data);
        }
        answers.push(answer);
    }
    driver.abort();
    answers
}

/// The certificate that a client is shown which asks for `name` and can check signatures by `schemes`.
pub(crate) async fn shown(port: u16, name: &'static str, schemes: Vec<SignatureScheme>) -> Vec<u8> {
    let config = rustls::ClientConfig::builder().dangerous();
    let config = config.with_custom_certificate_verifier(Arc::new(Trusting(schemes))).with_no_client_auth();
    let socket = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    let name = ServerName::try_from(name).expect("a name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await.expect("TLS");
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    shown.expect("a certificate").to_vec()
}

/// Trusts all.
#[derive(Debug)]
struct Trusting(Vec<SignatureScheme>);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
