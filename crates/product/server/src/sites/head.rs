//! What is kept of a request, and how far its answer has come.

use crate::access::Stage;
use crate::access_log::RequestLine;
use crate::handler::Search;
use crate::low::Head as LowHead;
use crate::request::{Head, Method};
use crate::response::Response;
use http3::RequestHead;

/// A request that is routed.
#[derive(Debug, Default)]
pub(crate) struct RoutedHead {
    pub(super) head: Head,
    /// The target as the client sent it, if another one has taken its place.
    sent: Vec<u8>,
    /// The target for which the route was found, if another one has taken its place since.
    routed: Vec<u8>,
    pub(super) progress: Progress,
    /// The number by which its site is counted.
    pub(super) slot: usize,
}

/// How far the answer has come. Each step looks for one file, so that none is taken twice.
#[derive(Debug, Default)]
pub(super) enum Progress {
    #[default]
    Arrived,
    /// A route was found; whether the request may have it is judged.
    Found(Place, Stage),
    /// It may.
    Routed(Place),
    /// There is an answer, whose content is looked for.
    Answered(Place, Box<Response>),
}

/// A route, and what of it is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
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

    /// Whether it was routed among other sites than those of `version`.
    pub(super) fn is_of_before(&self, version: u64) -> bool {
        match &self.progress {
            Progress::Arrived => false,
            Progress::Found(place, _) | Progress::Routed(place) | Progress::Answered(place, _) => {
                place.version != version
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
        self.progress = Progress::Arrived;
        self.slot = 0;
    }

    fn site(&self) -> usize {
        self.slot
    }

    fn memory(&self) -> usize {
        LowHead::memory(&self.head) + self.sent.capacity() + self.routed.capacity()
    }

    fn expects_continue(&self) -> bool {
        self.head.expects_continue()
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
}
