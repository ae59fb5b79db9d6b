//! What losses speak for, and how much of it a change to the other controller needs.
//!
//! Losses that look like chance count for BBR, those that look like a queue's against it. With BBR in use a round with some counts once against it,
//! so that one long queue does not end it.

/// Losses with a free round trip that BBR needs at first, beyond those with a queue.
pub(super) const FIRST_NEEDED: i32 = 2;
/// It needs no more than so many.
const MOST_NEEDED: i32 = 64;
/// With BBR in use, one while nothing waits counts so many times.
pub(super) const AT_REST: i32 = 8;
/// With CUBIC in use, evidence against BBR does not count beyond so much: while slow start's queue stands, chance looks like the queue.
const MOST_AGAINST: i32 = -2;
/// Evidence for BBR does not count beyond so much.
const MOST_SCORE: i32 = 16;
/// Rounds with losses at a queue that end BBR at first, beyond those with free ones.
pub(super) const FIRST_DISPROOF: i32 = -16;
/// No more than so many end it.
const MOST_DISPROOF: i32 = -256;

/// The evidence of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// What losses of this round speak for.
    of_round: i32,
    /// And those of earlier rounds.
    score: i32,
    /// What makes BBR of CUBIC.
    needed: i32,
    /// What makes CUBIC of BBR.
    disproof: i32,
}

impl Evidence {
    pub(super) const fn new() -> Evidence {
        Evidence { of_round: 0, score: 0, needed: FIRST_NEEDED, disproof: FIRST_DISPROOF }
    }

    /// What all losses speak for.
    pub(super) fn total(&self) -> i32 {
        self.score.saturating_add(self.of_round)
    }

    /// Losses speak for so much.
    pub(super) fn add(&mut self, step: i32) {
        self.of_round = self.of_round.saturating_add(step);
    }

    /// All losses speak for that, since the others were none.
    pub(super) fn take_back_to(&mut self, total: i32) {
        (self.score, self.of_round) = (total, 0);
    }

    pub(super) fn on_round(&mut self, with_cubic: bool) {
        let of_round = core::mem::take(&mut self.of_round);
        let (step, least) =
            if with_cubic { (of_round, MOST_AGAINST) } else { (of_round.clamp(-1, AT_REST), self.disproof) };
        self.score = self.score.saturating_add(step).clamp(least, MOST_SCORE.max(self.needed));
    }

    /// With CUBIC in use: BBR fits.
    pub(super) fn is_enough(&self) -> bool {
        self.total() >= self.needed
    }

    /// With BBR in use: CUBIC fits.
    pub(super) const fn is_disproved(&self) -> bool {
        self.score <= self.disproof
    }

    /// Another controller is in use.
    pub(super) fn on_changed(&mut self) {
        (self.score, self.of_round) = (0, 0);
    }

    /// That BBR was chosen was wrong.
    pub(super) fn distrust_bbr(&mut self) {
        self.needed = (self.needed * 4).min(MOST_NEEDED);
    }

    /// Losses at rest show that the path loses by chance, whatever else loses there: more of a queue's are needed to end BBR.
    pub(super) fn distrust_cubic(&mut self) {
        self.disproof = (self.disproof * 4).max(MOST_DISPROOF);
    }

    /// The losses that showed it were none.
    pub(super) fn trust_cubic(&mut self) {
        self.disproof = FIRST_DISPROOF;
    }

    pub(super) const fn distrusts_cubic(&self) -> bool {
        self.disproof < FIRST_DISPROOF
    }
}
