//! Remote procedure calls over QUIC: `ported/rpc.rs`, a program as it is written on quinn.
//!
//! ```text
//! cargo run --example rpc
//! ```

#[path = "ported/rpc.rs"]
mod rpc;
mod setup;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let sum = rpc::run(1_000).await?;
    println!("the sum of the answers to 1000 calls is {sum}");
    Ok(())
}
