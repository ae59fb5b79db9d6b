//! What is kept of a request, and how far its answer has come.

use super::edit::Edit;
use super::service::{Called, OfferedBy, Permit, RouteFuture, keeps_fields};
use crate::access::Stage;
use crate::access_log::RequestLine;
use crate::handler::Search;
use crate::low::{Head as LowHead, Interim};
use crate::request::{Head, Method, Name};
use crate::response::Response;
use crate::service::ServiceHead;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use http3::{HeadBuffer, RequestHead};
use std::sync::Arc;

/// A request that is routed.
pub(crate) struct RoutedHead {
    pub(super) head: Head,
    /// All of it, where a service or a limit may ask for that, if it came over HTTP/3 or is a CONNECT. `served` has others.
    pub(super) whole: HeadBuffer,
    /// The service's request and future, in memory that is reused. Boxed, because few requests have any.
    pub(super) served: Option<Box<ServiceHead<RouteFuture>>>,
    /// The target as the client sent it, if another one has taken its place.
    sent: Vec<u8>,
    /// The target for which the route was found, if another one has taken its place since.
    routed: Vec<u8>,
    pub(super) progress: Progress,
    /// The protocols by which the client would go on, if a service may answer that.
    pub(super) offer: Option<HeaderValue>,
    /// How they are offered.
    pub(super) offered_by: OfferedBy,
    /// What a service has said that lets it go on.
    pub(super) permit: Option<Permit>,
    /// The request as it came, while the service that says so has a copy.
    pub(super) kept: Option<Box<http::Request<()>>>,
    /// The number by which its site is counted.
    pub(super) slot: usize,
}

impl Default for RoutedHead {
    fn default() -> RoutedHead {
        RoutedHead {
            head: Head::default(),
            whole: HeadBuffer::default(),
            served: None,
            sent: Vec::new(),
            routed: Vec::new(),
            progress: Progress::Arrived,
            offer: None,
            offered_by: OfferedBy::Upgrade,
            permit: None,
            kept: None,
            slot: 0,
        }
    }
}

/// How far the answer has come. Each step looks for one file, so that none is taken twice.
#[derive(Default)]
pub(super) enum Progress {
    #[default]
    Arrived,
    /// A route was found; whether the request may have it is judged.
    Found(RouteMatch, Stage),
    /// A service is asked whether it may.
    Asking(Box<Served>),
    /// It may.
    Routed(RouteMatch),
    /// A service answers.
    Served(Box<Served>),
    /// There is an answer, whose content is looked for.
    Answered(RouteMatch, Box<Response>),
    /// The service has none, which is said as its route says it.
    Refused(Box<Refused>),
}

/// What answers a request, and what is changed of the response. It stays when other sites take the place of these.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) matched: RouteMatch,
    pub(super) edit: Option<Arc<Edit>>,
    pub(super) service: Called,
}

/// What is said instead of a service's response.
pub(super) struct Refused {
    pub(super) served: Box<Served>,
    pub(super) response: Response,
}

/// A route, and what of it is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteMatch {
    /// Of the sites among which it was found.
    pub(super) version: u64,
    pub(super) site: usize,
    pub(super) route: usize,
    /// The path that is tried.
    pub(super) candidate: usize,
    /// The file of a folder that is tried.
    pub(super) index: usize,
    /// How far the search for it has come.
    pub(super) search: Search,
}

impl RoutedHead {
    /// The target as the client sent it.
    pub(super) fn sent_target(&self) -> &[u8] {
        if self.sent.is_empty() { self.head.target() } else { &self.sent }
    }

    /// The target for which the route was found.
    pub(super) fn routed_target(&self) -> &[u8] {
        if self.routed.is_empty() { self.head.target() } else { &self.routed }
    }

    /// Another route is looked for, with this target.
    pub(super) fn rewrite(&mut self, target: &[u8]) {
        self.keep_sent();
        self.head.replace_target(target);
    }

    /// A file is looked for by this target.
    pub(super) fn look_for(&mut self, target: &[u8]) {
        if self.head.target() == target {
            return;
        }
        self.keep_sent();
        if self.routed.is_empty() {
            self.routed.extend_from_slice(self.head.target());
        }
        self.head.replace_target(target);
    }

    /// It is as it arrived.
    pub(super) fn restart(&mut self) {
        if !self.sent.is_empty() {
            self.head.replace_target(&self.sent);
        }
        self.sent.clear();
        self.routed.clear();
        self.progress = Progress::Arrived;
    }

    /// Whether a service has been asked, and has not answered.
    pub(super) fn is_served(&self) -> bool {
        matches!(self.progress, Progress::Asking(_) | Progress::Served(_))
    }

    /// Whether the one is asked that may let it go on.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.progress, Progress::Asking(_))
    }

    /// The service that answers has no response: this one is.
    pub(super) fn refuse(&mut self, response: Response) {
        if let Progress::Asking(served) | Progress::Served(served) = std::mem::take(&mut self.progress) {
            self.progress = Progress::Refused(Box::new(Refused { served, response }));
        }
    }

    /// Whether its route is known, and is not a service's.
    pub(super) fn needs_no_content(&self) -> bool {
        matches!(self.progress, Progress::Routed(_) | Progress::Answered(..) | Progress::Refused(_))
    }

    /// Whether it was routed among other sites than those of `version`.
    pub(super) fn is_of_before(&self, version: u64) -> bool {
        match &self.progress {
            // What a service was asked is not asked again.
            Progress::Arrived | Progress::Asking(_) | Progress::Served(_) | Progress::Refused(_) => false,
            Progress::Found(matched, _) | Progress::Routed(matched) | Progress::Answered(matched, _) => {
                matched.version != version
            }
        }
    }

    fn keep_sent(&mut self) {
        if self.sent.is_empty() {
            self.sent.extend_from_slice(self.head.target());
        }
    }
}

impl LowHead for RoutedHead {
    fn on_request(&mut self, request: &RequestHead<'_>) {
        self.head.on_request(request);
        if keeps_fields() {
            self.whole.keep(request);
        }
        if let Some(protocol) = request.protocol() {
            self.on_connect(protocol);
        }
    }

    fn on_parts(&mut self, request: &RequestHead<'_>, parts: Parts) {
        // An extended CONNECT is seen as GET, and another one has no path.
        if parts.method == http::Method::CONNECT || !keeps_fields() {
            return self.on_request(request);
        }
        self.head.on_request(request);
        self.served.get_or_insert_default().on_parts(request, parts);
    }

    fn on_refused(&mut self, status: u16) {
        self.head.on_refused(status);
    }

    fn recycle(&mut self) {
        const KEPT: usize = 1_024;
        LowHead::recycle(&mut self.head);
        for target in [&mut self.sent, &mut self.routed] {
            target.clear();
            target.shrink_to(KEPT);
        }
        self.whole.clear();
        self.served.iter_mut().for_each(|served| served.recycle());
        self.progress = Progress::Arrived;
        self.offer = None;
        self.offered_by = OfferedBy::Upgrade;
        self.permit = None;
        self.kept = None;
        self.slot = 0;
    }

    fn leave_connection(&mut self) {
        self.served.iter_mut().for_each(|served| served.leave_connection());
    }

    fn on_upgrade(&mut self, protocols: &HeaderValue) -> bool {
        self.offer = keeps_fields().then(|| protocols.clone());
        self.offer.is_some()
    }

    fn is_tunnel(&self) -> bool {
        self.offered_by == OfferedBy::Connect
    }

    fn site(&self) -> usize {
        self.slot
    }

    fn memory(&self) -> usize {
        let served = self.served.as_ref().map_or(0, |served| served.memory());
        LowHead::memory(&self.head)
            + self.sent.capacity()
            + self.routed.capacity()
            + self.whole.memory()
            + served
    }

    fn expects_continue(&self) -> bool {
        self.head.expects_continue()
    }

    fn has_begun(&self) -> bool {
        self.is_served()
    }

    fn next_interim(&mut self) -> Option<Interim> {
        self.served.as_mut().and_then(|served| served.next_interim())
    }

    fn line(&self) -> RequestLine<'_> {
        RequestLine { target: Some(self.sent_target()), ..LowHead::line(&self.head) }
    }
}

impl RoutedHead {
    /// The method.
    pub(super) fn method(&self) -> Method {
        self.head.method()
    }

    /// The method for which a route is looked for: a WebSocket is asked for by GET, over HTTP/2 and 3 too.
    pub(super) fn routed_method(&self) -> &[u8] {
        if self.is_tunnel() { b"GET" } else { self.head.value(Name::Method).unwrap_or_default() }
    }

    /// Its fields, if they are a map.
    pub(super) fn map(&self) -> Option<&HeaderMap> {
        self.served.as_ref().and_then(|served| served.fields())
    }

    /// The request as a service sees it. `None`: nothing was kept of it, as it arrived before there was any service.
    pub(super) fn seen(&self) -> Option<RequestHead<'_>> {
        self.whole.kept().map(|whole| if self.is_tunnel() { whole.as_get() } else { whole })
    }

    /// An extended CONNECT.
    #[cold]
    fn on_connect(&mut self, protocol: &[u8]) {
        //= rfc9220/3#2
        if !protocol.eq_ignore_ascii_case(b"websocket") {
            return self.head.refuse(501, "websocket is the only protocol that is spoken here");
        }
        self.offered_by = OfferedBy::Connect;
        self.offer = Some(HeaderValue::from_static("websocket"));
    }
}
