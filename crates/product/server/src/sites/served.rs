//! A request that a service answers.

use super::edit::{Edit, EditedFields};
use super::head::{Progress, RouteMatch, RoutedHead, Served};
use super::service::{
    Answer, Called, OfferedBy, Permit, RouteError, RouteService, RoutedContent, ServiceOf, UpgradeOffer,
};
use super::site::Route;
use super::template::push_path;
use crate::connection_info::ConnectionView;
use crate::files::path::split_query;
use crate::low::{Context, Head as _, Received, Response};
use crate::response_fields::{self, DateField, HasContent};
use crate::service::{Arrival, Inlet, Polled, ServiceContent, ServiceFields};
use ::body::Body;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http_body::Body as _;
use std::sync::Arc;
use std::task::Poll;

/// Has a service asked, for the path that the matched `route` leads to.
pub(super) fn begin(head: &mut RoutedHead, matched: RouteMatch, route: &Route, of: &ServiceOf) {
    let mut request = head.served.take().unwrap_or_default();
    match (head.kept.take(), head.seen()) {
        (Some(kept), _) => request.on_kept(*kept),
        (None, _) if request.has_come() => {}
        (None, Some(seen)) => request.on_request(&seen),
        (None, None) => request.on_refused(503),
    }
    let (path, query) = split_query(head.head.target());
    if let Some(rest) = route.prefix.rest(path).filter(|_| of.is_below_prefix) {
        let mut target = Vec::new();
        push_path(rest, &mut target);
        if let Some(query) = query {
            target.push(b'?');
            target.extend_from_slice(query);
        }
        request.replace_target(&target);
    } else if head.sent_target() != head.head.target() {
        request.replace_target(head.head.target());
    }
    if let Some(permit) = head.permit.take() {
        request.replace_fields(permit.fields);
    }
    head.served = Some(request);
    let service = Called(Arc::clone(&of.service));
    head.progress = Progress::Served(Box::new(Served { matched, edit: route.edit.clone(), service }));
}

/// Has a service asked whether the request may go on. It sees the target as the client sent it, and no content.
pub(super) fn ask(
    head: &mut RoutedHead,
    matched: RouteMatch,
    edit: Option<Arc<Edit>>,
    of: &Arc<dyn RouteService>,
) {
    let mut request = head.served.take().unwrap_or_default();
    match head.seen() {
        _ if request.has_come() => head.kept = request.copy().map(Box::new),
        Some(seen) => request.on_request(&seen),
        None => request.on_refused(503),
    }
    head.served = Some(request);
    let service = Called(Arc::clone(of));
    head.progress = Progress::Asking(Box::new(Served { matched, edit, service }));
}

/// What the service says that may let the request go on: `None` if it does.
pub(super) fn poll_permit(
    head: &mut RoutedHead,
    connection: ConnectionView<'_>,
    date: &mut DateField,
    cx: &Context<'_>,
) -> Poll<Result<Option<Answer>, RouteError>> {
    let failed = |status| Poll::Ready(Err(RouteError { status, what: "" }));
    let (Some(request), Progress::Asking(served)) = (&mut head.served, &mut head.progress) else {
        return failed(500);
    };
    if let Err(status) = request.prepare() {
        return failed(status.as_u16());
    }
    let arrival = Arrival { upload: &mut Inlet::default(), received: Received::Whole, connection };
    let mut response = match request.poll(&mut served.service, arrival, cx) {
        Polled::Pending => return Poll::Pending,
        Polled::Refused(error) => return Poll::Ready(Err(error)),
        Polled::Unready => return failed(503),
        Polled::Failed => return failed(500),
        Polled::Answered(response) => response,
    };
    if let Some(permit) = response.extensions_mut().remove::<Permit>() {
        head.permit = Some(permit);
        head.progress = Progress::Routed(served.matched);
        return Poll::Ready(Ok(None));
    }
    let opens = response.status().is_success() && head.offered_by == OfferedBy::Connect;
    if response.status().is_informational() || opens {
        return failed(502);
    }
    let edit = (served.edit.clone(), head.head.target());
    Poll::Ready(Ok(Some(respond(request.method(), response, edit, date, cx))))
}

/// The response of the service, or why there is none.
pub(super) fn poll(
    head: &mut RoutedHead,
    arrival: Arrival<'_>,
    date: &mut DateField,
    cx: &Context<'_>,
) -> Poll<Result<Answer, RouteError>> {
    let failed = |status| Poll::Ready(Err(RouteError { status, what: "" }));
    let (Some(request), Progress::Served(served)) = (&mut head.served, &mut head.progress) else {
        return failed(500);
    };
    if let Err(status) = request.prepare() {
        return failed(status.as_u16());
    }
    let mut arrival = arrival;
    if let Some(protocols) = &head.offer {
        if !request.has_begun() {
            // An extended CONNECT may have said all that it says by the other protocol.
            let content = arrival.upload.body(arrival.received, cx);
            request.extend(UpgradeOffer::new(protocols.clone(), content, head.offered_by));
        }
        // Nothing of the request is still to come, and what is would be another protocol.
        arrival.received = Received::Whole;
    }
    match request.poll(&mut served.service, arrival, cx) {
        Polled::Pending => Poll::Pending,
        Polled::Refused(error) => Poll::Ready(Err(error)),
        Polled::Unready => failed(503),
        Polled::Failed => failed(500),
        Polled::Answered(response)
            if response.status() == StatusCode::SWITCHING_PROTOCOLS && head.offer.is_some() =>
        {
            let edit = (served.edit.clone(), head.head.target());
            Poll::Ready(Ok(switch(response, head.offered_by, edit, (date, cx))))
        }
        Polled::Answered(response) if response.status().is_informational() => failed(502),
        // RFC 8441 §5: it would open a tunnel, and the service has not agreed to another protocol.
        Polled::Answered(response)
            if response.status().is_success() && head.offered_by == OfferedBy::Connect =>
        {
            Poll::Ready(Err(RouteError {
                status: 502,
                what: "the server behind this one speaks no WebSocket here",
            }))
        }
        Polled::Answered(response) => {
            let edit = (served.edit.clone(), head.head.target());
            Poll::Ready(Ok(respond(request.method(), response, edit, date, cx)))
        }
    }
}

/// The response 101, after which its content follows on the connection; or 200 in its place, on the stream. RFC 8441 §5.
fn switch(
    response: http::Response<Body>,
    by: OfferedBy,
    (edit, target): (Option<Arc<Edit>>, &[u8]),
    (date, cx): (&mut DateField, &Context<'_>),
) -> Answer {
    let (http::response::Parts { mut status, headers: mut map, .. }, body) = response.into_parts();
    if by == OfferedBy::Connect {
        status = StatusCode::OK;
        response_fields::remove_connection_fields(&mut map);
        map.remove(CONTENT_LENGTH);
    }
    let fields = ServiceFields { date: date.beside(&map, cx.now()), map };
    let status = status.as_u16();
    let fields = EditedFields::of_service(fields, status, edit, target);
    Response { status, fields, body: RoutedContent::OfService(ServiceContent::new(body, None)) }
}

fn respond(
    method: &http::Method,
    response: http::Response<Body>,
    (edit, target): (Option<Arc<Edit>>, &[u8]),
    date: &mut DateField,
    cx: &Context<'_>,
) -> Answer {
    let (http::response::Parts { status, headers: mut map, .. }, body) = response.into_parts();
    let size = body.size_hint().exact();
    let content = match response_fields::complete((method, status), &mut map, size) {
        HasContent::Yes if !body.is_end_stream() => ServiceContent::new(body, size),
        HasContent::Yes | HasContent::No => ServiceContent::empty(),
    };
    let fields = ServiceFields { date: date.beside(&map, cx.now()), map };
    let status = status.as_u16();
    let fields = EditedFields::of_service(fields, status, edit, target);
    Response { status, fields, body: RoutedContent::OfService(content) }
}
