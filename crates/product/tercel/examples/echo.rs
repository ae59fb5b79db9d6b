//! An echo over QUIC: the server sends back what it is sent, on as many streams as the client opens.
//!
//! ```text
//! cargo run --example echo
//! ```

use std::error::Error;
use tercel::quic::{ClientConfig, Connection, ConnectionError, Endpoint, Roots, ServerConfig};
use tercel::tls::Identity;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    println!("{}", run().await?);
    Ok(())
}

/// Both ends, over loopback. Returns what came back.
pub(crate) async fn run() -> Result<String, Box<dyn Error + Send + Sync>> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let identity = Identity::from_der(vec![made.cert.der().to_vec()], made.signing_key.serialize_der())?;
    let server = Endpoint::server(ServerConfig::with_identity(identity)?, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                if let Ok(connection) = incoming.await {
                    let _ = serve(connection).await;
                }
            });
        }
    });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    client.set_default_client_config(ClientConfig::with_roots(Roots::Insecure)?);
    let connection = client.connect(address, "localhost")?.await?;
    let mut echoes = Vec::new();
    for word in ["quick", "brown", "fox"] {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(word.as_bytes()).await?;
        send.finish()?;
        echoes.push(String::from_utf8(recv.read_to_end(1_000).await?)?);
    }
    connection.close(0_u8.into(), b"done");
    client.wait_idle().await;
    Ok(echoes.join(" "))
}

async fn serve(connection: Connection) -> Result<(), ConnectionError> {
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        // On a stream that fails, the client hears of it by the stream.
        tokio::spawn(async move { tokio::io::copy(&mut recv, &mut send).await });
    }
}
