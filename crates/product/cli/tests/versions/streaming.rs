//! Content that streams through the proxy, whatever the upstream speaks: asked by clients of each version.

use crate::proxy::{CHOICES, client};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tercel::Body;

/// What goes each way where the other end does not read, in bytes.
pub(crate) const ALL: usize = 64 << 20;
/// So much of it may be on its way.
const MOST: usize = 24 << 20;

/// Talks with an upstream that says each chunk back while the rest is still to come.
pub(crate) fn both_ways(port: u16) {
    for http in CHOICES {
        crate::tcp::run(async {
            let (mut sender, content) = Body::channel(1_000);
            sender.send("first".into()).await.expect("room");
            let request = http::Request::post(format!("https://localhost:{}/", port));
            let response = client(http).request(request.body(content).expect("a request")).await;
            let mut content = response.expect("a response").into_body();
            for word in ["first", "second", "third"] {
                let mut heard = Vec::new();
                while heard.len() < word.len() {
                    heard.extend_from_slice(&content.chunk().await.expect("content").expect("more of it"));
                }
                assert_eq!(heard, word.as_bytes(), "{http:?}");
                let next = if word == "first" { "second" } else { "third" };
                if word != "third" {
                    sender.send(next.into()).await.expect("room");
                }
            }
            sender.finish(None);
            assert!(content.chunk().await.expect("the end").is_none(), "{http:?}");
        });
    }
}

/// Sends what an upstream does not read, and does not read what it sends: it writes [`ALL`] and counts what it has `written`.
pub(crate) fn hold_back(port: u16, written: &AtomicUsize) {
    for http in CHOICES {
        written.store(0, Ordering::Relaxed);
        crate::tcp::run(async {
            let (mut sender, content) = Body::channel(1_000);
            let request = http::Request::post(format!("https://localhost:{}/", port));
            let client = client(http);
            let response = client.request(request.body(content).expect("a request")).await;
            let response = response.expect("a response");
            assert_eq!(response.status(), 200, "{http:?}");
            let mut content = response.into_body();
            let mut sent = 0;
            while sent < ALL {
                let send = sender.send(vec![b'y'; 65_536].into());
                if tokio::time::timeout(Duration::from_millis(500), send).await.is_err() {
                    break;
                }
                sent += 65_536;
            }
            assert!(sent < MOST, "{http:?}: {sent} bytes are on their way to an upstream that reads nothing");
            let mut before = usize::MAX;
            while std::mem::replace(&mut before, written.load(Ordering::Relaxed)) != before {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            assert!(
                (1..MOST).contains(&before),
                "{http:?}: {before} bytes are on their way to a client that reads nothing"
            );
            let mut read = 0;
            while read < 2 * MOST {
                read += content.chunk().await.expect("content").expect("more of it").len();
            }
        });
    }
}
