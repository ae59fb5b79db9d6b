//! HyStart++: the first slow start ends when the round trip grows, before packets are lost.
//!
//! Round trips are compared with the smallest of the round before. Where they have grown by an eighth, growth slows down to a
//! quarter (*conservative slow start*) for five rounds; if the round trip falls below what it was then, the growth was jitter
//! and slow start goes on.
//!
//! One thing is not as the source has it. There the smallest round trip of the whole round must have grown. The first packets
//! of a round find the queue that the last of the round before have left, so the smallest round trip is theirs: a queue that
//! begins to fill within a round shows in the round after, when up to four and a half products are on their way, and a queue of
//! one product has long been overrun. Here the smallest of the *latest* eight samples must have grown: as many as the source
//! takes for enough, so jitter is filtered as there, and whatever alarms the source alarms this. A path of which eight samples
//! in a row were late by chance loses a round of growth, since the next round begins with samples that say so.
//!
//! A sample is an ACK frame that measures the round trip, or all of them that come within 1/256 of a round trip, as Wi-Fi delivers what it
//! has held up: eight that come in one instant are late by one chance. A peer that acknowledges rarely gives few samples: below eight a
//! round nothing is concluded, as the source demands. Rounds begin and end as there, but that the acknowledgement which ends
//! one counts for the next.
//! The limit on growth per acknowledgement is left out, because the sender is paced (§4.3, L is infinite).
//!
//! RFC 9406 §4.2, §4.3.

use super::events::AckedBytes;
use base::time::{Duration, Instant};

/// Least growth of the round trip that counts. Source: RFC 9406 §4.3 (MIN_RTT_THRESH).
const LEAST_GROWTH: Duration = Duration::from_millis(4);
/// Growth that always counts. Source: RFC 9406 §4.3 (MAX_RTT_THRESH).
const MOST_GROWTH: Duration = Duration::from_millis(16);
/// The part of the round trip by which it must grow. Source: RFC 9406 §4.3 (MIN_RTT_DIVISOR).
const GROWTH_DIVISOR: u64 = 8;
/// Samples that a round must have. Source: RFC 9406 §4.3 (N_RTT_SAMPLE).
const SAMPLES: usize = 8;
/// What comes within such a part of a round trip is one sample.
const TOGETHER_PART: u64 = 256;
/// Conservative slow start divides growth by this. Source: RFC 9406 §4.3 (CSS_GROWTH_DIVISOR).
const SLOWDOWN: u64 = 4;
/// Rounds of conservative slow start. Source: RFC 9406 §4.3 (CSS_ROUNDS).
const CONSERVATIVE_ROUNDS: u32 = 5;

/// How slow start ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStartEnd {
    /// By HyStart++ or by congestion, whichever comes first.
    #[default]
    HyStart,
    /// By congestion only. Source: RFC 9002 §7.3.1.
    Standard,
}

/// What slow start may do with an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Grow by this many bytes.
    Grow(u64),
    /// Slow start is over.
    Over,
}

/// The detector of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    phase: Phase,
    /// A packet sent from here on ends the round with its acknowledgement.
    round_start: Instant,
    last_min: Option<Duration>,
    current_min: Option<Duration>,
    /// Samples of this round.
    samples: usize,
    /// When the first frame of the latest of them came.
    sample_at: Instant,
    /// The latest of them, in a ring.
    latest: [Duration; SAMPLES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Off,
    Full,
    /// The round trip at which growth slowed down, and the rounds since, the broken first one included.
    Conservative(Duration, u32),
}

impl HyStart {
    pub(super) const fn new(end: SlowStartEnd) -> HyStart {
        let phase = match end {
            SlowStartEnd::HyStart => Phase::Full,
            SlowStartEnd::Standard => Phase::Off,
        };
        HyStart {
            phase,
            round_start: Instant::ZERO,
            last_min: None,
            current_min: None,
            samples: 0,
            sample_at: Instant::ZERO,
            latest: [Duration::ZERO; SAMPLES],
        }
    }

    /// Whether nothing has slowed growth down.
    pub(super) fn is_at_full_pace(&self) -> bool {
        matches!(self.phase, Phase::Off | Phase::Full)
    }

    /// An acknowledgement in slow start.
    pub(super) fn on_ack(&mut self, now: Instant, acked: &AckedBytes) -> Pace {
        if self.phase == Phase::Off {
            return Pace::Grow(acked.bytes);
        }
        if acked.largest_sent_at >= self.round_start {
            self.start_round(now);
        }
        if let Some(rtt) = acked.latest_rtt {
            self.add(now, rtt);
            self.current_min = Some(self.current_min.map_or(rtt, |min| min.min(rtt)));
        }
        self.judge();
        match self.phase {
            Phase::Off | Phase::Full => Pace::Grow(acked.bytes),
            Phase::Conservative(_, rounds) if rounds > CONSERVATIVE_ROUNDS => Pace::Over,
            Phase::Conservative(..) => Pace::Grow(acked.bytes / SLOWDOWN),
        }
    }

    /// Takes a sample, or a part of the latest one, whose shortest counts.
    fn add(&mut self, now: Instant, rtt: Duration) {
        let is_new = self.samples == 0 || now.saturating_since(self.sample_at) >= rtt / TOGETHER_PART;
        if is_new {
            self.sample_at = now;
            self.samples = self.samples.saturating_add(1);
        }
        if let Some(place) = self.latest.get_mut(self.samples % SAMPLES) {
            *place = if is_new { rtt } else { rtt.min(*place) };
        }
    }

    fn start_round(&mut self, now: Instant) {
        self.round_start = now;
        self.last_min = self.current_min.take();
        self.samples = 0;
        if let Phase::Conservative(_, rounds) = &mut self.phase {
            *rounds = rounds.saturating_add(1);
        }
    }

    fn judge(&mut self) {
        let Some(current) = self.current_min.filter(|_| self.samples >= SAMPLES) else { return };
        match (self.phase, self.last_min) {
            (Phase::Full, Some(last)) => {
                let growth = (last / GROWTH_DIVISOR).min(MOST_GROWTH).max(LEAST_GROWTH);
                let lately = self.latest.iter().copied().min().unwrap_or(current);
                if lately >= last + growth {
                    self.phase = Phase::Conservative(lately, 1);
                }
            }
            // In the round of the alarm, what came before it is shorter.
            (Phase::Conservative(baseline, rounds), _) if rounds > 1 && current < baseline => {
                self.phase = Phase::Full;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of ten samples; growth is out of 1,000 bytes for each.
    fn round(hystart: &mut HyStart, now: &mut Instant, rtt_ms: u64, samples: u64) -> Vec<Pace> {
        let (sent_at, rtt) = (*now, Duration::from_millis(rtt_ms));
        *now = *now + rtt;
        let paces = (0..samples).map(|_| {
            *now = *now + rtt / TOGETHER_PART;
            hystart.on_ack(*now, &acked(sent_at, rtt))
        });
        paces.collect()
    }

    fn acked(sent_at: Instant, rtt: Duration) -> AckedBytes {
        AckedBytes { rtt, latest_rtt: Some(rtt), ..super::super::tests::acked(1_000, sent_at) }
    }

    fn start() -> (HyStart, Instant) {
        (HyStart::new(SlowStartEnd::HyStart), Instant::from_nanos(1))
    }

    #[test]
    fn a_growing_round_trip_slows_growth_and_ends_it_after_five_rounds() {
        let (mut hystart, mut now) = start();
        assert!(round(&mut hystart, &mut now, 100, 10).iter().all(|pace| *pace == Pace::Grow(1_000)));
        // An eighth more, the eighth sample says: the rest of the round is slow.
        let paces = round(&mut hystart, &mut now, 113, 10);
        assert_eq!((paces[6], paces[7]), (Pace::Grow(1_000), Pace::Grow(250)));
        for _ in 1..CONSERVATIVE_ROUNDS {
            assert!(round(&mut hystart, &mut now, 113, 10).iter().all(|pace| *pace == Pace::Grow(250)));
        }
        assert_eq!(round(&mut hystart, &mut now, 113, 1), [Pace::Over]);
    }

    /// Or else a queue of a product is full, and overrun, before it is noticed.
    #[test]
    fn a_queue_is_seen_in_the_round_in_which_it_begins() {
        let (mut hystart, mut now) = start();
        round(&mut hystart, &mut now, 100, 10);
        let sent_at = now;
        now = now + Duration::from_millis(100);
        // From the tenth acknowledgement on each packet waits two milliseconds longer; 13 ms are an eighth.
        let paces: Vec<Pace> = (0..40)
            .map(|index: u64| {
                let rtt = Duration::from_millis(100 + 2 * index.saturating_sub(10));
                now = now + rtt / TOGETHER_PART;
                hystart.on_ack(now, &acked(sent_at, rtt))
            })
            .collect();
        let first = paces.iter().position(|pace| *pace == Pace::Grow(250));
        assert_eq!(first, Some(24), "the eight before and this one are 114 ms and more");
        assert!(
            paces[24..].iter().all(|pace| *pace == Pace::Grow(250)),
            "the round's first samples take nothing back"
        );
        assert!(round(&mut hystart, &mut now, 160, 40).iter().all(|pace| *pace == Pace::Grow(250)));
    }

    /// Fewer than eight samples in a row are jitter, however late.
    #[test]
    fn seven_late_samples_in_a_row_mean_nothing() {
        let (mut hystart, mut now) = start();
        round(&mut hystart, &mut now, 100, 10);
        let sent_at = now;
        now = now + Duration::from_millis(100);
        for index in 0..64 {
            let rtt = Duration::from_millis(if index % 8 == 0 { 101 } else { 300 });
            now = now + rtt / TOGETHER_PART;
            assert_eq!(hystart.on_ack(now, &acked(sent_at, rtt)), Pace::Grow(1_000), "{index}");
        }
    }

    /// Deleted, one late batch of acknowledgements would be eight late samples, and end slow start's full pace.
    #[test]
    fn what_comes_together_is_one_sample() {
        let (mut hystart, mut now) = start();
        round(&mut hystart, &mut now, 100, 10);
        let sent_at = now;
        now = now + Duration::from_millis(100);
        for batch in 0..8 {
            now = now + Duration::from_millis(10);
            let paces: Vec<Pace> = (0..16)
                .map(|index| hystart.on_ack(now, &acked(sent_at, Duration::from_millis(130 - index))))
                .collect();
            let expected = Pace::Grow(if batch < 7 { 1_000 } else { 250 });
            assert!(paces.iter().all(|pace| *pace == expected), "{batch}: {paces:?}");
        }
    }

    /// Deleted, a batch would be as late as the packet of it that waited longest for the others.
    #[test]
    fn the_shortest_of_a_batch_counts() {
        let (mut hystart, mut now) = start();
        round(&mut hystart, &mut now, 100, 10);
        let sent_at = now;
        for _ in 0..20 {
            now = now + Duration::from_millis(10);
            for rtt_ms in [119, 113, 111] {
                let pace = hystart.on_ack(now, &acked(sent_at, Duration::from_millis(rtt_ms)));
                assert_eq!(pace, Pace::Grow(1_000));
            }
        }
    }

    #[test]
    fn jitter_is_taken_back() {
        let (mut hystart, mut now) = start();
        round(&mut hystart, &mut now, 100, 10);
        round(&mut hystart, &mut now, 120, 10);
        let paces = round(&mut hystart, &mut now, 101, 10);
        assert_eq!((paces[6], paces[7]), (Pace::Grow(250), Pace::Grow(1_000)));
    }

    #[test]
    fn less_than_the_threshold_or_too_few_samples_mean_nothing() {
        for (first, second, samples) in [(100, 111, 10), (10, 13, 10), (100, 200, 7), (400, 415, 10)] {
            let (mut hystart, mut now) = start();
            round(&mut hystart, &mut now, first, 10);
            let paces = round(&mut hystart, &mut now, second, samples);
            assert!(paces.iter().all(|pace| *pace == Pace::Grow(1_000)), "{first} {second} {samples}");
        }
        // The threshold is at least 4 ms and at most 16 ms.
        for (first, second) in [(10, 14), (400, 416)] {
            let (mut hystart, mut now) = start();
            round(&mut hystart, &mut now, first, 10);
            assert_eq!(round(&mut hystart, &mut now, second, 8)[7], Pace::Grow(250), "{first} {second}");
        }
    }

    #[test]
    fn switched_off_it_never_slows() {
        let (mut hystart, mut now) = (HyStart::new(SlowStartEnd::Standard), Instant::from_nanos(1));
        for rtt_ms in [100, 200, 400, 800] {
            assert!(round(&mut hystart, &mut now, rtt_ms, 10).iter().all(|pace| *pace == Pace::Grow(1_000)));
        }
    }
}
