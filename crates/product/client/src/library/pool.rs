//! The connections of a client by origin, and requests that wait for one.
//!
//! A connection of HTTP/2 or 3 serves all requests of its origin, so requests that find none share one attempt. One of HTTP/1.1
//! serves one request at a time: as soon as an origin is known to speak nothing better, each request has an attempt of its own.

use super::connection::{Channel, Connection};
use super::error::Error;
use super::origin::Origin;
use super::settings;
use std::collections::{HashMap, VecDeque};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Which connections will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All; HTTP/3 is preferred.
    Any,
    /// HTTP/3 alone.
    Quic,
    /// HTTP/1.1 and 2.
    Tcp,
}

/// A connection, or `None` when it is worth to look again.
pub(crate) type Found = Result<Option<Connection>, Error>;

/// Whether a request must see to an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It must begin one.
    Begin,
    /// One is under way for all.
    Shared,
}

/// What there is for one origin.
#[derive(Default)]
struct Slot {
    quic: Option<Connection>,
    /// With the time of its last use.
    http2: Option<(Connection, Instant)>,
    /// Connections of HTTP/1.1 without a request, since when.
    idle: VecDeque<(Connection, Instant)>,
    waiting: VecDeque<oneshot::Sender<Found>>,
    attempts: usize,
    /// The last connection took one request at a time.
    is_exclusive: bool,
}

impl Slot {
    fn is_empty(&self) -> bool {
        self.quic.is_none()
            && self.http2.is_none()
            && self.idle.is_empty()
            && self.waiting.is_empty()
            && self.attempts == 0
    }

    fn tcp(&mut self, now: Instant) -> Option<Connection> {
        if let Some((connection, used)) = self.http2.as_mut().filter(|(connection, _)| connection.is_open()) {
            *used = now;
            return connection.share();
        }
        self.http2 = None;
        // The one that was used last: it is the least likely to be closed by the server.
        while let Some((connection, _)) = self.idle.pop_back() {
            if connection.is_open() {
                return Some(Connection { is_reused: true, ..connection });
            }
        }
        None
    }

    fn quic(&mut self) -> Option<Connection> {
        self.quic = self.quic.take().filter(Connection::is_open);
        self.quic.as_ref().and_then(Connection::share)
    }

    /// Gives a connection to the request that has waited longest. Returns it if there is none.
    fn hand_on(&mut self, connection: Connection) -> Option<Connection> {
        let mut found = Ok(Some(connection));
        while let Some(waiting) = self.waiting.pop_front() {
            match waiting.send(found) {
                Ok(()) => return None,
                // The request was cancelled.
                Err(back) => found = back,
            }
        }
        found.ok().flatten()
    }

    fn tell_all(&mut self, found: impl Fn() -> Found) {
        for waiting in std::mem::take(&mut self.waiting) {
            let _ = waiting.send(found());
        }
    }
}

/// All connections of a client.
pub(crate) struct Pool {
    origins: HashMap<Origin, Slot>,
    limits: settings::Pool,
}

impl Pool {
    pub(crate) fn new(limits: settings::Pool) -> Pool {
        Pool { origins: HashMap::new(), limits }
    }

    /// A connection that takes a request now.
    pub(crate) fn ready(&mut self, origin: &Origin, wanted: Wanted, now: Instant) -> Option<Connection> {
        let slot = self.origins.get_mut(origin)?;
        match wanted {
            Wanted::Any => slot.quic().or_else(|| slot.tcp(now)),
            Wanted::Quic => slot.quic(),
            Wanted::Tcp => slot.tcp(now),
        }
    }

    /// Waits for a connection.
    pub(crate) fn wait(&mut self, origin: &Origin) -> (oneshot::Receiver<Found>, Attempt) {
        let (tell, told) = oneshot::channel();
        let slot = self.origins.entry(origin.clone()).or_default();
        slot.waiting.push_back(tell);
        if slot.attempts > 0 && !slot.is_exclusive {
            return (told, Attempt::Shared);
        }
        slot.attempts += 1;
        (told, Attempt::Begin)
    }

    /// An attempt is over.
    pub(crate) fn on_attempt(&mut self, origin: &Origin, result: Result<Connection, Error>, now: Instant) {
        let slot = self.origins.entry(origin.clone()).or_default();
        slot.attempts = slot.attempts.saturating_sub(1);
        match result {
            Ok(connection) => match connection.share() {
                Some(shared) => {
                    slot.is_exclusive = false;
                    if shared.is_quic() {
                        slot.quic = Some(shared);
                    } else {
                        slot.http2 = Some((shared, now));
                    }
                    slot.hand_on(connection);
                    // They look again, and find it.
                    slot.tell_all(|| Ok(None));
                }
                None => {
                    let was_shared = !std::mem::replace(&mut slot.is_exclusive, true);
                    if let Some(unused) = slot.hand_on(connection) {
                        slot.idle.push_back((unused, now));
                    }
                    if was_shared {
                        slot.tell_all(|| Ok(None));
                    }
                }
            },
            Err(error) if slot.is_exclusive && slot.attempts > 0 => {
                if let Some(waiting) = slot.waiting.pop_front() {
                    let _ = waiting.send(Err(error));
                }
            }
            Err(error) => slot.tell_all(|| Err(error.clone())),
        }
        self.tidy(origin);
    }

    /// An HTTP/3 connection was made beside the one that was waited for.
    pub(crate) fn add_quic(&mut self, origin: &Origin, connection: &Connection) {
        self.origins.entry(origin.clone()).or_default().quic = connection.share();
    }

    /// HTTP/3 will not do for this origin at present.
    pub(crate) fn drop_quic(&mut self, origin: &Origin) {
        if let Some(slot) = self.origins.get_mut(origin) {
            slot.quic = None;
        }
        self.tidy(origin);
    }

    /// A connection of HTTP/1.1 can take another request.
    pub(crate) fn add_idle(&mut self, origin: &Origin, connection: Connection, now: Instant) {
        let most = self.limits.idle_per_origin;
        let slot = self.origins.entry(origin.clone()).or_default();
        if let Some(connection) = slot.hand_on(Connection { is_reused: true, ..connection }) {
            slot.idle.push_back((connection, now));
        }
        while slot.idle.len() > most {
            slot.idle.pop_front();
        }
        self.tidy(origin);
    }

    /// Closes what has had no request for too long.
    pub(crate) fn sweep(&mut self, now: Instant) {
        let idle = self.limits.idle;
        self.origins.retain(|_, slot| {
            slot.idle.retain(|(connection, since)| now < *since + idle && connection.is_open());
            slot.http2.take_if(|(connection, used)| now >= *used + idle || !connection.is_open());
            slot.quic.take_if(|connection| !connection.is_open());
            !slot.is_empty()
        });
    }

    fn tidy(&mut self, origin: &Origin) {
        if self.origins.get(origin).is_some_and(Slot::is_empty) {
            self.origins.remove(origin);
        }
    }
}

/// Whether a connection takes one request at a time.
pub(crate) fn is_exclusive(connection: &Connection) -> bool {
    matches!(connection.channel, Channel::Http1(_))
}
