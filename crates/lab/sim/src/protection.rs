//! What could be done against losses beside what the ends do: copies of datagrams, codes that repair them, and their bound, a link that
//! loses nothing of some kind.
//!
//! It stands between an end and its link and between the link and the other end, so that both ends know nothing of it: what is
//! repaired is no loss to congestion control. Repair datagrams take the link's time, and may be lost like others, but no part of the
//! congestion window. Both favours the code, so what it does not reach here no code of its kind reaches in a connection.
//!
//! A code is ideal: datagrams that are missing are there as soon as as many repair datagrams are that cover them (maximum distance
//! separable within what each covers; greedy matching of intervals tells it). Datagrams that come after a gap wait for its repair
//! at most [`Code::hold`], else the sender would take what is repaired for lost.

use crate::datagram::{Datagram, Symbol};
use base::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// What is done, by the kind of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// For datagrams that begin with a long header.
    pub handshake: Measure,
    /// For the others.
    pub data: Measure,
}

/// What is done for a kind of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Nothing.
    #[default]
    None,
    /// None is lost by chance, and that costs nothing: the bound.
    Spared,
    /// A copy follows so much later, if that is any time at all, or at once.
    Copy(Duration),
    /// Repair datagrams.
    Code(Code),
}

/// When repair datagrams leave, and what they repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// After so many datagrams; zero for none but those at the end of a flight.
    pub every: u64,
    /// So many.
    pub count: u64,
    /// Each covers so many datagrams, up to the last.
    pub width: u64,
    /// So many more leave once nothing was sent for [`Code::pause`].
    pub at_end: u64,
    /// The end of a flight.
    pub pause: Duration,
    /// For so long what comes after a gap waits for its repair.
    pub hold: Duration,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Protector {
    plan: Protection,
    /// The number of the next datagram, and that after the last repair.
    next: u64,
    repaired_to: u64,
    sent_at: Instant,
    /// All that may be repaired, by number.
    sent: BTreeMap<u64, Datagram>,
    /// The repairs that have arrived, in the order in which they left, and whether they are used.
    repairs: Vec<(u64, u64)>,
    /// Numbers before this one have arrived, or no longer count.
    in_order_to: u64,
    /// What waits for a gap, by number, and until when.
    held: BTreeMap<u64, (Instant, Datagram)>,
}

/// Datagrams that may be repaired at most.
const KEPT: usize = 1_024;
/// Repairs that wait for others at most.
const KEPT_REPAIRS: usize = 64;

impl Protector {
    pub(crate) fn new(plan: Protection) -> Protector {
        Protector {
            plan,
            next: 0,
            repaired_to: 0,
            sent_at: Instant::ZERO,
            sent: BTreeMap::new(),
            repairs: Vec::new(),
            in_order_to: 0,
            held: BTreeMap::new(),
        }
    }

    /// What is done for a datagram.
    pub(crate) fn measure(&self, datagram: &Datagram) -> Measure {
        let is_long = datagram.bytes.first().is_some_and(|first| first & 0x80 != 0);
        if is_long { self.plan.handshake } else { self.plan.data }
    }

    /// Numbers a datagram that leaves; the repairs that follow it at once.
    pub(crate) fn on_sent(&mut self, now: Instant, code: Code, datagram: &mut Datagram) -> Vec<Datagram> {
        datagram.symbol = Symbol::Data(self.next);
        self.sent.insert(self.next, datagram.clone());
        if self.sent.len() > KEPT {
            self.sent.pop_first();
        }
        self.next += 1;
        self.sent_at = now;
        let is_due = code.every > 0 && self.next - self.repaired_to >= code.every;
        if is_due { self.repairs_of(code, code.count) } else { Vec::new() }
    }

    /// The repairs at the end of a flight, if it has ended: nothing was sent since `sent_at`.
    pub(crate) fn on_pause(&mut self, sent_at: Instant, code: Code) -> Vec<Datagram> {
        let has_ended = self.sent_at == sent_at && self.next > self.repaired_to;
        if has_ended { self.repairs_of(code, code.at_end) } else { Vec::new() }
    }

    /// Each is as large as the largest that it covers.
    fn repairs_of(&mut self, code: Code, count: u64) -> Vec<Datagram> {
        self.repaired_to = self.next;
        let from = self.next.saturating_sub(code.width);
        let largest =
            self.sent.range(from..).map(|(_, datagram)| datagram).max_by_key(|covered| covered.bytes.len());
        let repair =
            largest.map(|covered| Datagram { symbol: Symbol::Repair(from, self.next), ..covered.clone() });
        repair.into_iter().cycle().take(usize::try_from(count).unwrap_or(0)).collect()
    }

    /// What the end behind the link gets when this arrives, and until when something waits.
    pub(crate) fn on_arrival(
        &mut self,
        now: Instant,
        datagram: Datagram,
    ) -> (Vec<Datagram>, Option<Instant>) {
        match datagram.symbol {
            Symbol::Plain => return (vec![datagram], None),
            Symbol::Data(number) => {
                self.sent.remove(&number);
                self.keep(now, number, datagram);
            }
            Symbol::Repair(from, to) => {
                self.repairs.push((from, to));
                if self.repairs.len() > KEPT_REPAIRS {
                    self.repairs.remove(0);
                }
                for number in self.solve() {
                    if let Some(missing) = self.sent.remove(&number) {
                        self.keep(now, number, missing);
                    }
                }
            }
        }
        (self.release(now), self.held.values().map(|(until, _)| *until).min())
    }

    fn keep(&mut self, now: Instant, number: u64, datagram: Datagram) {
        let hold = match self.measure(&datagram) {
            Measure::Code(code) => code.hold,
            _ => Duration::ZERO,
        };
        self.held.insert(number, (now + hold, datagram));
    }

    /// What waits no longer: what has no gap before it, and what has waited long enough.
    pub(crate) fn release(&mut self, now: Instant) -> Vec<Datagram> {
        let mut released = Vec::new();
        while let Some(first) = self.held.first_entry() {
            let (number, is_due) = (*first.key(), first.get().0 <= now);
            if number > self.in_order_to && !is_due {
                break;
            }
            self.in_order_to = self.in_order_to.max(number + 1);
            released.push(first.remove().1);
        }
        released
    }

    /// The missing datagrams that the repairs determine: those of the longest series of repairs in which each missing datagram has one of
    /// its own. Repairs that are used up go.
    fn solve(&mut self) -> Vec<u64> {
        for first in 0..self.repairs.len() {
            let series = self.repairs.get(first..).unwrap_or_default();
            let (Some((from, _)), Some((_, to))) = (series.first(), series.last()) else { return Vec::new() };
            let missing: Vec<u64> = self.sent.range(*from..*to).map(|(number, _)| *number).collect();
            let mut free: VecDeque<(u64, u64)> = series.iter().copied().collect();
            let mut is_covered = |number: &u64| {
                let place = free.iter().position(|(from, to)| (*from..*to).contains(number));
                place.and_then(|place| free.remove(place)).is_some()
            };
            if missing.iter().all(&mut is_covered) {
                self.repairs.clear();
                return missing;
            }
        }
        Vec::new()
    }
}
