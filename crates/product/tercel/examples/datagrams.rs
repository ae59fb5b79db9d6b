//! Datagrams over QUIC: a client sends its position many times a second, and the server keeps the newest. What is lost or comes
//! late does not matter, because the next one follows.
//!
//! ```text
//! cargo run --example datagrams
//! ```

use bytes::Bytes;
use std::time::Duration;
use tercel::quic::{Connection, ConnectionError, Endpoint};

mod setup;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    println!("the newest of 100 positions that arrived is {}", run(100).await?);
    Ok(())
}

/// Both ends over loopback, and this many positions. Returns the newest that arrived.
pub(crate) async fn run(positions: u64) -> Result<u64, Error> {
    let server = Endpoint::server(setup::server("positions")?, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    let newest = tokio::spawn(async move {
        let connection = server.accept().await.ok_or("the endpoint is closed")?.await?;
        Ok::<u64, Error>(newest(&connection).await)
    });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = client.connect_with(setup::client("positions")?, address, "localhost")?.await?;
    let most = connection.max_datagram_size().ok_or("the server takes no datagrams")?;
    for position in 1..=positions {
        let datagram = Bytes::copy_from_slice(&position.to_be_bytes());
        if datagram.len() <= most {
            // The oldest give way where the path is too slow. `send_datagram_wait` waits instead.
            connection.send_datagram(datagram)?;
        }
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
    // An acknowledged stream says that what was sent before it has left, not that it has arrived.
    let mut end = connection.open_uni().await?;
    end.finish()?;
    end.stopped().await?;
    connection.close(0_u8.into(), b"done");
    client.wait_idle().await;
    newest.await?
}

/// Datagrams may overtake each other: the largest number is the newest.
async fn newest(connection: &Connection) -> u64 {
    let mut newest = 0;
    loop {
        match connection.read_datagram().await {
            Ok(datagram) => {
                if let Ok(bytes) = <[u8; 8]>::try_from(datagram.as_ref()) {
                    newest = newest.max(u64::from_be_bytes(bytes));
                }
            }
            Err(ConnectionError::ApplicationClosed(_)) => return newest,
            Err(error) => {
                eprintln!("{error}");
                return newest;
            }
        }
    }
}
