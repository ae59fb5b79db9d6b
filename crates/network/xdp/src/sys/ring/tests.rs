//! Both ends of a ring, each in a mapping of its own, as we and the kernel have them.

use std::os::fd::{AsFd, OwnedFd};

use super::*;

const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192, file: 0 };

/// Under Miri any file does: there `kernel` has the memory.
#[cfg(miri)]
fn file() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

#[cfg(not(miri))]
fn file() -> OwnedFd {
    let file = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, 4096).unwrap();
    file
}

fn ends(size: u32) -> (Producer<u64>, Consumer<u64>) {
    let file = file();
    let producer = Producer::map(file.as_fd(), LAYOUT, size).unwrap();
    (producer, Consumer::map(file.as_fd(), LAYOUT, size).unwrap())
}

#[test]
fn entries_come_out_in_order_and_only_once_published() {
    let (mut producer, mut consumer) = ends(8);
    assert_eq!(producer.room(1), 8);
    producer.push(1);
    producer.push(2);
    assert_eq!((consumer.available(1), consumer.pop()), (0, None));
    let _ = producer.publish();
    assert_eq!(producer.waiting(), 2);
    assert_eq!(consumer.available(1), 2);
    assert_eq!((consumer.pop(), consumer.pop(), consumer.pop()), (Some(1), Some(2), None));
    assert_eq!(producer.waiting(), 2, "taken, but the places are not given back");
    consumer.release();
    assert_eq!(producer.waiting(), 0);
}

#[test]
fn a_full_ring_has_room_again_when_the_other_side_moves() {
    let (mut producer, mut consumer) = ends(4);
    for value in 0..4 {
        assert!(producer.room(1) > 0);
        producer.push(value);
    }
    let _ = producer.publish();
    assert_eq!(producer.room(1), 0);
    assert_eq!(consumer.available(1), 4);
    consumer.pop();
    assert_eq!(producer.room(1), 0);
    consumer.release();
    assert_eq!(producer.room(1), 1);
}

#[test]
#[should_panic(expected = "the ring is full")]
fn an_entry_too_many_is_not_written() {
    let (mut producer, _consumer) = ends(2);
    for value in 0..3 {
        producer.push(value);
    }
}

#[test]
fn counters_may_wrap() {
    let (mut producer, mut consumer) = ends(4);
    for end in [&mut producer.0, &mut consumer.0] {
        (end.own, end.published, end.other) = (u32::MAX - 1, u32::MAX - 1, u32::MAX - 1);
    }
    consumer.release();
    let _ = producer.publish();
    for round in 0..3u64 {
        for value in 0..4 {
            assert!(producer.room(1) > 0);
            producer.push(round * 4 + value);
        }
        let _ = producer.publish();
        assert_eq!(producer.room(1), 0);
        assert_eq!(producer.waiting(), 4);
        assert_eq!(consumer.available(4), 4);
        for value in 0..4 {
            assert_eq!(consumer.pop(), Some(round * 4 + value));
        }
        consumer.release();
    }
}

#[test]
fn two_threads_pass_a_hundred_thousand_entries() {
    let (mut producer, mut consumer) = ends(64);
    const COUNT: u64 = if cfg!(miri) { 300 } else { 100_000 };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for value in 0..COUNT {
                while producer.room(1) == 0 {
                    std::thread::yield_now();
                }
                producer.push(value);
                let _ = producer.publish();
            }
        });
        let mut next = 0;
        while next < COUNT {
            consumer.available(1);
            match consumer.pop() {
                Some(value) => {
                    assert_eq!(value, next);
                    next += 1;
                    consumer.release();
                }
                None => std::thread::yield_now(),
            }
        }
    });
}

#[test]
fn publishing_says_whether_the_kernel_must_be_told() {
    let (mut producer, _consumer) = ends(4);
    assert_eq!(producer.publish(), Wakeup::NotNeeded);
    producer.set_wakeup(Wakeup::Needed);
    producer.push(1);
    assert_eq!((producer.publish(), producer.wakeup()), (Wakeup::Needed, Wakeup::Needed));
    producer.set_wakeup(Wakeup::NotNeeded);
    assert_eq!(producer.publish(), Wakeup::NotNeeded);
}
