//! Remote procedure calls over QUIC: a stream for each call, frames with a length in front, several calls at a time.
//!
//! `peers/quinn-peer` compiles this file with quinn. What differs is in `setup`, the name of the library included.

use super::setup::{self, quic};
use quic::{Connection, Endpoint, RecvStream, SendStream};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Bytes of a frame.
const MAX_FRAME: u32 = 1 << 20;

/// A server and a client over loopback, and this many calls, all at the same time. Returns the sum of the answers.
pub(crate) async fn run(calls: u32) -> Result<u64, Error> {
    let address = serve()?;
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = endpoint.connect_with(setup::client("rpc")?, address, "localhost")?.await?;
    let client = Client { connection };
    let running: Vec<_> = (0..calls)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { client.call("double", &number.to_be_bytes()).await })
        })
        .collect();
    let mut sum = 0;
    for call in running {
        let answer: [u8; 8] = call.await??.as_slice().try_into()?;
        sum += u64::from_be_bytes(answer);
    }
    match client.call("halve", &[]).await {
        Err(error) if error.to_string().contains("no such procedure") => {}
        other => return Err(format!("{other:?}").into()),
    }
    client.connection.close(0_u8.into(), b"done");
    endpoint.wait_idle().await;
    Ok(sum)
}

#[derive(Clone)]
struct Client {
    connection: Connection,
}

impl Client {
    /// Calls a procedure of the server's.
    async fn call(&self, procedure: &str, argument: &[u8]) -> Result<Vec<u8>, Error> {
        let (mut send, mut recv) = self.connection.open_bi().await?;
        write_frame(&mut send, procedure.as_bytes()).await?;
        write_frame(&mut send, argument).await?;
        send.finish()?;
        match recv.read_u8().await? {
            0 => read_frame(&mut recv).await,
            _ => Err(String::from_utf8(read_frame(&mut recv).await?)?.into()),
        }
    }
}

fn serve() -> Result<SocketAddr, Error> {
    let endpoint = Endpoint::server(setup::server("rpc")?, "127.0.0.1:0".parse()?)?;
    let address = endpoint.local_addr()?;
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else { return };
                while let Ok((send, recv)) = connection.accept_bi().await {
                    tokio::spawn(answer(send, recv));
                }
            });
        }
    });
    Ok(address)
}

async fn answer(mut send: SendStream, mut recv: RecvStream) -> Result<(), Error> {
    let (procedure, argument) = (read_frame(&mut recv).await?, read_frame(&mut recv).await?);
    match (procedure.as_slice(), <[u8; 4]>::try_from(argument)) {
        (b"double", Ok(number)) => {
            send.write_u8(0).await?;
            write_frame(&mut send, &(u64::from(u32::from_be_bytes(number)) * 2).to_be_bytes()).await?;
        }
        _ => {
            send.write_u8(1).await?;
            write_frame(&mut send, b"no such procedure").await?;
        }
    }
    send.finish()?;
    Ok(())
}

async fn write_frame(send: &mut SendStream, content: &[u8]) -> Result<(), Error> {
    send.write_u32(u32::try_from(content.len())?).await?;
    send.write_all(content).await?;
    Ok(())
}

async fn read_frame(recv: &mut RecvStream) -> Result<Vec<u8>, Error> {
    let length = recv.read_u32().await?;
    if length > MAX_FRAME {
        return Err("the frame is too long".into());
    }
    let mut content = vec![0; length as usize];
    recv.read_exact(&mut content).await?;
    Ok(content)
}
