//! What the two ends of a queue hear of each other.

use super::*;
use bytes::Bytes;
use http::HeaderMap;
use http_body::Body as _;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    fn new() -> (Arc<Wakes>, Waker) {
        let wakes = Arc::new(Wakes::default());
        (Arc::clone(&wakes), Waker::from(wakes))
    }
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// The result of a future that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}

fn is_pending<T>(future: impl Future<Output = T>) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

/// Deleted, a sender could fill memory, or wait for ever.
#[test]
fn a_sender_waits_for_its_reader() {
    let (mut sender, mut body) = Body::channel(100);
    now(sender.send(Bytes::from(vec![1; 99]))).unwrap();
    now(sender.send(Bytes::from(vec![2; 1_000]))).unwrap();
    assert!(is_pending(sender.send(Bytes::from_static(b"x"))));
    let (wakes, waker) = Wakes::new();
    assert!(sender.poll_ready(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(now(body.chunk()).unwrap().map(|chunk| chunk.len()), Some(99));
    assert_eq!(wakes.take(), 0, "it is still full");
    assert_eq!(now(body.chunk()).unwrap().map(|chunk| chunk.len()), Some(1_000));
    assert_eq!(wakes.take(), 1);
    now(sender.send(Bytes::from_static(b"x"))).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-a", 1.into());
    sender.finish(Some(trailers.clone()));
    assert_eq!(now(body.chunk()).unwrap().as_deref(), Some(&b"x"[..]));
    assert_eq!(now(body.chunk()).unwrap(), None);
    assert_eq!(now(body.trailers()).unwrap(), Some(trailers));
    assert_eq!(now(body.trailers()).unwrap(), None);
}

/// Deleted, content that broke off could look complete.
#[test]
fn a_sender_that_goes_without_a_word_fails_the_content() {
    let (mut sender, mut body) = Body::channel(100);
    now(sender.send(Bytes::from_static(b"x"))).unwrap();
    let (wakes, waker) = Wakes::new();
    assert_eq!(now(body.chunk()).unwrap().as_deref(), Some(&b"x"[..]));
    assert!(pin!(body.chunk()).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(sender);
    assert_eq!(wakes.take(), 1);
    assert!(matches!(now(body.chunk()), Err(BodyError::Aborted)));
    let (sender, mut body) = Body::channel(100);
    sender.abort("the disk is full");
    let error = now(body.chunk()).unwrap_err();
    assert_eq!(error.to_string(), "the content failed: the disk is full");
    assert!(std::error::Error::source(&error).is_some());
}

/// Deleted, a sender whose reader has gone could wait for ever.
#[test]
fn a_sender_hears_that_its_reader_has_gone() {
    let (mut sender, body) = Body::channel(1);
    now(sender.send(Bytes::from_static(b"x"))).unwrap();
    let (wakes, waker) = Wakes::new();
    assert!(sender.poll_ready(&mut Context::from_waker(&waker)).is_pending());
    drop(body);
    assert_eq!(wakes.take(), 1);
    assert_eq!(now(sender.send(Bytes::from_static(b"x"))), Err(Closed));
}

#[test]
fn a_producer_copies_while_there_is_room_and_shares_memory() {
    let (mut producer, mut body) = Body::queue(1_000);
    let (wakes, waker) = Wakes::new();
    producer.set_waker(&waker);
    assert!(!producer.is_awaited());
    assert!(is_pending(body.chunk()));
    assert!(producer.is_awaited());
    assert_eq!([600, 600, 600].map(|len| producer.push_copy(&vec![3; len])), [600, 600, 0]);
    assert!(!producer.is_awaited() && !producer.has_room());
    assert_eq!(producer.queued(), 1_200);
    let [first, second] = [(), ()].map(|()| now(body.chunk()).unwrap().unwrap());
    assert_eq!(first.as_ptr().wrapping_add(600), second.as_ptr(), "one block of memory");
    assert_eq!(wakes.take(), 1);
    assert!(producer.has_room());
    // Deleted, content that waits for a slow reader twice could wait for ever.
    for _ in 0..3 {
        assert_eq!([600, 600, 600].map(|len| producer.push_copy(&vec![3; len])), [600, 600, 0]);
        assert!([(), ()].into_iter().all(|()| now(body.chunk()).unwrap().is_some()));
        assert_eq!(wakes.take(), 1, "each time that there is room again");
    }
    drop(body);
    assert!(!producer.has_reader());
    assert_eq!(producer.push_copy(&[3; 5_000]), 5_000, "thrown away");
    assert_eq!(producer.queued(), 0);
}

#[test]
fn bodies_of_known_length_say_so() {
    let sizes = [
        (Body::empty(), Some(0)),
        (Body::from("abc"), Some(3)),
        (Body::from(vec![0; 5]), Some(5)),
        (Body::new(Body::from(String::from("ab"))), Some(2)),
    ];
    for (body, size) in sizes {
        assert_eq!(body.size_hint().exact(), size, "{body:?}");
        assert_eq!(body.is_end_stream(), size == Some(0));
    }
    let (_sender, body) = Body::channel(1);
    assert_eq!(body.size_hint().exact(), None);
}

#[test]
fn content_is_collected_within_a_limit() {
    let many = |count: usize| {
        let (mut producer, body) = Body::queue(1_000);
        (0..count).for_each(|_| assert_eq!(producer.push_copy(b"abc"), 3));
        producer.end(None);
        body
    };
    assert_eq!(now(many(3).collect(9)).unwrap(), &b"abcabcabc"[..]);
    assert_eq!(now(many(1).collect(3)).unwrap(), &b"abc"[..]);
    assert_eq!(now(Body::empty().collect(0)).unwrap(), &b""[..]);
    assert!(matches!(now(many(3).collect(8)), Err(BodyError::TooLarge)));
    let one = Bytes::from(vec![1; 10]);
    assert_eq!(now(Body::from(one.clone()).collect(10)).unwrap().as_ptr(), one.as_ptr(), "not copied");
}
