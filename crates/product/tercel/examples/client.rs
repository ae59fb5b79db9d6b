//! A client of HTTP/1.1, 2 and 3: `cargo run --example client -- https://example.org/`. With the name of a file it trusts the
//! certificates in that file alone.

use std::io::{self, Write};
use tercel::tls::Roots;
use tercel::{BoxError, Client};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("usage: client URL [CERTIFICATES]")?;
    let roots = arguments.next().map_or(Ok(Roots::System), |path| std::fs::read(path).map(Roots::Pem))?;
    fetch(&url, roots, &mut io::stdout()).await
}

/// Asks for `url` and writes what comes, as it comes.
pub(crate) async fn fetch(url: &str, roots: Roots, out: &mut impl Write) -> Result<(), BoxError> {
    let client = Client::builder().roots(roots).build()?;
    let mut response = client.get(url).await?;
    eprintln!("{:?} {}", response.version(), response.status());
    while let Some(chunk) = response.body_mut().chunk().await? {
        out.write_all(&chunk)?;
    }
    Ok(())
}
