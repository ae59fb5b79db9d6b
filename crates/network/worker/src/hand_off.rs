//! Hand-off between workers: datagrams that arrived at the wrong socket.
//!
//! Programs in the kernel bring datagrams to the worker that owns their connection. Where none may be loaded, or a datagram
//! arrives at another worker for another reason, that worker hands it over. Workers share nothing else. The path is
//! cold: no lock is taken while nothing is handed over, and a worker reads one flag per turn.
//!
//! Data structure: each worker has an owned queue of trains behind a lock, and a flag that says whether it holds
//! any. Its worker exchanges the queue for an empty one and reads at leisure, so that the lock is held for a copy of one
//! train, or for the exchange.
//!
//! Invariants: the flag is raised and lowered under the lock only; a queue holds at most [`MAX_BYTES`] and [`MAX_TRAINS`],
//! what comes on top is dropped as in any full socket buffer; the sender that raises the flag wakes the owner, so that nothing waits
//! unread while it sleeps. What was handed over is never handed over again: see `Worker::turn`.
//!
//! Rejected: a channel (an allocation by datagram, or a bound by count that says nothing about bytes), and to lend the
//! memory of one port to another worker (a reference count on every packet).

use base::net::Train;
use base::sink::TrainPath;
use datapath::Waker;
use datapath::trains::TrainQueue;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transport::Predecessor;

/// Bytes that may wait for a worker.
pub const MAX_BYTES: usize = 1 << 20;
/// Trains that may wait for a worker.
pub const MAX_TRAINS: usize = 1_024;

/// Datagrams that came to the wrong worker, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandOffCounters {
    /// Put into another worker's queue.
    pub handed_out: u64,
    /// Taken out of the own queue.
    pub handed_in: u64,
    /// Lost: the queue was full, there is no such worker, or they had been handed over before.
    pub hand_off_dropped: u64,
}

/// The way to processes whose place this one has taken: upgrades of a server's program.
pub trait OtherProcesses: Send + Sync {
    /// Hands a train to a worker of another process. Returns how many datagrams it took; `None` if that process has ended.
    fn hand_over(&self, to: Predecessor, train: &Train<'_>) -> Option<u64>;
}

/// Sums the counters of several workers.
impl core::ops::AddAssign for HandOffCounters {
    fn add_assign(&mut self, other: HandOffCounters) {
        self.handed_out += other.handed_out;
        self.handed_in += other.handed_in;
        self.hand_off_dropped += other.hand_off_dropped;
    }
}

#[derive(Debug)]
struct HandOffQueue {
    is_waiting: AtomicBool,
    queue: Mutex<TrainQueue>,
    waker: Option<Waker>,
}

impl HandOffQueue {
    /// A worker that panicked under the lock leaves at worst half a train, which its connection drops as unauthentic.
    fn lock(&self) -> MutexGuard<'_, TrainQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The workers that share an address.
#[derive(Debug)]
pub struct HandOff;

impl HandOff {
    /// A member for each worker, in the order of their numbers; `wakers` are those of their ports. A worker whose port has
    /// none reads its queue when it wakes for another reason.
    pub fn group(wakers: Vec<Option<Waker>>) -> Vec<HandOffMember> {
        let hand_off_queue =
            |waker| HandOffQueue { is_waiting: AtomicBool::new(false), queue: Mutex::default(), waker };
        let queues: Arc<[HandOffQueue]> = wakers.into_iter().map(hand_off_queue).collect();
        let member = |number| HandOffMember {
            number,
            queues: Arc::clone(&queues),
            empty: TrainQueue::new(),
            others: None,
        };
        (0..queues.len()).map(member).collect()
    }
}

/// One worker's part in it.
pub struct HandOffMember {
    number: usize,
    queues: Arc<[HandOffQueue]>,
    /// What goes into the queue in exchange for what is in it.
    empty: TrainQueue,
    others: Option<Arc<dyn OtherProcesses>>,
}

impl core::fmt::Debug for HandOffMember {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HandOffMember").field("number", &self.number).finish_non_exhaustive()
    }
}

impl HandOffMember {
    /// The worker's number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// It hands datagrams of other processes' connections to `others`.
    #[must_use]
    pub fn with_others(mut self, others: Arc<dyn OtherProcesses>) -> HandOffMember {
        self.others = Some(others);
        self
    }

    /// A member that is no worker: it only brings what comes from other processes.
    pub fn bringer(&self) -> HandOffMember {
        let (queues, number) = (Arc::clone(&self.queues), self.queues.len());
        HandOffMember { number, queues, empty: TrainQueue::new(), others: None }
    }

    /// Hands a train to another process; `None` if that has ended.
    #[cold]
    pub(crate) fn send_to_process(&self, to: Predecessor, train: &Train<'_>) -> Option<u64> {
        self.others.as_ref()?.hand_over(to, train)
    }

    /// Whether handed-over datagrams wait.
    #[inline]
    pub(crate) fn has_handed_over(&self) -> bool {
        self.queues.get(self.number).is_some_and(|own| own.is_waiting.load(Ordering::Acquire))
    }

    /// The handed-over datagrams. [`HandOffMember::put_back`] returns their memory.
    #[cold]
    pub(crate) fn take_handed_over(&mut self) -> TrainQueue {
        let Some(own) = self.queues.get(self.number) else { return TrainQueue::new() };
        let mut queue = own.lock();
        own.is_waiting.store(false, Ordering::Release);
        core::mem::replace(&mut *queue, core::mem::take(&mut self.empty))
    }

    /// The datagrams have been read.
    pub(crate) fn put_back(&mut self, mut handed_over: TrainQueue) {
        handed_over.clear();
        self.empty = handed_over;
    }

    /// Copies a train into the queue of worker `to`. Returns how many datagrams found room there.
    #[cold]
    pub fn send(&self, to: u8, train: &Train<'_>) -> u64 {
        let to = usize::from(to);
        let Some(hand_off_queue) = self.queues.get(to).filter(|_| to != self.number) else { return 0 };
        let path = TrainPath::new(train.addresses, train.ecn);
        let mut sent = 0;
        let mut queue = hand_off_queue.lock();
        queue.close_newest();
        for datagram in train.bytes.chunks(train.segment_size.max(1)) {
            if queue.size() + datagram.len() > MAX_BYTES || queue.len() >= MAX_TRAINS {
                break;
            }
            queue.push(&path, datagram);
            sent += 1;
        }
        let must_wake = sent > 0 && !hand_off_queue.is_waiting.swap(true, Ordering::AcqRel);
        drop(queue);
        if must_wake && let Some(waker) = &hand_off_queue.waker {
            waker.wake();
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::net::{Addresses, Ecn};

    fn addresses() -> Addresses {
        Addresses { local: "192.0.2.1:443".parse().unwrap(), peer: "198.51.100.7:5000".parse().unwrap() }
    }

    fn send(member: &HandOffMember, to: u8, datagrams: usize, size: usize) -> u64 {
        let mut bytes = vec![7; datagrams * size];
        let train = Train { bytes: &mut bytes, segment_size: size, addresses: addresses(), ecn: Ecn::Ce };
        member.send(to, &train)
    }

    #[test]
    fn mail_keeps_its_addresses_and_its_marking() {
        let mut hand_off_group = HandOff::group(vec![None, None]);
        assert!(!hand_off_group[1].has_handed_over());
        assert_eq!(send(&hand_off_group[0], 1, 3, 1_200), 3);
        assert!(hand_off_group[1].has_handed_over() && !hand_off_group[0].has_handed_over());
        let mut handed_over = hand_off_group[1].take_handed_over();
        assert!(!hand_off_group[1].has_handed_over());
        let train = handed_over.train(0);
        assert_eq!((train.bytes.len(), train.segment_size), (3_600, 1_200));
        assert_eq!((train.addresses, train.ecn), (addresses(), Ecn::Ce));
        hand_off_group[1].put_back(handed_over);
        assert!(hand_off_group[1].take_handed_over().is_empty(), "what was read is gone");
    }

    #[test]
    fn a_flood_ends_at_the_bound_in_bytes_and_in_trains() {
        let mut hand_off_group = HandOff::group(vec![None, None]);
        let large: u64 = (0..1_000).map(|_| send(&hand_off_group[0], 1, 40, 1_400)).sum();
        assert_eq!(large, MAX_BYTES as u64 / 1_400);
        let handed_over = hand_off_group[1].take_handed_over();
        assert!(handed_over.size() <= MAX_BYTES);
        hand_off_group[1].put_back(handed_over);
        let small: u64 = (0..100_000).map(|_| send(&hand_off_group[0], 1, 1, 1)).sum();
        assert!(small <= MAX_TRAINS as u64 && small > 1_000, "{small}: each train is closed");
        assert_eq!(send(&hand_off_group[0], 1, 1, 1), 0, "still full");
        let handed_over = hand_off_group[1].take_handed_over();
        assert_eq!(handed_over.len(), MAX_TRAINS);
        hand_off_group[1].put_back(handed_over);
        assert_eq!(send(&hand_off_group[0], 1, 1, 1), 1, "and there is room again");
    }

    #[test]
    fn no_worker_sends_to_itself_or_to_one_that_is_not_there() {
        let hand_off_group = HandOff::group(vec![None, None]);
        assert_eq!(
            (
                send(&hand_off_group[0], 0, 1, 99),
                send(&hand_off_group[0], 2, 1, 99),
                send(&hand_off_group[0], 255, 1, 99)
            ),
            (0, 0, 0)
        );
        assert!(hand_off_group.iter().all(|member| !member.has_handed_over()));
    }

    /// Without it a worker sleeps although datagrams wait.
    #[test]
    fn the_first_letter_wakes_and_the_others_need_not() {
        let waker = Waker::new().unwrap();
        let mut hand_off_group = HandOff::group(vec![None, Some(waker.clone())]);
        let is_readable = || {
            let mut fds = [rustix::event::PollFd::new(&waker, rustix::event::PollFlags::IN)];
            rustix::event::poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap()
                == 1
        };
        assert!(!is_readable());
        send(&hand_off_group[0], 1, 1, 99);
        assert!(is_readable());
        // The order of a turn: the port notes the wake, then the queue is read. What comes after that wakes again.
        waker.clear();
        send(&hand_off_group[0], 1, 1, 99);
        assert!(!is_readable(), "the flag was up");
        let handed_over = hand_off_group[1].take_handed_over();
        hand_off_group[1].put_back(handed_over);
        send(&hand_off_group[0], 1, 1, 99);
        assert!(is_readable());
    }
}
