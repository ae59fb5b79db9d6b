//! The handler of sites: finds the route of a request, does what it says, and edits the response.

use super::allow::{methods, with_methods};
use super::edit::{Edit, EditedFields};
use super::head::{Progress, Refused, RouteMatch, RoutedHead};
use super::live::LiveSites;
use super::names::LastHost;
use super::prefix::is_sound;
use super::served;
use super::service::{Answer, RouteError, RoutedContent, RoutedUpload, ServiceOf};
use super::site::{Action, FilesOf, Fixed, Route, Sites};
use super::template::{Captured, push, push_path};
use crate::access::{self, Asked, Stage};
use crate::body::Body;
use crate::connection_info::ConnectionView;
use crate::file_requests::DISK_SHARE;
use crate::files::MAX_TARGET;
use crate::files::path::split_query;
use crate::handler::{FileOptions, Files, Search};
use crate::low::{Context, Handler, Head as _, Request, Response as LowResponse, Shared, Upload as _};
use crate::readers::{Readers, ResultWaker};
use crate::request::{Head, Method, Name, Refusal};
use crate::response::{Fields, Response, Value};
use crate::response_fields::DateField;
use crate::service::Arrival;
use base::time::Instant;
use bytes::Bytes;
use std::sync::Arc;
use std::task::{Poll, ready};

/// Answers the requests of a thread.
#[derive(Debug)]
pub(crate) struct Router {
    live: LiveSites,
    /// Of `sites`.
    version: u64,
    sites: Arc<Sites>,
    /// In the order of [`Sites::folder`].
    files: Vec<Files>,
    /// What no file answers.
    plain: Files,
    readers: Readers,
    shared: Shared,
    date: DateField,
    host: LastHost,
    /// Kept for its memory.
    target: Vec<u8>,
}

/// When, and whom to wake.
#[derive(Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) now: Instant,
    pub(super) wake_target: ResultWaker<'a>,
    /// On which the request arrived.
    pub(super) connection: ConnectionView<'a>,
}

impl Router {
    /// A handler with empty caches. They hold as much together as those of one folder would.
    pub(crate) fn new(live: &LiveSites, readers: &Readers, shared: &Shared) -> Router {
        let (version, sites) = live.current();
        Router {
            files: files(&sites.folders, readers, shared),
            plain: handler(&FileOptions::default(), 1, readers, shared),
            live: live.clone(),
            version,
            sites,
            readers: readers.clone(),
            date: DateField::new(shared.clock),
            shared: shared.clone(),
            host: LastHost::default(),
            target: Vec::new(),
        }
    }

    /// Takes the sites that have replaced those of before.
    #[cold]
    fn renew(&mut self) {
        (self.version, self.sites) = self.live.current();
        self.host.forget();
        self.files = files(&self.sites.folders, &self.readers, &self.shared);
    }

    /// The answer; `Ready(None)`: a service is to be polled.
    pub(super) fn answer(&mut self, head: &mut RoutedHead, turn: Turn<'_>) -> Poll<Option<Answer>> {
        if self.live.version() != self.version {
            self.renew();
        }
        // Lookups for the sites of before have gone with them, and wake who waits for them.
        if head.is_of_before(self.version) {
            head.restart();
        }
        loop {
            match std::mem::take(&mut head.progress) {
                // RFC 9110 §9.3.7: it is about the server, not about a site.
                Progress::Arrived if head.head.target() == b"*" => {
                    let Turn { now, wake_target, .. } = turn;
                    return self
                        .plain
                        .poll_handle(&head.head, now, wake_target)
                        .map(|response| Some(edited(response, None, b"")));
                }
                Progress::Arrived => match self.route(head) {
                    Ok(matched) => head.progress = Progress::Found(matched, Stage::Arrived),
                    Err((status, what)) => {
                        return Poll::Ready(Some(edited(
                            self.plain.refuse(status, what, turn.now),
                            None,
                            b"",
                        )));
                    }
                },
                Progress::Found(matched, mut stage) => {
                    let Poll::Ready(refusal) = self.poll_refusal(head, &matched, &mut stage, turn) else {
                        head.progress = Progress::Found(matched, stage);
                        return Poll::Pending;
                    };
                    head.progress = match refusal {
                        Some(refusal) => Progress::Answered(matched, Box::new(refusal)),
                        None => Progress::Routed(matched),
                    };
                    self.ask(head);
                }
                Progress::Routed(matched) if self.service(&matched).is_some() => {
                    if let Some((route, of)) = self.service(&matched) {
                        served::begin(head, matched, route, of);
                    }
                }
                Progress::Routed(matched) if head.head.announces_too_much() => {
                    head.progress =
                        Progress::Answered(matched, Box::new(self.plain.refuse(413, "", turn.now)));
                }
                Progress::Routed(mut matched) => {
                    let Poll::Ready(response) = self.act(head, &mut matched, turn) else {
                        head.progress = Progress::Routed(matched);
                        return Poll::Pending;
                    };
                    head.progress = Progress::Answered(matched, Box::new(response));
                }
                said @ (Progress::Answered(..) | Progress::Refused(_)) => {
                    head.progress = said;
                    return self.poll_said(head, turn).map(Some);
                }
                waits @ (Progress::Asking(_) | Progress::Served(_)) => {
                    head.progress = waits;
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Asks the service that may let a request go on, if its route has one.
    fn ask(&self, head: &mut RoutedHead) {
        let Progress::Routed(matched) = head.progress else { return };
        let Some(route) = self.route_at(&matched) else { return };
        if let Some(asks) = &route.asks {
            served::ask(head, matched, route.edit.clone(), asks);
        }
    }

    /// `None` if other sites have taken the place of those it was found among.
    fn route_at(&self, matched: &RouteMatch) -> Option<&Route> {
        self.sites.routes(matched.site).get(matched.route).filter(|_| matched.version == self.version)
    }

    /// What the server says itself, with the page and the changes of its route.
    fn poll_said(&mut self, head: &mut RoutedHead, turn: Turn<'_>) -> Poll<Answer> {
        let (response, page, edit) = match std::mem::take(&mut head.progress) {
            Progress::Answered(matched, response) => {
                let Poll::Ready(page) = self.poll_page(&matched, &response, turn) else {
                    head.progress = Progress::Answered(matched, response);
                    return Poll::Pending;
                };
                (*response, page, self.route_at(&matched).and_then(|route| route.edit.clone()))
            }
            Progress::Refused(refused) => {
                let Poll::Ready(page) = self.poll_page(&refused.served.matched, &refused.response, turn)
                else {
                    head.progress = Progress::Refused(refused);
                    return Poll::Pending;
                };
                let Refused { served, response } = *refused;
                (response, page, served.edit)
            }
            // Nothing else is said.
            _ => (self.plain.refuse(500, "", turn.now), None, None),
        };
        Poll::Ready(edited(with_page(response, page), edit, head.head.target()))
    }

    /// The page for a response, if its route has one for its status: `Ready(None)` without one.
    fn poll_page(
        &mut self,
        matched: &RouteMatch,
        response: &Response,
        turn: Turn<'_>,
    ) -> Poll<Option<Response>> {
        let Router { sites, files, .. } = self;
        let route = sites.routes(matched.site).get(matched.route).filter(|_| matched.version == self.version);
        poll_page(files, route, response, turn)
    }

    /// The service of a route, if it has one.
    fn service(&self, matched: &RouteMatch) -> Option<(&Route, &ServiceOf)> {
        let route = self.route_at(matched)?;
        match &route.action {
            Action::Service(of) => Some((route, of)),
            _ => None,
        }
    }

    /// The route of a request, whose target is rewritten on the way.
    fn route(&mut self, head: &mut RoutedHead) -> Result<RouteMatch, Refusal> {
        if let Some(refusal) = head.head.refusal() {
            return Err(refusal);
        }
        if head.head.is_too_large() {
            return Err((431, ""));
        }
        let authority = head.head.value(Name::Authority).unwrap_or_default();
        let found = self.host.find(&self.sites.names, authority);
        let site = found.ok_or((421, "no site here has this name"))?;
        head.slot = self.sites.slot(site);
        let mut was_sound = false;
        for (number, route) in self.sites.routes(site).iter().enumerate() {
            let (path, query) = split_query(head.head.target());
            if head.head.target().len() > MAX_TARGET {
                return Err((414, ""));
            }
            if !was_sound && !is_sound(path) {
                return Err((
                    400,
                    "the path is not one that begins with a slash, without dot segments, and encoded as it should be",
                ));
            }
            was_sound = true;
            let Some(rest) = route.prefix.rest(path).filter(|_| route.takes(head.routed_method())) else {
                continue;
            };
            let Action::Rewrite(to) = &route.action else {
                return Ok(RouteMatch {
                    version: self.version,
                    site,
                    route: number,
                    ..RouteMatch::default()
                });
            };
            self.target.clear();
            to.expand(Captured { host: self.host.name(), path, rest, query }, &mut self.target);
            head.rewrite(&self.target);
            was_sound = false;
        }
        Err((404, ""))
    }

    /// The response to a request that its route does not answer; `Ready(None)` if it does.
    fn poll_refusal(
        &mut self,
        head: &RoutedHead,
        matched: &RouteMatch,
        stage: &mut Stage,
        turn: Turn<'_>,
    ) -> Poll<Option<Response>> {
        let route = self.sites.routes(matched.site).get(matched.route);
        let Some(access) = route.and_then(|route| route.access.as_ref()) else { return Poll::Ready(None) };
        if *stage != Stage::Arrived {
            // Others were routed while this one waited.
            let authority = head.head.value(Name::Authority).unwrap_or_default();
            self.host.find(&self.sites.names, authority);
        }
        let Turn { now, wake_target, connection } = turn;
        let (map, whole) = (head.map(), &head.whole);
        let asked = Asked { head: &head.head, map, whole, host: self.host.name(), connection, now };
        access.poll(asked, stage, wake_target).map(|judged| {
            let access::Refusal { status, what, field } = judged.err()?;
            let mut response = self.plain.refuse(status, what, now);
            field.into_iter().for_each(|(name, value)| response.fields.push(name, value));
            Some(response)
        })
    }

    /// Does what the route says.
    fn act(&mut self, head: &mut RoutedHead, matched: &mut RouteMatch, turn: Turn<'_>) -> Poll<Response> {
        let Router { sites, files, plain, host, target, .. } = self;
        let routes = sites.routes(matched.site);
        let Some(route) = routes.get(matched.route) else {
            return Poll::Ready(plain.refuse(404, "", turn.now));
        };
        Poll::Ready(match &route.action {
            Action::Files(of) => match files.get_mut(of.folder) {
                Some(files) => {
                    let response = ready!(poll_files(files, (route, of), head, matched, turn, target));
                    let above = routes.get(..matched.route).unwrap_or_default();
                    with_methods(response, above, split_query(head.routed_target()).0)
                }
                None => plain.refuse(404, "", turn.now),
            },
            Action::Redirect { status, to } => {
                let (path, query) = split_query(head.head.target());
                let rest = route.prefix.rest(path).unwrap_or_default();
                target.clear();
                to.expand(Captured { host: host.name(), path, rest, query }, target);
                let mut response = plain.refuse(*status, "", turn.now);
                response.fields.push("location", Value::copied(target));
                response
            }
            // RFC 8441 §5: it would open a tunnel.
            Action::Fixed(Fixed { status: 200..=299, .. }) if head.is_tunnel() => {
                plain.refuse(405, "", turn.now)
            }
            Action::Fixed(Fixed { status, content, .. }) if content.is_empty() && *status >= 400 => {
                plain.refuse(*status, "", turn.now)
            }
            Action::Fixed(fixed) => plain.fixed(fixed.status, &fixed.content_type, &fixed.content, turn.now),
            Action::Rewrite(_) | Action::Service(_) | Action::Nothing => {
                nothing(plain, routes, head, turn.now)
            }
        })
    }
}

impl Handler for Router {
    type Head = RoutedHead;
    type Upload = RoutedUpload;
    type Content = RoutedContent;
    type Fields = EditedFields;

    fn handle(&mut self, request: Request<'_, Router>, cx: &Context<'_>) -> Poll<Answer> {
        let Request { head, upload, received, connection } = request;
        if upload.is_enough() {
            return Poll::Ready(edited(self.plain.refuse(413, "", cx.now()), None, b""));
        }
        let wake_target = || (cx.waiting() < DISK_SHARE).then(|| cx.waker());
        let turn = Turn { now: cx.now(), wake_target: &wake_target, connection };
        loop {
            match self.answer(head, turn) {
                Poll::Ready(Some(answer)) => {
                    upload.discard();
                    let is_head = head.method() == Method::Head;
                    let body = if is_head { RoutedContent::Own(Body::Empty) } else { answer.body };
                    return Poll::Ready(LowResponse { body, ..answer });
                }
                Poll::Pending => {
                    if head.needs_no_content() {
                        upload.discard();
                    }
                    return Poll::Pending;
                }
                Poll::Ready(None) => {}
            }
            if head.is_asking() {
                match ready!(served::poll_permit(head, connection, &mut self.date, cx)) {
                    Ok(None) => {}
                    Ok(Some(answer)) => {
                        upload.discard();
                        return Poll::Ready(answer);
                    }
                    Err(RouteError { status, what }) => {
                        head.refuse(self.plain.refuse(status, what, cx.now()));
                    }
                }
                continue;
            }
            let served = match upload.inlet() {
                Some(upload) => {
                    served::poll(head, Arrival { upload, received, connection }, &mut self.date, cx)
                }
                // It was for files when it came, and content was discarded.
                None => Poll::Ready(Err(RouteError { status: 503, what: "" })),
            };
            match ready!(served) {
                Ok(answer) => return Poll::Ready(answer),
                Err(RouteError { status, what }) => head.refuse(self.plain.refuse(status, what, cx.now())),
            }
        }
    }

    fn put_off(&mut self, cx: &Context<'_>) -> Answer {
        edited(self.plain.put_off(cx.now()), None, b"")
    }

    fn shared(&self) -> Shared {
        self.shared.clone()
    }
}

fn files(folders: &[FileOptions], readers: &Readers, shared: &Shared) -> Vec<Files> {
    folders.iter().map(|options| handler(options, folders.len(), readers, shared)).collect()
}

/// A handler of one of `share` folders.
fn handler(options: &FileOptions, share: usize, readers: &Readers, shared: &Shared) -> Files {
    let Shared { budget, warnings, clock } = shared.clone();
    let mut options = FileOptions { budget, warnings, clock, readers: readers.clone(), ..options.clone() };
    options.cache.total_bytes /= share as u64;
    options.cache.entries = options.cache.entries.div_ceil(share);
    Files::new(options)
}

/// The response to a request for `target`, with the fields that its route says.
fn edited(response: Response, edit: Option<Arc<Edit>>, target: &[u8]) -> Answer {
    let Response { status, fields, body } = response;
    LowResponse {
        status,
        fields: EditedFields::new(fields, status, edit, target),
        body: RoutedContent::Own(body),
    }
}

/// Answers by a file: the first of the paths to try at which there is one.
fn poll_files(
    files: &mut Files,
    (route, of): (&Route, &FilesOf),
    head: &mut RoutedHead,
    matched: &mut RouteMatch,
    turn: Turn<'_>,
    target: &mut Vec<u8>,
) -> Poll<Response> {
    if of.is_below_prefix && !is_inside(route, head) {
        let mut response = files.refuse(301, "", turn.now);
        let location = folder_location(head.sent_target()).unwrap_or_default();
        response.fields.push("location", Value::from(location));
        return Poll::Ready(response);
    }
    loop {
        let has_more = aim(route, of, head, *matched, target);
        let Turn { now, wake_target, .. } = turn;
        let mut response = ready!(files.poll_search(&head.head, &mut matched.search, now, wake_target));
        if response.status == 301 {
            match folder_location(head.sent_target()) {
                Some(location) => response.fields.replace("location", Value::from(location)),
                // The folder of a path to try is not where the client is, which cannot be sent to it.
                None => response = files.refuse(404, "", turn.now),
            }
        }
        if response.status != 404 || has_more == More::Nothing {
            return Poll::Ready(response);
        }
        matched.search = Search::default();
        (matched.candidate, matched.index) = match has_more {
            More::Index => (matched.candidate, matched.index + 1),
            More::Candidate | More::Nothing => (matched.candidate + 1, 0),
        };
    }
}

/// Whether the request is for something in the folder of the route, or for that with its slash: relative links lead elsewhere without.
fn is_inside(route: &Route, head: &RoutedHead) -> bool {
    let (path, _) = split_query(head.routed_target());
    let (sent, _) = split_query(head.sent_target());
    path.ends_with(b"/")
        || sent.ends_with(b"/")
        || route.prefix.rest(path).is_none_or(|rest| !rest.is_empty())
}

/// What is tried next, if there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    Index,
    Candidate,
    Nothing,
}

/// Makes the target of the request that of the path that is tried.
fn aim(
    route: &Route,
    of: &FilesOf,
    head: &mut RoutedHead,
    matched: RouteMatch,
    target: &mut Vec<u8>,
) -> More {
    target.clear();
    let (path, query) = split_query(head.routed_target());
    let rest = route.prefix.rest(path).unwrap_or_default();
    let mut below = Vec::new();
    let own = if of.is_below_prefix {
        push_path(rest, &mut below);
        &below
    } else {
        path
    };
    let captured = Captured { host: b"", path: own, rest, query };
    match of.candidates.get(matched.candidate) {
        Some(candidate) if !candidate.is_path() => candidate.expand(captured, target),
        _ => target.extend_from_slice(own),
    }
    let index = of.index.get(matched.index).filter(|_| target.ends_with(b"/"));
    if let Some(name) = index {
        push(name.as_bytes(), target);
    }
    if let Some(query) = query {
        target.push(b'?');
        target.extend_from_slice(query);
    }
    head.look_for(target);
    match index {
        Some(_) => More::Index,
        None if matched.candidate + 1 < of.candidates.len() => More::Candidate,
        None => More::Nothing,
    }
}

/// Where a client goes that has asked for a folder without the slash at its end; `None` if it has sent one.
fn folder_location(sent: &[u8]) -> Option<String> {
    let (path, query) = split_query(sent);
    if path.ends_with(b"/") {
        return None;
    }
    let mut location = Vec::new();
    push_path(path, &mut location);
    location.push(b'/');
    if let Some(query) = query {
        location.push(b'?');
        push(query, &mut location);
    }
    String::from_utf8(location).ok()
}

/// Why no route answers: RFC 9110 §15.5.5 and §15.5.6; or by which methods one would, for OPTIONS.
fn nothing(plain: &mut Files, routes: &[Route], head: &RoutedHead, now: Instant) -> Response {
    let (path, _) = split_query(head.head.target());
    let Some(methods) = methods(routes, path, "OPTIONS") else { return plain.refuse(404, "", now) };
    let mut response = match head.method() {
        Method::Options => plain.fixed(204, "", &Bytes::new(), now),
        _ => plain.refuse(405, "", now),
    };
    response.fields.push("allow", Value::from(methods));
    response
}

/// The page for a response, if its route has one for its status: `Ready(None)` without one.
fn poll_page(
    files: &mut [Files],
    route: Option<&Route>,
    response: &Response,
    turn: Turn<'_>,
) -> Poll<Option<Response>> {
    let of =
        route.filter(|route| !matches!(&route.action, Action::Fixed(fixed) if !fixed.content.is_empty()));
    let path = of.and_then(|route| Some((route.pages.folder, route.pages.path(response.status)?)));
    let Some((files, path)) = path.and_then(|(folder, path)| Some((files.get_mut(folder)?, path))) else {
        return Poll::Ready(None);
    };
    let page = ready!(files.poll_handle(&Head::of("GET", path), turn.now, turn.wake_target));
    Poll::Ready(Some(page).filter(|page| page.status == 200))
}

/// The response with the content of `page`, if there is one.
fn with_page(response: Response, page: Option<Response>) -> Response {
    let Some(page) = page else { return response };
    const OF_CONTENT: [&str; 2] = ["content-type", "content-length"];
    let is_of_content = |name: &str| OF_CONTENT.contains(&name);
    let mut fields = Fields::default();
    let own = response.fields.entries().filter(|(name, _)| !is_of_content(name));
    let of_page = page.fields.entries().filter(|(name, _)| is_of_content(name));
    own.chain(of_page).for_each(|(name, value)| fields.push(name, value.clone()));
    Response { status: response.status, fields, body: page.body }
}
