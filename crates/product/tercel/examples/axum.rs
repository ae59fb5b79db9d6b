//! An axum application over HTTP/1.1, 2 and 3: `cargo run --example axum`, then `curl -k https://localhost:4433/`.

use axum::Router;
use axum::routing::get;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = Router::new().route("/", get(async || "Hello over HTTP/1.1, 2 and 3\n"));
    let server = tercel::Server::builder().serve(app)?;
    println!("https://localhost:{}/", server.local_addr().port());
    Ok(server.wait()?)
}
