//! What answers the requests of a thread's connections: the seam between hyper and a handler.

use super::body::Account;
use super::pulse::Pulse;
use super::site::Site;
use crate::access_log::Protocol;
use crate::target;
use base::time::Instant;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;

/// Answers the requests of a thread's connections.
pub(super) trait Answer: 'static {
    /// A response's content.
    type Content: http_body::Body<Data = Bytes, Error = io::Error> + 'static;
    /// A response to come.
    type Future: Future<Output = io::Result<Response<Self::Content>>> + 'static;
    /// Answers the requests of one connection.
    type Service: Service<
            Request<Incoming>,
            Response = Response<Self::Content>,
            Error = io::Error,
            Future = Self::Future,
        > + 'static;

    /// What answers the requests of a connection.
    fn service(&self, place: Place) -> Self::Service;
}

/// A connection as its requests see it.
pub(super) struct Place {
    pub(super) site: Rc<Site>,
    pub(super) pulse: Rc<Pulse>,
    pub(super) peer: IpAddr,
    pub(super) protocol: Protocol,
}

impl Place {
    /// A request has arrived. Refuses what must be refused.
    pub(super) fn account<B>(&self, request: &Request<B>, began: Instant) -> Account {
        self.pulse.on_request(began);
        let mut head = self.site.head();
        target::take(request, &mut head);
        Account {
            site: Rc::clone(&self.site),
            pulse: Rc::clone(&self.pulse),
            head,
            peer: self.peer,
            protocol: self.protocol,
            began,
            status: 0,
            sent: 0,
            ahead: 0,
        }
    }
}
