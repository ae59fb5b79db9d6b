//! The three versions of HTTP answer alike.

use crate::world::{VERSIONS, World, text};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use std::collections::BTreeMap;
use std::convert::Infallible;
use tercel::{Body, service_fn};

async fn app(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let response = Response::builder();
    Ok(match request.uri().path() {
        "/known" => response.header("x-mine", "1").header("x-mine", "2").body("0123456789".into()),
        "/empty" => response.body(Body::empty()),
        "/unknown" => {
            let (mut sender, body) = Body::channel(1_000);
            tokio::spawn(async move {
                let _ = sender.send("01234".into()).await;
                sender.finish(None);
            });
            response.body(body)
        }
        "/said" => response.header("content-length", "10").body("0123456789".into()),
        "/dated" => response.header("date", "Sat, 21 Nov 2026 04:31:20 GMT").body("x".into()),
        "/none" => response.status(204).header("content-length", "3").body("abc".into()),
        "/reset" => response.status(205).body("abc".into()),
        "/same" => response.status(304).header("etag", "\"1\"").body(Body::empty()),
        "/same-length" => response.status(304).header("content-length", "10").body(Body::empty()),
        "/interim" => response.status(103).body(Body::empty()),
        "/hop" => response.header("keep-alive", "9").header("transfer-encoding", "chunked").body("x".into()),
        "/panic" => std::panic::resume_unwind(Box::new(())),
        _ => response.status(404).body("no".into()),
    }
    .unwrap())
}

/// What a response said, but for what concerns its connection and the time of day.
async fn answer(response: Response<Body>) -> (StatusCode, BTreeMap<String, Vec<String>>, String) {
    let mut said = BTreeMap::new();
    let mut fields: HeaderMap = response.headers().clone();
    // RFC 9112 §6.1, §9.6: fields of HTTP/1.1 alone. RFC 7838: there is nothing to announce over HTTP/3.
    for name in [header::TRANSFER_ENCODING, header::CONNECTION, header::ALT_SVC] {
        fields.remove(name);
    }
    for (name, value) in &fields {
        let value = value.to_str().unwrap();
        let is_ours = *name == header::DATE && !value.contains("04:31:20");
        let value = if is_ours { format!("a date of {} bytes", value.len()) } else { value.to_owned() };
        said.entry(name.to_string()).or_insert_with(Vec::new).push(value);
    }
    (response.status(), said, text(response).await)
}

/// RFC 9110 §6.4.1, §6.6.1, §8.6, §9.3.2, §15.3.5, §15.3.6, §15.4.5. Deleted, an application could answer otherwise over one of
/// the versions.
#[tokio::test]
async fn three_versions_answer_with_equal_fields() {
    let world = World::new(service_fn(app));
    // Method, path, status, content-length, content.
    let table = [
        ("GET", "/known", 200, Some("10"), "0123456789"),
        ("HEAD", "/known", 200, Some("10"), ""),
        ("GET", "/empty", 200, Some("0"), ""),
        ("HEAD", "/empty", 200, None, ""),
        ("POST", "/empty", 200, Some("0"), ""),
        ("GET", "/unknown", 200, None, "01234"),
        ("HEAD", "/unknown", 200, None, ""),
        ("GET", "/said", 200, Some("10"), "0123456789"),
        ("HEAD", "/said", 200, Some("10"), ""),
        ("GET", "/dated", 200, Some("1"), "x"),
        ("GET", "/none", 204, None, ""),
        ("HEAD", "/none", 204, None, ""),
        ("GET", "/reset", 205, Some("0"), ""),
        ("GET", "/same", 304, None, ""),
        ("HEAD", "/same", 304, None, ""),
        ("HEAD", "/same-length", 304, Some("10"), ""),
        ("GET", "/interim", 500, Some("0"), ""),
        ("GET", "/hop", 200, Some("1"), "x"),
        ("GET", "/panic", 500, Some("0"), ""),
        ("HEAD", "/panic", 500, Some("0"), ""),
        ("GET", "/nosuch", 404, Some("2"), "no"),
        ("OPTIONS", "/known", 200, Some("10"), "0123456789"),
    ];
    let clients = VERSIONS.map(|choice| (choice, world.client(choice)));
    for (method, path, status, length, content) in table {
        let mut answers = Vec::new();
        for (choice, client) in &clients {
            let request = Request::builder()
                .method(method.parse::<Method>().unwrap())
                .uri(world.url(path))
                .body(Body::empty())
                .unwrap();
            let response = client.request(request).await.unwrap();
            answers.push(answer(response).await);
            let found = answers.last().unwrap();
            let row = format!("{method} {path} over {choice:?}: {found:?}");
            let lengths = found.1.get("content-length").map(Vec::as_slice).unwrap_or_default();
            assert_eq!(
                (found.0.as_u16(), lengths, found.2.as_str()),
                (status, length.map(str::to_owned).as_slice(), content),
                "{row}"
            );
            assert!(found.1["date"].len() == 1, "{row}");
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{method} {path}: {answers:#?}");
    }
}
