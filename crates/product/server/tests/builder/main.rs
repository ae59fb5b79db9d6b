//! What the builder of a server promises: ports, threads, limits, counters, the end.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod client;
mod interim;
mod liveness;
mod names;
mod tickets;

use body::Body;
use client::{certificate, get};
use http::{Request, Response};
use requirements::ports::{is_free_over_tcp, is_free_over_udp};
use server::service::service_fn;
use server::{AltSvc, BindError, Builder, Cores, Server, Versions, Workers};
use std::convert::Infallible;
use std::net::{TcpStream, UdpSocket};
use std::num::NonZeroU8;
use std::sync::Barrier;

fn builder() -> Builder {
    let builder = Server::builder().listen(([127, 0, 0, 1], 0).into()).no_warnings();
    builder.identity(certificate(&["localhost"]))
}

async fn hello(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new("hello".into()))
}

/// Deleted, `bind` could serve, or open nothing, or leave its ports open.
#[test]
fn ports_open_with_bind_and_close_when_it_is_dropped() {
    let bound = builder().bind().unwrap();
    let address = bound.local_addr();
    assert_eq!((bound.report().address, bound.report().data_path), (address, Some("gso")));
    assert_eq!((bound.report().workers, bound.report().steering), (1, Some("single")));
    // The kernel takes the connection; nothing answers yet.
    let waiting = TcpStream::connect(address).unwrap();
    assert!(UdpSocket::bind(address).is_err());
    let refused = builder().listen(address).bind().unwrap_err();
    assert!(matches!(refused, BindError::Listen(at, _) if at == address), "{refused}");
    drop((bound, waiting));
    assert!(
        is_free_over_udp(address) && is_free_over_tcp(address) && builder().listen(address).bind().is_ok()
    );
}

#[test]
fn a_connection_that_came_before_serve_is_served() {
    let bound = builder().bind().unwrap();
    let address = bound.local_addr();
    let early = std::thread::spawn(move || get(address));
    let server = bound.serve(service_fn(hello)).unwrap();
    assert!(early.join().unwrap().ends_with("hello"));
    server.handle().stop();
    server.wait().unwrap();
}

#[test]
fn versions_open_what_they_need_and_alt_svc_follows_them() {
    for (versions, alt_svc, announced) in [
        (Versions::HTTP1, AltSvc::default(), false),
        (Versions::ALL, AltSvc::default(), true),
        (Versions::ALL, AltSvc::Off, false),
    ] {
        let bound = builder().versions(versions).alt_svc(alt_svc).bind().unwrap();
        let address = bound.local_addr();
        let without_udp = versions == Versions::HTTP1;
        assert!(if without_udp { is_free_over_udp(address) } else { UdpSocket::bind(address).is_err() });
        let _server = bound.serve(service_fn(hello)).unwrap();
        let text = get(address);
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        assert_eq!(
            text.contains(&format!("alt-svc: h3=\":{}\"; ma=86400", address.port())),
            announced,
            "{text}"
        );
    }
    let bound = builder().versions(Versions::HTTP3).bind().unwrap();
    assert!(is_free_over_tcp(bound.local_addr()));
}

/// Deleted, a second worker could serve nothing, or a summary forget a thread.
#[test]
fn every_thread_serves_and_reports() {
    let workers = Workers::Exactly(NonZeroU8::new(2).unwrap());
    let bound = builder().workers(workers).cores(Cores::Auto).bind().unwrap();
    assert_eq!(bound.report().workers, 2);
    let address = bound.local_addr();
    let server = bound.serve(service_fn(hello)).unwrap();
    for _ in 0..8 {
        assert!(get(address).ends_with("hello"));
    }
    let handle = server.handle();
    handle.stop();
    let summary = server.wait().unwrap();
    assert_eq!((summary.workers().len(), summary.tcp_threads().len()), (2, 2));
    let counters = summary.counters();
    assert_eq!((counters.http1.connections, counters.http1.requests), (8, 8), "{counters:?}");
    assert_eq!(counters.http1.content_bytes, 40);
    assert_eq!(handle.counters(), counters, "those of a server that has ended are whole");
}

/// Deleted, a handler that blocks could hold up its connection's thread, or a panic there the whole server.
#[test]
fn futures_on_a_shared_runtime_may_block_and_panic() {
    // The handler of `/block` and the test meet here, after the other requests were answered.
    static GATE: Barrier = Barrier::new(2);
    async fn app(request: Request<Body>) -> Result<Response<Body>, Infallible> {
        match request.uri().path() {
            "/block" => {
                GATE.wait();
            }
            "/panic" => panics(),
            _ => {}
        }
        Ok(Response::new(format!("{:?}", std::thread::current().name()).into()))
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_name("shared").enable_all().build().unwrap();
    let bound = builder().bind().unwrap();
    let server = bound.serve_on(runtime.handle().clone(), service_fn(app)).unwrap();
    let address = server.local_addr();
    let ask = move |path| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        client::ask(address, "localhost", &request).0
    };
    let blocked = std::thread::spawn(move || ask("/block"));
    assert!(ask("/panic").starts_with("HTTP/1.1 500"));
    assert!(ask("/").ends_with("Some(\"shared\")"));
    GATE.wait();
    assert!(blocked.join().unwrap().ends_with("Some(\"shared\")"));
}

#[expect(clippy::panic, reason = "what a panic does is tested")]
fn panics() {
    panic!("on purpose");
}

#[test]
fn settings_that_cannot_work_are_refused_with_a_word() {
    let far = builder().cores("4000".parse().unwrap()).bind().unwrap_err();
    assert!(matches!(far, BindError::Cores(_)) && far.to_string().contains("core 4000"), "{far}");
    let log = server::access_log::Target::parse("/nosuch/folder/log");
    let refused = builder().access_log(log).serve(service_fn(hello)).unwrap_err();
    assert!(matches!(refused, BindError::AccessLog(_)), "{refused}");
    let state = builder().state_dir("/proc/nosuch").bind().unwrap_err();
    assert!(matches!(state, BindError::State(_)), "{state}");
}
