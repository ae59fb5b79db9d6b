//! Requests in early data.

use super::wire::World;
use super::{Client, SECONDS};
use body::Body;
use crypto::{ClientTls, MemorySessions, ServerTls, TicketKeys, TicketOptions};
use http::{HeaderMap, Request, Response};
use http3::BodyLength;
use server::access_log::{AccessLog, Target};
use server::http3::Server;
use server::low::{self, Context, Handler, Shared};
use server::service::{ServiceHandler, service_fn};
use server::{ConnectionInfo, EarlyData};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;
use transport::StreamId;

/// Says which requests were early when they were handed over.
async fn tell(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let info = request.extensions().get::<ConnectionInfo>().unwrap().clone();
    let was_early = info.is_early();
    if request.uri().path() == "/wait" {
        info.handshake_done().await;
    }
    let mut response = Response::new(Body::from("x"));
    let text = if was_early { "early" } else { "late" };
    response.headers_mut().insert("x-was", text.parse().unwrap());
    Ok(response)
}

/// A client that has been at this server, and begins another connection.
fn returning<H: Handler>(handler: H, rule: EarlyData) -> World<Client, H> {
    let server =
        Server::new(handler, AccessLog::start(Target::Off).unwrap().recorder()).with_early_data(rule);
    let tls = |server: ServerTls, client: ClientTls| {
        let keys = Arc::new(TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S));
        let early_data = (rule != EarlyData::Off).then(Arc::default);
        let tickets = TicketOptions { early_data, ..TicketOptions::new(keys) };
        let client = client.with_sessions(Arc::new(MemorySessions::default())).with_early_data();
        (server.with_tickets(tickets), client)
    };
    let mut world = World::with_tls(server, http3::Config::client(), Client::default(), tls);
    world.connect();
    world.get("/", &[]);
    world.finish(SECONDS);
    world.connect_again(Client::default());
    world
}

fn status<H: Handler>(world: &mut World<Client, H>, id: StreamId) -> Option<u16> {
    world.client.messages.seen(id).statuses.first().copied()
}

fn was<H: Handler>(world: &mut World<Client, H>, id: StreamId) -> Option<String> {
    let fields = &world.client.messages.seen(id).fields;
    fields.iter().find(|(name, _)| name == "x-was").map(|(_, value)| value.clone())
}

/// Deleted, an attacker could have a POST carried out twice, or early data would gain nothing.
#[test]
fn early_requests_with_safe_methods_are_answered_and_others_are_not() {
    let mut world =
        returning(ServiceHandler::new(service_fn(tell), Shared::default()), EarlyData::SafeMethods);
    let asked = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"]
        .map(|method| (method, world.ask(method, "/", &[], BodyLength::Empty)));
    // One round trip.
    world.step();
    assert!(!world.client_transport.is_confirmed());
    for (method, id) in asked {
        let is_safe = ["GET", "HEAD", "OPTIONS"].contains(&method);
        assert_eq!(status(&mut world, id), Some(if is_safe { 200 } else { 425 }), "{method}");
        assert_eq!(was(&mut world, id).as_deref(), is_safe.then_some("early"), "{method}");
    }
    world.step();
    let again = world.ask("POST", "/", &[], BodyLength::Empty);
    world.finish(SECONDS);
    assert_eq!(status(&mut world, again), Some(200));
    assert_eq!(was(&mut world, again).as_deref(), Some("late"));
    assert_eq!(world.client_transport.early_status(), transport::EarlyStatus::Accepted);
}

/// Deleted, an application that decides by itself could not, or would wait for ever.
#[test]
fn an_application_may_take_all_early_requests_and_wait_for_the_handshake() {
    let mut world =
        returning(ServiceHandler::new(service_fn(tell), Shared::default()), EarlyData::Application);
    let [at_once, waits] = ["/", "/wait"].map(|path| world.ask("POST", path, &[], BodyLength::Empty));
    world.step();
    assert_eq!(was(&mut world, at_once).as_deref(), Some("early"));
    assert_eq!(status(&mut world, waits), None, "the client has proved nothing");
    world.finish(SECONDS);
    assert_eq!((status(&mut world, waits), was(&mut world, waits).as_deref()), (Some(200), Some("early")));
}

/// Off by default. Deleted, a server would take early data that no one has asked for.
#[test]
fn a_server_without_the_setting_takes_no_early_data() {
    let mut world = returning(ServiceHandler::new(service_fn(tell), Shared::default()), EarlyData::Off);
    assert_eq!(world.client_transport.early_status(), transport::EarlyStatus::None);
    world.connect();
    let id = world.ask("POST", "/", &[], BodyLength::Empty);
    world.finish(SECONDS);
    assert_eq!((status(&mut world, id), was(&mut world, id).as_deref()), (Some(200), Some("late")));
}

/// Puts off what is early.
struct Patient;

#[derive(Default)]
struct Asked;

impl low::Head for Asked {
    fn on_request(&mut self, _: &low::RequestHead<'_>) {}
    fn on_refused(&mut self, _: u16) {}
}

impl Handler for Patient {
    type Head = Asked;
    type Upload = ();
    type Content = bytes::Bytes;
    type Fields = HeaderMap;

    fn handle(
        &mut self,
        request: low::Request<'_, Patient>,
        cx: &Context<'_>,
    ) -> Poll<low::Response<HeaderMap, bytes::Bytes>> {
        if request.connection.is_early() {
            return Poll::Pending;
        }
        Poll::Ready(self.put_off(cx))
    }

    fn put_off(&mut self, _: &Context<'_>) -> low::Response<HeaderMap, bytes::Bytes> {
        low::Response { status: 204, fields: HeaderMap::new(), body: bytes::Bytes::new() }
    }
}

/// Deleted, a low-level handler that puts off an early request would never see it again.
#[test]
fn a_low_level_handler_is_called_again_when_the_handshake_is_complete() {
    let mut world = returning(Patient, EarlyData::Application);
    let id = world.ask("POST", "/", &[], BodyLength::Empty);
    world.step();
    assert_eq!(status(&mut world, id), None);
    world.finish(SECONDS);
    assert_eq!(status(&mut world, id), Some(204));
}
