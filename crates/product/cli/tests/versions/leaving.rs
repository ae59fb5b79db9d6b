//! What signals do to a server and its clients, over every version: nothing that was asked for is lost.

use crate::message::Ask;
use crate::server::{PROGRAM, Server, signal};
use crate::{site, tcp};
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A download over HTTP/3 that goes on as far as its pipe is read. It does not outlive its test.
pub(crate) struct Download(Child);

impl Download {
    /// Begins it, and waits for the first byte.
    pub(crate) fn start(server: &Server, path: &str) -> Download {
        Download::of_version(server, path, "3")
    }

    /// The same over a version of HTTP.
    pub(crate) fn of_version(server: &Server, path: &str, http: &str) -> Download {
        let url = format!("https://localhost:{}{path}", server.port);
        let mut command = Command::new(PROGRAM);
        command.args(["get", "-k", "--http", http, "-o", "-", &url]).stdin(Stdio::null());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
        let mut first = [0];
        child.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("the first byte");
        Download(child)
    }

    /// Reads the rest. Returns how many bytes there were in all, and whether the client is content.
    pub(crate) fn finish(&mut self) -> (usize, bool) {
        let mut rest = Vec::new();
        self.0.stdout.take().expect("a pipe").read_to_end(&mut rest).expect("the rest");
        (1 + rest.len(), self.0.wait().expect("a status").success())
    }

    /// Reads the rest. Whether it is the `length` bytes that were generated, and the client is content.
    pub(crate) fn finish_verified(&mut self, length: usize) -> bool {
        let mut rest = Vec::with_capacity(length);
        self.0.stdout.take().expect("a pipe").read_to_end(&mut rest).expect("the rest");
        let pattern = base::pattern::at(0).iter().cycle().skip(1).take(length - 1);
        rest.iter().eq(pattern) && self.0.wait().expect("a status").success()
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fails without it: over HTTP/3 all were cut, and over HTTP/1.1 those that took longer than five seconds.
#[test]
fn what_was_asked_comes_whole_over_each_version_however_long_it_takes() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    let mut downloads = [1, 2, 5].map(|size| Download::start(&server, &format!("/bytes/{size}0MB")));
    tcp::run(async {
        let mut one = tcp::connect(server.port, "http/1.1").await;
        one.write_all(b"GET /bytes/30MB HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
        let mut all = vec![0; 100];
        one.read_exact(&mut all).await.expect("the beginning");
        let (client, connection) =
            h2::client::handshake(tcp::connect(server.port, "h2").await).await.expect("a preface");
        let driver = tokio::spawn(connection);
        let uri = format!("https://localhost:{}/bytes/30MB", server.port);
        let request = http::Request::get(uri).body(()).expect("a request");
        let mut client = client.ready().await.expect("a connection");
        let (response, _) = client.send_request(request, true).expect("a stream");
        let mut body = response.await.expect("a response").into_body();
        server.ask_to_end();
        tokio::time::sleep(Duration::from_millis(5_500)).await;
        one.read_to_end(&mut all).await.expect("all of it");
        let head = all.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        assert_eq!(all.len() - head - 4, 30_000_000);
        let mut received = 0;
        while let Some(data) = body.data().await {
            let data = data.expect("content");
            body.flow_control().release_capacity(data.len()).expect("credit");
            received += data.len();
        }
        assert_eq!(received, 30_000_000);
        driver.abort();
    });
    let whole = downloads.each_mut().map(Download::finish);
    assert_eq!(whole, [(10_000_000, true), (20_000_000, true), (50_000_000, true)]);
    let mut server = server;
    assert!(server.wait().success() && !server.file("ready").exists());
}

#[test]
fn the_drain_timeout_ends_what_takes_longer() {
    let root = site();
    let mut server = Server::start(root.path(), &["--drain-timeout", "1"]);
    let mut download = Download::start(&server, "/bytes/50MB");
    server.ask_to_end();
    assert!(server.wait().success());
    let (received, is_content) = download.finish();
    assert!(received < 50_000_000 && !is_content);
}

/// Fails without it: the ready file stays, and programs that wait for it find a server that is not there.
#[test]
fn a_second_signal_ends_the_server_at_once_and_the_ready_file_goes() {
    let root = site();
    let mut server = Server::start(root.path(), &[]);
    let _download = Download::start(&server, "/bytes/50MB");
    server.ask_to_end();
    std::thread::sleep(Duration::from_millis(200));
    assert!(server.file("ready").exists(), "it drains");
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(130));
    assert!(!server.file("ready").exists());
}

/// Fails without it: each of them ended the process without drain.
#[test]
fn hup_goes_on_and_usr1_opens_the_log_anew() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    let ask = || tcp::run(tcp::http1(server.port, &[Ask::get("/hello.txt")])).remove(0).status;
    server.signal("HUP");
    server.wait_for("said", ("tercel: reloaded: ", 1));
    assert_eq!(ask(), 200);
    // The line may still be in a batch when the file is moved.
    fs::rename(server.file("log"), server.file("log.1")).expect("a log");
    server.signal("USR1");
    while !server.file("log").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ask(), 200);
    let lines = |name: &str| fs::read_to_string(server.file(name)).expect("a log").lines().count();
    for _ in 0..1_000 {
        if lines("log") + lines("log.1") == 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(lines("log") + lines("log.1"), 2);
    server.stop();
}

/// Fails without it: clients of a server that was killed go on sending to one that knows nothing of them, until they time out.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long the client stood still")]
fn clients_of_a_server_that_was_killed_hear_so_from_the_next_one() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    let url = format!("https://localhost:{}/hello.txt", server.port);
    let mut command = Command::new(PROGRAM);
    command.args(["load", "-D", "4", "--rate", "100", "--timeout", "20", "--json", "-q", &url]);
    let certificate = server.ready["certificate"].as_str().expect("a path").to_owned();
    let load = command.args(["--cacert", &certificate]).stdout(Stdio::piped()).spawn().expect("it starts");
    server.wait_for("log", ("/hello.txt", 50));
    // Its packets find the next server, never a port that nothing is bound to.
    signal(load.id(), "STOP");
    let stopped = Instant::now();
    let server = server.kill_and_restart(root.path());
    signal(load.id(), "CONT");
    // What was due meanwhile is sent at once, before the reset arrives.
    let missed = 100.0 * stopped.elapsed().as_secs_f64();
    let output = load.wait_with_output().expect("its report");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // One round trip loses what was under way; without a reset nothing succeeds for the rest of the run.
    let count = |name: &str| report[name].as_f64().expect("a number");
    assert!(count("requests") > 300.0, "{report}");
    assert!(count("succeeded") + missed + 10.0 >= count("requests"), "{missed}: {report}");
    assert!(
        report["first_fault"].as_str().is_some_and(|fault| fault.contains("knows it no more")),
        "{report}"
    );
    server.stop();
}
