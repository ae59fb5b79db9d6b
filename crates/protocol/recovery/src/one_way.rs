//! How long packets take each way, from the peer's clock beside its acknowledgements. Source: draft-huitema-quic-ts §2.5, §3.1.
//!
//! The two clocks begin at different times and run at slightly different rates. Their distance is taken from the sample with the
//! lowest round trip of the last 30 to 60 seconds, on which both ways are assumed to take as long. So what is reliable is
//! how the delays change; their sum is the round trip without the peer's delay of the acknowledgement.
//!
//! Data structure: the best samples of this window of 30 seconds and of the one before.
//!
//! Rejected: the distance of the first sample for the life of the connection (clocks drift by a millisecond a minute), and taking it
//! anew from whichever sample comes first in a window (it halves the queue that stands there).

#[cfg(test)]
mod tests;

use base::time::{Duration, Instant};

/// Clocks drift less in this time than delays vary. Source: draft-huitema-quic-ts §3.1.
const WINDOW: Duration = Duration::from_secs(30);

/// The last sample of both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWayDelays {
    /// From here to the peer.
    pub to_peer: Duration,
    /// From the peer to here.
    pub from_peer: Duration,
}

/// An acknowledgement with the peer's clock.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When the acknowledgement arrived.
    pub acked_at: Instant,
    /// For how long the largest acknowledged packet and its acknowledgement were under way.
    pub took: Duration,
    /// For how long the peer says that it has held the acknowledgement.
    pub ack_delay: Duration,
    /// The peer's clock when it sent the acknowledgement, since an epoch of its own.
    pub peer_clock: Duration,
}

/// How the peer's clock stood to ours on a sample.
#[derive(Clone, Copy, Debug)]
struct Reference {
    rtt: Duration,
    /// The peer's clock less ours, nanoseconds.
    distance: i128,
}

/// The estimate for one path.
#[derive(Clone, Debug, Default)]
pub struct OneWay {
    delays: Option<OneWayDelays>,
    window_began: Option<Instant>,
    /// The best of this window and of the one before.
    best: [Option<Reference>; 2],
}

impl OneWay {
    /// Takes a sample. One that contradicts itself changes nothing: the peer's clock is the peer's claim.
    pub fn on_sample(&mut self, sample: &Sample) {
        if sample.ack_delay > sample.took || sample.ack_delay > sample.peer_clock {
            return;
        }
        let rtt = sample.took.saturating_sub(sample.ack_delay);
        let received = sample.peer_clock.saturating_sub(sample.ack_delay);
        let sent = i128::from(sample.acked_at.as_nanos()) - i128::from(sample.took.as_nanos());
        let received = i128::from(received.as_nanos());
        let half = i128::from(rtt.as_nanos() / 2);
        self.turn_window(sample.acked_at);
        if self.best[0].is_none_or(|best| rtt <= best.rtt) {
            self.best[0] = Some(Reference { rtt, distance: received - sent - half });
        }
        let Some(best) = self.best.iter().flatten().min_by_key(|best| best.rtt) else { return };
        let to_peer = (received - sent - best.distance).clamp(0, i128::from(rtt.as_nanos()));
        let to_peer = Duration::from_nanos(u64::try_from(to_peer).unwrap_or(u64::MAX));
        self.delays = Some(OneWayDelays { to_peer, from_peer: rtt.saturating_sub(to_peer) });
    }

    fn turn_window(&mut self, now: Instant) {
        let began = *self.window_began.get_or_insert(now);
        if now.saturating_since(began) >= WINDOW {
            self.window_began = Some(now);
            self.best = [None, self.best[0]];
        }
    }

    /// The last sample; `None` before the first.
    pub fn delays(&self) -> Option<OneWayDelays> {
        self.delays
    }
}
