//! The axum application that `tercel bench library` measures: `GET /hello` by `tercel::Server`, until SIGTERM.
//!
//! A program of its own, as an application of tercel's users is: `cargo build --profile dist --package tercel-bench --example axum_hello`
//! compiles it with the optimisation of the `tercel` beside it.
//!
//! ```text
//! axum_hello --cert FILE --key FILE     listens on a free port of 127.0.0.1, which its first line names
//! ```

use axum::Router;
use axum::routing::get;
use std::error::Error;
use std::fs;
use std::net::Ipv4Addr;
use tercel::Server;
use tercel::tls::Identity;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: axum_hello --cert FILE --key FILE";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cert, cert_file, key, key_file] = arguments.as_slice() else { return Err(USAGE.into()) };
    if (cert.as_str(), key.as_str()) != ("--cert", "--key") {
        return Err(USAGE.into());
    }
    let identity = Identity::from_pem(&fs::read(cert_file)?, &fs::read(key_file)?)?;
    // peers/quinn-axum-peer has the same application.
    let app = Router::new().route("/hello", get(async || "Hello over HTTP/1.1, 2 and 3\n"));
    let server = Server::builder().listen((Ipv4Addr::LOCALHOST, 0).into()).identity(identity).serve(app)?;
    println!("listening on {}", server.local_addr());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async { std::io::Result::Ok(signal(SignalKind::terminate())?.recv().await) })?;
    server.handle().stop();
    server.wait()?;
    Ok(())
}
