use super::*;
use crate::test_port::{TestPort, receive, send};
use base::rng::Rng;

const DELAY: Duration = Duration::from_millis(1);

fn held() -> Hold<TestPort> {
    Hold::new(TestPort::default(), DELAY)
}

/// Lets `span` pass.
fn pass(port: &mut Hold<TestPort>, span: Duration) {
    port.inner.time = port.inner.time + span;
    port.now();
}

#[test]
fn a_train_comes_whole_when_its_time_has_come_and_not_before() {
    let mut port = held();
    send(&mut port, &[vec![1; 1_200], vec![2; 1_200], vec![3; 70]]);
    assert_eq!(port.poll().unwrap(), 0, "it has just arrived");
    pass(&mut port, DELAY.saturating_sub(Duration::from_nanos(1)));
    assert_eq!(port.poll().unwrap(), 0);
    pass(&mut port, Duration::from_nanos(1));
    assert_eq!(port.poll().unwrap(), 1);
    let train = port.train(0);
    assert_eq!((train.bytes.len(), train.segment_size, train.ecn), (2_470, 1_200, Ecn::Ect0));
    assert_eq!(port.poll().unwrap(), 0, "once");
}

/// A worker that sleeps must wake for what is held, but for its own deadline if that is earlier.
#[test]
fn waiting_ends_when_the_next_train_is_due() {
    let mut port = held();
    let began = port.now();
    let late = began + Duration::from_secs(9);
    send(&mut port, &[vec![1; 100]]);
    port.poll().unwrap();
    port.wait(Some(late)).unwrap();
    assert_eq!(port.inner.waited_for, None, "there may be more: no sleep before the port below is empty");
    port.poll().unwrap();
    let early = began + DELAY / 2;
    port.wait(Some(early)).unwrap();
    assert_eq!(port.inner.waited_for, Some(early));
    port.wait(None).unwrap();
    assert_eq!(port.inner.waited_for, Some(began + DELAY));
    port.now();
    assert_eq!(port.poll().unwrap(), 1);
    port.wait(Some(late)).unwrap();
    assert_eq!(port.inner.waited_for, Some(late), "what is lent is not waited for");
}

/// Whatever arrives whenever: the same bytes, in order, each exactly in the first turn in which it is due.
#[test]
fn nothing_is_lost_changed_or_reordered() {
    let mut rng = Rng::from_u64(7);
    let mut port = held();
    let mut expected: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    for turn in 0..5_000u32 {
        let due = port.now() + DELAY;
        for _ in 0..rng.below(4) {
            let len = 1 + rng.below(60_000) as usize;
            // Trains do not merge, since each is of another size than the one before or ends it.
            let mut datagram = vec![turn as u8; len];
            datagram[0] = rng.next_u64() as u8;
            send(&mut port, &[datagram.clone()]);
            expected.push_back((due, datagram));
        }
        let now = port.now();
        for datagram in receive(&mut port) {
            let (due, sent) = expected.pop_front().unwrap();
            assert!(due <= now && datagram == sent, "turn {turn}");
        }
        assert!(expected.front().is_none_or(|(due, _)| *due > now), "turn {turn}: one is late");
        pass(&mut port, Duration::from_micros(rng.below(700)));
    }
    let memory = port.shelf.chunks.len() + port.shelf.spare.len();
    assert!(memory <= 8, "a few hundred kilobytes at a time, and {memory} chunks");
    assert_eq!(port.dropped(), 0);
}

/// A flood fills the shelf and no more; when time passes there is room again.
#[test]
fn what_is_held_is_bounded_and_what_is_dropped_counted() {
    for (len, most) in [(60_000, MAX_CHUNKS * (CHUNK / 60_000)), (1, MAX_TRAINS)] {
        let mut port = held();
        for _ in 0..most + 10 {
            send(&mut port, &[vec![1; len]]);
            port.poll().unwrap();
        }
        assert_eq!((port.shelf.queue.len(), port.dropped()), (most, 10), "trains of {len}");
        assert_eq!(port.counters().rx.overflowed, 10);
        pass(&mut port, DELAY);
        let mut released = 0;
        while released < most {
            let now = port.poll().unwrap();
            assert!((1..=MAX_READY).contains(&now), "a bounded amount at a time");
            released += now;
        }
        send(&mut port, &[vec![2; len]]);
        port.poll().unwrap();
        assert_eq!((port.shelf.queue.len(), port.dropped()), (1, 10));
    }
}
