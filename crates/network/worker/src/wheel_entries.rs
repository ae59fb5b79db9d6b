//! When the wheel will bring a connection up.
//!
//! Entries of the wheel are never cancelled, so a connection must know which expired entry is the one it waits
//! for. Taking any of them for it, and setting the wheel anew each time, makes entries for ever: each time a deadline came
//! closer one more would stay, and for every one that came up another would go in.
//!
//! Data structure: the entry that is waited for, and the one that it came in front of. Deadlines alternate between a near
//! one (an acknowledgement) and a far one (idleness), so that the far entry is there already when the near one has passed.
//! An entry that is forgotten comes up once and changes nothing.
//!
//! Invariant: `next` is in the wheel unless it is the far future; everything between it and `later` has been forgotten.

use base::time::{Duration, Instant};

/// Later deadlines are looked at again after this time: the wheel does not reach for ever.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// The entries of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WheelEntries {
    next: Instant,
    later: Instant,
}

impl WheelEntries {
    /// Nothing is in the wheel.
    pub(crate) const UNSET: WheelEntries =
        WheelEntries { next: Instant::FAR_FUTURE, later: Instant::FAR_FUTURE };

    /// Something is due at `deadline`: when the wheel must be set to, if it must.
    pub(crate) fn set(&mut self, now: Instant, deadline: Instant) -> Option<Instant> {
        if deadline == Instant::FAR_FUTURE {
            return None;
        }
        let at = deadline.min(now + LONGEST);
        if at >= self.next {
            return None;
        }
        self.later = core::mem::replace(&mut self.next, at);
        Some(at)
    }

    /// An entry came up; whether it is the one that was waited for.
    pub(crate) fn on_expired(&mut self, now: Instant) -> bool {
        if self.next > now {
            return false;
        }
        // What stood behind it comes up by itself if it is due as well.
        let later = core::mem::replace(&mut self.later, Instant::FAR_FUTURE);
        self.next = if later > now { later } else { Instant::FAR_FUTURE };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::Wheel;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Runs the wheel for `steps` milliseconds; `deadline` says what is due after each. Returns how often it came up, and
    /// the most entries that there were.
    fn run(steps: u64, mut deadline: impl FnMut(u64, Instant) -> Instant) -> (u64, i64) {
        let mut now = Instant::from_nanos(1 << 40);
        let (mut wheel, mut wheel_entries) = (Wheel::new(now), WheelEntries::UNSET);
        let (mut entries, mut most, mut times) = (0i64, 0, 0);
        let mut due = Instant::FAR_FUTURE;
        for step in 0..steps {
            wheel.expire(now, |()| {
                entries -= 1;
                times += u64::from(wheel_entries.on_expired(now));
            });
            assert!(due + MILLISECOND > now || wheel_entries.next <= now, "late at {step}");
            due = deadline(step, now);
            if let Some(at) = wheel_entries.set(now, due) {
                wheel.schedule(at, ());
                entries += 1;
            }
            most = most.max(entries);
            assert!(wheel_entries.next <= due, "nothing is forgotten at {step}");
            now = now + MILLISECOND;
        }
        (times, most)
    }

    #[test]
    fn deadlines_that_come_and_go_do_not_pile_up() {
        // A receiver: acknowledgements are due after 25 ms again and again, and in between nothing but idleness.
        let idle = Duration::from_secs(30);
        let (_, most) = run(300_000, |step, now| match step % 40 {
            0..25 => now + MILLISECOND * (25 - step % 40),
            _ => now + idle,
        });
        assert!(most < 10, "{most} entries");
    }

    #[test]
    fn three_deadlines_in_turn_stay_few() {
        let (_, most) = run(300_000, |step, now| match step % 100 {
            0..20 => now + MILLISECOND * 5,
            20..60 => now + MILLISECOND * 300,
            _ => now + Duration::from_secs(30),
        });
        assert!(most < 200, "{most} entries");
    }

    #[test]
    fn what_is_far_away_is_looked_at_again() {
        let now = Instant::from_nanos(1 << 40);
        let mut wheel_entries = WheelEntries::UNSET;
        assert_eq!(wheel_entries.set(now, Instant::FAR_FUTURE), None, "never is not a time");
        assert_eq!(wheel_entries.set(now, now + LONGEST * 100), Some(now + LONGEST));
        assert!(!wheel_entries.on_expired(now) && wheel_entries.on_expired(now + LONGEST));
    }

    #[test]
    fn two_that_come_up_together_count_once() {
        let now = Instant::from_nanos(1 << 40);
        let mut wheel_entries = WheelEntries::UNSET;
        wheel_entries.set(now, now + MILLISECOND * 2);
        wheel_entries.set(now, now + MILLISECOND);
        let then = now + MILLISECOND * 3;
        assert_eq!((wheel_entries.on_expired(then), wheel_entries.on_expired(then)), (true, false));
        assert_eq!(wheel_entries.set(then, then + MILLISECOND), Some(then + MILLISECOND));
    }
}
