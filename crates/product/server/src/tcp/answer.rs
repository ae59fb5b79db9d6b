//! What answers the requests of a thread's connections: the seam between hyper and a handler.

use super::fields::Maps;
use super::stream::Stream;
use super::thread_state::ThreadState;
use super::timeouts::ConnectionTimeouts;
use crate::access_log::Protocol;
use crate::connection_info::ConnectionInfo;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use std::cell::RefCell;
use std::future::Future;
use std::io;
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
        > + Unpin
        + 'static;

    /// What answers the requests of a connection.
    fn service(&self, context: ConnectionContext) -> Self::Service;
}

/// A connection as its requests see it.
pub(super) struct ConnectionContext {
    pub(super) thread_state: Rc<ThreadState>,
    pub(super) maps: Rc<RefCell<Maps>>,
    pub(super) timeouts: Rc<ConnectionTimeouts>,
    pub(super) stream: Stream,
    pub(super) info: ConnectionInfo,
    pub(super) protocol: Protocol,
}
