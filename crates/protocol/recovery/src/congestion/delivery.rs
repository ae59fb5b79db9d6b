//! Delivery-rate samples: how fast the path delivered what was acknowledged, and whether the application or the path was the
//! limit.
//!
//! A sample compares the path's account at an acknowledgement with the account when the packet left. That earlier account is
//! kept here, one *snapshot* per train, found by the time at which the train left. The ledger keeps nothing of it: its slots
//! stay at 24 bytes, and controllers that need no samples pay nothing.
//! The log is bounded. It holds three round trips; where more trains leave than it has places, every second snapshot is
//! dropped and later ones are taken more rarely, so that neighbouring trains share one. A shared snapshot is older than the
//! packet, which makes the sample span a little more time and a little more data.
//! Rejected: a snapshot in each slot of the ledger (doubles it, for every controller).
//!
//! draft-ietf-ccwg-bbr §4.1 (once draft-cheng-iccrg-delivery-rate-estimation).

use super::events::AckedBytes;
use base::time::{Duration, Instant};
use std::collections::VecDeque;

/// Snapshots that the log holds at most.
const MAX_SNAPSHOTS: usize = 256;
/// Round trips before the latest acknowledged packet for which snapshots are kept: losses are declared within them.
const REMEMBERED_ROUNDS: u64 = 2;
/// No bandwidth is larger, in bytes a second: 800 Gbit/s.
pub(super) const MAX_BANDWIDTH: u64 = 100_000_000_000;

/// `bytes` over `span` in bytes a second.
pub(super) fn bandwidth(bytes: u64, span: Duration) -> u64 {
    let per_second = u128::from(bytes) * 1_000_000_000 / u128::from(span.as_nanos().max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX).min(MAX_BANDWIDTH)
}

/// The account when a train had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Bytes in flight, the train included.
    pub(super) in_flight: u64,
    /// Bytes lost until then.
    pub(super) lost: u64,
    pub(super) limit: Limit,
}

/// What limited a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// The application had nothing to send for a while.
    Application,
    /// The path, or this controller.
    Path,
}

/// What an acknowledgement tells of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateSample {
    /// Bytes that the frame newly acknowledged.
    pub(super) newly_acked: u64,
    /// Bytes a second; 0 if the sample is not reliable.
    pub(super) rate: u64,
    /// Bytes delivered from when the latest of the packets left until now.
    pub(super) delivered: u64,
    /// Bytes delivered before it left.
    pub(super) prior_delivered: u64,
    /// Bytes in flight once it had left.
    pub(super) tx_in_flight: u64,
    /// Bytes declared lost since it left.
    pub(super) lost: u64,
    /// How long it took.
    pub(super) rtt: Duration,
    pub(super) limit: Limit,
}

impl RateSample {
    fn unknown(acked: &AckedBytes, rtt: Duration) -> RateSample {
        RateSample {
            newly_acked: acked.bytes,
            rate: 0,
            delivered: 0,
            prior_delivered: 0,
            tx_in_flight: 0,
            lost: 0,
            rtt,
            limit: Limit::Application,
        }
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.limit == Limit::Application
    }
}

/// The account of one path.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    /// Bytes delivered, and when that last changed.
    delivered: u64,
    delivered_at: Instant,
    /// When the packet left that was delivered last; or, after idleness, the first one to leave again.
    first_sent_at: Instant,
    lost: u64,
    /// Samples are limited by the application until this much is delivered.
    limited_until: Option<u64>,
    min_rtt: Duration,
    /// By time of departure.
    log: VecDeque<Snapshot>,
    /// Trains that leave sooner than this after a snapshot share it.
    spacing: Duration,
}

impl Delivery {
    pub(super) const fn new() -> Delivery {
        Delivery {
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            lost: 0,
            limited_until: None,
            min_rtt: Duration::MAX,
            log: VecDeque::new(),
            spacing: Duration::ZERO,
        }
    }

    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) const fn is_app_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    /// `bytes` left; `in_flight` includes them.
    pub(super) fn on_sent(&mut self, sent_at: Instant, bytes: u64, in_flight: u64) {
        if in_flight <= bytes {
            (self.first_sent_at, self.delivered_at) = (sent_at, sent_at);
            self.log.clear();
            self.spacing = Duration::ZERO;
        }
        let limit = if self.is_app_limited() { Limit::Application } else { Limit::Path };
        // A clock that stepped back must not disturb the order.
        let sent_at = self.log.back().map_or(sent_at, |last| last.sent_at.max(sent_at));
        if let Some(last) = self.log.back_mut()
            && (sent_at.saturating_since(last.sent_at) < self.spacing || sent_at == last.sent_at)
        {
            last.in_flight = in_flight;
            if limit == Limit::Application {
                last.limit = limit;
            }
            return;
        }
        if self.log.len() >= MAX_SNAPSHOTS {
            self.thin_out();
        }
        self.log.push_back(Snapshot {
            sent_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight,
            lost: self.lost,
            limit,
        });
    }

    fn thin_out(&mut self) {
        let mut index = 0;
        self.log.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        if let (Some(first), Some(last)) = (self.log.front(), self.log.back()) {
            self.spacing = last.sent_at.saturating_since(first.sent_at) / (MAX_SNAPSHOTS as u64 / 2);
        }
    }

    /// The account as it was when the packet left that left at `sent_at`.
    pub(super) fn snapshot(&self, sent_at: Instant) -> Option<Snapshot> {
        let end = self.log.partition_point(|snapshot| snapshot.sent_at <= sent_at);
        self.log.get(end.checked_sub(1)?).copied()
    }

    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// The sender has run out of data with this much in flight: what is sent until that is delivered measures the
    /// application.
    pub(super) fn mark_app_limited(&mut self, in_flight: u64) {
        self.limited_until = Some(self.delivered.saturating_add(in_flight).max(1));
    }

    /// Books an acknowledgement. If nothing is known of the packet's departure, the sample has no rate.
    pub(super) fn on_acked(&mut self, now: Instant, acked: &AckedBytes) -> RateSample {
        self.delivered = self.delivered.saturating_add(acked.bytes);
        self.delivered_at = now;
        if self.limited_until.is_some_and(|until| self.delivered > until) {
            self.limited_until = None;
        }
        let sent_at = acked.largest_sent_at;
        let rtt = acked.latest_rtt.unwrap_or_else(|| now.saturating_since(sent_at));
        let rtt = rtt.max(Duration::from_nanos(1));
        self.min_rtt = self.min_rtt.min(rtt);
        let Some(then) = self.snapshot(sent_at) else { return RateSample::unknown(acked, rtt) };
        self.first_sent_at = self.first_sent_at.max(sent_at);
        self.forget_before(sent_at - acked.rtt * REMEMBERED_ROUNDS);
        let delivered = self.delivered.saturating_sub(then.delivered);
        let sending = sent_at.saturating_since(then.first_sent_at);
        let acking = now.saturating_since(then.delivered_at);
        let interval = sending.max(acking);
        let is_reliable = interval >= self.min_rtt;
        RateSample {
            newly_acked: acked.bytes,
            rate: if is_reliable { bandwidth(delivered, interval) } else { 0 },
            delivered,
            prior_delivered: then.delivered,
            tx_in_flight: then.in_flight,
            lost: self.lost.saturating_sub(then.lost),
            rtt,
            limit: then.limit,
        }
    }

    /// One snapshot from before stays, for the packets between it and the next.
    fn forget_before(&mut self, horizon: Instant) {
        while self.log.get(1).is_some_and(|second| second.sent_at <= horizon) {
            self.log.pop_front();
        }
        if self.log.len() < MAX_SNAPSHOTS / 4 {
            self.spacing = Duration::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000) + Duration::from_millis(millis)
    }

    fn acked(bytes: u64, sent_at: Instant) -> AckedBytes {
        AckedBytes {
            rtt: Duration::from_millis(10),
            latest_rtt: None,
            ..super::super::tests::acked(bytes, sent_at)
        }
    }

    #[test]
    fn a_flight_is_measured_by_the_slower_of_sending_and_acknowledging() {
        let mut delivery = Delivery::new();
        // Ten packets a millisecond apart, all acknowledged together: not faster than they were sent.
        for at in 0..10 {
            delivery.on_sent(ms(at), 1_000, (at + 1) * 1_000);
        }
        let sample = delivery.on_acked(ms(15), &acked(10_000, ms(9)));
        assert_eq!((sample.delivered, sample.rate), (10_000, 10_000 * 1_000 / 15));
        assert_eq!((sample.tx_in_flight, sample.rtt), (10_000, Duration::from_millis(6)));
        // The next flight counts from that acknowledgement.
        delivery.on_sent(ms(15), 1_000, 1_000);
        delivery.on_sent(ms(16), 1_000, 2_000);
        let sample = delivery.on_acked(ms(26), &acked(2_000, ms(16)));
        assert_eq!((sample.delivered, sample.rate), (2_000, 2_000 * 1_000 / 11));
        assert_eq!(sample.limit, Limit::Path);
    }

    #[test]
    fn what_follows_a_gap_of_the_application_is_limited_by_it_for_a_round() {
        let mut delivery = Delivery::new();
        delivery.on_sent(ms(0), 1_000, 1_000);
        delivery.mark_app_limited(1_000);
        delivery.on_sent(ms(1), 1_000, 2_000);
        assert!(!delivery.on_acked(ms(10), &acked(1_000, ms(0))).is_app_limited());
        assert!(delivery.on_acked(ms(11), &acked(1_000, ms(1))).is_app_limited());
        delivery.on_sent(ms(12), 1_000, 1_000);
        assert!(!delivery.on_acked(ms(22), &acked(1_000, ms(12))).is_app_limited(), "the bubble is gone");
    }

    #[test]
    fn losses_count_from_when_the_packet_left() {
        let mut delivery = Delivery::new();
        delivery.on_sent(ms(0), 1_000, 1_000);
        delivery.on_lost(500);
        delivery.on_sent(ms(1), 1_000, 2_000);
        delivery.on_lost(200);
        assert_eq!(delivery.on_acked(ms(12), &acked(1_000, ms(1))).lost, 200);
        assert_eq!(delivery.snapshot(ms(0)).map(|then| then.lost), Some(0));
    }

    #[test]
    fn the_log_is_bounded_and_still_measures() {
        let mut delivery = Delivery::new();
        // A hundred thousand trains in flight at once, 1 microsecond apart.
        let at = |train: u64| ms(0) + Duration::from_micros(train);
        for train in 0..100_000 {
            delivery.on_sent(at(train), 1_000, (train + 1) * 1_000);
            assert!(delivery.log.len() <= MAX_SNAPSHOTS);
        }
        assert!(delivery.log.len() >= MAX_SNAPSHOTS / 4);
        for train in [999, 49_999, 99_999] {
            let sample = delivery.on_acked(at(train + 100_000), &acked(1_000, at(train)));
            assert!(sample.tx_in_flight.abs_diff((train + 1) * 1_000) < 2_000_000, "{sample:?}");
            assert!(sample.rate > 0);
        }
    }

    #[test]
    fn bandwidth_saturates() {
        assert_eq!(bandwidth(1_000, Duration::from_millis(1)), 1_000_000);
        assert_eq!(bandwidth(u64::MAX, Duration::ZERO), MAX_BANDWIDTH);
        assert_eq!(bandwidth(0, Duration::MAX), 0);
    }
}
