//! The connection on which a request arrived, for applications.

use crate::early_data::Gate;
use crate::informational::Informational;
use rustls_pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::Arc;
use transport::Connection;

/// The connection on which a request arrived: in `request.extensions()` of every service, over all versions of HTTP.
///
/// ```
/// use server::ConnectionInfo;
/// fn peer<B>(request: &http::Request<B>) -> Option<std::net::SocketAddr> {
///     request.extensions().get::<ConnectionInfo>().map(|info| info.peer)
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The client's address at the time of the request. Over HTTP/3 it may change. Source: RFC 9000 §9.
    pub peer: SocketAddr,
    /// The address that the client reached.
    pub local: SocketAddr,
    /// The application protocol: `h3`, `h2`, or `http/1.1`, also where the client named none. Source: RFC 7301.
    pub alpn: &'static str,
    /// The name that the client asked for in TLS. Source: RFC 6066 §3.
    pub server_name: Option<Arc<str>>,
    /// The certificates that the client has shown, its own first, which the server has verified; `None` if it has shown none. See
    /// [`Builder::client_auth`](crate::Builder::client_auth). Source: RFC 8446 §4.4.2.
    pub client_certificates: Option<Arc<[CertificateDer<'static>]>>,
    pub(crate) informational: Informational,
    /// For a request in early data.
    pub(crate) early: Option<Arc<Gate>>,
}

impl ConnectionInfo {
    /// Sends informational responses to the request, such as 103 (Early Hints), over HTTP/1.1 and 3. Source: RFC 9110 §15.2.
    pub fn informational(&self) -> Informational {
        self.informational.clone()
    }

    /// Whether the request may be the copy of an earlier one, sent by an attacker: it arrived over HTTP/3 before the handshake
    /// was complete, and was handed over before that. See [`EarlyData`](crate::EarlyData). Source: RFC 8470 §3.
    pub fn is_early(&self) -> bool {
        self.early.is_some()
    }

    /// Waits until the handshake is complete: the request is the client's own then. At once unless it is early.
    pub async fn handshake_done(&self) {
        if let Some(gate) = &self.early {
            gate.opened().await;
        }
    }
}

/// A connection as low-level handlers see it. Reading it costs nothing where it is not asked.
#[derive(Clone, Copy)]
pub struct ConnectionView<'a> {
    pub(crate) viewed: Viewed<'a>,
    pub(crate) early: Option<&'a Arc<Gate>>,
}

#[derive(Clone, Copy)]
pub(crate) enum Viewed<'a> {
    Quic(&'a Connection),
    Tcp(&'a ConnectionInfo),
}

impl ConnectionView<'_> {
    /// Whether the request may be the copy of an earlier one, sent by an attacker. A handler that returns `Pending` is called again
    /// when the handshake is complete. Source: RFC 8470 §3.
    pub fn is_early(&self) -> bool {
        self.early.is_some()
    }

    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        match self.viewed {
            Viewed::Quic(connection) => connection.addresses().peer,
            Viewed::Tcp(info) => info.peer,
        }
    }

    /// The address that the client reached.
    pub fn local(&self) -> SocketAddr {
        match self.viewed {
            Viewed::Quic(connection) => connection.addresses().local,
            Viewed::Tcp(info) => info.local,
        }
    }

    /// The application protocol: `h3`, `h2` or `http/1.1`. Source: RFC 7301.
    pub fn alpn(&self) -> &'static str {
        match self.viewed {
            Viewed::Quic(_) => "h3",
            Viewed::Tcp(info) => info.alpn,
        }
    }

    /// The name that the client asked for in TLS. Source: RFC 6066 §3.
    pub fn server_name(&self) -> Option<&str> {
        match self.viewed {
            Viewed::Quic(connection) => connection.server_name(),
            Viewed::Tcp(info) => info.server_name.as_deref(),
        }
    }

    /// As [`ConnectionView::server_name`], without a copy where that can be.
    pub(crate) fn shared_server_name(&self) -> Option<Arc<str>> {
        match self.viewed {
            Viewed::Quic(connection) => connection.server_name().map(Arc::from),
            Viewed::Tcp(info) => info.server_name.clone(),
        }
    }

    /// The certificates that the client has shown, its own first, which the server has verified. They are copied over HTTP/3.
    /// Source: RFC 8446 §4.4.2.
    pub fn client_certificates(&self) -> Option<Arc<[CertificateDer<'static>]>> {
        match self.viewed {
            Viewed::Quic(connection) => {
                let chain = connection.peer_certificates();
                (!chain.is_empty()).then(|| chain.into_iter().map(CertificateDer::from).collect())
            }
            Viewed::Tcp(info) => info.client_certificates.clone(),
        }
    }
}
