//! What a handful of trials say: mean, spread, median, and the ratio of two series with an interval.
//!
//! Series of one run are compared round by round: a machine that becomes slower in its course slows both sides of a pair, so it
//! does not widen the interval. Runs of different hours have no rounds in common, and their intervals are Welch's.
//!
//! Rejected: the percentile bootstrap. Of normal trials, three to seven on a side, its "95 %" held the true ratio in 82 to
//! 91 % of all cases (simulated), since drawing anew from so few values knows no spread beyond theirs.

use serde::{Deserialize, Serialize};

/// Student's t, the quantile at 0.975, by degrees of freedom.
const STUDENT: [(f64, f64); 16] = [
    (1.0, 12.706),
    (2.0, 4.303),
    (3.0, 3.182),
    (4.0, 2.776),
    (5.0, 2.571),
    (6.0, 2.447),
    (7.0, 2.365),
    (8.0, 2.306),
    (9.0, 2.262),
    (10.0, 2.228),
    (12.0, 2.179),
    (15.0, 2.131),
    (20.0, 2.086),
    (30.0, 2.042),
    (60.0, 2.000),
    (f64::INFINITY, 1.960),
];

/// A series of trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// As measured, in order.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// The standard deviation of the sample; 0 for a single value.
    pub sd: f64,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
}

impl Summary {
    /// Of these values; all zero when there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Summary {
        let values: Vec<f64> = values.into_iter().collect();
        let mean = mean(&values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = if values.len() < 2 { 0.0 } else { (squares / (values.len() - 1) as f64).sqrt() };
        let median = median(&values);
        Summary { values, mean, sd, median }
    }

    /// The 95 % interval of the mean, by Student; `None` with fewer than two trials.
    pub fn interval(&self) -> Option<[f64; 2]> {
        let trials = self.values.len();
        let reach = (trials >= 2).then(|| student((trials - 1) as f64) * self.sd / (trials as f64).sqrt())?;
        Some([self.mean - reach, self.mean + reach])
    }
}

/// How many times one series is another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The geometric mean of the rounds' ratios, or mean divided by mean where there are no rounds.
    pub ratio: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
}

impl Ratio {
    /// Mean of `over` divided by mean of `under`, with a 95 % interval in the manner of Welch: the spread of the trials'
    /// logarithms on either side, Student's t for as many degrees of freedom as the two spreads have between them. It lies
    /// around the logarithm of the ratio, so the interval of the inverse ratio is the inverse interval. Two trials on a side are
    /// allowed and make it very wide. No interval knows of what disturbs all trials of a side alike. `None` with fewer than two
    /// trials on a side, or where a trial is not a positive finite number.
    pub fn of(over: &[f64], under: &[f64]) -> Option<Ratio> {
        let (of_over, of_under) = (Spread::of(over)?, Spread::of(under)?);
        let variance = of_over.variance + of_under.variance;
        // Without any spread there are no degrees of freedom, and nothing to widen.
        let reach =
            if variance > 0.0 { student(freedom(&of_over, &of_under)) * variance.sqrt() } else { 0.0 };
        let ratio = mean(over) / mean(under);
        Some(Ratio { ratio, low: ratio / reach.exp(), high: ratio * reach.exp() })
    }

    /// The geometric mean of the ratios of trials at the same place, with a 95 % interval by Student: both series have a trial
    /// in each round, in order. A series that ended early counts as far as it goes, with its partner. `None` with fewer than
    /// two rounds, or where a trial is not a positive finite number.
    pub fn by_rounds(over: &[f64], under: &[f64]) -> Option<Ratio> {
        let rounds: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
        let spread = Spread::of(&rounds)?;
        let ratio = mean(&rounds.iter().map(|ratio| ratio.ln()).collect::<Vec<f64>>()).exp();
        let reach = student(spread.freedom) * spread.variance.sqrt();
        Some(Ratio { ratio, low: ratio / reach.exp(), high: ratio * reach.exp() })
    }

    /// Whether the interval leaves open which of the two is larger.
    pub fn spans_one(&self) -> bool {
        self.low <= 1.0 && self.high >= 1.0
    }
}

/// How far the logarithms of a series scatter.
struct Spread {
    /// Of their mean.
    variance: f64,
    /// One less than there are trials.
    freedom: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Spread> {
        let is_usable = values.len() >= 2 && values.iter().all(|value| value.is_finite() && *value > 0.0);
        let logs = is_usable.then(|| Summary::of(values.iter().map(|value| value.ln())))?;
        Some(Spread { variance: logs.sd.powi(2) / values.len() as f64, freedom: (values.len() - 1) as f64 })
    }
}

/// Degrees of freedom of a difference, after Welch and Satterthwaite: between those of the side with fewer and those of both.
fn freedom(one: &Spread, other: &Spread) -> f64 {
    let part = |side: &Spread| side.variance.powi(2) / side.freedom;
    (one.variance + other.variance).powi(2) / (part(one) + part(other))
}

/// The quantile at 0.975. Between two entries of the table it is a line over the inverse of the degrees of freedom, which is,
/// but for rounding, never below the true one.
fn student(freedom: f64) -> f64 {
    let line = |((few, wide), (many, narrow)): ((f64, f64), (f64, f64))| {
        let share = (1.0 / freedom - 1.0 / many) / (1.0 / few - 1.0 / many);
        narrow + (wide - narrow) * share
    };
    let pairs = STUDENT.iter().copied().zip(STUDENT.iter().copied().skip(1));
    pairs.into_iter().find(|(_, (many, _))| freedom <= *many).map_or(STUDENT[0].1, line)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |place: usize| sorted.get(place).copied().unwrap_or(0.0);
    (at(sorted.len() / 2) + at(sorted.len().saturating_sub(1) / 2)) / 2.0
}

#[cfg(test)]
mod tests {
    use base::rng::Rng;

    use super::*;

    #[test]
    fn a_series_is_summed_up() {
        let summary = Summary::of([2.0, 4.0, 4.0, 10.0]);
        assert_eq!((summary.mean, summary.median), (5.0, 4.0));
        assert!((summary.sd - 3.464).abs() < 0.001);
        assert_eq!(Summary::of([3.0]), Summary { values: vec![3.0], mean: 3.0, sd: 0.0, median: 3.0 });
        assert_eq!(Summary::of([]).median, 0.0);
    }

    #[test]
    fn an_interval_says_whether_there_is_a_difference() {
        let clear = Ratio::of(&[20.0, 21.0, 19.0], &[10.0, 10.5, 9.5]).unwrap();
        assert!(clear.ratio == 2.0 && clear.low > 1.7 && clear.high < 2.3 && !clear.spans_one(), "{clear:?}");
        let open = Ratio::of(&[10.0, 14.0, 9.0], &[11.0, 9.0, 12.0]).unwrap();
        assert!(open.spans_one() && open.low < open.ratio && open.ratio < open.high);
        let inverse = Ratio::of(&[11.0, 9.0, 12.0], &[10.0, 14.0, 9.0]).unwrap();
        assert!((inverse.low * open.high - 1.0).abs() < 1e-12, "{inverse:?}");
        assert_eq!(Ratio::of(&[3.0, 3.0], &[2.0, 2.0]), Some(Ratio { ratio: 1.5, low: 1.5, high: 1.5 }));
    }

    #[test]
    fn a_machine_that_slows_down_does_not_widen_the_interval_of_rounds() {
        let (over, under) = ([20.0, 16.2, 12.0, 8.1], [10.0, 8.0, 6.1, 4.0]);
        let (rounds, apart) = (Ratio::by_rounds(&over, &under).unwrap(), Ratio::of(&over, &under).unwrap());
        assert!(rounds.low > 1.95 && rounds.high < 2.05, "{rounds:?}");
        assert!(apart.low < 1.1 && apart.high > 3.5, "{apart:?}");
        let inverse = Ratio::by_rounds(&under, &over).unwrap();
        assert!((inverse.ratio * rounds.ratio - 1.0).abs() < 1e-12, "{inverse:?}");
        assert!((inverse.low * rounds.high - 1.0).abs() < 1e-12, "{inverse:?}");
        assert_eq!(Ratio::by_rounds(&over[..3], &under), Ratio::by_rounds(&over[..3], &under[..3]));
        assert_eq!(Ratio::by_rounds(&over[..1], &under), None);
    }

    #[test]
    fn there_is_no_interval_of_what_has_no_logarithm() {
        for bad in [&[1.0][..], &[], &[1.0, 0.0], &[1.0, -1.0], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
            assert_eq!(Ratio::of(bad, &[1.0, 2.0]), None, "{bad:?}");
            assert_eq!(Ratio::of(&[1.0, 2.0], bad), None, "{bad:?}");
            assert_eq!(Ratio::by_rounds(bad, &[1.0, 2.0]), None, "{bad:?}");
            assert_eq!(Ratio::by_rounds(&[1.0, 2.0], bad), None, "{bad:?}");
        }
    }

    #[test]
    fn student_is_as_in_the_tables() {
        for (freedom, wide) in STUDENT {
            assert!((student(freedom) - wide).abs() < 1e-9, "{freedom}");
        }
        // The true ones are 3.0249 and 1.9840.
        assert!((3.025..3.08).contains(&student(3.3)) && (1.983..1.985).contains(&student(100.0)));
    }

    /// Deleted, intervals could be called 95 % and be narrower, as those of the bootstrap were.
    #[test]
    fn as_many_intervals_hold_the_truth_as_they_say() {
        let mut rng = Rng::from_u64(5);
        // The sum of twelve is close to normal, with a deviation of 1.
        let mut trial = || {
            let sum: f64 = (0..12).map(|_| rng.below(1_000_000) as f64 / 1e6).sum();
            1.0 + 0.05 * (sum - 6.0)
        };
        for size in [2, 3, 5, 7] {
            let mut series = || (0..size).map(|_| trial()).collect::<Vec<f64>>();
            let held = (0..4_000).filter(|_| Ratio::of(&series(), &series()).unwrap().spans_one()).count();
            assert!((3_760..=3_960).contains(&held), "{held} of 4000 with {size} trials on a side");
            // Each round has a speed of its own, which both of its trials share.
            let mut rounds =
                || (0..size).map(|_| (trial(), trial(), 1.0 + 0.3 * trial())).collect::<Vec<_>>();
            let by_rounds = |of: &[(f64, f64, f64)]| {
                let (over, under): (Vec<f64>, Vec<f64>) =
                    of.iter().map(|(one, two, speed)| (one * speed, two * speed)).unzip();
                Ratio::by_rounds(&over, &under).unwrap()
            };
            let held = (0..4_000).filter(|_| by_rounds(&rounds()).spans_one()).count();
            assert!((3_760..=3_860).contains(&held), "{held} of 4000 with {size} rounds");
        }
    }
}
