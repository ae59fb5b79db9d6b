//! An axum application over HTTP/1.1, 2 and 3: `cargo run --example axum`, then `curl -k https://localhost:4433/`.

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};

/// `POST /echo` returns the content while it arrives.
pub(crate) fn app() -> Router {
    let hello = async || "Hello over HTTP/1.1, 2 and 3\n";
    Router::new().route("/", get(hello)).route("/echo", post(async |content: Body| content))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = tercel::Server::builder().serve(app())?;
    println!("https://localhost:{}/", server.local_addr().port());
    server.wait()?;
    Ok(())
}
