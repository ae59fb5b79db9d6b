//! What all connections of a thread share: the books, the requests, and who waits for what.

use super::clock;
use super::meter::Meter;
use super::trouble::Trouble;
use crate::books::{Asked, Books};
use crate::course::Crowd;
use crate::failure::Failure;
use crate::plan::{Plan, Protocol, Reuse, Tcp};
use crate::traffic::Traffic;
use base::time::{Duration, Instant};
use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::sync::Notify;

/// Shared by the tasks of a thread.
pub(super) struct Desk {
    pub(super) plan: Plan,
    pub(super) tcp: Tcp,
    pub(super) requests: Vec<Request<()>>,
    pub(super) books: RefCell<Books>,
    pub(super) meter: Rc<Meter>,
    /// Lanes wait here for a request that they may make.
    pub(super) work: Notify,
    /// How many do.
    idle: Cell<u64>,
    /// Whoever conducts waits here for something to happen.
    pub(super) news: Notify,
    /// The pacer waits here for a budget.
    pub(super) paced: Notify,
    /// Requests that a server did not look at, to be made again.
    returned: RefCell<Vec<Asked>>,
    /// When the request of each place was meant to begin.
    places: RefCell<Vec<Option<Instant>>>,
    tally: Cell<Tally>,
}

/// Connections by how they are.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
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

/// A connection, as its lanes and its owner see it.
#[derive(Debug, Default)]
pub(super) struct Link {
    is_gone: Cell<bool>,
    /// Answers that it brought.
    pub(super) answers: Cell<u64>,
}

impl Link {
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }
}

impl Desk {
    pub(super) fn new(plan: Plan, tcp: Tcp) -> Desk {
        let requests = plan.requests.iter().map(|head| shaped(&plan.protocol, head)).collect();
        let tally = Tally { unsettled: plan.connections, ..Tally::default() };
        Desk {
            books: RefCell::new(Books::new(&plan)),
            requests,
            tcp,
            meter: Rc::default(),
            work: Notify::new(),
            idle: Cell::new(0),
            news: Notify::new(),
            paced: Notify::new(),
            returned: RefCell::default(),
            places: RefCell::default(),
            tally: Cell::new(tally),
            plan,
        }
    }

    /// The next request that may begin; `None` when the connection is gone. Waits for it.
    pub(super) async fn next(&self, link: &Link) -> Option<Asked> {
        let mut was_called = false;
        loop {
            if link.is_gone() {
                if was_called {
                    // The call was for another one.
                    self.work.notify_one();
                }
                return None;
            }
            if let Some(asked) = self.take() {
                return Some(asked);
            }
            self.idle.set(self.idle.get() + 1);
            self.work.notified().await;
            self.idle.set(self.idle.get().saturating_sub(1));
            was_called = true;
        }
    }

    fn take(&self) -> Option<Asked> {
        if let Some(asked) = self.returned.borrow_mut().pop() {
            return Some(asked);
        }
        let now = clock::now();
        let mut books = self.books.borrow_mut();
        books.peek(now).map(|intended| books.begin(now, intended))
    }

    /// Wakes lanes for the requests that are due.
    pub(super) fn call(&self, due: u64) {
        (0..due.min(self.idle.get())).for_each(|_| self.work.notify_one());
    }

    /// What became of a request: the status of its complete answer, or what went wrong.
    pub(super) fn book(&self, asked: &Asked, outcome: Result<u16, Trouble>) {
        let now = clock::now();
        match outcome {
            Ok(status) => self.books.borrow_mut().on_answer(now, asked, status),
            Err(trouble) => self.on_trouble(now, asked, trouble),
        }
        if self.books.borrow().is_done() {
            self.news.notify_one();
        }
    }

    #[cold]
    fn on_trouble(&self, now: Instant, asked: &Asked, trouble: Trouble) {
        let is_young = now.saturating_since(asked.began) < self.plan.timeout;
        if trouble.is_untouched && is_young && self.plan.reuse == Reuse::Always {
            self.returned.borrow_mut().push(*asked);
            self.work.notify_one();
            return;
        }
        let mut books = self.books.borrow_mut();
        if trouble.failure != Failure::Timeout {
            books.on_fault(|| trouble.words);
        }
        books.on_failure(now, asked, trouble.failure);
    }

    /// A connection is being made.
    pub(super) fn on_dial(&self) {
        self.change(|tally| tally.under_way += 1);
    }

    /// It takes requests.
    pub(super) fn on_up(&self, berth: &mut BerthState) {
        self.change(|tally| {
            tally.up += 1;
            (tally.has_worked, tally.came_up) = (true, true);
            settle(tally, berth, false);
        });
        self.news.notify_one();
    }

    /// It could not be made.
    pub(super) fn on_refused(&self, berth: &mut BerthState, trouble: &Trouble) {
        self.change(|tally| {
            tally.under_way -= 1;
            settle(tally, berth, true);
        });
        let mut books = self.books.borrow_mut();
        books.on_connection_failure(trouble.failure);
        books.on_fault(|| format!("{}: {}", self.plan.address, trouble.words));
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

    /// A connection takes nothing more; those who wait for work on it hear so.
    pub(super) fn on_gone(&self, link: &Link) {
        if !link.is_gone.replace(true) {
            self.work.notify_waiters();
        }
    }

    fn change(&self, change: impl FnOnce(&mut Tally)) {
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
    pub(super) fn crowd(&self) -> Crowd {
        let tally = self.tally.get();
        Crowd {
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
        let places = self.places.borrow();
        let waited = places.iter().flatten().map(|intended| now.saturating_since(*intended));
        waited.max().unwrap_or(Duration::ZERO)
    }

    /// A place for requests that are made one after the other.
    pub(super) fn place(self: &Rc<Desk>) -> Place {
        let mut places = self.places.borrow_mut();
        places.push(None);
        Place { desk: Rc::clone(self), index: places.len() - 1 }
    }
}

/// How a connection's place fared so far.
#[derive(Debug, Default)]
pub(super) struct BerthState {
    is_settled: bool,
    has_failed: bool,
}

impl BerthState {
    /// Whether its connection failed when it was last made.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }
}

fn settle(tally: &mut Tally, berth: &mut BerthState, has_failed: bool) {
    tally.unsettled -= usize::from(!berth.is_settled);
    tally.failed = tally.failed + usize::from(has_failed) - usize::from(berth.has_failed);
    (berth.is_settled, berth.has_failed) = (true, has_failed);
}

/// Where a request stands while it is outstanding.
pub(super) struct Place {
    desk: Rc<Desk>,
    index: usize,
}

impl Place {
    /// It is outstanding, or it is no more.
    pub(super) fn set(&self, asked: Option<&Asked>) {
        if let Some(place) = self.desk.places.borrow_mut().get_mut(self.index) {
            *place = asked.map(|asked| asked.intended);
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
