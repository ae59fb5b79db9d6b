//! Making a connection: TCP, TLS, and agreement on the version of HTTP.

use super::meter::Metered;
use super::request_failure::RequestFailure;
use super::stream::Stream;
use super::thread_state::ThreadState;
use super::tls::Tls;
use crate::failure::Failure;
use crate::plan::{Protocol, Reuse};
use rustls::pki_types::ServerName;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::TcpStream;

/// The name by which TLS agrees on a version of HTTP. Source: the IANA registry of ALPN protocol IDs.
pub(super) const fn alpn(protocol: &Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Http1(_) => b"http/1.1",
        Protocol::Http2(_) => b"h2",
        Protocol::Http3(_) => b"h3",
    }
}

/// A connection to the server, within the time that it may take.
pub(super) async fn connect(thread_state: &ThreadState) -> Result<Stream, RequestFailure> {
    let patience = thread_state.tcp.handshake_timeout;
    let patience = match thread_state.plan.reuse {
        Reuse::Always => patience,
        // It is part of the request.
        Reuse::Never => patience.min(thread_state.plan.timeout),
    };
    let limit = std::time::Duration::from_nanos(patience.as_nanos());
    match tokio::time::timeout(limit, attempt(thread_state)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let words =
                format!("no connection within {} s: the server is down or very busy", patience.as_secs_f64());
            Err(RequestFailure::new(Failure::Timeout, words))
        }
    }
}

async fn attempt(thread_state: &ThreadState) -> Result<Stream, RequestFailure> {
    let tcp = TcpStream::connect(thread_state.plan.address)
        .await
        .map_err(|error| RequestFailure::of_connecting(&error))?;
    // Small requests must not wait for each other. A socket that refuses is slower, no more.
    let _ = tcp.set_nodelay(true);
    if thread_state.plan.reuse == Reuse::Never {
        // Closed by a reset, or some ten thousand waiting ports would soon be all there are.
        let _ = tcp.set_zero_linger();
    }
    let metered = Metered::new(tcp, Rc::clone(&thread_state.meter));
    let Some(config) = &thread_state.tcp.tls else { return Ok(Stream::Clear(metered)) };
    let name = ServerName::try_from(thread_state.plan.server_name.clone()).map_err(|_| {
        let words = format!("{} is neither a host name nor an IP address", thread_state.plan.server_name);
        RequestFailure::new(Failure::Tls, words)
    })?;
    let tls = Tls::new(metered, Arc::clone(config), name);
    let mut tls = tls.map_err(|error| RequestFailure::new(Failure::Tls, error.to_string()))?;
    let handshake = poll_fn(|cx| tls.poll_handshake(cx)).await;
    handshake.map_err(|error| RequestFailure::of_connecting(&error))?;
    let is_agreed = match (&thread_state.plan.protocol, tls.agreed()) {
        // Servers older than the agreement speak this.
        (Protocol::Http1(_), None) => true,
        (protocol, agreed) => agreed == Some(alpn(protocol)),
    };
    if is_agreed {
        return Ok(Stream::Tls(Box::new(tls)));
    }
    let words = format!("the server does not speak {} there", thread_state.plan.protocol.name());
    Err(RequestFailure::new(Failure::Protocol, words))
}
