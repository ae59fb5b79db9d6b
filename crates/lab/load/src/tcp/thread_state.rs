//! What all connections of a thread share: the books, the requests, and who waits for what.

use super::clock;
use super::meter::Meter;
use super::request_failure::RequestFailure;
use crate::accounts::{RequestAccounts, RequestTimes};
use crate::failure::Failure;
use crate::plan::{LoadPlan, Protocol, Reuse, Tcp};
use crate::run_phase::ConnectionSummary;
use crate::traffic::Traffic;
use base::time::{Duration, Instant};
use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::sync::{Notify, Semaphore};

/// Shared by the tasks of a thread.
pub(super) struct ThreadState {
    pub(super) plan: LoadPlan,
    pub(super) tcp: Tcp,
    pub(super) requests: Vec<Request<()>>,
    pub(super) accounts: RefCell<RequestAccounts>,
    pub(super) meter: Rc<Meter>,
    /// Connections that stay take turns to be made.
    pub(super) handshakes: Semaphore,
    /// Lanes wait here for a request that they may make.
    pub(super) work: Notify,
    /// How many do.
    idle: Cell<u64>,
    /// The main task of the thread waits here for an event.
    pub(super) news: Notify,
    /// The pacer waits here for a budget.
    pub(super) paced: Notify,
    /// Requests that a server did not look at, to be made again.
    returned: RefCell<Vec<RequestTimes>>,
    /// When the request of each place was meant to begin.
    request_slots: RefCell<Vec<Option<Instant>>>,
    tally: Cell<ConnectionCounts>,
}

/// Connections by how they are.
#[derive(Clone, Copy, Debug, Default)]
struct ConnectionCounts {
    under_way: usize,
    up: usize,
    /// Neither worked nor failed so far.
    unsettled: usize,
    /// Failed when they were last made.
    failed: usize,
    has_worked: bool,
    came_up: bool,
    went_down: bool,
}

/// A connection, as its request slots and its owner see it.
#[derive(Debug, Default)]
pub(super) struct ConnectionHandle {
    is_gone: Cell<bool>,
    /// Answers that it brought.
    pub(super) answers: Cell<u64>,
}

impl ConnectionHandle {
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }
}

impl ThreadState {
    pub(super) fn new(plan: LoadPlan, tcp: Tcp) -> ThreadState {
        let requests = plan.requests.iter().map(|head| shaped(&plan.protocol, head)).collect();
        let tally = ConnectionCounts { unsettled: plan.connections, ..ConnectionCounts::default() };
        ThreadState {
            accounts: RefCell::new(RequestAccounts::new(&plan.rules())),
            requests,
            tcp,
            meter: Rc::default(),
            handshakes: Semaphore::new(plan.handshakes),
            work: Notify::new(),
            idle: Cell::new(0),
            news: Notify::new(),
            paced: Notify::new(),
            returned: RefCell::default(),
            request_slots: RefCell::default(),
            tally: Cell::new(tally),
            plan,
        }
    }

    /// The next request that may begin; `None` when the connection is gone. Waits for it.
    pub(super) async fn next(&self, link: &ConnectionHandle) -> Option<RequestTimes> {
        let mut was_called = false;
        loop {
            if link.is_gone() {
                if was_called {
                    // The call was for another one.
                    self.work.notify_one();
                }
                return None;
            }
            if let Some(times) = self.take() {
                return Some(times);
            }
            self.idle.set(self.idle.get() + 1);
            self.work.notified().await;
            self.idle.set(self.idle.get().saturating_sub(1));
            was_called = true;
        }
    }

    fn take(&self) -> Option<RequestTimes> {
        if let Some(times) = self.returned.borrow_mut().pop() {
            return Some(times);
        }
        let now = clock::now();
        let mut accounts = self.accounts.borrow_mut();
        accounts.peek(now).map(|intended| accounts.begin(now, intended))
    }

    /// Wakes request slots for the requests that are due.
    pub(super) fn call(&self, due: u64) {
        (0..due.min(self.idle.get())).for_each(|_| self.work.notify_one());
    }

    /// What became of a request: the status of its complete answer, or what went wrong.
    pub(super) fn book(&self, times: &RequestTimes, outcome: Result<u16, RequestFailure>) {
        let now = clock::now();
        match outcome {
            Ok(status) => self.accounts.borrow_mut().on_answer(now, times, status),
            Err(request_failure) => self.on_trouble(now, times, request_failure),
        }
        if self.accounts.borrow().is_done() {
            self.news.notify_one();
        }
    }

    #[cold]
    fn on_trouble(&self, now: Instant, times: &RequestTimes, request_failure: RequestFailure) {
        let is_young = now.saturating_since(times.began) < self.plan.timeout;
        if request_failure.is_untouched && is_young && self.plan.reuse == Reuse::Always {
            self.returned.borrow_mut().push(*times);
            self.work.notify_one();
            return;
        }
        let mut accounts = self.accounts.borrow_mut();
        if request_failure.failure != Failure::Timeout {
            accounts.on_fault(|| request_failure.words);
        }
        accounts.on_failure(now, times, request_failure.failure);
    }

    /// A connection is being made.
    pub(super) fn on_dial(&self) {
        self.change(|tally| tally.under_way += 1);
    }

    /// It takes requests.
    pub(super) fn on_up(&self, connection_slot: &mut SlotState) {
        self.change(|tally| {
            tally.up += 1;
            (tally.has_worked, tally.came_up) = (true, true);
            settle(tally, connection_slot, false);
        });
        self.news.notify_one();
    }

    /// It could not be made.
    pub(super) fn on_refused(&self, connection_slot: &mut SlotState, request_failure: &RequestFailure) {
        self.change(|tally| {
            tally.under_way -= 1;
            settle(tally, connection_slot, true);
        });
        let mut accounts = self.accounts.borrow_mut();
        accounts.on_connection_failure(request_failure.failure);
        accounts.on_fault(|| format!("{}: {}", self.plan.address, request_failure.words));
        self.news.notify_one();
    }

    /// It was up and is over.
    pub(super) fn on_down(&self) {
        self.change(|tally| {
            (tally.under_way, tally.up, tally.went_down) = (tally.under_way - 1, tally.up - 1, true);
        });
        if self.plan.reuse == Reuse::Always {
            self.news.notify_one();
        }
    }

    /// A connection takes nothing more; tasks that wait for work on it are told.
    pub(super) fn on_gone(&self, link: &ConnectionHandle) {
        if !link.is_gone.replace(true) {
            self.work.notify_waiters();
        }
    }

    fn change(&self, change: impl FnOnce(&mut ConnectionCounts)) {
        let mut tally = self.tally.get();
        change(&mut tally);
        self.tally.set(tally);
    }

    /// Whether any connection has ever been made.
    pub(super) fn has_worked(&self) -> bool {
        self.tally.get().has_worked
    }

    /// Whether connections came up, and whether any went down, since this was last asked.
    pub(super) fn take_news(&self) -> (bool, bool) {
        let tally = self.tally.get();
        self.change(|tally| (tally.came_up, tally.went_down) = (false, false));
        (tally.came_up, tally.went_down)
    }

    /// What the connections are like.
    pub(super) fn connection_summary(&self) -> ConnectionSummary {
        let tally = self.tally.get();
        ConnectionSummary {
            is_settled: tally.unsettled == 0,
            has_up: tally.up > 0,
            is_under_way: tally.under_way > 0,
            has_failed: tally.failed > 0,
        }
    }

    /// What the sockets have counted; `waits` are the runtime's.
    pub(super) fn traffic(&self, waits: u64) -> Traffic {
        Traffic {
            sent_bytes: self.meter.sent_bytes.get(),
            received_bytes: self.meter.received_bytes.get(),
            datagrams: None,
            data_calls: self.meter.calls.get(),
            waits,
        }
    }

    /// How long the oldest request has waited that is outstanding.
    pub(super) fn oldest(&self, now: Instant) -> Duration {
        let request_slots = self.request_slots.borrow();
        let waited = request_slots.iter().flatten().map(|intended| now.saturating_since(*intended));
        waited.max().unwrap_or(Duration::ZERO)
    }

    /// A place for requests that are made one after the other.
    pub(super) fn place(self: &Rc<ThreadState>) -> RequestSlot {
        let mut request_slots = self.request_slots.borrow_mut();
        request_slots.push(None);
        RequestSlot { thread_state: Rc::clone(self), index: request_slots.len() - 1 }
    }
}

/// How a connection's place fared so far.
#[derive(Debug, Default)]
pub(super) struct SlotState {
    is_settled: bool,
    has_failed: bool,
}

impl SlotState {
    /// Whether its connection failed when it was last made.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }
}

fn settle(tally: &mut ConnectionCounts, connection_slot: &mut SlotState, has_failed: bool) {
    tally.unsettled -= usize::from(!connection_slot.is_settled);
    tally.failed = tally.failed + usize::from(has_failed) - usize::from(connection_slot.has_failed);
    (connection_slot.is_settled, connection_slot.has_failed) = (true, has_failed);
}

/// Where a request stands while it is outstanding.
pub(super) struct RequestSlot {
    thread_state: Rc<ThreadState>,
    index: usize,
}

impl RequestSlot {
    /// It is outstanding, or it is no more.
    pub(super) fn set(&self, times: Option<&RequestTimes>) {
        if let Some(place) = self.thread_state.request_slots.borrow_mut().get_mut(self.index) {
            *place = times.map(|times| times.intended);
        }
    }
}

/// A request as the protocol wants it: HTTP/1.1 names the server in a field and asks for a path.
fn shaped(protocol: &Protocol, head: &http::request::Parts) -> Request<()> {
    let mut parts = head.clone();
    if matches!(protocol, Protocol::Http1(_)) {
        let authority = parts.uri.authority().map_or("", |authority| authority.as_str());
        if let Ok(host) = HeaderValue::from_str(authority) {
            parts.headers.entry(HOST).or_insert(host);
        }
        let path = parts.uri.path_and_query().cloned();
        parts.uri = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    }
    Request::from_parts(parts, ())
}
