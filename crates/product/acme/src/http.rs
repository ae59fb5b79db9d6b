//! The library's requests, by our own client: HTTP/1.1 over TLS, bounded in time and size.

use crate::failure::Failure;
use crate::settings::Authority;
use body::Body;
use bytes::Bytes;
use client::{Client, HttpChoice, Redirects};
use crypto::Roots;
use http::header::{RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use server::date::unix_now;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// For one request, its redirects included.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of a response, in bytes. Certificate chains have some thousands.
const LONGEST: usize = 1 << 20;
/// An authority cannot put off the next attempt for longer, in seconds.
const MOST_PUT_OFF_S: u64 = 24 * 3_600;
const AGENT: HeaderValue = HeaderValue::from_static(concat!("tercel/", env!("CARGO_PKG_VERSION")));

/// The client of an authority.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client,
    /// When the authority wants to be asked again, in seconds since 1970; 0: it has not said.
    put_off: Arc<AtomicU64>,
}

impl Http {
    pub(crate) fn new(authority: &Authority) -> Result<Http, Failure> {
        let roots = match &authority.roots {
            None => Roots::System,
            Some(path) => Roots::Pem(std::fs::read(path).map_err(|error| {
                Failure::new(format!("cannot read the authorities in {}: {error}", path.display()))
            })?),
        };
        let client = Client::builder()
            .roots(roots)
            .http(HttpChoice::Http1)
            .redirects(Redirects::None)
            .timeout(Some(PATIENCE))
            .build()
            .map_err(|error| Failure::new(error.to_string()))?;
        Ok(Http { client, put_off: Arc::default() })
    }

    /// When the authority wants to be asked again, if it has said so. RFC 8555 §6.6.
    pub(crate) fn put_off_s(&self) -> Option<u64> {
        Some(self.put_off.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let Http { client, put_off } = self.clone();
        Box::pin(async move {
            let mut request = request.map(Body::new);
            request.headers_mut().insert(USER_AGENT, AGENT);
            let response = client.request(request).await.map_err(other)?;
            let (parts, content) = response.into_parts();
            if matches!(parts.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
                && let Some(after) = parts.headers.get(RETRY_AFTER).and_then(seconds)
            {
                put_off.store(unix_now().saturating_add(after), Ordering::Relaxed);
            }
            let content = content.collect(LONGEST).await.map_err(other)?;
            Ok(BytesResponse { parts, body: Box::new(content) })
        })
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Other(Box::new(error))
}

/// How long to wait. RFC 9110 §10.2.3: seconds, or a date.
fn seconds(value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?.trim();
    let after = match text.parse() {
        Ok(seconds) => seconds,
        Err(_) => server::date::parse(text.as_bytes())?.saturating_sub(unix_now()),
    };
    Some(after.min(MOST_PUT_OFF_S))
}
