//! Another server is asked whether a request may go on, as by forward_auth of Caddy, auth_request of nginx and ForwardAuth of Traefik.
//!
//! It gets the fields of the request, and the method and target in X-Forwarded-Method and X-Forwarded-Uri, by GET and without content. A
//! status of 2xx lets the request go on, with fields of the response that are named. Any other response is the client's; and without a
//! response no request goes on.

use crate::exchange::{self, Client, ask};
use crate::forward;
use crate::log::Target;
use crate::route::Route;
use crate::runtime;
use crate::settings::Settings;
use crate::upstream::Upstream;
use body::Body;
use http::header::{self, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, Uri};
use http_body::Body as _;
use server::ConnectionInfo;
use server::proxy_protocol::Sender;
use server::sites::{Permit, RouteError, RouteFuture, RouteService};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

/// Of content that is not looked at, so much is read to use the connection again, in bytes.
const READ: usize = 64 << 10;

/// Fields about content that is not sent, or about what the client has already.
const LEFT_OUT: [HeaderName; 12] = [
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

/// Asks another server.
#[derive(Debug)]
pub struct ForwardAuth(Arc<Asked>);

#[derive(Debug)]
struct Asked {
    route: Arc<Route>,
    path: PathAndQuery,
    copied: Vec<HeaderName>,
}

impl ForwardAuth {
    /// Asks one of the upstreams of `settings` for `path`. Requests go on with the fields of its response that are `copied`, and without
    /// those that clients send by these names.
    pub fn new(settings: Settings, path: PathAndQuery, copied: Vec<HeaderName>) -> ForwardAuth {
        ForwardAuth(Arc::new(Asked { route: Arc::new(Route::new(settings)), path, copied }))
    }
}

impl RouteService for ForwardAuth {
    fn begin(&self) {
        let route = &self.0.route;
        route.upstreams.iter().for_each(|upstream| upstream.begin(&route.settings));
    }

    fn end(&self) {
        self.0.route.upstreams.iter().for_each(Upstream::end);
    }

    fn call(&self, request: Request<Body>, client: ConnectionInfo) -> RouteFuture {
        runtime::run(Box::pin(permit(Arc::clone(&self.0), request, client)))
    }
}

async fn permit(
    asked: Arc<Asked>,
    request: Request<Body>,
    info: ConnectionInfo,
) -> Result<Response<Body>, RouteError> {
    let (mut parts, _) = request.into_parts();
    info.handshake_done().await;
    let (route, path) = (&asked.route, &asked.path);
    let key = route.key(&info, &parts.uri);
    let uri = parts.uri.path_and_query().and_then(|uri| HeaderValue::from_str(uri.as_str()).ok());
    let method = HeaderValue::from_str(parts.method.as_str()).ok();
    let (Some(uri), Some(method), Some(())) =
        (uri, method, forward::request(&mut parts, &info, &route.settings))
    else {
        return Err(RouteError { status: 400, what: "" });
    };
    LEFT_OUT.iter().for_each(|name| _ = parts.headers.remove(name));
    parts.headers.insert(forward::X_FORWARDED_METHOD, method);
    parts.headers.insert(forward::X_FORWARDED_URI, uri);
    let method = std::mem::replace(&mut parts.method, Method::GET);
    let uri = std::mem::replace(&mut parts.uri, Uri::from(path.clone()));
    let target = Target { method, uri, asked: Some(path.clone()) };
    let sender = Sender::Client { from: info.peer, to: info.local };
    let client = Client { key, sender, hints: None, target };
    let mut request = exchange::Asked::new(route, parts, (Body::empty(), None), client);
    let answered = ask(route, &mut request).await;
    let response = answered.map_err(|failure| failure.answer())?;
    if !response.status().is_success() {
        return Ok(response);
    }
    let (parts, content) = response.into_parts();
    discard(content).await;
    let of = |name: &HeaderName| (name.clone(), parts.headers.get_all(name).iter().cloned().collect());
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(Permit { fields: asked.copied.iter().map(of).collect() });
    Ok(response)
}

/// Reads content to its end, so that its connection serves again.
async fn discard(mut content: Body) {
    let mut read = 0;
    while read < READ
        && let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut content).poll_frame(cx)).await
    {
        read += frame.data_ref().map_or(0, bytes::Bytes::len);
    }
}
