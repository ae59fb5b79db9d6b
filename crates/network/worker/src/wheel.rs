//! A hierarchical timer wheel: deadlines in, expired keys out, both in constant time.
//!
//! Six levels of 64 slots; a slot of the lowest level is one tick of 2^15 ns (33 µs), a slot of each next level is 64 times
//! as long, so that the wheel spans 26 days and later deadlines wait at its end. An entry lies at the level of the highest
//! digit in which its tick differs from the present one, which puts it in a slot that is still ahead; when the present
//! reaches that slot its entries move down. One bitmap per level finds the next occupied slot.
//!
//! Entries are never cancelled. The owner remembers the earliest tick at which it is in the wheel, ignores entries that come
//! up too early, and schedules anew: a deadline that moves into the future with every packet then costs nothing.

use base::time::Instant;

const LEVELS: usize = 6;
const SLOTS: usize = 64;
const DIGIT: u32 = 6;
const TICK_SHIFT: u32 = 15;
/// Entries for which a slot keeps room when it is empty.
const KEPT: usize = 256;
const SPAN: u64 = 1 << (DIGIT * LEVELS as u32);

#[derive(Clone, Debug)]
struct Level<K> {
    occupied: u64,
    /// The earliest tick of each occupied slot's entries.
    earliest: [u64; SLOTS],
    slots: [Vec<(u64, K)>; SLOTS],
}

/// Keys by deadline.
#[derive(Clone, Debug)]
pub struct Wheel<K> {
    /// The present tick: everything before it has expired.
    present: u64,
    levels: [Level<K>; LEVELS],
}

impl<K: Copy> Wheel<K> {
    /// An empty wheel that begins at `now`.
    pub fn new(now: Instant) -> Wheel<K> {
        let level = || Level {
            occupied: 0,
            earliest: [u64::MAX; SLOTS],
            slots: core::array::from_fn(|_| Vec::new()),
        };
        Wheel { present: tick(now), levels: core::array::from_fn(|_| level()) }
    }

    /// `key` comes up at the first `expire` that is not earlier than `deadline`, or up to a tick later.
    pub fn schedule(&mut self, deadline: Instant, key: K) {
        // Rounded up: a timer that fires early finds nothing due and would be set again and again.
        let due = deadline.as_nanos().saturating_add((1 << TICK_SHIFT) - 1) >> TICK_SHIFT;
        self.place(due.clamp(self.present, self.present.saturating_add(SPAN / 2)), key);
    }

    fn place(&mut self, due: u64, key: K) {
        let differs = due ^ self.present;
        let level = ((63 - (differs | 1).leading_zeros()) / DIGIT) as usize;
        let level = level.min(LEVELS - 1);
        let slot = digit(due, level);
        if let Some(level) = self.levels.get_mut(level) {
            level.occupied |= 1 << slot;
            if let (Some(entries), Some(earliest)) = (level.slots.get_mut(slot), level.earliest.get_mut(slot))
            {
                *earliest = due.min(*earliest);
                entries.push((due, key));
            }
        }
    }

    /// The next occupied slot: its level, its number and the tick at which it begins.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        self.levels.iter().enumerate().find_map(|(number, level)| {
            let here = digit(self.present, number);
            // At the top level the digits wrap around: what is behind us is a lap ahead.
            let distance = match number {
                LEVELS_TOP => level.occupied.rotate_right(here as u32).trailing_zeros(),
                _ => (level.occupied >> here).trailing_zeros(),
            };
            (distance < 64).then(|| {
                let shift = DIGIT * number as u32;
                let begins = ((self.present >> shift) + u64::from(distance)) << shift;
                (number, (here + distance as usize) % SLOTS, begins.max(self.present))
            })
        })
    }

    /// When `expire` should be called next: at the next deadline, or up to a tick after it. Not when a slot of a higher level begins: its
    /// entries can move down when one of them is due.
    pub fn next_expiry(&self) -> Option<Instant> {
        let (number, slot, _) = self.next_slot()?;
        let earliest = self.levels.get(number)?.earliest.get(slot)?;
        Some(Instant::from_nanos(earliest << TICK_SHIFT))
    }

    /// Moves the present to `now` and hands out the keys that came up.
    pub fn expire(&mut self, now: Instant, mut on_expired: impl FnMut(K)) {
        let target = tick(now).max(self.present);
        while let Some((number, slot, begins)) = self.next_slot() {
            if begins > target {
                break;
            }
            self.present = begins;
            let Some(level) = self.levels.get_mut(number) else { break };
            level.occupied &= !(1 << slot);
            let (Some(entries), Some(earliest)) = (level.slots.get_mut(slot), level.earliest.get_mut(slot))
            else {
                break;
            };
            *earliest = u64::MAX;
            // The slot's memory goes back after the round; nothing can be placed in it meanwhile.
            let mut round = core::mem::take(entries);
            for (due, key) in round.drain(..) {
                if due <= target { on_expired(key) } else { self.place(due, key) }
            }
            if let Some(entries) = self.levels.get_mut(number).and_then(|level| level.slots.get_mut(slot))
                && entries.is_empty()
            {
                round.shrink_to(KEPT);
                *entries = round;
            }
        }
        self.present = target;
    }
}

const LEVELS_TOP: usize = LEVELS - 1;

fn tick(at: Instant) -> u64 {
    at.as_nanos() >> TICK_SHIFT
}

fn digit(tick: u64, level: usize) -> usize {
    (tick >> (DIGIT * level as u32)) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::time::Duration;
    use proptest::prelude::*;

    /// Issue 10, section 4: memory was not returned after a peak.
    #[test]
    fn slots_give_memory_back_after_a_peak() {
        let begin = Instant::from_nanos(1);
        let mut wheel = Wheel::new(begin);
        for number in 0..100_000 {
            wheel.schedule(begin + Duration::from_millis(number % 60_000), number);
        }
        let mut expired = 0;
        wheel.expire(begin + Duration::from_secs(61), |_| expired += 1);
        let slots = wheel.levels.iter().flat_map(|level| &level.slots);
        let room: usize = slots.map(Vec::capacity).sum();
        assert!(expired == 100_000 && room <= LEVELS * SLOTS * KEPT / 2, "room for {room} entries");
    }

    proptest! {
        /// Nothing comes up early, nothing comes up more than a tick late, nothing is lost, in any order of deadlines and
        /// steps, over spans from microseconds to weeks.
        #[test]
        fn every_key_comes_up_once_and_in_time(
            start in 0u64..1 << 50,
            deadlines in prop::collection::vec((0u32..50, any::<u64>()), 1..40),
            steps in prop::collection::vec((0u32..50, any::<u64>()), 1..60),
        ) {
            let span = |(bits, value): &(u32, u64)| Duration::from_nanos(value % (1 << bits));
            let mut now = Instant::from_nanos(start);
            let mut wheel = Wheel::new(now);
            let due: Vec<Instant> = deadlines.iter().map(|deadline| now + span(deadline)).collect();
            for (key, deadline) in due.iter().enumerate() {
                wheel.schedule(*deadline, key);
            }
            let mut waiting: Vec<usize> = (0..due.len()).collect();
            let last = Duration::from_nanos(1 << 51);
            for step in steps.iter().map(span).chain([last, last]) {
                now = now + step;
                let mut expired = Vec::new();
                wheel.expire(now, |key| expired.push(key));
                for key in expired {
                    prop_assert!(due[key] <= now, "early");
                    let place = waiting.iter().position(|waits| *waits == key);
                    waiting.remove(place.expect("comes up once"));
                }
                let tick = Duration::from_nanos(1 << TICK_SHIFT);
                prop_assert!(waiting.iter().all(|key| due[*key] + tick > now), "late");
                if let Some(next) = waiting.iter().map(|key| due[*key]).min() {
                    let expiry = wheel.next_expiry().expect("a key waits");
                    prop_assert!(expiry <= next + tick, "the sleeper is woken late");
                    let reach = Duration::from_nanos((SPAN / 2) << TICK_SHIFT);
                    prop_assert!(expiry >= next || next >= now + reach, "the sleeper is woken in vain");
                }
            }
            prop_assert!(waiting.is_empty());
        }
    }
}
