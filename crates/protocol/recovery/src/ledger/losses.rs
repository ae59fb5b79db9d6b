//! Loss detection by packet and time threshold, and the memory of what was declared lost. RFC 9002 §6.1, §7.6.2, A.10.

use super::outcome::LossOutcome;
use super::slot::State;
use super::{Flight, Ledger};
use crate::packet::{PacketFlags, SentPacket};
use crate::rtt::LossThresholds;
use base::time::{Duration, Instant};
use std::collections::VecDeque;

/// Loss events remembered apart; more of them are taken together with the last.
const MAX_EVENTS: usize = 64;

/// When packets were declared lost, and which of them are forgotten.
#[derive(Clone, Debug)]
pub(super) struct LossMemory {
    /// (one more than the highest number lost, when), ascending in both.
    events: VecDeque<(u64, Instant)>,
    /// Lost packets below this number are forgotten.
    forgotten_below: u64,
    /// Outstanding packets below this number are lost, whatever the thresholds say.
    expired_below: u64,
    /// When a packet will be lost by the time threshold.
    pub(super) loss_time: Option<Instant>,
}

impl LossMemory {
    pub(super) const fn new() -> LossMemory {
        LossMemory { events: VecDeque::new(), forgotten_below: 0, expired_below: 0, loss_time: None }
    }

    #[inline]
    pub(super) const fn is_forgotten(&self, pn: u64) -> bool {
        pn < self.forgotten_below
    }

    /// Whether a packet that was declared lost may still be acknowledged, or one is about to be lost.
    pub(super) fn remembers(&self) -> bool {
        !self.events.is_empty() || self.loss_time.is_some()
    }

    pub(super) fn forget_below(&mut self, pn: u64) {
        self.forgotten_below = self.forgotten_below.max(pn);
    }

    /// Has everything outstanding below `pn` declared lost at the next look, which is due at `due`.
    pub(super) fn expire_below(&mut self, pn: u64, due: Instant) {
        self.expired_below = self.expired_below.max(pn);
        self.loss_time = Some(due);
    }

    /// Forgets what was declared lost longer than `horizon` ago. Returns whether there was any.
    pub(super) fn forget(&mut self, now: Instant, horizon: Duration) -> bool {
        let before = self.forgotten_below;
        while let Some(&(end, at)) = self.events.front() {
            if now.saturating_since(at) <= horizon {
                break;
            }
            self.forget_below(end);
            self.events.pop_front();
        }
        self.forgotten_below != before
    }

    fn remember(&mut self, end: u64, now: Instant) {
        let is_full = self.events.len() >= MAX_EVENTS;
        match self.events.back_mut() {
            Some(last) if is_full || last.0 >= end => *last = (last.0.max(end), now),
            _ => self.events.push_back((end, now)),
        }
    }
}

impl<F: Copy> Ledger<F> {
    /// Declares packets lost that were sent `thresholds.delay` ago, or `thresholds.packets` numbers before the largest
    /// acknowledged. Calls `lost` for each, ascending. To be called after each ACK frame and when
    /// [`Ledger::loss_time`] is reached. Source: RFC 9002 §6.1, A.10.
    pub fn detect_losses(
        &mut self,
        now: Instant,
        thresholds: LossThresholds,
        lost: &mut impl FnMut(&SentPacket, &[F]),
    ) -> LossOutcome {
        let mut outcome = LossOutcome::default();
        self.losses.loss_time = None;
        if self.losses.forget(now, thresholds.forget_after) {
            self.settle();
        }
        let expired_below = self.losses.expired_below;
        let end = self.acked_end.max(expired_below);
        let mut left = Flight::default();
        let mut lost_end = 0;
        let mut run_end = u64::MAX;
        let mut series_from = None;
        let mut loss_time: Option<Instant> = None;
        let mut pn = self.first_outstanding;
        while pn < end {
            let slot = self.slots.at_mut(pn);
            let step = slot.step();
            match slot.state {
                State::Acked => series_from = None,
                State::Skipped | State::Lost => {}
                State::Outstanding => {
                    let packet = slot.packet(pn);
                    //= rfc9002/6.1.1#1
                    let is_late = self.acked_end > pn.saturating_add(thresholds.packets)
                        || now.saturating_since(packet.sent_at) >= thresholds.delay;
                    if pn < expired_below || is_late {
                        slot.state = State::Lost;
                        lost_end = pn + 1;
                        left.add(&packet);
                        let frames = self.frames.slice(slot.frames_start, slot.frames_count);
                        outcome.count(&packet, pn >= self.acked_end, &mut run_end);
                        outcome.extend_series(&packet, &mut series_from, &thresholds);
                        lost(&packet, frames);
                    } else {
                        let at = packet.sent_at + thresholds.delay;
                        //= rfc9002/6.1.2#2
                        loss_time = Some(loss_time.map_or(at, |earliest| earliest.min(at)));
                    }
                }
            }
            pn += step;
        }
        self.losses.loss_time = loss_time;
        if outcome.packets > 0 {
            outcome.bytes = left.bytes;
            self.flight.remove(left);
            self.losses.remember(lost_end, now);
            self.settle();
        }
        outcome
    }
}

impl LossOutcome {
    /// Counts a lost packet. One above the largest acknowledged was pushed out for want of room, not lost by any
    /// threshold: no sign of congestion. `run_end` is one more than the last packet number that was a sign.
    #[inline]
    fn count(&mut self, packet: &SentPacket, is_pushed_out: bool, run_end: &mut u64) {
        self.packets += 1;
        let is_marked = packet.flags.has(PacketFlags::ECT0) || packet.flags.has(PacketFlags::ECT1);
        // What the loss of a probe tells of is its size, not its mark.
        self.ect += u64::from(is_marked && !packet.flags.has(PacketFlags::MTU_PROBE));
        //= rfc9000/14.4#1
        if packet.is_in_flight() && !packet.flags.has(PacketFlags::MTU_PROBE) && !is_pushed_out {
            self.congestion = self.congestion.max(Some(packet.sent_at));
            self.congestion_packets += 1;
            self.congestion_bytes += u64::from(packet.size);
            self.congestion_ranges += u64::from(*run_end != packet.pn);
            *run_end = packet.pn + 1;
        }
    }

    /// RFC 9002 §7.6.2: both ends of the span are ack-eliciting, and sent after the first round-trip sample.
    #[inline]
    fn extend_series(
        &mut self,
        packet: &SentPacket,
        from: &mut Option<Instant>,
        thresholds: &LossThresholds,
    ) {
        //= rfc9002/7.6.2#3
        // RFC 9002 §7.6.2: nothing that was sent between them, in whatever space, is acknowledged.
        let is_between = |at| packet.sent_at > at && from.is_some_and(|start| start < at);
        if thresholds.acked_elsewhere.is_some_and(is_between) {
            *from = None;
        }
        //= rfc9002/7.6.2#1
        let is_counted = thresholds.persistent_from.is_some_and(|start| packet.sent_at > start);
        // RFC 9000 §14.4: a lost probe of a size is no sign of congestion, so neither end of it. Nor is what went by another path.
        let is_sign = packet.is_in_flight() && !packet.flags.has(PacketFlags::MTU_PROBE);
        if !packet.is_ack_eliciting() || !is_counted || !is_sign {
            return;
        }
        let start = *from.get_or_insert(packet.sent_at);
        self.persistent_span = self.persistent_span.max(Some(packet.sent_at.saturating_since(start)));
    }
}
