//! Answers that do not wait for content: 100 (Continue), and errors while the client still sends.

use crate::message::{Answer, Ask};
use crate::server::Server;
use crate::{http3, site, tcp};
use bytes::Bytes;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

/// Long enough for a server to say something, if it does.
const MOMENT: Duration = Duration::from_secs(20);

/// RFC 9110 §10.1.1: over TCP, before any content. HTTP/3's test is the server's own (crates/product/server/tests/http3).
#[test]
fn who_expects_100_is_told_at_once() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    tcp::run(async {
        let mut stream = BufReader::new(tcp::connect(server.port, "http/1.1").await);
        let head = "POST /bytes/10 HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n";
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut line = String::new();
        let told = stream.read_line(&mut line);
        tokio::time::timeout(MOMENT, told).await.expect("at once").expect("a line");
        assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
        stream.read_line(&mut line).await.expect("the end of it");
        stream.write_all(b"12345").await.expect("sent");
        assert_eq!(tcp::read_answer(&mut stream, "POST").await.status, 200);
        // What the head alone decides is said without asking for the content.
        let refused = head.replace("/bytes/10", "/hello.txt");
        stream.write_all(refused.as_bytes()).await.expect("sent");
        let answer =
            tokio::time::timeout(MOMENT, tcp::read_answer(&mut stream, "POST")).await.expect("at once");
        assert_eq!((answer.status, answer.field("connection")), (405, "close"));
    });
    for (path, status) in [("/bytes/10", 200), ("/hello.txt", 405)] {
        let (answer, _) = tcp::run(tokio_timeout(post_over_http2(server.port, path, 5, 0)));
        assert_eq!(answer.status, status, "a final status: hyper cannot send 100 over HTTP/2");
    }
    server.stop();
}

async fn tokio_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(MOMENT, future).await.expect("at once")
}

/// Announces `length` bytes of content and sends `sent` of them once it was answered. Returns the answer, and how the stream
/// was reset meanwhile, if it was.
async fn post_over_http2(port: u16, path: &str, length: u64, sent: usize) -> (Answer, Option<h2::Reason>) {
    let (client, connection) =
        h2::client::handshake(tcp::connect(port, "h2").await).await.expect("a preface");
    let driver = tokio::spawn(connection);
    let mut client = client.ready().await.expect("a connection");
    let request = http::Request::post(format!("https://localhost:{port}{path}"))
        .header("content-length", length)
        .header("expect", "100-continue");
    let (response, mut sender) =
        client.send_request(request.body(()).expect("a request"), false).expect("a stream");
    let response = response.await.expect("a response");
    let answer = Answer { status: response.status().as_u16(), ..Answer::default() };
    let mut left = sent;
    while left > 0 {
        sender.reserve_capacity(left.min(100_000));
        let room = std::future::poll_fn(|cx| sender.poll_capacity(cx)).await;
        let room = room.expect("the stream is open").expect("it takes more").min(left);
        sender.send_data(Bytes::from(vec![0; room]), false).expect("taken");
        left -= room;
    }
    let reset = std::future::poll_fn(|cx| match sender.poll_reset(cx) {
        std::task::Poll::Ready(reason) => std::task::Poll::Ready(reason.ok()),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    });
    let reset = reset.await;
    driver.abort();
    (answer, reset)
}

/// Issue 10: a client that still sends must get to read an early answer: what it sends is received and thrown away.
#[test]
fn an_early_answer_does_not_cut_the_client_off() {
    const ANNOUNCED: u64 = 70_000_000;
    const SENT: usize = 8_000_000;
    let root = site();
    let server = Server::start(root.path(), &[]);
    let (answer, reset) = tcp::run(post_over_http2(server.port, "/bytes/1", ANNOUNCED, SENT));
    assert_eq!((answer.status, reset), (413, None));
    tcp::run(async {
        let mut stream = tcp::connect(server.port, "http/1.1").await;
        let head = format!("POST /bytes/1 HTTP/1.1\r\nhost: a\r\ncontent-length: {ANNOUNCED}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("sent");
        // More than the sockets hold, before the answer is looked at.
        for _ in 0..2 * SENT / 100_000 {
            stream.write_all(&[0; 100_000]).await.expect("the server still receives");
        }
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.expect("an answer");
        assert_eq!(&start, b"HTTP/1.1 413");
    });
    assert_eq!(http3::http3(server.port, &[Ask::get("/hello.txt")])[0].status, 200);
    server.stop();
}

/// RFC 9114 §4.2.2: a request's head that the server does not take is told, and nothing waits.
#[test]
fn a_request_that_the_server_does_not_take_is_told() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    let url = format!("https://127.0.0.1:{}/hello.txt", server.port);
    let field = format!("x: {}", "y".repeat(70_000));
    for command in [&["get", "-k"][..], &["load", "-k", "--http", "3", "-n", "3"]] {
        let mut program = std::process::Command::new(crate::server::PROGRAM);
        let output = program.args(command).args(["-H", &field, &url]).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        // The server's limit may be known when the request is sent, or only its answer tells it.
        let is_told = said.contains("the server takes no request with so much in its head");
        assert!(is_told || said.contains("431"), "{command:?}: {said}");
    }
    server.stop();
}
