//! What a handful of trials say: mean, spread, median, and the ratio of two series with an interval.

use base::rng::Rng;
use serde::{Deserialize, Serialize};

/// How often the trials are drawn anew.
const RESAMPLES: usize = 10_000;

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
}

/// How many times one series is another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Mean divided by mean.
    pub ratio: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
}

impl Ratio {
    /// Mean of `over` divided by mean of `under`, with a bootstrap interval: both series are drawn anew, with
    /// replacement, ten thousand times. The draw is seeded, so the same trials give the same interval. `None` with fewer
    /// than two trials on a side.
    pub fn of(over: &[f64], under: &[f64]) -> Option<Ratio> {
        if over.len() < 2 || under.len() < 2 {
            return None;
        }
        let mut rng = Rng::from_u64(1);
        let mut drawn: Vec<f64> = (0..RESAMPLES)
            .map(|_| resampled_mean(over, &mut rng) / resampled_mean(under, &mut rng))
            .collect();
        drawn.sort_by(f64::total_cmp);
        let at = |share: f64| drawn.get((share * RESAMPLES as f64) as usize).copied().unwrap_or(f64::NAN);
        Some(Ratio { ratio: mean(over) / mean(under), low: at(0.025), high: at(0.975) })
    }

    /// Whether the interval leaves open which of the two is larger.
    pub fn spans_one(&self) -> bool {
        self.low <= 1.0 && self.high >= 1.0
    }
}

fn resampled_mean(values: &[f64], rng: &mut Rng) -> f64 {
    let draw = |_| values.get(rng.below(values.len() as u64) as usize).copied().unwrap_or(0.0);
    (0..values.len()).map(draw).sum::<f64>() / values.len() as f64
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
        assert!(clear.ratio == 2.0 && clear.low > 1.8 && clear.high < 2.2 && !clear.spans_one());
        let open = Ratio::of(&[10.0, 14.0, 9.0], &[11.0, 9.0, 12.0]).unwrap();
        assert!(open.spans_one() && open.low < open.ratio && open.ratio < open.high);
        assert_eq!(
            Some(open),
            Ratio::of(&[10.0, 14.0, 9.0], &[11.0, 9.0, 12.0]),
            "the same trials, the same interval"
        );
        assert_eq!(Ratio::of(&[1.0], &[1.0, 2.0]), None);
    }
}
