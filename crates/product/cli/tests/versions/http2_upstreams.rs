//! Upstreams of HTTP/2 that end streams in their own ways: by h2.

use crate::proxy::{CHOICES, client, proxy};
use crate::tcp::run;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use std::net::TcpListener;
use tercel::Body;

/// An upstream of HTTP/2, by h2. Each of its requests goes to `answer`. Returns the port.
pub(crate) fn by_h2(answer: fn(http::Request<RecvStream>, SendResponse<Bytes>)) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("set");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut connection = h2::server::handshake(socket).await.expect("a preface");
                    while let Some(Ok((request, response))) = connection.accept().await {
                        answer(request, response);
                    }
                });
            }
        });
    });
    port
}

/// Answers each request by its path: `/cancel`, `/no-error` and `/internal` reset the stream in the midst of the response; `/unread` is
/// complete, and nothing of the request is read.
async fn respond(request: http::Request<RecvStream>, mut answer: SendResponse<Bytes>) {
    let mut content = answer.send_response(http::Response::new(()), false).expect("it is open");
    let reason = match request.uri().path() {
        "/cancel" => Reason::CANCEL,
        "/no-error" => Reason::NO_ERROR,
        "/internal" => Reason::INTERNAL_ERROR,
        _ => return content.send_data("whole".into(), true).expect("it is open"),
    };
    content.send_data("half".into(), false).expect("it is open");
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    content.send_reset(reason);
}

/// Deleted, half a file could look like a whole one behind an upstream of HTTP/2, or a whole one like half of it whose upload was not read.
#[test]
fn a_response_by_http2_that_is_reset_does_not_look_complete() {
    let port = by_h2(|request, response| drop(tokio::spawn(respond(request, response))));
    let (_place, server) = proxy(&format!("to = 'h2c://127.0.0.1:{port}', max-failures = 1000000"));
    for http in CHOICES {
        let client = client(http);
        let url = |path: &str| format!("https://localhost:{}{path}", server.port);
        run(async {
            for path in ["/cancel", "/no-error", "/internal"] {
                let response = client.get(url(path)).await.expect("a response");
                assert_eq!(response.status(), 200);
                let content = response.into_body().collect(100).await;
                assert!(content.is_err(), "{http:?} {path}: {content:?}");
            }
            let request = http::Request::post(url("/unread")).body(Body::from(vec![7; 3_000_000]));
            let response = client.request(request.expect("a request")).await.expect("a response");
            let content = response.into_body().collect(100).await.expect("all of it");
            assert_eq!(&*content, b"whole", "{http:?}");
        });
    }
    server.wait_for("said", ("the response broke off", 1));
    server.stop();
}
