//! How long a measurement will still take, judged by what it took so far.
//!
//! The work is told in weights whose unit is the caller's: trials, or seconds of measuring. Nothing is said before enough of it is
//! done to be like the rest, such as a whole round.

/// A measurement under way.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    began: f64,
    all: f64,
    trusted: f64,
    done: f64,
}

impl Estimate {
    /// It begins now and weighs `all`; from `trusted` on, what is done tells of the rest.
    pub fn new(all: f64, trusted: f64) -> Estimate {
        Estimate { began: cpu::clock_seconds(), all, trusted, done: 0.0 }
    }

    /// For rounds of equal work: this many steps in each, and this many rounds.
    pub fn of_rounds(steps: usize, rounds: usize) -> Estimate {
        Estimate::new((steps * rounds) as f64, steps as f64)
    }

    /// Something of this weight is done. What to add to a line about it: "; about 12 min left", or nothing.
    pub fn step(&mut self, weight: f64) -> String {
        self.step_at(weight, cpu::clock_seconds())
    }

    fn step_at(&mut self, weight: f64, now: f64) -> String {
        self.done += weight;
        if self.done < self.trusted || self.done >= self.all || self.done <= 0.0 {
            return String::new();
        }
        let left = (now - self.began) * (self.all - self.done) / self.done;
        if left < 90.0 {
            format!("; about {left:.0} s left")
        } else {
            format!("; about {:.0} min left", left / 60.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a user who waits could be told a time from the first trial of many, or the time since the beginning.
    #[test]
    fn what_is_left_follows_from_what_was_done() {
        let mut estimate = Estimate { began: 100.0, all: 12.0, trusted: 3.0, done: 0.0 };
        assert_eq!(estimate.step_at(1.0, 110.0), "");
        assert_eq!(estimate.step_at(1.0, 120.0), "");
        assert_eq!(estimate.step_at(1.0, 130.0), "; about 2 min left");
        assert_eq!(estimate.step_at(3.0, 160.0), "; about 60 s left");
        assert_eq!(estimate.step_at(6.0, 230.0), "", "done");
        assert_eq!(Estimate::of_rounds(2, 3).step(0.0), "");
    }
}
