//! Clients that share no code with tercel: h2load over HTTP/1.1 and 2, aioquic over HTTP/3.

use crate::{serve, serve_with_certificate};
use std::path::Path;
use std::process::{Command, Stdio};

/// What h2load prints, or `None` where it is not installed.
fn h2load(arguments: &[&str], url: &str) -> Option<String> {
    // Bounded: without an answer it ends after 20 s.
    let limits = ["20", "h2load", "--connection-inactivity-timeout", "10s"];
    let output = Command::new("timeout").args(limits).args(arguments).arg(url).output().ok()?;
    let is_missing = output.status.code() == Some(127);
    (!is_missing).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn assert_all_succeeded(told: &str, count: u32) {
    let line = format!(
        "{count} total, {count} started, {count} done, {count} succeeded, 0 failed, 0 errored, 0 timeout"
    );
    assert!(told.contains(&line) && told.contains(&format!("{count} 2xx")), "{told}");
}

/// Deleted, many requests at a time of a foreign client could fail, or some of its uploads.
#[test]
fn h2load_requests_and_uploads() {
    let server = serve();
    let url = |path: &str| format!("https://127.0.0.1:{}{path}", server.local_addr().port());
    let upload = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(upload.path(), vec![b'u'; 100_000]).unwrap();
    let file = upload.path().to_str().unwrap();
    // HTTP/2 has ten streams at a time on each connection, HTTP/1.1 one request.
    for version in [&["-m", "10"][..], &["--h1"]] {
        let requests = [&["-n", "2000", "-c", "8"], version].concat();
        let Some(told) = h2load(&requests, &url("/")) else {
            return requirements::missing("h2load is not installed: tests/setup does that");
        };
        assert_all_succeeded(&told, 2_000);
        let uploads = [&["-n", "100", "-c", "4", "-d", file], version].concat();
        let told = h2load(&uploads, &url("/echo")).unwrap();
        assert_all_succeeded(&told, 100);
        assert!(told.contains("(10000000) data"), "each byte comes back: {told}");
    }
}

/// Deleted, a foreign HTTP/3 client could get wrong content, or a response that waits for the end of its request.
#[test]
fn aioquic_streams_both_ways() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let python = root.join("target/tests/venv/bin/python");
    if !python.is_file() {
        return requirements::missing("aioquic is not installed: tests/setup does that");
    }
    let (server, certificate) = serve_with_certificate();
    let trusted = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(trusted.path(), certificate).unwrap();
    let amounts = ["--requests", "300", "--uploads", "3", "--size", "500000", "--pieces", "30"];
    let output = Command::new(python)
        .arg(root.join("tests/interop/aioquic_echo.py"))
        .arg(format!("https://127.0.0.1:{}", server.local_addr().port()))
        .arg("--cacert")
        .arg(trusted.path())
        .args(amounts)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told, serde_json::json!({ "answered": 300, "echoed": 3, "returned": 30 }));
}
