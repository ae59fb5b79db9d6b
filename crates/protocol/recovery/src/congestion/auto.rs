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
//! Each return to CUBIC multiplies the evidence that the next change to BBR needs, so that a path which fits neither rule sees few changes.
//! Flows of BBR's that share a link which loses by chance take one another's queue for the cause, and return one after the other. So after a
//! return losses at rest are weighed by how few packets are at rest, too (`auto/rest.rs`).
//! All is integer arithmetic over what an acknowledgement tells anyway; a flow with a fixed controller has no judge.
//!
//! Rejected: loss rates (a policer and a radio link have the same), the rate of delivery as BBR measures it (a log of departures
//! beside CUBIC), both controllers at once (each would measure the other's rate).
//!
//! docs/decisions/023-congestion-auto.md

mod doubt;
mod rest;

use super::cubic::Cubic;
use super::events::{AckedBytes, CongestionEvent};
use super::jitter::Jitter;
use base::time::{Duration, Instant};
use doubt::Doubt;
use rest::AtRest;

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
const JITTER_PART: u32 = 25;
/// They are calm if they turn by less than such a part. With BBR in use it is a fiftieth to a hundredth at the median loss of CoDel and PIE, more than
/// a twelfth at 19 of 20 losses in jitter of half a round trip.
const CALM_PART: u64 = 12;
/// Over so many rounds waits and their turns are averaged, and the longest wait fades.
const ROUNDS: u64 = 8;
/// Losses with a free round trip that BBR needs at first, beyond those with a queue.
const FIRST_NEEDED: i32 = 2;
/// One with a free round trip counts so many times in jitter: no queue has either.
const IN_JITTER: i32 = 3;
/// With BBR in use, one while nothing waits counts so many times.
const AT_REST: i32 = 8;
/// It needs no more than so many.
const MOST_NEEDED: i32 = 64;
/// Rounds with losses at a queue that end BBR, beyond those with free ones.
const DISPROOF: i32 = -16;
/// With CUBIC in use, evidence against BBR does not count beyond so much: while slow start's queue stands, chance looks like the queue.
const MOST_AGAINST: i32 = -2;
/// Evidence for BBR does not count beyond so much.
const MOST_SCORE: i32 = 16;
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
/// After an overrun a loss speaks for chance only if the window was smaller by such a part than at the reduction before.
const WINDOW_PART: u64 = 8;
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

/// How the shortest waits of the rounds go.
#[derive(Clone, Copy, Debug)]
struct Waits {
    /// The shortest round trips of the last two rounds.
    last: [Duration; 2],
    mean: Duration,
    /// How far they turn: the smaller of two changes in a row that have opposite directions, less what bursts make.
    turn: Duration,
}

impl Waits {
    const fn new() -> Waits {
        Waits { last: [Duration::MAX; 2], mean: Duration::ZERO, turn: Duration::ZERO }
    }

    /// A round is over whose shortest round trip was that, and whose packets waited that at least.
    fn on_round(&mut self, shortest: Duration, wait: Duration) {
        let [first, second] = self.last;
        self.last = [second, shortest];
        if first == Duration::MAX {
            return;
        }
        let turns = (first < second) != (second < shortest);
        let turn = first.abs_diff(second).min(second.abs_diff(shortest)).saturating_sub(LEAST_QUEUE);
        let average = |mean: Duration, of_round: Duration| (mean * (ROUNDS - 1) + of_round) / ROUNDS;
        self.mean = average(self.mean, wait);
        self.turn = average(self.turn, if turns { turn } else { Duration::ZERO });
    }

    /// The flow had nothing to send: what it fills itself empties then, which is no jitter.
    fn on_pause(&mut self) {
        self.last = [Duration::MAX; 2];
    }

    /// Packets wait in most rounds, and not by jitter.
    fn are_calm(&self) -> bool {
        self.mean > MOST_FREE && self.turn * CALM_PART < self.mean
    }
}

/// The evidence of one path.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    stage: Stage,
    /// Why; `None` at the beginning.
    cause: Option<Cause>,
    /// The shortest round trip; [`Duration::MAX`] before the first.
    min_rtt: Duration,
    /// The latest, without what the peer waited where that does not count.
    latest: Duration,
    /// The longest of late: its wait loses an eighth each round.
    longest: Duration,
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
    /// Losses of this round with a free round trip, less those with a queue.
    of_round: i32,
    /// Losses of earlier rounds; with BBR in use, none counts for more than one against it.
    score: i32,
    needed: i32,
    /// Rounds in a row with a queue that speaks for another controller.
    rounds: u16,
    deep_rounds: u16,
    /// The window before CUBIC's last reduction.
    before: u64,
    /// That was far below the one before the reduction before; losses of BBR's have followed what was in flight.
    is_far_below: bool,
    has_overrun: bool,
    doubt: Doubt,
    /// Since CUBIC took the place of BBR that chance had chosen; nothing before.
    at_rest: AtRest,
}

impl Judge {
    pub(super) const fn new() -> Judge {
        Judge {
            stage: Stage::Cubic,
            cause: None,
            min_rtt: Duration::MAX,
            latest: Duration::ZERO,
            longest: Duration::ZERO,
            round_min: Duration::MAX,
            waits: Waits::new(),
            jitter: Jitter::new(),
            round_start: Instant::ZERO,
            empty_at: Instant::ZERO,
            has_lost: false,
            is_first: true,
            was_bound: false,
            of_round: 0,
            score: 0,
            needed: FIRST_NEEDED,
            rounds: 0,
            deep_rounds: FIRST_DEEP_ROUNDS,
            before: 0,
            is_far_below: false,
            has_overrun: false,
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

    /// Whether anything has happened that another flow on the path would have to learn anew.
    pub(super) const fn has_evidence(&self) -> bool {
        self.cause.is_some() || self.has_lost || !self.is_first
    }

    /// The window in bytes before CUBIC's last reduction.
    pub(super) const fn window_before(&self) -> u64 {
        self.before
    }

    /// Losses were declared, and the window was that before.
    pub(super) fn on_lost(&mut self, now: Instant, sign: &CongestionEvent, before: u64, after: u64) {
        let evidence = (self.score.saturating_add(self.of_round), self.is_first);
        self.doubt.on_lost(now, sign.sent_at, sign.packets, evidence);
        self.has_lost = true;
        if after < before {
            self.is_far_below = before < self.before - self.before / WINDOW_PART;
            self.before = before;
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
        // Only losses are judged by it.
        if !self.is_first || self.has_lost {
            self.jitter.on_sample(acked, self.min_rtt);
        }
        // What the peer waits with a frame is no queue, nor is one late wake-up of an end: beside 25 ms a full queue of 4 ms would look far from full.
        // Where packets wait in all rounds both count, since losses in jitter would be a queue's without them.
        let is_quiet = self.stage == Stage::Cubic && self.waits.mean < LEAST_QUEUE;
        let late = if is_quiet { rtt.saturating_sub(acked.ack_delay) } else { rtt };
        let before = core::mem::replace(&mut self.latest, late);
        self.longest = self.longest.max(if is_quiet { late.min(before) } else { late });
        if rtt.saturating_sub(self.min_rtt) <= MOST_FREE {
            self.empty_at = now;
        }
        self.was_bound |= !acked.app_limited;
        let has_returned = self.has_returned();
        if has_returned {
            self.at_rest.on_acked(acked.packets, self.is_at_rest(rtt));
        }
        if core::mem::take(&mut self.has_lost) && self.min_rtt >= LEAST_QUEUE {
            let step = self.weigh_loss(rtt, now.saturating_since(self.empty_at) > STANDING.max(acked.rtt));
            self.of_round = self.of_round.saturating_add(step);
            if has_returned {
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
        (self.score, self.of_round) = (score, 0);
        (self.has_lost, self.is_first) = (false, is_first);
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
        let stands = is_crowded || self.is_overrun() || (with_cubic && all_wait && !in_jitter);
        let is_free = !stands && self.is_free(rtt);
        match (!stands && self.is_empty(rtt), is_free) {
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

    /// A loss is no chance with CUBIC in use: a queue that is too short to make anything wait overflows at the same window each time.
    fn is_overrun(&self) -> bool {
        self.stage == Stage::Cubic && self.has_overrun && !self.is_far_below
    }

    /// Hardly longer than the shortest.
    fn is_empty(&self, rtt: Duration) -> bool {
        rtt.saturating_sub(self.min_rtt) <= (self.min_rtt / FREE_PART).max(LEAST_QUEUE)
    }

    /// CUBIC is in use, and has once been BBR by losses that did not prove to be chance's, nor the overruns of a queue.
    fn has_returned(&self) -> bool {
        self.stage == Stage::Cubic && self.needed > FIRST_NEEDED && !self.has_overrun
    }

    /// Nothing waits, not even as little as at a queue that drops early.
    fn is_at_rest(&self, rtt: Duration) -> bool {
        rtt.saturating_sub(self.min_rtt) <= MOST_AT_REST && self.is_empty(rtt)
    }

    /// Far from as long as the longest of late.
    fn is_free(&self, rtt: Duration) -> bool {
        let (wait, longest) = (rtt.saturating_sub(self.min_rtt), self.longest.saturating_sub(self.min_rtt));
        wait * 4 < longest * 3 && wait + SAME < longest
    }

    /// A queue in which others waited so much longer has room.
    fn is_far_from_full(&self, rtt: Duration) -> bool {
        let (wait, longest) = (rtt.saturating_sub(self.min_rtt), self.longest.saturating_sub(self.min_rtt));
        longest >= LONG_WAIT && wait * FAR_PART < longest
    }

    fn judge_losses(&self) -> Option<Cause> {
        match self.stage {
            // A client that says little but what it has received has no use for a model of the path. What is lost before the flow has more to
            // send, in the handshake say, counts once it has: CUBIC's slow start is over by it.
            Stage::Cubic => {
                let is_chance = self.score.saturating_add(self.of_round) >= self.needed;
                (self.was_bound && (is_chance || self.at_rest.are_losses_chance()))
                    .then_some(Cause::RandomLoss)
            }
            Stage::Bbr(_, known) => {
                let least = (known / SHORTER_PART + LEAST_QUEUE).max(MOST_FREE);
                (self.min_rtt + least < known).then_some(Cause::ShorterRoundTrip)
            }
        }
    }

    fn end_round(&mut self, now: Instant, app_limited: bool) -> Option<Cause> {
        self.round_start = now;
        let of_round = core::mem::take(&mut self.of_round);
        let (step, least) = match self.stage {
            Stage::Cubic => (of_round, MOST_AGAINST),
            Stage::Bbr(..) => (of_round.clamp(-1, AT_REST), DISPROOF),
        };
        self.score = self.score.saturating_add(step).clamp(least, MOST_SCORE.max(self.needed));
        self.at_rest.on_round();
        let shortest = core::mem::replace(&mut self.round_min, Duration::MAX);
        self.longest = self.longest.saturating_sub(self.longest.saturating_sub(self.min_rtt) / ROUNDS);
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
            Stage::Bbr(..) if self.score <= DISPROOF => Some(Cause::QueueLoss),
            _ => None,
        }
    }

    /// The controller is the other one from now on, for that cause.
    pub(super) fn on_changed(&mut self, cause: Cause) {
        self.cause = Some(cause);
        self.rounds = 0;
        if cause == Cause::SpuriousLoss {
            // The evidence is what it was before these losses.
            self.stage = Stage::Cubic;
            return;
        }
        (self.score, self.of_round) = (0, 0);
        self.at_rest = AtRest::new();
        if cause != Cause::RandomLoss {
            self.doubt.end();
        }
        match (self.stage, cause) {
            (Stage::Cubic, _) => self.stage = Stage::Bbr(cause, self.min_rtt),
            (Stage::Bbr(..), Cause::Crowded) => {
                self.deep_rounds = (self.deep_rounds * 4).min(MOST_DEEP_ROUNDS);
                self.stage = Stage::Cubic;
            }
            (Stage::Bbr(..), _) => {
                // What its windows were says nothing of CUBIC's.
                (self.before, self.is_far_below) = (0, false);
                self.has_overrun |= cause == Cause::Overrun;
                self.needed = (self.needed * 4).min(MOST_NEEDED);
                self.stage = Stage::Cubic;
            }
        }
    }
}

#[cfg(test)]
mod tests;
