//! How a server leaves an HTTP/3 connection without loss. RFC 9114 §5.2.
//!
//! ```text
//! Open ── GOAWAY, highest ID ──> Noticed ── GOAWAY, next ID ──> Final ── all acknowledged ──> closed
//! ```
//!
//! Requests that arrive before the final GOAWAY are answered, later ones are rejected with H3_REQUEST_REJECTED, so that clients
//! may send them again elsewhere. An exchange is over when the client has acknowledged the response and its end, or the reset
//! in its place: what was handed to the transport may still be lost, and a closed connection sends nothing again.
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

/// How far the end of a connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ShutdownState {
    #[default]
    Open,
    /// The client was told to begin no more. The final GOAWAY follows when the client has acknowledged that, after `earliest`,
    /// or at `latest`.
    Noticed { earliest: Instant, latest: Instant },
    /// What is left is answered. The connection closes when the client has acknowledged all of it; for the GOAWAY alone it does
    /// not wait longer than `latest`.
    Final { latest: Instant },
}

impl ShutdownState {
    /// Does what is due.
    pub(crate) fn proceed(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        http: &mut http3::Connection,
    ) {
        let rtt = connection.rtt();
        let latest = |least: Duration| now + (rtt * ROUND_TRIPS_TO_HEAR).max(least);
        match *self {
            ShutdownState::Open => {
                http.goaway(connection, Goaway::Notice);
                let earliest = now + rtt.max(MIN_NOTICE);
                *self = ShutdownState::Noticed { earliest, latest: latest(MIN_TIME_TO_HEAR) };
            }
            ShutdownState::Noticed { earliest, latest: end }
                if now >= end || now >= earliest && connection.unacknowledged_streams(Dir::Uni) == 0 =>
            {
                http.goaway(connection, Goaway::Final);
                *self = ShutdownState::Final { latest: latest(MIN_TIME_TO_HEAR_FINAL) };
            }
            ShutdownState::Noticed { .. } | ShutdownState::Final { .. } => {}
        }
        if let ShutdownState::Final { latest } = *self
            && http.open_exchanges() == 0
            && connection.unacknowledged_streams(Dir::Bidi) == 0
            && (now >= latest || connection.unacknowledged_streams(Dir::Uni) == 0)
        {
            http.close(connection, now);
        }
    }

    /// When it goes on, whatever the client does.
    pub(crate) fn next_timeout(self, now: Instant) -> Option<Instant> {
        match self {
            ShutdownState::Noticed { earliest, .. } if now < earliest => Some(earliest),
            ShutdownState::Noticed { latest, .. } | ShutdownState::Final { latest } if now < latest => {
                Some(latest)
            }
            ShutdownState::Open | ShutdownState::Noticed { .. } | ShutdownState::Final { .. } => None,
        }
    }
}
