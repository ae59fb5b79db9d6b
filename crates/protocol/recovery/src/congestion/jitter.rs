//! Whether round trips turn from one acknowledgement to the next as no queue makes them.
//!
//! A queue takes many packets to grow and to shrink, jitter draws the delay of each anew. A *turn* is the smaller of two changes in a row with opposite
//! signs, of round trips without what the peer waited. The turns of sixteen samples are averaged and held against what those waited on average.
//!
//! A flow's own trains make turns, too: their last packet waits for the first ones. They go with the round trip (docs/decisions/008-bursts.md), so a
//! thirty-second of it is taken from each turn, more on long paths, and a millisecond.
//!
//! In simulated crowds of eight at CoDel, PIE and full queues turns are 0.002 of waits at most at 19 of 20 losses (0.017 for two flows at CoDel and 150 ms), in
//! jitter of half a round trip 0.05 to 0.09 at the median loss of a young flow (docs/decisions/023-congestion-auto.md).
//!
//! Rejected: changes from one sample to the next, whatever their signs (a queue that fills changes fast); the shortest round trips of successive rounds, which
//! a young flow has too few of.

use super::events::AckedBytes;
use base::time::Duration;

/// Samples over which turns and waits are averaged.
const SAMPLES: u32 = 16;
/// What a train makes is left out of each turn: such a part of a round trip,
const TRAIN_PART: u32 = 32;
/// where that takes long such a part but for two milliseconds, in microseconds, since trains of more than ten packets are so long,
const LONG_TRAIN_PART: u32 = 16;
const LONG_TRAIN: u32 = 2_000;
/// and a millisecond, in microseconds.
const BURST: u32 = 1_000;

/// Turns and waits of one path, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jitter {
    /// The last two round trips without the peer's delay; [`u32::MAX`] where none is known.
    last: [u32; 2],
    turn: u32,
    wait: u32,
}

impl Jitter {
    pub(super) const fn new() -> Jitter {
        Jitter { last: [u32::MAX; 2], turn: 0, wait: 0 }
    }

    /// A frame has measured a round trip, of which the shortest is `min`.
    pub(super) fn on_sample(&mut self, acked: &AckedBytes, min: Duration) {
        let Some(rtt) = acked.latest_rtt else { return };
        if acked.app_limited {
            // What the flow fills itself empties in a pause.
            self.last = [u32::MAX; 2];
            return;
        }
        let travelled = micros(rtt.saturating_sub(acked.ack_delay));
        let [first, second] = self.last;
        self.last = [second, travelled];
        if first == u32::MAX {
            return;
        }
        let turns = (first < second) != (second < travelled);
        let change = first.abs_diff(second).min(second.abs_diff(travelled));
        let turn = if turns { change.saturating_sub(train(micros(acked.rtt)) + BURST) } else { 0 };
        self.turn = average(self.turn, turn);
        self.wait = average(self.wait, micros(rtt.saturating_sub(min)));
    }

    /// Whether turns are more than such a part of what packets wait.
    pub(super) fn exceeds(&self, part: u32) -> bool {
        u64::from(self.turn) * u64::from(part) > u64::from(self.wait)
    }
}

/// What packets of one train differ by in a round trip of so many microseconds.
fn train(rtt: u32) -> u32 {
    (rtt / TRAIN_PART).max((rtt / LONG_TRAIN_PART).saturating_sub(LONG_TRAIN))
}

/// Rounded down, so that what has ended is forgotten.
fn average(mean: u32, sample: u32) -> u32 {
    mean - mean.div_ceil(SAMPLES) + sample / SAMPLES
}

/// An hour is as good as any time above it.
fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::acked;
    use base::time::Instant;

    const MIN: u64 = 40;

    /// Whether twenty-fifths of what packets wait are exceeded after frames that come with these waits and delays of the peer's, in milliseconds.
    fn is_jitter(frames: impl IntoIterator<Item = (u64, u64, bool)>) -> bool {
        is_jitter_of(MIN, frames)
    }

    /// The same with so many milliseconds of the shortest round trip.
    fn is_jitter_of(min: u64, frames: impl IntoIterator<Item = (u64, u64, bool)>) -> bool {
        let mut jitter = Jitter::new();
        for (wait, delay, app_limited) in frames {
            let rtt = Duration::from_millis(min + wait + delay);
            let frame = AckedBytes {
                rtt: Duration::from_millis(min),
                latest_rtt: Some(rtt),
                ack_delay: Duration::from_millis(delay),
                app_limited,
                ..acked(10_000, Instant::ZERO)
            };
            jitter.on_sample(&frame, Duration::from_millis(min));
        }
        jitter.exceeds(25)
    }

    #[test]
    fn delays_that_are_drawn_anew_are_jitter() {
        let draw = |frame: u64| (frame * 7 % 13, 0, false);
        assert!(is_jitter((0..40).map(draw)));
    }

    #[test]
    fn a_queue_that_fills_and_empties_is_none() {
        let wave = |frame: u64| (5 + (frame % 20).min(20 - frame % 20) * 2, 0, false);
        assert!(!is_jitter((0..200).map(wave)));
    }

    /// Deleted, a flow that sends in trains would be in jitter by itself.
    #[test]
    fn a_train_is_none() {
        let train = |frame: u64| (5 + frame % 3, 0, false);
        assert!(!is_jitter((0..200).map(train)));
    }

    /// Deleted, the trains of a long path, which are a sixteenth of it, would be jitter.
    #[test]
    fn a_train_of_a_long_path_is_none() {
        let train = |frame: u64| (20 + frame % 2 * 7, 0, false);
        assert!(!is_jitter_of(150, (0..200).map(train)));
        assert!(is_jitter_of(60, (0..200).map(train)));
    }

    /// Deleted, acknowledgements that the peer holds for a while would be jitter.
    #[test]
    fn what_the_peer_waits_is_none() {
        let held = |frame: u64| (5, frame * 7 % 13, false);
        assert!(!is_jitter((0..200).map(held)));
    }

    /// Deleted, the bursts of an application would be jitter.
    #[test]
    fn a_queue_that_empties_in_pauses_is_none() {
        let bursts = |frame: u64| (frame % 2 * 30, 0, frame % 2 == 1);
        assert!(!is_jitter((0..200).map(bursts)));
    }
}
