//! The axum application of the library's example on three versions of HTTP, loaded by tercel's own generator, by curl, and by
//! the clients of foreign.rs.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

#[path = "../../../tercel/examples/axum.rs"]
#[expect(dead_code, reason = "the example's main is not called from here")]
mod example;
mod foreign;

use axum::Router;
use axum::routing::get;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;
use tercel::tls::Identity;
use tercel::{Running, Server};

#[expect(clippy::panic, reason = "what a panic does is tested")]
async fn panics() {
    panic!("on purpose");
}

fn app() -> Router {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        tokio::spawn(async { "slept" }).await.unwrap()
    };
    example::app().route("/slow", get(slow)).route("/panic", get(panics))
}

/// A server, and its certificate in PEM.
fn serve_with_certificate() -> (Running, String) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = made.cert.pem();
    let identity = Identity::from_pem(certificate.as_bytes(), made.signing_key.serialize_pem().as_bytes());
    let builder = Server::builder().listen("127.0.0.1:0".parse().unwrap());
    (builder.identity(identity.unwrap()).serve(app()).unwrap(), certificate)
}

fn serve() -> Running {
    serve_with_certificate().0
}

/// Deleted, one of the versions could answer nothing, or a timer or task of tokio could never end.
#[test]
fn an_axum_router_serves_three_versions() {
    let server = serve();
    let port = server.local_addr().port();
    for (version, path) in
        [("1", "/"), ("2", "/"), ("3", "/"), ("1", "/slow"), ("2", "/slow"), ("3", "/slow")]
    {
        let url = format!("https://127.0.0.1:{port}{path}");
        let load = ["load", "--insecure", "--quiet", "--json", "--http", version, "-n", "200", "-c", "4"];
        let output = Command::new(env!("CARGO_BIN_EXE_tercel")).args(load).arg(&url).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "HTTP/{version} {path}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let result: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!(result["succeeded"], 200, "HTTP/{version} {path}: {text}");
    }
    server.handle().stop();
    server.wait().unwrap();
}

fn curl(arguments: &[&str], url: &str, content: &[u8]) -> Option<Vec<u8>> {
    let mut curl = Command::new("curl")
        .args(["-sk", "--max-time", "30"])
        .args(arguments)
        .arg(url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = curl.stdin.take()?;
    let content = content.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&content));
    let output = curl.wait_with_output().unwrap();
    let _ = writer.join();
    Some(output.stdout)
}

/// Deleted, what a foreign client uploads could come back changed, or a panic could end more than its request.
#[test]
fn curl_uploads_and_downloads_at_once() {
    let server = serve();
    let url = |path: &str| format!("https://127.0.0.1:{}{path}", server.local_addr().port());
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    for version in ["--http1.1", "--http2"] {
        let Some(echoed) = curl(&[version, "--data-binary", "@-"], &url("/echo"), &content) else {
            return requirements::missing("curl is not installed");
        };
        assert_eq!(echoed.len(), content.len(), "{version}");
        assert!(echoed == content, "{version}");
        let status =
            curl(&[version, "-o", "/dev/null", "-w", "%{http_code} %{http_version}"], &url("/panic"), b"");
        let right = format!("500 {}", version.trim_start_matches("--http"));
        assert_eq!(status.map(|text| String::from_utf8_lossy(&text).into_owned()), Some(right));
        assert_eq!(curl(&[version], &url("/"), b"").as_deref(), Some(&b"Hello over HTTP/1.1, 2 and 3\n"[..]));
    }
    drop(server);
}

/// Deleted, the shortest program could stop compiling.
#[test]
fn a_server_in_a_runtime_is_awaited() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = serve();
        let handle = server.handle();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            handle.stop();
        });
        server.await.unwrap();
    });
}
