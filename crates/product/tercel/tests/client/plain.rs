//! HTTP/1.1 without TLS against servers of a few lines: what foreign servers do to connections.

use http::{Method, Request, Version};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tercel::client::{HttpChoice, Kind, Used};
use tercel::{Body, Client};

/// A server that hands each connection, with its number from 0, to `serve`; and how many there were.
fn serve(serve: fn(usize, TcpStream)) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let count = Arc::new(AtomicUsize::new(0));
    let ours = Arc::clone(&count);
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let number = ours.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || serve(number, connection));
        }
    });
    (url, count)
}

/// Reads a request's head and content, and returns its lines; none at the end of the connection.
fn read(stream: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_lowercase());
    }
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut content = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut content).ok()?;
    Some(lines)
}

fn client() -> Client {
    Client::builder().build().unwrap()
}

#[tokio::test]
async fn http_uris_are_asked_by_http11_in_the_form_of_an_origin_server() {
    let (url, _) = serve(|_, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(lines) = read(&mut reader) {
            let text = lines.join("\n");
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
            (&stream).write_all(format!("{head}{text}").as_bytes()).unwrap();
        }
    });
    let response = client().get(format!("{url}a/b?c")).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_11);
    let text = response.into_body().collect(1_000).await.unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.starts_with("get /a/b?c http/1.1\nhost: 127.0.0.1:"), "{text}");
}

/// Deleted, a server that closes an idle connection in the moment of a request would make that request fail.
#[tokio::test]
async fn a_kept_connection_that_ends_without_a_response_is_replaced_for_idempotent_requests_only() {
    // The first connection answers once, takes another request and closes.
    let (url, count) = serve(|number, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut answers = 0;
        while read(&mut reader).is_some() {
            if number % 2 == 0 && answers > 0 {
                return;
            }
            (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            answers += 1;
        }
    });
    for (method, succeeds) in [(Method::GET, true), (Method::POST, false), (Method::PUT, true)] {
        let (client, first) = (client(), count.load(Ordering::Relaxed));
        // Connections of the others are odd or even.
        let skip = first % 2;
        for _ in 0..skip {
            drop(TcpStream::connect(url.trim_start_matches("http://").trim_end_matches('/')).unwrap());
            while count.load(Ordering::Relaxed) <= first {
                std::thread::yield_now();
            }
        }
        let ask = |method: Method| Request::builder().method(method).uri(&url).body("content").unwrap();
        let response = client.request(ask(Method::GET)).await.unwrap();
        assert_eq!(response.into_body().collect(9).await.unwrap(), "ok");
        // The connection comes back to the pool a moment after its content was read.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        match client.request(ask(method.clone())).await {
            Ok(response) => {
                assert!(succeeds, "{method}");
                assert!(!response.extensions().get::<Used>().unwrap().is_reused);
            }
            Err(error) => {
                assert!(!succeeds, "{method}: {error}");
                assert_eq!((error.kind(), error.is_retryable()), (Kind::Lost, false));
            }
        }
    }
}

#[tokio::test]
async fn a_server_without_http2_is_asked_by_it_in_vain() {
    let (url, _) = serve(|_, mut stream| drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")));
    let client = Client::builder().http(HttpChoice::Http2).build().unwrap();
    assert_eq!(client.get(&url).await.unwrap_err().kind(), Kind::Request, "HTTP/2 without TLS");
    let secure = url.replace("http:", "https:");
    let error = client.get(&secure).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Tls, "{error}");
}

/// Deleted, a response that is cut off could pass for a complete one.
#[tokio::test]
async fn a_response_that_is_cut_off_is_an_error() {
    let (url, _) = serve(|number, stream| {
        read(&mut BufReader::new(stream.try_clone().unwrap())).unwrap();
        let text =
            ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "HTTP/1.1 200 OK\r\nX", "GARBAGE\r\n\r\n"];
        (&stream).write_all(text[number % 3].as_bytes()).unwrap();
    });
    let client = client();
    let response = client.get(&url).await.unwrap();
    assert!(response.into_body().collect(99).await.is_err());
    assert_eq!(client.get(&url).await.unwrap_err().kind(), Kind::Lost);
    let garbage = client.request(Request::get(&url).body(Body::empty()).unwrap()).await.unwrap_err();
    assert_eq!(garbage.kind(), Kind::Protocol, "{garbage}");
}
