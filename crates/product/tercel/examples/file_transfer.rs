//! Files over QUIC: `ported/file_transfer.rs`, a program as it is written on quinn.
//!
//! ```text
//! cargo run --example file_transfer -- Cargo.toml src/lib.rs
//! ```

#[path = "ported/file_transfer.rs"]
mod file_transfer;
mod setup;

use std::path::Path;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    for (name, content) in names.iter().zip(file_transfer::transfer(Path::new("."), &names).await?) {
        match content {
            Some(content) => println!("{name}: {} bytes", content.len()),
            None => println!("{name}: not found"),
        }
    }
    Ok(())
}
