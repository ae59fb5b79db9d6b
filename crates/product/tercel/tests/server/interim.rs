//! Informational responses, as the library's client meets them.

use crate::world::{VERSIONS, World, text};
use http::{HeaderMap, Request, Response, StatusCode};
use std::convert::Infallible;
use tercel::client::HttpChoice;
use tercel::{Body, ConnectionInfo, service_fn};

async fn app(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let informational = request.extensions().get::<ConnectionInfo>().unwrap().informational();
    let fields = HeaderMap::from_iter([(http::header::LINK, "</style.css>".parse().unwrap())]);
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(informational.send(StatusCode::EARLY_HINTS, fields.clone()));
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let is_sent = sent.iter().all(Result::is_ok);
    Ok(Response::new(if is_sent { "sent" } else { "not sent" }.into()))
}

/// Deleted, hints could be taken for the response, or their want over HTTP/2 not be told.
#[tokio::test]
async fn a_client_gets_the_final_response_behind_hints_over_all_versions() {
    let world = World::new(service_fn(app));
    for choice in VERSIONS {
        let client = world.client(choice);
        for _ in 0..3 {
            let response = client.get(world.url("/")).await.unwrap();
            assert_eq!((response.status(), response.headers().get("link")), (StatusCode::OK, None));
            let expected = if choice == HttpChoice::Http2 { "not sent" } else { "sent" };
            assert_eq!(text(response).await, expected, "{choice:?}");
        }
    }
}
