//! The judge of a flow that chooses its controller: it begins as CUBIC and becomes BBR where the path shows that CUBIC's signs mean
//! something else, and CUBIC again where that proves wrong.
//!
//! ```text
//!          losses while nothing waits; a queue of three round trips that CUBIC alone fills
//! CUBIC ────────────────────────────────────────────────────────────────────────────────────> BBR
//!       <────────────────────────────────────────────────────────────────────────────────────
//!          losses at a full queue, round after round; a shorter round trip than was known;
//!          a queue that stays although BBR does not fill it; losses that follow what is in flight;
//!          all those losses have arrived
//! ```
//!
//! A packet that a full queue drops is followed by packets that wait as long as any. One that a radio link loses is
//! followed by packets that wait as long as it happens. So a round trip that is measured along with a loss says which it was: it is
//! *free* if it is hardly longer than the shortest, or waits less than three quarters of what the longest of late does, whose wait fades, and two milliseconds less. The first loss of
//! all, which ends slow start, counts twice if nothing waits, and does not if something does: that may be slow start's own burst. With CUBIC in use any
//! counts twice that comes while nothing waits, if others waited four times as long, 7 ms at least: a queue as long as that was not full.
//!
//! A queue is full for a while, and empty when the last of what it dropped is declared lost; and a burst of losses by chance beside a queue is one sign
//! of it, and not ten. So with CUBIC in use losses speak once in a recovery, unless jitter makes packets wait.
//!
//! A queue that drops early (CoDel, PIE) drops when packets have waited for a while, however long others waited before. So no round trip is
//! free where all packets of the last tenth of a second waited: the link is in full use, and CUBIC loses nothing by its answer.
//! With BBR in use that does not count, since jitter looks the same at a high rate.
//!
//! With BBR in use losses are a queue's, however free, where packets wait in most rounds and their waits are *calm*: they go up and down in
//! long waves, as those of a queue that others share do and those of jitter do not. A round that loses packets while nothing waits outweighs eight
//! of those: a queue that drops early does not drop then, but several flows of BBR's let packets wait by themselves.
//!
//! Where jitter makes all packets wait, round trips turn from one acknowledgement to the next, as no queue makes them ([`super::jitter`]). How far, beside
//! how long packets wait, tells the two apart whatever the loss rate. With CUBIC in use, losses in jitter count as chance if they are free, although all
//! packets wait, and not at all if they are not.
//!
//! In a queue of less than a millisecond nothing waits for as long as could be told. What BBR loses there follows what is in flight (`bbr/overrun.rs`),
//! and what CUBIC loses it loses at the same window each time; chance strikes at any.
//!
//! Packets that come late look like such losses. Once all of a recovery have arrived (`auto/doubt.rs`), what they spoke for is taken back; and if
//! BBR is in use because of them, CUBIC goes on where it was.
//!
//! Nor do the losses of persistent congestion speak for either: the path carried nothing.
//!
//! Each return to CUBIC multiplies the evidence that the next change to BBR needs, so that a path which fits neither rule sees few changes.
//! Flows of BBR's that share a link which loses by chance take one another's queue for the cause, and return one after the other. So
//! losses at rest are weighed by how few packets are at rest, too (`auto/rest.rs`); and BBR that they have chosen needs
//! more evidence to end, and bears more (`bbr/random_loss.rs`). BBR that any losses have chosen bears runs of them in jitter (`bbr/loss_budget.rs`).
//! All is integer arithmetic over what an acknowledgement tells anyway; a flow with a fixed controller has no judge.
//!
//! Rejected: loss rates (a policer and a radio link have the same), the rate of delivery as BBR measures it (a log of departures
//! beside CUBIC), both controllers at once (each would measure the other's rate).
//!
//! docs/decisions/023-congestion-auto.md

mod doubt;
mod evidence;
mod longest;
mod overruns;
mod rest;
mod waits;

use super::cubic::Cubic;
use super::events::{AckedBytes, CongestionEvent};
use super::jitter::Jitter;
use base::time::{Duration, Instant};
use doubt::Doubt;
use evidence::{AT_REST, Evidence, FIRST_NEEDED};
use longest::Longest;
use overruns::Overruns;
use rest::AtRest;
use waits::Waits;

/// A round trip that is longer than the shortest by less than such a part of it, or than a millisecond, holds no queue.
const FREE_PART: u64 = 16;
/// The least that is called a queue. Where a round trip takes less, losses say nothing: a socket's full buffer makes nothing wait.
const LEAST_QUEUE: Duration = Duration::from_millis(1);
/// What is called one on paths of any length: queues that drop early let 5 ms wait. Source: RFC 8289 §4.4; RFC 8033 §4.2 has 15.
const MOST_FREE: Duration = Duration::from_millis(4);
/// Packets are at rest that wait no longer: half of what queues that drop early let wait.
const MOST_AT_REST: Duration = Duration::from_micros(2_500);
/// Waits that differ by less are the same: the wake-ups of both ends are in them.
const SAME: Duration = Duration::from_millis(2);
/// So long a wait is no late wake-up of an end.
const LONG_WAIT: Duration = Duration::from_millis(7);
/// A queue has room if no more than such a part of its longest wait is used.
const FAR_PART: u64 = 4;
/// A queue stands if all packets of so long a time waited: after so long CoDel drops. Source: RFC 8289 §4.3.
const STANDING: Duration = Duration::from_millis(100);
/// Jitter makes all packets wait if round trips turn by such a part of that from one acknowledgement to the next.
const JITTER_PART: u32 = 35;
/// Over so many rounds waits and their turns are averaged, and the longest wait fades.
const ROUNDS: u64 = 8;
/// One with a free round trip counts so many times in jitter: no queue has either.
const IN_JITTER: i32 = 3;
/// A queue is deep if the shortest round trip of a round is so many times the shortest of all.
const DEEP: u64 = 3;
/// And if packets wait so long at least.
const LEAST_DEEP: Duration = Duration::from_millis(50);
/// Rounds in a row with a deep queue that BBR needs at first.
const FIRST_DEEP_ROUNDS: u16 = 8;
/// It needs no more than so many.
const MOST_DEEP_ROUNDS: u16 = 1_024;
/// Rounds in a row in which packets wait as long as they travel, although BBR is in use: others fill the queue.
const CROWDED_ROUNDS: u16 = 16;
/// A round trip is shorter than the shortest that was known when BBR was chosen if such a part of it is missing and a millisecond, [`MOST_FREE`] at
/// least: in jitter the shortest of all takes long to be found.
const SHORTER_PART: u64 = 8;

/// Why a controller is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Packets are lost while nothing waits.
    RandomLoss,
    /// CUBIC alone fills a deep queue.
    DeepQueue,
    /// Packets are lost where packets wait.
    QueueLoss,
    /// Packets are lost where more is in flight than the path holds.
    Overrun,
    /// What was the shortest round trip held a queue.
    ShorterRoundTrip,
    /// Others fill the queue.
    Crowded,
    /// The losses were none: all of their packets have arrived.
    SpuriousLoss,
}

impl Cause {
    /// As traces have it.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::RandomLoss => "random_loss",
            Cause::DeepQueue => "deep_queue",
            Cause::QueueLoss => "queue_loss",
            Cause::Overrun => "overrun",
            Cause::ShorterRoundTrip => "shorter_round_trip",
            Cause::Crowded => "crowded",
            Cause::SpuriousLoss => "spurious_loss",
        }
    }
}

/// What is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Cubic,
    /// Since it was chosen for that cause, when the shortest round trip was that.
    Bbr(Cause, Duration),
}

/// The evidence of one path.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    stage: Stage,
    /// Why; `None` at the beginning.
    cause: Option<Cause>,
    /// The shortest round trip; [`Duration::MAX`] before the first.
    min_rtt: Duration,
    longest: Longest,
    /// The shortest of this round.
    round_min: Duration,
    waits: Waits,
    jitter: Jitter,
    round_start: Instant,
    /// When a round trip with a wait of at most [`MOST_FREE`] was last measured.
    empty_at: Instant,
    /// Losses were declared since the last round trip was measured; none was before.
    has_lost: bool,
    is_first: bool,
    /// There was more to send than the window had room for.
    was_bound: bool,
    /// The window was reduced since the last loss was weighed.
    is_reduced: bool,
    /// A recovery began with a loss since then.
    begins: bool,
    evidence: Evidence,
    /// Rounds in a row with a queue that speaks for another controller.
    rounds: u16,
    deep_rounds: u16,
    overruns: Overruns,
    doubt: Doubt,
    /// Since CUBIC is in use and has lost something.
    at_rest: AtRest,
}

impl Judge {
    pub(super) const fn new() -> Judge {
        Judge {
            stage: Stage::Cubic,
            cause: None,
            min_rtt: Duration::MAX,
            longest: Longest::new(),
            round_min: Duration::MAX,
            waits: Waits::new(),
            jitter: Jitter::new(),
            round_start: Instant::ZERO,
            empty_at: Instant::ZERO,
            has_lost: false,
            is_first: true,
            was_bound: false,
            is_reduced: false,
            begins: false,
            evidence: Evidence::new(),
            rounds: 0,
            deep_rounds: FIRST_DEEP_ROUNDS,
            overruns: Overruns::new(),
            doubt: Doubt::new(),
            at_rest: AtRest::new(),
        }
    }

    pub(super) const fn cause(&self) -> Option<Cause> {
        self.cause
    }

    pub(super) const fn min_rtt(&self) -> Duration {
        self.min_rtt
    }

    /// Losses at rest have once made BBR of CUBIC, and were losses.
    pub(super) const fn is_chance_known(&self) -> bool {
        self.evidence.distrusts_cubic()
    }

    #[cfg(test)]
    pub(super) fn know_chance(&mut self) {
        self.evidence.distrust_cubic();
    }

    /// Whether anything has happened that another flow on the path would have to learn anew.
    pub(super) const fn has_evidence(&self) -> bool {
        self.cause.is_some() || self.has_lost || !self.is_first
    }

    /// The window in bytes before CUBIC's last reduction.
    pub(super) const fn window_before(&self) -> u64 {
        self.overruns.window_before()
    }

    /// Losses were declared, and the window was that before.
    pub(super) fn on_lost(&mut self, now: Instant, sign: &CongestionEvent, before: u64, after: u64) {
        let evidence = (self.evidence.total(), self.is_first);
        self.begins |= self.doubt.on_lost(now, sign.sent_at, sign.packets, evidence);
        self.has_lost = true;
        if after < before {
            self.overruns.on_reduction(before);
            self.is_reduced = true;
        }
    }

    /// Whether the other controller fits the path better, and why.
    pub(super) fn on_ack(&mut self, now: Instant, acked: &AckedBytes) -> Option<Cause> {
        if acked.spurious > 0 && self.on_spurious(acked) {
            return Some(Cause::SpuriousLoss);
        }
        let is_over = acked.largest_sent_at >= self.round_start;
        let of_round = if is_over { self.end_round(now, acked.app_limited) } else { None };
        let Some(rtt) = acked.latest_rtt else { return of_round };
        self.min_rtt = self.min_rtt.min(rtt);
        self.round_min = self.round_min.min(rtt);
        let with_cubic = self.stage == Stage::Cubic;
        // Only losses are judged by it, and with CUBIC in use.
        if with_cubic && (!self.is_first || self.has_lost) {
            self.jitter.on_sample(acked, self.min_rtt);
        }
        // What the peer waits with a frame is no queue, nor is a late wake-up of an end: beside 25 ms a full queue of 4 ms would look far from full.
        // Where packets wait in all rounds both count, since losses in jitter would be a queue's without them.
        let is_quiet = with_cubic && !self.waits.exist();
        let late = if is_quiet { rtt.saturating_sub(acked.ack_delay) } else { rtt };
        self.longest.on_sample(now, late, is_quiet);
        if rtt.saturating_sub(self.min_rtt) <= MOST_FREE {
            self.empty_at = now;
        }
        self.was_bound |= !acked.app_limited;
        // At a queue that BBR has overrun nothing waits.
        let weighs_rest = with_cubic && !self.overruns.were_seen();
        if weighs_rest && !self.is_first {
            self.at_rest.on_acked(acked.packets, self.is_at_rest(rtt));
        }
        if core::mem::take(&mut self.has_lost) && self.min_rtt >= LEAST_QUEUE {
            let step = self.weigh_loss(rtt, now.saturating_since(self.empty_at) > STANDING.max(acked.rtt));
            self.evidence.add(step);
            if core::mem::take(&mut self.is_reduced) && weighs_rest {
                self.at_rest.on_lost(self.is_at_rest(rtt));
            }
        }
        of_round.or_else(|| self.judge_losses())
    }

    /// Takes back what losses spoke for that were none. Whether BBR is in use because of them.
    #[cold]
    fn on_spurious(&mut self, acked: &AckedBytes) -> bool {
        let Some((score, is_first)) = self.doubt.on_spurious(acked) else { return false };
        self.at_rest.forget_losses();
        self.evidence.take_back_to(score);
        (self.has_lost, self.begins, self.is_first) = (false, false, is_first);
        self.doubt.has_suspended()
    }

    /// BBR takes the place of that one: it comes back if the losses prove to be none.
    pub(super) fn suspend(&mut self, cubic: Cubic) {
        self.doubt.suspend(cubic);
    }

    /// What was in use before the losses that were none.
    pub(super) fn take_suspended(&mut self) -> Option<Cubic> {
        self.doubt.take_suspended()
    }

    /// Nothing arrived for so long that the last losses speak neither of chance nor of a queue.
    pub(super) fn on_persistent_congestion(&mut self) {
        (self.has_lost, self.is_reduced, self.begins) = (false, false, false);
        self.doubt.end();
    }

    /// The last losses are what they seem, whatever arrives.
    pub(super) fn confirm(&mut self) {
        self.doubt.end();
    }

    /// Losses follow what is in flight.
    #[cold]
    pub(super) fn on_overrun(&self) -> Option<Cause> {
        matches!(self.stage, Stage::Bbr(Cause::RandomLoss, _)).then_some(Cause::Overrun)
    }

    /// What losses speak for that a frame has brought to light which measured that round trip.
    fn weigh_loss(&mut self, rtt: Duration, all_wait: bool) -> i32 {
        let is_first = core::mem::replace(&mut self.is_first, false);
        let with_cubic = self.stage == Stage::Cubic;
        let in_jitter = with_cubic && self.jitter.exceeds(JITTER_PART);
        let is_crowded = matches!(self.stage, Stage::Bbr(Cause::RandomLoss, _))
            && self.waits.are_calm()
            && rtt.saturating_sub(self.min_rtt) > MOST_FREE;
        let is_overrun = with_cubic && self.overruns.explain_loss();
        let stands = is_crowded || is_overrun || (with_cubic && all_wait && !in_jitter);
        let is_free = !stands && self.is_free(rtt);
        let begins = core::mem::take(&mut self.begins);
        match (!stands && self.is_empty(rtt), is_free) {
            _ if with_cubic && !begins && !in_jitter => 0,
            (true, _) if is_first || (with_cubic && self.is_far_from_full(rtt)) => FIRST_NEEDED,
            (true, _) if !with_cubic => AT_REST,
            (_, true) if in_jitter => IN_JITTER,
            (true, _) | (_, true) => 1,
            // What waits at the first loss may be slow start's own burst.
            (false, false) if is_first && with_cubic => 0,
            // Jitter holds up a third of what comes after chance.
            (false, false) if in_jitter => 0,
            (false, false) => -1,
        }
    }

    /// Hardly longer than the shortest.
    fn is_empty(&self, rtt: Duration) -> bool {
        rtt.saturating_sub(self.min_rtt) <= (self.min_rtt / FREE_PART).max(LEAST_QUEUE)
    }

    /// Nothing waits, not even as little as at a queue that drops early.
    fn is_at_rest(&self, rtt: Duration) -> bool {
        rtt.saturating_sub(self.min_rtt) <= MOST_AT_REST && self.is_empty(rtt)
    }

    /// Far from as long as the longest of late.
    fn is_free(&self, rtt: Duration) -> bool {
        let (wait, longest) = (rtt.saturating_sub(self.min_rtt), self.longest.wait(self.min_rtt));
        wait * 4 < longest * 3 && wait + SAME < longest
    }

    /// A queue in which others waited so much longer has room.
    fn is_far_from_full(&self, rtt: Duration) -> bool {
        let (wait, longest) = (rtt.saturating_sub(self.min_rtt), self.longest.wait(self.min_rtt));
        longest >= LONG_WAIT && wait * FAR_PART < longest
    }

    fn judge_losses(&self) -> Option<Cause> {
        match self.stage {
            // A client that says little but what it has received has no use for a model of the path. What is lost before the flow has more to
            // send, in the handshake say, counts once it has: CUBIC's slow start is over by it.
            Stage::Cubic => {
                let is_chance = self.evidence.is_enough() || self.at_rest.are_losses_chance();
                (self.was_bound && is_chance).then_some(Cause::RandomLoss)
            }
            Stage::Bbr(_, known) => {
                let least = (known / SHORTER_PART + LEAST_QUEUE).max(MOST_FREE);
                (self.min_rtt + least < known).then_some(Cause::ShorterRoundTrip)
            }
        }
    }

    fn end_round(&mut self, now: Instant, app_limited: bool) -> Option<Cause> {
        self.round_start = now;
        self.evidence.on_round(self.stage == Stage::Cubic);
        self.at_rest.on_round();
        let shortest = core::mem::replace(&mut self.round_min, Duration::MAX);
        self.longest.on_round(self.min_rtt);
        if shortest == Duration::MAX {
            return None;
        }
        let wait = shortest.saturating_sub(self.min_rtt);
        if app_limited {
            self.waits.on_pause();
        } else {
            self.waits.on_round(shortest, wait);
        }
        let (is_long, most, cause) = match self.stage {
            Stage::Cubic => {
                let is_deep = wait >= self.min_rtt * (DEEP - 1) && wait >= LEAST_DEEP;
                (is_deep && !app_limited, self.deep_rounds, Cause::DeepQueue)
            }
            Stage::Bbr(Cause::DeepQueue, _) => (wait >= self.min_rtt, CROWDED_ROUNDS, Cause::Crowded),
            Stage::Bbr(..) => (false, 1, Cause::Crowded),
        };
        self.rounds = if is_long { self.rounds.saturating_add(1) } else { 0 };
        if self.rounds >= most {
            return Some(cause);
        }
        match self.stage {
            Stage::Bbr(..) if self.evidence.is_disproved() => Some(Cause::QueueLoss),
            _ => None,
        }
    }

    /// The controller is the other one from now on, for that cause.
    pub(super) fn on_changed(&mut self, cause: Cause) {
        self.cause = Some(cause);
        self.rounds = 0;
        if cause == Cause::SpuriousLoss {
            // The evidence is what it was before these losses.
            self.evidence.trust_cubic();
            self.stage = Stage::Cubic;
            return;
        }
        self.evidence.on_changed();
        let is_at_rest = core::mem::replace(&mut self.at_rest, AtRest::new()).are_losses_chance();
        if cause != Cause::RandomLoss {
            self.doubt.end();
        }
        match (self.stage, cause) {
            (Stage::Cubic, _) => {
                if is_at_rest {
                    self.evidence.distrust_cubic();
                }
                self.stage = Stage::Bbr(cause, self.min_rtt);
            }
            (Stage::Bbr(..), Cause::Crowded) => {
                self.deep_rounds = (self.deep_rounds * 4).min(MOST_DEEP_ROUNDS);
                self.stage = Stage::Cubic;
            }
            (Stage::Bbr(..), _) => {
                self.overruns.on_return(cause == Cause::Overrun);
                self.evidence.distrust_bbr();
                self.stage = Stage::Cubic;
            }
        }
    }
}

#[cfg(test)]
mod tests;
