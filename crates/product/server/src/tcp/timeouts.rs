//! Signs of life of one connection, and what the thread orders it to do.
//!
//! Three rules cover every way of holding a connection without using it, whatever the HTTP version: the handshake ends in
//! time; a connection without a request under way ends after the idle time, whatever it sends (a head that is dribbled is no
//! request yet); and while a request is under way, a minimum of content moves in either direction. One look at all connections
//! a few times a second decides, so that no request costs a timer.
//!
//! A request is over for us when hyper has its last byte, which may be long before the socket takes it. So content that
//! leaves restarts the idle time. What the peer can make us write at will, like the answer to a PING, is no content: the bytes
//! that the socket takes count only as far as content was given to TLS before ([`ConnectionTimeouts::on_owed`]), so there is never more
//! progress than content. Rejected: all bytes that pass the socket; a KiB of PINGs a minute held whatever was asked for.

use super::counters::Traffic;
use super::limits::Limits;
use crate::budget::{ConnectionShare, Level};
use base::time::{Duration, Instant};
use core::net::IpAddr;
use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::task::Waker;
use tokio::sync::Notify;

/// What a connection holds beside its content, in bytes: the state of TLS and hyper, and their buffers.
const CONNECTION: u64 = 48 * 1024;
/// What a request holds, in bytes, on its way through hyper.
const REQUEST: u64 = 32 * 1024;
/// Content of a response that is read before the client takes it, in bytes: a piece, and what hyper buffers.
const AHEAD: u64 = 128 * 1024;

/// The longest time to hear that a connection is over, for a peer that goes on sending.
const LONGEST_LINGER: Duration = Duration::from_secs(30);

/// What a connection has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NextAction {
    /// Go on.
    Serve,
    /// Answer what is asked, tell the client that it asks elsewhere, and end: another process takes new connections.
    Leave,
    /// Answer what was asked, and end.
    Finish,
    /// End at once.
    Close,
}

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Handshake,
    Serving,
    /// Another protocol than HTTP is spoken. The handler says how long it may rest.
    Tunnel,
    /// All is sent, and the peer has yet to take some of it.
    Delivering,
    /// The connection is over; what the peer still sends is thrown away, so that it can read what we said last.
    Lingering {
        until: Instant,
    },
}

/// One connection's.
pub(super) struct ConnectionTimeouts {
    phase: Cell<Phase>,
    order: Cell<NextAction>,
    waker: RefCell<Option<Waker>>,
    /// Told when the connection begins no more requests and ends.
    finishing: Notify,
    /// Requests under way.
    open: Cell<u32>,
    /// Those among them that speak another protocol on their stream. The handler says how long they may rest.
    tunnels: Cell<u32>,
    /// Whether there was one.
    has_asked: Cell<bool>,
    /// Whether a request was answered without its content.
    unread: Cell<bool>,
    /// Bytes of content that TLS was given and the socket has not taken.
    owed: Cell<u64>,
    /// Bytes of content that responses under way may be ahead of their clients.
    ahead: Cell<u64>,
    /// Bytes that a low-level handler keeps of requests under way.
    kept: Cell<u64>,
    /// What the connection adds to what its address holds.
    portion: ConnectionShare,
    /// Bytes of content that moved: that were received, or that the socket took.
    moved: Cell<u64>,
    /// `moved` when the present span began.
    mark: Cell<u64>,
    /// When that was: the last progress, or the last change of `open` from or to none, or the last change of phase.
    since: Cell<Instant>,
    traffic: Rc<Traffic>,
}

impl ConnectionTimeouts {
    /// Of a connection that was just accepted.
    pub(super) fn new(traffic: Rc<Traffic>, portion: ConnectionShare, now: Instant) -> ConnectionTimeouts {
        ConnectionTimeouts {
            phase: Cell::new(Phase::Handshake),
            order: Cell::new(NextAction::Serve),
            waker: RefCell::default(),
            finishing: Notify::new(),
            open: Cell::new(0),
            tunnels: Cell::new(0),
            has_asked: Cell::new(false),
            unread: Cell::new(false),
            owed: Cell::new(0),
            ahead: Cell::new(0),
            kept: Cell::new(0),
            portion,
            moved: Cell::new(0),
            mark: Cell::new(0),
            since: Cell::new(now),
            traffic,
        }
    }

    /// The connection is this client's, as the proxy says that it came from.
    pub(super) fn on_peer(&self, peer: IpAddr) {
        self.portion.on_peer(peer);
    }

    /// The handshake is over.
    pub(super) fn on_secure(&self, now: Instant) {
        self.enter(Phase::Serving, now);
    }

    /// Another protocol than HTTP is spoken from now on.
    pub(super) fn on_tunnel(&self, now: Instant) {
        self.enter(Phase::Tunnel, now);
    }

    /// All is sent, and the peer has yet to take some of it.
    pub(super) fn on_last_sent(&self, now: Instant) {
        self.enter(Phase::Delivering, now);
    }

    /// The peer has taken this many bytes of what was sent last.
    pub(super) fn on_taken(&self, bytes: usize) {
        self.moved.set(self.moved.get().saturating_add(bytes as u64));
    }

    /// Only the peer's end is awaited.
    pub(super) fn on_linger(&self, now: Instant) {
        self.enter(Phase::Lingering { until: now + LONGEST_LINGER }, now);
    }

    /// This many bytes of the peer were thrown away. Once only its end is awaited they say that it still reads.
    pub(super) fn on_discarded(&self, bytes: usize) {
        if matches!(self.phase.get(), Phase::Lingering { .. }) {
            self.moved.set(self.moved.get().saturating_add(bytes as u64));
        }
    }

    fn enter(&self, phase: Phase, now: Instant) {
        self.phase.set(phase);
        self.begin_span(now);
    }

    fn begin_span(&self, now: Instant) {
        self.since.set(now);
        self.mark.set(self.moved.get());
    }

    /// A request's head is complete.
    pub(super) fn on_request(&self, now: Instant) {
        self.has_asked.set(true);
        if self.open.replace(self.open.get().saturating_add(1)) == 0 {
            self.begin_span(now);
        }
    }

    /// Whether there was a request.
    pub(super) fn has_asked(&self) -> bool {
        self.has_asked.get()
    }

    /// Whether the next request belongs to another connection.
    pub(super) fn is_leaving(&self) -> bool {
        self.order.get() >= NextAction::Leave
    }

    /// Whether the connection ends because another process takes new ones, and no sooner than by itself.
    pub(super) fn has_left(&self) -> bool {
        self.order.get() == NextAction::Leave
    }

    /// A request is over.
    pub(super) fn on_response(&self, now: Instant) {
        let left = self.open.get().saturating_sub(1);
        self.open.set(left);
        if left == 0 {
            self.begin_span(now);
        }
    }

    /// A request goes on by another protocol, on its stream.
    pub(super) fn on_stream_tunnel(&self) {
        self.tunnels.set(self.tunnels.get().saturating_add(1));
    }

    /// Such a request is over. [`ConnectionTimeouts::on_response`] follows.
    pub(super) fn on_stream_tunnel_over(&self) {
        self.tunnels.set(self.tunnels.get().saturating_sub(1));
    }

    /// Waits until the connection begins no more requests and ends: tunnels on its streams end with it.
    pub(super) async fn finishes(&self) {
        let mut told = pin!(self.finishing.notified());
        told.as_mut().enable();
        if self.order.get() < NextAction::Finish {
            told.await;
        }
    }

    /// A request was answered and its content was not received.
    pub(super) fn on_unread(&self) {
        self.unread.set(true);
    }

    /// Whether that was so.
    pub(super) fn has_unread(&self) -> bool {
        self.unread.get()
    }

    /// The socket gave this many bytes; 0 at its end.
    pub(super) fn on_read(&self, bytes: usize) {
        self.traffic.on_read(bytes);
    }

    /// This many bytes of a request's content were received.
    pub(super) fn on_content(&self, bytes: usize) {
        self.moved.set(self.moved.get().saturating_add(bytes as u64));
    }

    /// TLS was given this many bytes of content to send.
    pub(super) fn on_owed(&self, bytes: usize) {
        self.owe(self.owed.get().saturating_add(bytes as u64));
    }

    fn owe(&self, bytes: u64) {
        self.traffic.on_waiting(self.owed.replace(bytes), bytes);
    }

    /// Whether much content waits for the sockets of the thread.
    pub(super) fn is_crowded(&self) -> bool {
        self.traffic.is_crowded()
    }

    /// The socket took this many bytes.
    pub(super) fn on_write(&self, bytes: usize) {
        let content = self.owed.get().min(bytes as u64);
        self.owe(self.owed.get() - content);
        self.moved.set(self.moved.get().saturating_add(content));
        self.traffic.on_write(bytes);
    }

    /// What the connection's task must do; `waker` is called when that changes.
    pub(super) fn order(&self, waker: &Waker) -> NextAction {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
        self.order.get()
    }

    /// Orders it. A stricter order stays.
    pub(super) fn tell(&self, order: NextAction) {
        if order > self.order.get() {
            self.order.set(order);
            if order >= NextAction::Finish {
                self.finishing.notify_waiters();
            }
            if let Some(waker) = self.waker.borrow_mut().take() {
                waker.wake();
            }
        }
    }

    /// What the connection holds, in bytes, as far as it can be told from here.
    pub(super) fn held(&self) -> u64 {
        CONNECTION
            + REQUEST * u64::from(self.open.get())
            + self.ahead.get()
            + self.kept.get()
            + self.owed.get()
    }

    /// A handler keeps `now` bytes of a request of which it kept `before`.
    pub(super) fn on_kept(&self, before: u64, now: u64) {
        if now != before {
            self.kept.set(self.kept.get().saturating_sub(before).saturating_add(now));
            self.settle();
        }
    }

    /// A response with this much content begins. Returns what counts as read ahead, for [`ConnectionTimeouts::release`].
    pub(super) fn reserve(&self, content: u64) -> u64 {
        let ahead = content.min(AHEAD);
        self.ahead.set(self.ahead.get().saturating_add(ahead));
        self.settle();
        ahead
    }

    /// A response is over for which this much was reserved.
    pub(super) fn release(&self, ahead: u64) {
        self.ahead.set(self.ahead.get().saturating_sub(ahead));
        self.settle();
    }

    /// Tells the budget what the connection holds. Returns that.
    pub(super) fn settle(&self) -> u64 {
        let held = self.held();
        self.portion.on_change(held);
        held
    }

    /// Whether new requests are put off: memory is short, or the client's address has had its share.
    pub(super) fn is_short(&self) -> bool {
        self.settle();
        self.portion.level() == Level::Short
    }

    /// How long no content has moved; `None` if some has in the present span.
    pub(super) fn stalled_for(&self, now: Instant) -> Option<Duration> {
        (self.moved.get() == self.mark.get()).then(|| now.saturating_since(self.since.get()))
    }

    /// Applies the rules. Returns whether they ended the connection.
    pub(super) fn look(&self, now: Instant, limits: &Limits) -> bool {
        let before = self.order.get();
        let elapsed = now.saturating_since(self.since.get());
        let has_moved = self.moved.get().saturating_sub(self.mark.get()) >= limits.progress_bytes;
        let order = match self.phase.get() {
            Phase::Handshake if elapsed >= limits.handshake => NextAction::Close,
            Phase::Delivering if has_moved => {
                self.begin_span(now);
                NextAction::Serve
            }
            Phase::Delivering if elapsed >= limits.progress => NextAction::Close,
            Phase::Lingering { until } if elapsed >= limits.linger => {
                if self.moved.get() > self.mark.get() && now < until {
                    self.begin_span(now);
                    NextAction::Serve
                } else {
                    NextAction::Close
                }
            }
            // What was asked for is still leaving.
            Phase::Serving if self.open.get() == 0 && has_moved => {
                self.begin_span(now);
                NextAction::Serve
            }
            Phase::Serving if self.open.get() == 0 && elapsed >= limits.idle + limits.linger => {
                NextAction::Close
            }
            Phase::Serving if self.open.get() == 0 && elapsed >= limits.idle => NextAction::Finish,
            // All that is under way may rest.
            Phase::Serving if self.open.get() > 0 && self.open.get() == self.tunnels.get() => {
                NextAction::Serve
            }
            Phase::Serving if self.open.get() > 0 && elapsed >= limits.progress => {
                if has_moved {
                    self.begin_span(now);
                    NextAction::Serve
                } else {
                    NextAction::Close
                }
            }
            _ => NextAction::Serve,
        };
        self.tell(order);
        before <= NextAction::Leave && order > NextAction::Leave
    }
}

impl Drop for ConnectionTimeouts {
    fn drop(&mut self) {
        self.owe(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(1) + Duration::from_secs(seconds)
    }

    fn timeouts() -> ConnectionTimeouts {
        let portion = crate::budget::Budget::default().portion(core::net::Ipv4Addr::LOCALHOST.into());
        ConnectionTimeouts::new(Rc::default(), portion, at(0))
    }

    fn ordered(timeouts: &ConnectionTimeouts, seconds: u64) -> NextAction {
        timeouts.look(at(seconds), &Limits::default());
        timeouts.order.get()
    }

    #[test]
    fn a_handshake_has_a_deadline_whatever_is_sent() {
        let timeouts = timeouts();
        timeouts.on_read(5_000);
        assert_eq!(ordered(&timeouts, 9), NextAction::Serve);
        timeouts.on_read(5_000);
        assert_eq!(ordered(&timeouts, 10), NextAction::Close);
    }

    fn send(timeouts: &ConnectionTimeouts, content: usize) {
        timeouts.on_owed(content);
        timeouts.on_write(content);
    }

    /// Slow loris: a head that comes byte by byte is no request, and answers to PINGs are no content.
    #[test]
    fn bytes_without_a_request_do_not_keep_a_connection() {
        let timeouts = timeouts();
        timeouts.on_secure(at(1));
        for second in 1..31 {
            timeouts.on_read(10_000);
            timeouts.on_write(10_000);
            assert_eq!(ordered(&timeouts, second), NextAction::Serve);
        }
        assert_eq!(ordered(&timeouts, 31), NextAction::Finish);
        assert_eq!(ordered(&timeouts, 33), NextAction::Close);
    }

    /// Deleted, a client of HTTP/2 that reads the end slowly could lose it to a reset, or hold its connection for ever.
    #[test]
    fn a_peer_that_still_sends_has_longer_to_read_the_end() {
        let timeouts = timeouts();
        timeouts.on_secure(at(0));
        timeouts.on_linger(at(10));
        for second in (12..40).step_by(2) {
            timeouts.on_discarded(35);
            assert_eq!(ordered(&timeouts, second), NextAction::Serve);
        }
        timeouts.on_discarded(35);
        assert_eq!(ordered(&timeouts, 40), NextAction::Close, "it has had its time");
        let timeouts = self::timeouts();
        timeouts.on_secure(at(0));
        timeouts.on_discarded(35);
        timeouts.on_linger(at(10));
        assert_eq!(ordered(&timeouts, 12), NextAction::Close, "it has sent nothing since");
    }

    /// Deleted, a protocol that says little could be cut after a minute.
    #[test]
    fn another_protocol_rests_as_long_as_it_likes() {
        let timeouts = timeouts();
        timeouts.on_secure(at(0));
        timeouts.on_request(at(1));
        timeouts.on_tunnel(at(1));
        assert_eq!(ordered(&timeouts, 100_000), NextAction::Serve);
        timeouts.on_response(at(100_000));
        timeouts.on_linger(at(100_000));
        assert_eq!(ordered(&timeouts, 100_010), NextAction::Close);
    }

    /// Deleted, a quiet tunnel could be cut after a minute with all other streams of its connection, or protect a request that stalls.
    #[test]
    fn tunnels_on_streams_rest_and_requests_beside_them_do_not() {
        let timeouts = timeouts();
        timeouts.on_secure(at(0));
        timeouts.on_request(at(1));
        timeouts.on_stream_tunnel();
        assert_eq!(ordered(&timeouts, 10_000), NextAction::Serve);
        timeouts.on_request(at(10_000));
        timeouts.on_response(at(10_001));
        assert_eq!(ordered(&timeouts, 20_000), NextAction::Serve);
        timeouts.on_stream_tunnel_over();
        timeouts.on_response(at(20_000));
        assert_eq!(ordered(&timeouts, 20_029), NextAction::Serve, "idle since then");
        timeouts.on_request(at(20_029));
        timeouts.on_stream_tunnel();
        timeouts.on_request(at(20_029));
        assert_eq!(ordered(&timeouts, 20_200), NextAction::Close, "a request has stalled beside it");
    }

    /// Deleted, the end of a response could be lost to a client that reads slowly, or one that reads nothing keep its connection.
    #[test]
    fn what_was_sent_last_is_taken_in_time() {
        let timeouts = timeouts();
        timeouts.on_secure(at(0));
        timeouts.on_last_sent(at(10));
        timeouts.on_taken(1_024);
        assert_eq!(ordered(&timeouts, 69), NextAction::Serve);
        timeouts.on_taken(1_023);
        assert_eq!(ordered(&timeouts, 128), NextAction::Serve);
        assert_eq!(ordered(&timeouts, 129), NextAction::Close);
    }

    #[test]
    fn a_request_needs_progress_and_a_connection_rests_between_requests() {
        let timeouts = timeouts();
        timeouts.on_secure(at(0));
        timeouts.on_request(at(20));
        assert_eq!(ordered(&timeouts, 79), NextAction::Serve);
        send(&timeouts, 1_024);
        assert_eq!(ordered(&timeouts, 80), NextAction::Serve);
        timeouts.on_request(at(81));
        timeouts.on_response(at(82));
        send(&timeouts, 1_023);
        assert_eq!(ordered(&timeouts, 139), NextAction::Serve);
        timeouts.on_response(at(139));
        assert_eq!(ordered(&timeouts, 168), NextAction::Serve, "idle since its last response");
        timeouts.on_request(at(168));
        send(&timeouts, 1_023);
        assert_eq!(ordered(&timeouts, 228), NextAction::Close, "too few bytes in a minute");
    }
    /// Deleted, an upgrade could cut a client that has just connected, or an idle one hold the old process for ever.
    #[test]
    fn a_connection_that_is_to_leave_is_idle_no_longer_than_others() {
        let timeouts = timeouts();
        timeouts.tell(NextAction::Leave);
        assert!(timeouts.is_leaving() && !timeouts.has_asked());
        timeouts.on_secure(at(1));
        assert_eq!(ordered(&timeouts, 30), NextAction::Leave);
        assert_eq!(ordered(&timeouts, 31), NextAction::Finish);
    }

    /// hyper has all of the response, and the peer reads it slowly.
    #[test]
    fn a_response_that_is_still_leaving_keeps_its_connection() {
        let timeouts = timeouts();
        timeouts.on_secure(at(0));
        timeouts.on_request(at(1));
        timeouts.on_owed(200_000);
        timeouts.on_response(at(1));
        for second in (20..200).step_by(20) {
            timeouts.on_write(1_024);
            assert_eq!(ordered(&timeouts, second), NextAction::Serve);
        }
        assert_eq!(ordered(&timeouts, 209), NextAction::Serve);
        assert_eq!(ordered(&timeouts, 210), NextAction::Finish, "nothing left for the idle time");
    }

    /// Requests whose windows stay shut, and PINGs.
    #[test]
    fn only_content_is_progress() {
        let timeouts = timeouts();
        timeouts.on_secure(at(0));
        timeouts.on_request(at(0));
        send(&timeouts, 1_000);
        for second in 1..60 {
            timeouts.on_read(10_000);
            timeouts.on_write(10_000);
            assert_eq!(ordered(&timeouts, second), NextAction::Serve);
        }
        assert_eq!(ordered(&timeouts, 60), NextAction::Close);
    }

    #[test]
    fn content_that_is_received_is_progress() {
        let timeouts = timeouts();
        timeouts.on_secure(at(0));
        timeouts.on_request(at(0));
        timeouts.on_content(1_024);
        assert_eq!(ordered(&timeouts, 60), NextAction::Serve);
        timeouts.on_content(1_023);
        assert_eq!(ordered(&timeouts, 120), NextAction::Close);
    }

    /// Fails without shares: what one address does not take is refused to all.
    #[test]
    fn an_address_that_reads_nothing_is_put_off_and_others_are_not() {
        let budget = crate::budget::Budget::new(4 << 20);
        let timeouts =
            |peer: [u8; 4]| ConnectionTimeouts::new(Rc::default(), budget.portion(peer.into()), at(0));
        let (hoarder, other) = (timeouts([192, 0, 2, 1]), timeouts([198, 51, 100, 1]));
        let mut reserved = Vec::new();
        while !hoarder.is_short() {
            hoarder.on_request(at(0));
            reserved.push(hoarder.reserve(10_000_000));
        }
        assert!(hoarder.held() > 2 << 20 && hoarder.held() < 3 << 20, "{} held", hoarder.held());
        assert!(timeouts([192, 0, 2, 1]).is_short() && !other.is_short());
        for ahead in reserved {
            hoarder.on_response(at(1));
            hoarder.release(ahead);
        }
        assert!(!hoarder.is_short());
    }
}
