//! One thread that serves TCP: it accepts, looks after its connections, and ends in good order.
//!
//! A current-thread runtime with a task for each connection. [`TcpServer`] is the future that the thread waits for; beside it
//! there is nothing but the connections' tasks.

use super::ThreadCounters;
use super::answer::Answer;
use super::connection::{self, ConnectionOptions, InPlace};
use super::counters::Traffic;
use super::fields::{self, Maps};
use super::handshakes::Handshakes;
use super::holding::Holding;
use super::limiter::ConnectionLimiter;
use super::limits::Limits;
use super::openings::Openings;
use super::proxied;
use super::publisher::Publisher;
use super::shutdown_signal::ShutdownSignal;
use super::thread_state::ThreadState;
use super::timeouts::{ConnectionTimeouts, NextAction};
use crate::access_log::Recorder;
use crate::handler::Files;
use crate::low::Shared;
use crate::metrics::board::BoardEntry;
use crate::monotonic;
use crate::warnings::Warning;
use base::time::{Duration, Instant};
use http::HeaderValue;
use hyper::rt::bounds::Http2ServerConnExec;
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::Sleep;

/// How often connections are looked at while there are any.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(250);
/// How long accepting pauses when descriptors or memory have run out.
const PAUSE: Duration = Duration::from_millis(100);

/// What a thread needs beside what answers.
pub struct Setup {
    /// Certificate, suites and application protocols.
    pub handshakes: Handshakes,
    /// What connections may begin with beside a client's handshake.
    pub openings: Openings,
    /// Logs requests.
    pub recorder: Recorder,
    /// What clients may hold.
    pub limits: Limits,
    /// Whether extended CONNECT is announced over HTTP/2. RFC 8441 §3.
    pub extended_connect: bool,
    /// For how long clients may remember that there is HTTP/3 at the port of their connection, if that is announced.
    pub alt_svc: Option<std::time::Duration>,
    /// Tells the thread to stop.
    pub shutdown_signal: ShutdownSignal,
    /// Memory, warnings and clock.
    pub shared: Shared,
    /// Where the thread publishes its counters.
    pub board: BoardEntry,
}

/// Accepts from `listeners` and serves until the order to stop; then waits for what is under way, for [`Limits::drain`] at most.
///
/// # Errors
/// The operating system has no descriptors or memory left to begin with.
pub fn serve(listeners: Vec<TcpListener>, setup: Setup, files: Files) -> io::Result<ThreadCounters> {
    serve_by(listeners, setup, Rc::new(RefCell::new(files)))
}

/// As [`serve`], by anything that answers.
pub(super) fn serve_by<A: Answer>(
    listeners: Vec<TcpListener>,
    setup: Setup,
    answer: A,
) -> io::Result<ThreadCounters>
where
    InPlace: Http2ServerConnExec<A::Future, A::Content>,
{
    let runtime =
        Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
    let served = runtime.block_on(serve_here(listeners, setup, answer))?;
    // What is still open ends now.
    drop(runtime);
    Ok(served.finish())
}

/// As [`serve_by`], in a runtime of this thread's that others share.
pub(super) async fn serve_here<A: Answer>(
    listeners: Vec<TcpListener>,
    setup: Setup,
    answer: A,
) -> io::Result<Served>
where
    InPlace: Http2ServerConnExec<A::Future, A::Content>,
{
    let holding = Holding::new(&setup.shared.budget);
    let thread_state = Rc::new(ThreadState::new(&setup.shared, setup.recorder));
    let listeners = listeners.into_iter().map(|listener| Listener::new(listener, setup.alt_svc));
    let traffic = Rc::new(Traffic::default());
    let publisher = Rc::new(Publisher::new(Rc::clone(&thread_state), Rc::clone(&traffic), setup.board));
    let beginning = (setup.handshakes, setup.openings);
    let mut manner = ConnectionOptions::new(beginning, Rc::clone(&thread_state), answer, setup.limits);
    if setup.extended_connect {
        manner.announce_extended_connect();
    }
    let manner = Rc::new(manner);
    let front = TcpServer {
        listeners: listeners.collect::<io::Result<_>>()?,
        shutdown_signal: setup.shutdown_signal,
        manner,
        traffic: Rc::clone(&traffic),
        limiter: Rc::default(),
        pulses: Vec::new(),
        holding,
        timer: Box::pin(tokio::time::sleep(LOOK_EVERY)),
        is_timed: false,
        paused_until: None,
        is_leaving: false,
        told: NextAction::Serve,
        deadline: None,
        publisher: Rc::clone(&publisher),
    };
    front.await;
    Ok(Served { publisher })
}

/// What was done, once the runtime has ended.
pub(crate) struct Served {
    publisher: Rc<Publisher>,
}

impl Served {
    /// Writes what the log holds back, and publishes the counters.
    pub(crate) fn finish(self) -> ThreadCounters {
        self.publisher.finish()
    }
}

/// One address at which a thread listens.
struct Listener {
    socket: tokio::net::TcpListener,
    /// Fields of the responses to its clients, which name its port in Alt-Svc.
    maps: Rc<RefCell<Maps>>,
}

impl Listener {
    /// HTTP/3 at the same port is announced for `alt_svc`.
    fn new(listener: TcpListener, alt_svc: Option<std::time::Duration>) -> io::Result<Listener> {
        let port = listener.local_addr()?.port();
        let value = alt_svc.map(|max_age| HeaderValue::try_from(fields::alt_svc(port, max_age)));
        let maps = Maps::new(value.transpose().map_err(io::Error::other)?);
        Ok(Listener {
            socket: tokio::net::TcpListener::from_std(listener)?,
            maps: Rc::new(RefCell::new(maps)),
        })
    }
}

/// The thread's own future.
struct TcpServer<A> {
    /// None after the order to stop.
    listeners: Vec<Listener>,
    shutdown_signal: ShutdownSignal,
    manner: Rc<ConnectionOptions<A>>,
    traffic: Rc<Traffic>,
    publisher: Rc<Publisher>,
    limiter: Rc<RefCell<ConnectionLimiter>>,
    pulses: Vec<Weak<ConnectionTimeouts>>,
    holding: Holding,
    timer: Pin<Box<Sleep>>,
    /// Whether the timer runs. It does not while there is nothing to look at, so that an idle thread sleeps.
    is_timed: bool,
    paused_until: Option<Instant>,
    /// The order to stop has come.
    is_leaving: bool,
    /// What all connections were told last.
    told: NextAction,
    /// When connections that are still open end, after the order to stop.
    deadline: Option<Instant>,
}

impl<A: Answer> Future for TcpServer<A>
where
    InPlace: Http2ServerConnExec<A::Future, A::Content>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.heed(cx);
        self.accept(cx);
        self.look(cx);
        if let Some(ask) = self.publisher.asked() {
            self.publish();
            self.publisher.answer(ask);
        }
        // A connection that ends wakes this task, see `ConnectionPermit`.
        self.limiter.borrow_mut().waiting = Some(cx.waker().clone());
        let over = self.is_leaving && self.limiter.borrow().open() == 0;
        if over { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<A: Answer> TcpServer<A>
where
    InPlace: Http2ServerConnExec<A::Future, A::Content>,
{
    /// Looks whether the order to stop has come.
    fn heed(&mut self, cx: &mut Context<'_>) {
        if !self.shutdown_signal.is_over(cx.waker()) {
            return;
        }
        if !self.is_leaving {
            self.is_leaving = true;
            self.listeners.clear();
            self.deadline = self.manner.limits.drain.map(|drain| monotonic::now() + drain);
            self.arm();
        }
        let is_shut_down = self.shutdown_signal.is_shut_down();
        let action = if is_shut_down { NextAction::Finish } else { NextAction::Leave };
        if std::mem::replace(&mut self.told, action) != action {
            self.tell_all(action);
        }
        if self.shutdown_signal.is_aborted() {
            self.tell_all(NextAction::Close);
            // They are told once.
            self.pulses.clear();
        }
    }

    fn tell_all(&self, action: NextAction) {
        self.pulses.iter().filter_map(Weak::upgrade).for_each(|timeouts| timeouts.tell(action));
    }

    fn accept(&mut self, cx: &mut Context<'_>) {
        for place in 0..self.listeners.len() {
            self.accept_from(place, cx);
        }
    }

    fn accept_from(&mut self, place: usize, cx: &mut Context<'_>) {
        while let Some(listener) = self.listeners.get(place) {
            if self.paused_until.is_some() {
                return;
            }
            if self.limiter.borrow().open() >= self.manner.limits.connections {
                return;
            }
            if self.holding.is_short() {
                self.pause();
                return;
            }
            match listener.socket.poll_accept(cx) {
                Poll::Ready(Ok((socket, peer))) => {
                    let maps = Rc::clone(&listener.maps);
                    self.admit(socket, peer, maps);
                }
                Poll::Ready(Err(error)) if is_want(&error) => {
                    // More would fail too, and the listener stays readable: without a pause this would spin.
                    self.manner.thread_state.counters.borrow_mut().accept_failures += 1;
                    self.manner.thread_state.warnings.note(Warning::ConnectionsRefused, 1);
                    self.pause();
                }
                // That one client's own trouble.
                Poll::Ready(Err(_)) => {}
                Poll::Pending => return,
            }
        }
    }

    fn admit(&mut self, socket: TcpStream, peer: SocketAddr, maps: Rc<RefCell<Maps>>) {
        let is_proxied = self.manner.openings.is_proxied(peer);
        let admitted = if is_proxied {
            Some(ConnectionLimiter::enter(&self.limiter))
        } else {
            ConnectionLimiter::admit(&self.limiter, peer.ip(), &self.manner.limits)
        };
        let Some(mut place) = admitted else {
            // The socket closes. No more is said before a handshake.
            self.manner.thread_state.counters.borrow_mut().refused += 1;
            self.manner.thread_state.warnings.note(Warning::ConnectionsBeyondLimit, 1);
            return;
        };
        let portion = self.holding.portion(peer.ip());
        let timeouts = Rc::new(ConnectionTimeouts::new(Rc::clone(&self.traffic), portion, monotonic::now()));
        self.pulses.push(Rc::downgrade(&timeouts));
        self.manner.thread_state.counters.borrow_mut().accepted += 1;
        let manner = Rc::clone(&self.manner);
        tokio::task::spawn_local(async move {
            let mut ends = Some((peer, socket.local_addr().unwrap_or(peer)));
            if let (true, Some(known)) = (is_proxied, ends) {
                ends = proxied::client(&socket, known, &timeouts, &mut place, &manner).await;
            }
            if let Some(ends) = ends {
                connection::serve(socket, ends, timeouts, maps, manner).await;
            }
            drop(place);
        });
        self.arm();
    }

    fn publish(&self) {
        self.publisher.publish(self.limiter.borrow().open());
    }

    fn pause(&mut self) {
        self.paused_until = Some(monotonic::now() + PAUSE);
        self.arm();
    }

    fn arm(&mut self) {
        if !self.is_timed {
            self.is_timed = true;
            self.timer.as_mut().reset(tokio::time::Instant::now() + LOOK_EVERY);
        }
    }

    /// Looks at all connections when it is time.
    fn look(&mut self, cx: &mut Context<'_>) {
        while self.is_timed && self.timer.as_mut().poll(cx).is_ready() {
            let now = monotonic::now();
            let mut expired = 0;
            let limits = self.manner.limits;
            let is_over = self.deadline.is_some_and(|deadline| now >= deadline);
            self.pulses.retain(|timeouts| {
                let Some(timeouts) = timeouts.upgrade() else { return false };
                expired += u64::from(timeouts.look(now, &limits));
                if is_over {
                    timeouts.tell(NextAction::Close);
                }
                true
            });
            let evicted = self.holding.look(now, &self.pulses);
            self.manner.thread_state.warnings.note(Warning::BudgetExceeded, evicted);
            expired += evicted;
            self.manner.thread_state.counters.borrow_mut().expired += expired;
            self.publish();
            self.manner.thread_state.recorder.borrow_mut().on_timeout(now);
            self.is_timed = false;
            if self.paused_until.is_some_and(|until| now >= until) {
                self.paused_until = None;
                cx.waker().wake_by_ref();
            }
            let is_logging = self.manner.thread_state.recorder.borrow().next_timeout().is_some();
            if !self.pulses.is_empty() || is_logging || self.paused_until.is_some() {
                self.arm();
            }
        }
    }
}

/// Whether descriptors or memory have run out.
fn is_want(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let want = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    error.raw_os_error().is_some_and(|code| want.iter().any(|errno| errno.raw_os_error() == code))
}
