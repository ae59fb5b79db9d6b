//! A server of HTTP/3 in a loop of the program's own.

use crate::world::{PATIENCE, text};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tercel::client::{Client, HttpChoice};
use tercel::quic::Progress;
use tercel::tls::{Identity, Roots};
use tercel::{BindError, Body, Builder, Server, ServerDriver, Versions, Workers, service_fn};
use tokio::sync::oneshot;

fn builder() -> (Builder, Roots) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = made.cert.pem().into_bytes();
    let identity = Identity::from_pem(&certificate, made.signing_key.serialize_pem().as_bytes()).unwrap();
    let builder = Server::builder().listen(([127, 0, 0, 1], 0).into()).identity(identity);
    (builder, Roots::Pem(certificate))
}

/// Asks on a thread of its own: content that waits for another thread, then content that is sent back. Then the server is to end.
fn ask(server: &ServerDriver, roots: Roots) -> JoinHandle<[String; 2]> {
    let (handle, port) = (server.handle(), server.local_addr().port());
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answers = runtime.block_on(async {
            let client = Client::builder().http(HttpChoice::Http3).roots(roots).build().unwrap();
            let later = text(client.get(format!("https://localhost:{port}/later")).await.unwrap()).await;
            let large = http::Request::post(format!("https://localhost:{port}/"))
                .body(Body::from("x".repeat(300_000)));
            [later, text(client.request(large.unwrap()).await.unwrap()).await]
        });
        handle.stop();
        answers
    })
}

async fn answer(request: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
    if request.method() == http::Method::POST {
        return Ok(http::Response::new(request.into_body()));
    }
    let (tell, told) = oneshot::channel();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        tell.send("it was worth the wait")
    });
    Ok(http::Response::new(Body::from(told.await.unwrap_or_default())))
}

#[expect(clippy::disallowed_methods, reason = "a test is bounded in time")]
fn now() -> Instant {
    Instant::now()
}

/// Turns until the server has ended. Returns how often it slept.
fn drive(server: &mut ServerDriver) -> u32 {
    let (mut sleeps, end) = (0, now() + PATIENCE);
    loop {
        assert!(now() < end, "the server does not end");
        match server.turn().unwrap() {
            Progress::Again => {}
            Progress::Ended => return sleeps,
            Progress::Wait(at_most) => {
                sleeps += 1;
                let at_most = at_most.unwrap_or(PATIENCE).min(PATIENCE);
                let descriptors = server.descriptors();
                let mut events: Vec<_> =
                    descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
                poll(&mut events, Some(&Timespec::try_from(at_most).unwrap())).unwrap();
                drop(events);
                server.on_woken();
            }
        }
    }
}

/// Deleted, a program without a runtime could serve no HTTP/3, or sleep while a future of a request was woken or the end was ordered.
#[test]
fn a_loop_of_the_programs_own_serves_http3_until_it_is_stopped() {
    let (builder, roots) = builder();
    let bound = builder.versions(Versions::HTTP3).bind().unwrap();
    let mut server = bound.drive(service_fn(answer)).unwrap();
    let asking = ask(&server, roots);
    assert!(drive(&mut server) > 0);
    let [later, large] = asking.join().unwrap();
    assert_eq!((later.as_str(), large.len()), ("it was worth the wait", 300_000));
    assert_eq!(server.handle().counters().http3.requests, 2);
    assert_eq!(server.turn().unwrap(), Progress::Ended);
    assert!(server.descriptors().is_empty());
}

/// Deleted, a service that works with `serve` could panic in a program's own loop at its first timer.
#[test]
fn futures_use_timers_and_tasks_of_the_runtime_in_which_their_loop_was_made() {
    let (builder, roots) = builder();
    let bound = builder.versions(Versions::HTTP3).bind().unwrap();
    let answer = async |_: http::Request<Body>| {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let told = tokio::spawn(async { "from a task" }).await;
        Ok::<_, Infallible>(http::Response::new(Body::from(told.unwrap_or_default())))
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let mut server = {
        let _entered = runtime.enter();
        bound.drive(service_fn(answer)).unwrap()
    };
    let asking = ask(&server, roots);
    assert!(drive(&mut server) > 0);
    assert_eq!(asking.join().unwrap(), ["from a task"; 2]);
}

/// Deleted, connections of a server that is dropped could stay open at their clients until they are idle for too long.
#[test]
fn a_driver_that_is_dropped_closes_its_connections() {
    let (builder, roots) = builder();
    let bound = builder.versions(Versions::HTTP3).bind().unwrap();
    let asked = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&asked);
    let never = move |_: http::Request<Body>| {
        told.store(true, Ordering::Release);
        std::future::pending::<Result<http::Response<Body>, Infallible>>()
    };
    let mut server = bound.drive(service_fn(never)).unwrap();
    let (port, began) = (server.local_addr().port(), now());
    let asking = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::builder().http(HttpChoice::Http3).roots(roots).build().unwrap();
            client.get(format!("https://localhost:{port}/")).await.map(drop)
        })
    });
    while !asked.load(Ordering::Acquire) {
        assert!(began.elapsed() < PATIENCE, "no request arrives");
        let _ = server.turn().unwrap();
        server.on_woken();
    }
    drop(server);
    assert!(asking.join().unwrap().is_err());
    assert!(began.elapsed() < Duration::from_secs(15), "the client has waited for its idle timeout");
}

/// Deleted, workers or versions that no loop drives could be taken and never served.
#[test]
fn what_a_loop_does_not_drive_is_refused() {
    let two = Workers::Exactly(2.try_into().unwrap());
    for builder in [builder().0, builder().0.versions(Versions::HTTP3).workers(two)] {
        let refused = builder.bind().unwrap().drive(service_fn(answer)).err().unwrap();
        assert!(matches!(&refused, BindError::Setting(text) if text.contains("HTTP3")), "{refused}");
    }
}
