//! A server of others: Caddy, which is Go's `net/http` for HTTP/1.1 and 2 and quic-go for HTTP/3.

use crate::world::PATIENCE;
use http::{Request, StatusCode, Version};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tercel::client::{Family, HttpChoice, Used};
use tercel::tls::Roots;
use tercel::{Body, Client};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

const LARGE: usize = 3_000_000;

/// A process that ends with the test.
struct Server {
    child: Child,
    port: u16,
    certificate: Vec<u8>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// `None` where Caddy is not installed.
    async fn start(folder: &Path) -> Option<Server> {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = made.cert.pem().into_bytes();
        std::fs::write(folder.join("cert.pem"), &certificate).unwrap();
        std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        std::fs::create_dir(folder.join("files")).unwrap();
        std::fs::write(folder.join("files/hello"), "hello").unwrap();
        std::fs::write(folder.join("files/large"), large()).unwrap();
        // A port that is free for both at the moment: Caddy does not tell which one it was given.
        let port = requirements::ports::over_tcp_and_udp().0.local_addr().unwrap().port();
        let at = folder.display();
        let config = format!(
            "{{\n admin off\n auto_https off\n default_sni localhost\n servers {{\n protocols h1 h2 h3\n }}\n}}\n\
             https://:{port} {{\n bind 127.0.0.1\n tls {at}/cert.pem {at}/key.pem\n redir /old /hello\n \
             root * {at}/files\n file_server\n}}\n"
        );
        std::fs::write(folder.join("Caddyfile"), config).unwrap();
        let mut command = Command::new("caddy");
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(folder.join("Caddyfile"));
        for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, folder);
        }
        let child = match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => child,
            Err(error) => {
                requirements::missing(format_args!("caddy cannot be started: {error}"));
                return None;
            }
        };
        let server = Server { child, port, certificate };
        let listening = async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, listening).await.unwrap();
        Some(server)
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    fn client(&self, http: HttpChoice) -> Client {
        let builder = Client::builder().roots(Roots::Pem(self.certificate.clone()));
        builder.http(http).family(Family::V4).build().unwrap()
    }
}

fn large() -> Vec<u8> {
    (0..LARGE).map(|at| (at % 251) as u8).collect()
}

/// Deleted, the client could agree with this library's own server alone.
#[tokio::test]
async fn a_server_of_others_is_asked_over_each_version() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(folder.path()).await else { return };
    let versions = [
        (HttpChoice::Http1, Version::HTTP_11),
        (HttpChoice::Http2, Version::HTTP_2),
        (HttpChoice::Http3, Version::HTTP_3),
    ];
    for (choice, version) in versions {
        let client = server.client(choice);
        let response = client.get(server.url("/hello")).await.unwrap();
        assert_eq!((response.status(), response.version()), (StatusCode::OK, version));
        assert_eq!(response.into_body().collect(99).await.unwrap(), "hello");
        let response = client.get(server.url("/large")).await.unwrap();
        assert_eq!(response.into_body().collect(LARGE).await.unwrap(), large(), "{choice:?}");
        let response = client.get(server.url("/old")).await.unwrap();
        assert!(response.extensions().get::<Used>().unwrap().uri.path() == "/hello", "a redirect");
        let head = Request::head(server.url("/large")).body(Body::empty()).unwrap();
        let response = client.request(head).await.unwrap();
        assert_eq!(response.headers().get("content-length").unwrap(), &LARGE.to_string());
        assert_eq!(response.into_body().collect(0).await.unwrap(), "");
        let part = Request::get(server.url("/large")).header("range", "bytes=1000-1004");
        let response = client.request(part.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(response.into_body().collect(5).await.unwrap(), &large()[1_000..1_005]);
        assert_eq!(client.get(server.url("/absent")).await.unwrap().status(), StatusCode::NOT_FOUND);
        let many = (0..50).map(|_| {
            tokio::spawn({
                let (client, url) = (client.clone(), server.url("/hello"));
                async move { client.get(url).await.unwrap().into_body().collect(99).await.unwrap() }
            })
        });
        for request in many.collect::<Vec<_>>() {
            assert_eq!(request.await.unwrap(), "hello", "{choice:?}");
        }
    }
}
