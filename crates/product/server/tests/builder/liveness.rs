//! The sign of life of each thread, and what it tells with it.

use crate::builder;
use crate::client::get;
use body::Body;
use http::{Request, Response};
use server::service::service_fn;
use server::{Handle, Workers};
use std::convert::Infallible;
use std::num::NonZeroU8;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How many threads are silent after at most this long.
fn silent(handle: &Handle, most: Duration) -> usize {
    let ask = handle.ask();
    for _ in 0..most.as_millis() {
        if handle.silent(ask) == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    handle.silent(ask)
}

const LONG: Duration = Duration::from_secs(60);

/// Deleted, a watchdog could let a thread hang for ever: others would answer for it.
#[test]
fn a_thread_that_hangs_is_silent_and_the_others_are_not() {
    let server = builder().workers(Workers::Exactly(NonZeroU8::new(3).unwrap()));
    let (hanging, began) = sync_channel::<()>(1);
    let (go_on, wait): (SyncSender<()>, Receiver<()>) = sync_channel(1);
    let wait = Arc::new(Mutex::new(wait));
    let service = service_fn(move |_: Request<Body>| {
        let (hanging, wait) = (hanging.clone(), Arc::clone(&wait));
        async move {
            // A handler must not do this.
            hanging.send(()).unwrap();
            wait.lock().unwrap().recv().unwrap();
            Ok::<_, Infallible>(Response::new(Body::from("hello")))
        }
    });
    let server = server.serve(service).unwrap();
    let (handle, address) = (server.handle(), server.local_addr());
    assert_eq!((handle.threads(), silent(&handle, LONG)), (6, 0));
    let client = std::thread::spawn(move || get(address));
    began.recv().unwrap();
    // The worker of HTTP/3 that shares the thread hangs, too.
    assert_eq!(silent(&handle, Duration::from_millis(300)), 2);
    go_on.send(()).unwrap();
    assert!(client.join().unwrap().ends_with("hello"));
    assert_eq!(silent(&handle, LONG), 0);
    let metrics = handle.metrics();
    assert_eq!(metrics.requests.versions()[0].classes, [0, 1, 0, 0, 0]);
    assert_eq!((metrics.tcp.accepted, metrics.tcp.handshakes_full), (1, 1));
    handle.stop();
    server.wait().unwrap();
    assert_eq!(silent(&handle, LONG), 0, "threads that have ended are not silent");
}
