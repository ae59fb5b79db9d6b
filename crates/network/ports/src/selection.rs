//! The contest behind `--datapath auto`: bursts on each path in turn, several rounds, the median of each, a winner.
//!
//! Rounds are interleaved, so that whatever else the machine does in that moment falls on all paths alike; the first round
//! warms caches and is forgotten. A path that fails in the middle is out and says why; the others go on.
//!
//! `gso` stays unless another path is a tenth cheaper: less than that is noise, and gso also merges what arrives. Choosing
//! among the others goes by cost alone.
//!
//! Only sending is compared. Receiving would need a sender that is no part of the machine; it follows the same order.

use crate::kinds::DataPathChoice;
use crate::measure::clock;
use base::time::{Duration, Instant};
use core::fmt;
use std::io;

/// Rounds that count.
const ROUNDS: usize = 5;
/// What another path may cost, as a share of gso's cost, to be preferred.
const PREFERRED_BELOW: f64 = 0.9;

/// A path that takes part: its name, and how a burst is sent on it. One call is hundreds of datagrams, so that it may be
/// dynamic; inside it all is compiled for its port.
pub(crate) struct Candidate<'a> {
    pub(crate) choice: DataPathChoice,
    /// Its name for people: `gso`, `xdp generic`.
    pub(crate) name: String,
    /// Sends a burst and returns nanoseconds of CPU per datagram.
    pub(crate) burst: Box<dyn FnMut() -> io::Result<f64> + 'a>,
}

/// What one path cost.
#[derive(Clone, Debug, PartialEq)]
pub struct PathCost {
    /// The path.
    pub choice: DataPathChoice,
    /// Its name for people: `gso`, `xdp generic`.
    pub name: String,
    /// Nanoseconds of CPU per datagram sent, or why there is no figure.
    pub cost: Result<f64, String>,
}

/// What a contest found.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The path to use; never [`DataPathChoice::Auto`].
    pub choice: DataPathChoice,
    /// Where it was measured, for people: "lo", "eth0"; or why it could not be.
    pub place: Result<String, String>,
    /// All paths, the chosen one first, then in the order of their cost; those without a figure last.
    pub measured: Vec<PathCost>,
}

/// Runs the contest until `deadline` at most.
pub(crate) fn run(place: &str, contestants: &mut [Candidate<'_>], deadline: Instant) -> Selection {
    let mut costs: Vec<Result<Vec<f64>, String>> = contestants.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..=ROUNDS {
        // One figure for each at least, however slow the machine is.
        if round > 1 && clock() >= deadline {
            break;
        }
        for (contestant, costs) in contestants.iter_mut().zip(&mut costs) {
            let Ok(figures) = costs else { continue };
            match (contestant.burst)() {
                Ok(_) if round == 0 => {}
                Ok(figure) => figures.push(figure),
                Err(error) => *costs = Err(error.to_string()),
            }
        }
    }
    let measured = contestants.iter().zip(costs).map(|(contestant, costs)| PathCost {
        choice: contestant.choice,
        name: contestant.name.clone(),
        cost: costs.map(median),
    });
    decide(place, measured.collect())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// The winner among what was measured.
fn decide(place: &str, mut measured: Vec<PathCost>) -> Selection {
    let weight = |path: &PathCost| match &path.cost {
        Ok(cost) if path.choice == DataPathChoice::Gso => cost * PREFERRED_BELOW,
        Ok(cost) => *cost,
        Err(_) => f64::INFINITY,
    };
    measured.sort_by(|a, b| weight(a).total_cmp(&weight(b)));
    match measured.first() {
        Some(PathCost { choice, cost: Ok(_), .. }) => {
            Selection { choice: *choice, place: Ok(place.to_owned()), measured }
        }
        Some(PathCost { cost: Err(why), .. }) => Selection::unmeasured(why.clone()),
        None => Selection::unmeasured("no path can be opened"),
    }
}

impl Selection {
    /// Without figures it is gso: it falls back by itself where the kernel or the interface cannot.
    pub(crate) fn unmeasured(why: impl Into<String>) -> Selection {
        Selection { choice: DataPathChoice::Gso, place: Err(why.into()), measured: Vec::new() }
    }
}

/// One line: what was picked and why.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "datapath auto: {}", self.choice)?;
        let place = match &self.place {
            Ok(place) => place,
            Err(why) => return write!(f, ", not measured: {why}"),
        };
        let mut separator = " (";
        for path in &self.measured {
            match &path.cost {
                Ok(cost) if separator == " (" => {
                    write!(f, "{separator}{} ns of CPU per datagram sent on {place}", thousands(*cost))?;
                }
                Ok(cost) => write!(f, "{separator}{} {}", path.name, thousands(*cost))?,
                Err(why) => write!(f, "{separator}{} not: {why}", path.name)?,
            }
            separator = if separator == " (" { "; " } else { ", " };
        }
        f.write_str(")")
    }
}

/// A whole number with its thousands apart.
fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How long a contest may take in all.
pub(crate) const BUDGET: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    fn contestant(choice: DataPathChoice, figures: &'static [f64]) -> Candidate<'static> {
        let mut figures = figures.iter().cycle();
        let burst = Box::new(move || figures.next().copied().ok_or(io::Error::other("refused")));
        Candidate { choice, name: choice.name().to_owned(), burst }
    }

    fn selection(contestants: &mut [Candidate<'_>]) -> Selection {
        run("lo", contestants, Instant::FAR_FUTURE)
    }

    #[test]
    fn the_cheapest_wins_by_its_median_and_the_line_says_why() {
        let verdict = selection(&mut [
            contestant(DataPathChoice::Plain, &[4_200.0]),
            // One disturbed round and a cold start do not matter.
            contestant(DataPathChoice::Gso, &[90_000.0, 82.0, 81.0, 9_000.0, 82.0, 83.0]),
            contestant(DataPathChoice::Mmsg, &[3_900.0]),
            contestant(DataPathChoice::Xdp, &[]),
        ]);
        assert_eq!(verdict.choice, DataPathChoice::Gso);
        let expected = "datapath auto: gso (82 ns of CPU per datagram sent on lo; mmsg 3,900, plain 4,200, xdp not: refused)";
        assert_eq!(verdict.to_string(), expected);
    }

    #[test]
    fn gso_yields_only_to_a_path_that_is_a_tenth_cheaper() {
        let winner = |gso, xdp| {
            selection(&mut [contestant(DataPathChoice::Gso, gso), contestant(DataPathChoice::Xdp, xdp)])
                .choice
        };
        assert_eq!(winner(&[1_000.0], &[950.0]), DataPathChoice::Gso);
        assert_eq!(winner(&[1_000.0], &[850.0]), DataPathChoice::Xdp);
    }

    #[test]
    fn a_path_that_fails_midway_is_out_and_no_path_at_all_is_gso_with_the_reason() {
        let mut bursts = 0;
        let fails_later = Candidate {
            choice: DataPathChoice::Mmsg,
            name: "mmsg".to_owned(),
            burst: Box::new(|| {
                bursts += 1;
                if bursts < 3 { Ok(1.0) } else { Err(io::Error::other("link is down")) }
            }),
        };
        let verdict = selection(&mut [fails_later, contestant(DataPathChoice::Plain, &[4_000.0])]);
        assert_eq!(verdict.choice, DataPathChoice::Plain);
        let verdict = selection(&mut [contestant(DataPathChoice::Plain, &[])]);
        assert_eq!(verdict.to_string(), "datapath auto: gso, not measured: refused");
        assert_eq!(selection(&mut []).choice, DataPathChoice::Gso);
    }

    #[test]
    fn a_slow_machine_still_gets_a_figure_for_each_path() {
        let mut slow = [contestant(DataPathChoice::Gso, &[5.0]), contestant(DataPathChoice::Mmsg, &[7.0])];
        let verdict = run("lo", &mut slow, Instant::ZERO);
        assert!(verdict.measured.iter().all(|path| path.cost.is_ok()), "{verdict}");
    }
}
