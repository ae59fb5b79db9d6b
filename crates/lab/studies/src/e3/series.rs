//! What a variant did, at each number of outstanding requests, over all rounds.

use std::collections::BTreeMap;

use report::stats::Summary;
use serde::Serialize;

use super::trial::{PERCENTILES, Trial};
use super::variant::Variant;
use crate::courses::Rounds;

/// The trials of one variant.
#[derive(Clone, Debug)]
pub(super) struct VariantTrials {
    pub(super) variant: Variant,
    /// By the number of outstanding requests on each connection.
    pub(super) points: BTreeMap<usize, Vec<Trial>>,
    /// The same exchange in bare datagrams, one outstanding, once in each round.
    pub(super) echoes: Vec<Trial>,
    /// Why it could not be measured, or not further.
    pub(super) problem: Option<String>,
}

/// As it is kept among the raw figures.
#[derive(Serialize)]
pub(super) struct Raw<'a> {
    variant: &'static str,
    points: &'a BTreeMap<usize, Vec<Trial>>,
    echoes: &'a [Trial],
    problem: &'a Option<String>,
}

/// The place of the 99.99th percentile among [`PERCENTILES`].
pub(super) const LAST: usize = PERCENTILES.len() - 1;
/// A variant has reached its peak where it has this share of it.
const NEARLY: f64 = 0.95;

impl VariantTrials {
    pub(super) fn new(variant: Variant) -> VariantTrials {
        VariantTrials { variant, points: BTreeMap::new(), echoes: Vec::new(), problem: None }
    }

    pub(super) fn raw(&self) -> Raw<'_> {
        Raw { variant: self.variant.name, points: &self.points, echoes: &self.echoes, problem: &self.problem }
    }

    fn trials(&self, outstanding: usize) -> &[Trial] {
        self.points.get(&outstanding).map_or(&[], Vec::as_slice)
    }

    /// The courses of the trials.
    pub(super) fn rounds(&self, outstanding: usize) -> Rounds<'_> {
        let courses = self.trials(outstanding).iter().map(|trial| &trial.course[..]).collect();
        Rounds { name: self.variant.name.to_owned(), courses }
    }

    /// Requests a second in each trial.
    pub(super) fn rates(&self, outstanding: usize) -> Vec<f64> {
        self.trials(outstanding).iter().map(|trial| trial.rate).collect()
    }

    /// Their mean; `None` when there is no trial.
    pub(super) fn rate(&self, outstanding: usize) -> Option<f64> {
        let rates = self.rates(outstanding);
        (!rates.is_empty()).then(|| Summary::of(rates).mean)
    }

    /// A percentile of the latency: the median of the trials', since one disturbed trial decides the mean of a tail. `None`
    /// where no trial had requests enough to tell it from the longest.
    pub(super) fn percentile(&self, outstanding: usize, which: usize) -> Option<f64> {
        percentile(self.trials(outstanding), which)
    }

    /// The same of bare datagrams, one outstanding.
    pub(super) fn bare_percentile(&self, which: usize) -> Option<f64> {
        percentile(&self.echoes, which)
    }

    /// How many times the median the 99.99th percentile is where one is outstanding: of requests, and of bare datagrams.
    pub(super) fn tails(&self) -> [Option<f64>; 2] {
        let times = |low: Option<f64>, high: Option<f64>| Some(high? / low?);
        [
            times(self.percentile(1, 0), self.percentile(1, LAST)),
            times(self.bare_percentile(0), self.bare_percentile(LAST)),
        ]
    }

    /// A figure's mean over the trials of bare datagrams.
    pub(super) fn bare_mean(&self, figure: impl Fn(&Trial) -> f64) -> Option<f64> {
        (!self.echoes.is_empty()).then(|| Summary::of(self.echoes.iter().map(figure)).mean)
    }

    /// A figure's mean over the trials.
    pub(super) fn mean(&self, outstanding: usize, figure: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.trials(outstanding).iter().filter_map(figure).collect();
        (!values.is_empty()).then(|| Summary::of(values).mean)
    }

    /// The trial whose median latency is the middle one.
    pub(super) fn typical(&self, outstanding: usize) -> Option<&Trial> {
        let mut trials: Vec<&Trial> = self.trials(outstanding).iter().collect();
        trials.sort_by(|one, other| one.latency_us[0].total_cmp(&other.latency_us[0]));
        trials.get(trials.len() / 2).copied()
    }

    /// The highest rate, and the fewest outstanding requests that reach nearly as much.
    pub(super) fn peak(&self) -> Option<(f64, usize)> {
        let rates =
            || self.points.keys().filter_map(|outstanding| Some((*outstanding, self.rate(*outstanding)?)));
        let peak = rates().map(|(_, rate)| rate).fold(f64::NAN, f64::max);
        let (at, _) = rates().find(|(_, rate)| *rate >= peak * NEARLY)?;
        Some((peak, at))
    }

    /// How many requests failed.
    pub(super) fn failed(&self) -> u64 {
        self.points.values().flatten().map(|trial| trial.failed).sum()
    }
}

fn percentile(trials: &[Trial], which: usize) -> Option<f64> {
    let beyond = [0.5, 0.1, 0.01, 0.001, 0.000_1].get(which)?;
    let trials = trials.iter().filter(|trial| trial.count as f64 * beyond >= 2.0);
    let values: Vec<f64> = trials.filter_map(|trial| trial.latency_us.get(which).copied()).collect();
    (!values.is_empty()).then(|| Summary::of(values).median)
}

/// How many percentiles are lower in `one` than in `other`, of those that both have.
pub(super) fn lower(one: &VariantTrials, other: &VariantTrials, outstanding: usize) -> (usize, usize) {
    let both = (0..PERCENTILES.len()).filter_map(|which| {
        Some((one.percentile(outstanding, which)?, other.percentile(outstanding, which)?))
    });
    let both: Vec<(f64, f64)> = both.collect();
    (both.iter().filter(|(one, other)| one < other).count(), both.len())
}

#[cfg(test)]
mod tests {
    use super::super::variant::{DRIVER, GSO};
    use super::*;

    fn lane(variant: Variant, rates: &[(usize, f64)], latency: f64) -> VariantTrials {
        let mut lane = VariantTrials::new(variant);
        for (outstanding, rate) in rates {
            let trial = Trial { rate: *rate, count: 1_000, latency_us: [latency; 5], ..Trial::default() };
            lane.points.entry(*outstanding).or_default().push(trial);
        }
        lane
    }

    #[test]
    fn a_curve_flattens_where_it_is_near_its_peak() {
        let rates = [(1, 10.0), (4, 50.0), (16, 96.0), (64, 100.0), (128, 90.0)];
        assert_eq!(lane(GSO, &rates, 1.0).peak(), Some((100.0, 16)));
        assert_eq!(VariantTrials::new(GSO).peak(), None);
    }

    /// Deleted, the tail of a thousand requests would be compared at the 99.99th percentile, which is a single one of them.
    #[test]
    fn percentiles_are_compared_where_there_are_requests_enough() {
        let (udp, xdp) = (lane(GSO, &[(1, 1.0)], 20.0), lane(DRIVER, &[(1, 1.0)], 10.0));
        assert_eq!((lower(&xdp, &udp, 1), lower(&udp, &xdp, 1)), ((3, 3), (0, 3)));
        assert_eq!(udp.percentile(1, 4), None);
        assert_eq!(lower(&xdp, &udp, 2), (0, 0));
    }
}
