//! Servers of HTTP/3 behind the proxy, in the test's process: services of the library, and one written out by hand.

use rustls::pki_types::PrivatePkcs8KeyDer;
use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::time::Duration;
use tempfile::NamedTempFile;
use tercel::quic::{Connection, Endpoint, ServerConfig};
use tercel::tls::Identity;
use tercel::{Body, HttpService, Running, Server, Versions};

/// A certificate for `localhost`, in a file too.
pub(crate) struct Certificate {
    pub(crate) file: NamedTempFile,
    pub(crate) key: NamedTempFile,
    der: Vec<u8>,
    key_der: Vec<u8>,
}

impl Certificate {
    pub(crate) fn new() -> Certificate {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let file = |text: &str| {
            let mut file = NamedTempFile::new().expect("a file");
            file.write_all(text.as_bytes()).expect("written");
            file
        };
        Certificate {
            file: file(&made.cert.pem()),
            key: file(&made.signing_key.serialize_pem()),
            der: made.cert.der().to_vec(),
            key_der: made.signing_key.serialize_der(),
        }
    }

    /// TLS over TCP by it, for one protocol.
    pub(crate) fn tls(&self, protocol: &[u8]) -> rustls::ServerConfig {
        let key = PrivatePkcs8KeyDer::from(self.key_der.clone()).into();
        let chain = vec![self.der.clone().into()];
        let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.expect("a configuration");
        config.alpn_protocols = vec![protocol.to_vec()];
        config
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::from_der(vec![self.der.clone()], self.key_der.clone()).expect("an identity")
    }

    /// The keys of a proxy to the server at `port` that has it.
    pub(crate) fn keys(&self, port: u16) -> String {
        format!(
            "to = 'h3://127.0.0.1:{port}', tls-name = 'localhost', tls-ca = '{}'",
            self.file.path().display()
        )
    }
}

/// A service of the library over HTTP/3.
pub(crate) struct Http3Upstream {
    running: Option<Running>,
    pub(crate) certificate: Certificate,
    pub(crate) port: u16,
}

fn serve(at: SocketAddr, identity: Identity, service: impl HttpService + Send) -> Running {
    let builder = Server::builder().listen(at).identity(identity).versions(Versions::HTTP3).no_warnings();
    builder.serve(service).expect("a server")
}

impl Http3Upstream {
    pub(crate) fn start(service: impl HttpService + Send) -> Http3Upstream {
        let certificate = Certificate::new();
        let running = serve(([127, 0, 0, 1], 0).into(), certificate.identity(), service);
        let port = running.local_addr().port();
        Http3Upstream { running: Some(running), certificate, port }
    }

    pub(crate) fn keys(&self) -> String {
        self.certificate.keys(self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("h3://127.0.0.1:{}", self.port)
    }

    /// Ends it, orderly.
    pub(crate) fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.handle().stop();
            running.wait().expect("an orderly end");
        }
    }

    /// Begins again at the same address.
    pub(crate) fn restart(&mut self, service: impl HttpService + Send) {
        self.stop();
        let at = ([127, 0, 0, 1], self.port).into();
        self.running = Some(serve(at, self.certificate.identity(), service));
    }
}

/// Says what it heard, with the length of the content in a trailer. HEAD says how long that would be.
pub(crate) async fn echo(request: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
    let (head, mut content) = request.into_parts();
    let mut bytes = 0;
    while let Ok(Some(chunk)) = content.chunk().await {
        bytes += chunk.len();
    }
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let mut text = format!("{} {target} {:?} {bytes}", head.method, head.version);
    if target == "/fields" {
        text += &format!(" {:?}", head.uri.authority().map(|authority| authority.host().to_owned()));
        for name in [
            "te",
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-forwarded-host",
            "via",
            "cookie",
            "connection",
            "x-b",
        ] {
            let all: Vec<&str> =
                head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
            text += &format!(" {name}={}", all.join("|"));
        }
    }
    let response = http::Response::builder()
        .header("x-upstream", "yes")
        .header("alt-svc", "h3=\":1\"")
        .header("content-length", text.len());
    if head.method == http::Method::HEAD {
        return Ok(response.body(Body::empty()).expect("a response"));
    }
    let (mut sender, content) = Body::channel(1_000);
    sender.send(text.into()).await.expect("room");
    let name = http::HeaderName::from_static("x-bytes");
    sender.finish(Some(http::HeaderMap::from_iter([(name, bytes.into())])));
    Ok(response.body(content).expect("a response"))
}

/// How a response that is written out by hand ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Fin,
    Reset,
    /// The connection is closed.
    Close,
}

/// Answers each request of HTTP/3 by these bytes. Returns the port.
pub(crate) fn raw(certificate: &Certificate, bytes: Vec<u8>, end: End) -> u16 {
    let (tell, told) = channel();
    let identity = certificate.identity();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let config =
                ServerConfig::with_identity(identity).and_then(|config| config.alpn_protocols(&[b"h3"]));
            let server = Endpoint::server(config.expect("a configuration"), ([127, 0, 0, 1], 0).into());
            let server = server.expect("an endpoint");
            tell.send(server.local_addr().expect("an address").port()).expect("a listener");
            while let Some(incoming) = server.accept().await {
                let bytes = bytes.clone();
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        answer(connection, &bytes, end).await;
                    }
                });
            }
        });
    });
    told.recv().expect("a port")
}

async fn answer(connection: Connection, bytes: &[u8], end: End) {
    let Ok(mut control) = connection.open_uni().await else { return };
    // The type of the stream, and SETTINGS without a setting. RFC 9114 §6.2.1, §7.2.4.
    if control.write_all(&[0, 4, 0]).await.is_err() {
        return;
    }
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        let _ = recv.read_to_end(100_000).await;
        let _ = send.write_all(bytes).await;
        // A reset may overtake what was sent before.
        tokio::time::sleep(Duration::from_millis(100)).await;
        match end {
            End::Fin => _ = send.finish(),
            End::Reset => _ = send.reset(0x102_u32.into()),
            End::Close => connection.close(0x102_u32.into(), b""),
        }
    }
}

/// A frame of HTTP/3.
pub(crate) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).ok().filter(|length| *length < 64).expect("a short frame");
    [&[kind, length][..], payload].concat()
}

/// A section of fields, spelled out. RFC 9204 §4.5.6.
pub(crate) fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        assert!(name.len() < 7 + 127 && value.len() < 127, "one byte of length");
        match name.len() {
            short @ 0..7 => section.push(0x20 | short as u8),
            long => section.extend_from_slice(&[0x27, (long - 7) as u8]),
        }
        section.extend_from_slice(name);
        section.push(value.len() as u8);
        section.extend_from_slice(value);
    }
    section
}
