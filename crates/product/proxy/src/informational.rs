//! Informational responses of upstreams, such as 103 (Early Hints), on their way to the client. RFC 9110 §15.2.
//!
//! They go on to clients of HTTP/1.1 and 3; over HTTP/2 hyper sends none. What a client has not taken yet is bounded by the server; beyond that
//! they are left out, as each is a hint.

use crate::connect::Connection;
use crate::content::Sent;
use crate::forward;
use crate::http2::OnInformational;
use http::header::HeaderMap;
use http::{Request, StatusCode};
use server::{ConnectionInfo, Informational};
use std::sync::Arc;

/// Sends informational responses to a client.
#[derive(Clone, Debug)]
pub(crate) struct Hints(Informational);

impl Hints {
    /// Those of the client of `info`; `None` if its version cannot carry them.
    pub(crate) fn of(info: &ConnectionInfo) -> Option<Hints> {
        (info.alpn != "h2").then(|| Hints(info.informational()))
    }

    /// Has the client hear those of the response to `request`, which is sent on `connection` next.
    pub(crate) fn pass(&self, connection: &Connection, request: &mut Request<Sent>) {
        let hints = self.clone();
        match connection {
            Connection::Http1(_) => hyper::ext::on_informational(request, move |interim| {
                hints.send(interim.status(), interim.headers());
            }),
            Connection::Http2(_) => {
                let told = OnInformational(Arc::new(move |status, fields| hints.send(status, fields)));
                request.extensions_mut().insert(told);
            }
            Connection::Http3(_) => client::on_informational(request, move |interim| {
                hints.send(interim.status(), interim.headers());
            }),
        }
    }

    /// Sends one of them on.
    fn send(&self, status: StatusCode, fields: &HeaderMap) {
        // The server tells clients itself when the upstream takes content.
        if status != StatusCode::CONTINUE {
            let mut fields = fields.clone();
            forward::response(&mut fields);
            let _ = self.0.send(status, fields);
        }
    }
}
