//! How a server leaves an HTTP/3 connection without loss. RFC 9114 §5.2.
//!
//! ```text
//! Open ── GOAWAY, highest ID ──> Noticed ── GOAWAY, next ID ──> Final ── all acknowledged ──> Reading ── time to read ──> closed
//! ```
//!
//! Requests that arrive before the final GOAWAY are answered, later ones are rejected with H3_REQUEST_REJECTED, so that clients
//! may send them again elsewhere. An exchange is over when the client has acknowledged the response and its end, or the reset
//! in its place: what was handed to the transport may still be lost, and a closed connection sends nothing again.
//!
//! What a client has acknowledged it may not have read: RFC 9000 §13.2.1 has it acknowledged on arrival, and a client may throw away what
//! waits to be read when the connection is closed (§10.2). Chromium does, and fails the request. So a client has time to read what it got
//! lately: as long as reading it takes at [`SLOWEST_READ`], within bounds. A client that closes the connection ends that.
//!
//! Nothing here ends a client that makes no progress: that is the business of the rule of progress and of the idle timeout.

use base::time::{Duration, Instant};
use http3::Goaway;
use transport::{Connection, Dir};

/// How long a client has at least to hear the first GOAWAY before the final one.
const MIN_NOTICE: Duration = Duration::from_millis(1);
/// After this many round trips a GOAWAY that is not acknowledged keeps nothing waiting: it was lost more than once, or the client
/// has gone.
const ROUND_TRIPS_TO_HEAR: u64 = 4;
/// The same on short paths, where busy clients take longer than the round trip: one that has not heard the first GOAWAY has its
/// requests rejected.
const MIN_TIME_TO_HEAR: Duration = Duration::from_secs(1);
/// The same of the final one, after which nothing is answered.
const MIN_TIME_TO_HEAR_FINAL: Duration = Duration::from_millis(200);

/// A client is given the time that it takes to read responses at this rate, in nanoseconds for each byte: 2 MB a second.
const SLOWEST_READ: u64 = 500;
/// The time to read is no longer than this, which is what the end of a server may wait for: Chromium stays until it is told to go.
const MAX_TIME_TO_READ: Duration = Duration::from_secs(5);
/// The least time from an acknowledgement: Chromium reads what came with the last packets a little later than it acknowledges it.
const MIN_TIME_TO_READ: Duration = Duration::from_millis(500);

/// The end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shutdown {
    state: ShutdownState,
    /// When the client has read what it was sent.
    read_by: Instant,
}

/// How far the end of a connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ShutdownState {
    #[default]
    Open,
    /// The client was told to begin no more. The final GOAWAY follows when the client has acknowledged that, after `earliest`,
    /// or at `latest`.
    Noticed { earliest: Instant, latest: Instant },
    /// What is left is answered. The client has acknowledged all of it in the end; for the GOAWAY alone it is not waited for longer than
    /// until `latest`.
    Final { latest: Instant },
    /// The connection closes `at` this time, or with the client.
    Reading { at: Instant },
}

impl Shutdown {
    /// A response with this many bytes of content was handed over whole.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u64) {
        let takes = Duration::from_nanos(bytes.saturating_mul(SLOWEST_READ));
        self.read_by = (self.read_by.max(now) + takes).min(now + MAX_TIME_TO_READ);
    }

    /// Does what is due.
    pub(crate) fn proceed(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        http: &mut http3::Connection,
    ) {
        let rtt = connection.rtt();
        let latest = |least: Duration| now + (rtt * ROUND_TRIPS_TO_HEAR).max(least);
        let is_over = http.open_exchanges() == 0 && connection.unacknowledged_streams(Dir::Bidi) == 0;
        if !is_over {
            // The last acknowledgement comes within a round trip, mostly.
            self.read_by = self.read_by.max(now + rtt + MIN_TIME_TO_READ);
        }
        match self.state {
            ShutdownState::Open => {
                http.goaway(connection, Goaway::Notice);
                let earliest = now + rtt.max(MIN_NOTICE);
                self.state = ShutdownState::Noticed { earliest, latest: latest(MIN_TIME_TO_HEAR) };
            }
            ShutdownState::Noticed { earliest, latest: end }
                if now >= end || now >= earliest && connection.unacknowledged_streams(Dir::Uni) == 0 =>
            {
                http.goaway(connection, Goaway::Final);
                self.state = ShutdownState::Final { latest: latest(MIN_TIME_TO_HEAR_FINAL) };
            }
            ShutdownState::Noticed { .. } | ShutdownState::Final { .. } | ShutdownState::Reading { .. } => {}
        }
        if let ShutdownState::Final { latest } = self.state
            && is_over
            && (now >= latest || connection.unacknowledged_streams(Dir::Uni) == 0)
        {
            self.state = ShutdownState::Reading { at: self.read_by };
        }
        // Requests that come meanwhile are rejected, and the client hears so.
        if let ShutdownState::Reading { at } = self.state
            && is_over
            && now >= at
        {
            http.close(connection, now);
        }
    }

    /// When it goes on, whatever the client does.
    pub(crate) fn next_timeout(self, now: Instant) -> Option<Instant> {
        match self.state {
            ShutdownState::Noticed { earliest, .. } if now < earliest => Some(earliest),
            ShutdownState::Noticed { latest: at, .. }
            | ShutdownState::Final { latest: at }
            | ShutdownState::Reading { at }
                if now < at =>
            {
                Some(at)
            }
            _ => None,
        }
    }
}
