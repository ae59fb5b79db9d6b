//! What servers on h3 do with a connection: the same over each QUIC implementation.

use crate::Content;
use bytes::Bytes;
use h3::quic::{BidiStream, Connection};
use h3::server::RequestStream;
use std::error::Error;

/// Answers the requests of a connection until its client is done.
///
/// # Errors
/// HTTP/3 could not begin.
pub async fn converse<C>(connection: C, content: Content) -> Result<(), Box<dyn Error + Send + Sync>>
where
    C: Connection<Bytes> + 'static,
    C::BidiStream: BidiStream<Bytes> + Send + 'static,
    <C::BidiStream as BidiStream<Bytes>>::SendStream: Send,
    <C::BidiStream as BidiStream<Bytes>>::RecvStream: Send,
{
    let mut http = h3::server::Connection::new(connection).await?;
    // An error here is the client's way to say that it is done.
    while let Ok(Some(resolver)) = http.accept().await {
        let content = content.clone();
        tokio::spawn(async move {
            let (request, stream) = resolver.resolve_request().await.ok()?;
            answer(request.uri().path(), stream, &content).await.ok()
        });
    }
    Ok(())
}

async fn answer<S: BidiStream<Bytes>>(
    path: &str,
    mut stream: RequestStream<S, Bytes>,
    content: &Content,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let found = content.find(path);
    let (status, length) = found.as_ref().map_or((404, 0), |body| (200, body.left()));
    let head = http::Response::builder().status(status).header(http::header::CONTENT_LENGTH, length);
    stream.send_response(head.body(())?).await?;
    if let Some(mut body) = found {
        while body.left() > 0 {
            stream.send_data(body.take()).await?;
        }
    }
    Ok(stream.finish().await?)
}
