//! Which quality comes next.
//!
//! *Throughput*: the highest bitrate that the network has lately carried with something to spare. The estimate is the lower of two
//! averages, one of which forgets fast and one slowly, weighted by how long the transfers took.
//!
//! *Buffer*: BOLA (Spiteri, Urgaonkar, Sitaraman: BOLA: Near-Optimal Bitrate Adaptation for Online Videos, INFOCOM 2016). Each
//! quality has a utility, the logarithm of its bitrate over the lowest; the quality is taken for which utility less a price that
//! rises with the buffer, for each bit, is highest. The two constants follow from two buffer levels: at [`LOWEST_UNTIL`] the lowest
//! quality is worth nothing any more, at the target the highest. Nothing is asked about the network.
//!
//! Rejected: rules that look ahead or switch between both kinds (dynamic, MPC): what is measured here is the server under players,
//! and these two are what others are compared with.

use base::time::Duration;

/// How a player chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// By what the network carried.
    Throughput,
    /// By what is in the buffer.
    Buffer,
}

/// The share of the estimate that is used.
const SAFETY: f64 = 0.9;
/// Half of what was measured so long ago counts, in seconds of transfer.
const HALF_LIVES: [f64; 2] = [3.0, 8.0];
/// The buffer level at which the lowest quality is worth nothing any more, in seconds.
const LOWEST_UNTIL: f64 = 10.0;
/// The target is so much higher at least.
const LEAST_SPREAD: f64 = 1.2;

/// What the network has carried lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    /// Bits a second times weight, and weight, of each average.
    averages: [(f64, f64); 2],
}

impl Estimate {
    /// This many bytes took so long.
    pub(crate) fn add(&mut self, bytes: u64, took: Duration) {
        // No transfer is faster than a microsecond; the figure must stay a number.
        let seconds = took.as_secs_f64().max(1e-6);
        let rate = bytes as f64 * 8.0 / seconds;
        for ((sum, weight), half_life) in self.averages.iter_mut().zip(HALF_LIVES) {
            let kept = 0.5_f64.powf(seconds / half_life);
            *sum = *sum * kept + rate * (1.0 - kept);
            *weight = *weight * kept + (1.0 - kept);
        }
    }

    /// Bits a second; `None` before anything was measured.
    pub(crate) fn bits_per_second(&self) -> Option<f64> {
        let averages = self.averages.iter().filter(|(_, weight)| *weight > 0.0);
        averages.map(|(sum, weight)| sum / weight).reduce(f64::min)
    }
}

/// The highest of these bitrates (the lowest first) that leaves room for `beside`; the lowest when there is no estimate.
pub(crate) fn by_throughput(bitrates: &[u64], beside: u64, estimate: &Estimate) -> usize {
    let Some(rate) = estimate.bits_per_second() else { return 0 };
    let room = rate * SAFETY - beside as f64;
    bitrates.iter().rposition(|bitrate| *bitrate as f64 <= room).unwrap_or(0)
}

/// BOLA's choice among these bitrates (the lowest first) with this much in a buffer that should hold `target`.
pub(crate) fn by_buffer(bitrates: &[u64], buffered: Duration, target: Duration) -> usize {
    let (Some(lowest), Some(highest)) = (bitrates.first(), bitrates.last()) else { return 0 };
    let utility = |bitrate: u64| (bitrate.max(1) as f64 / (*lowest).max(1) as f64).ln();
    let target = target.as_secs_f64().max(LOWEST_UNTIL * LEAST_SPREAD);
    // Where utility and buffer trade evenly: price × gain is the lower level, price × (gain + highest utility) the upper.
    let gain = utility(*highest) / (target / LOWEST_UNTIL - 1.0);
    if gain <= 0.0 {
        return 0;
    }
    let price = LOWEST_UNTIL / gain;
    let score =
        |bitrate: u64| (price * (utility(bitrate) + gain) - buffered.as_secs_f64()) / bitrate.max(1) as f64;
    let best =
        bitrates.iter().enumerate().max_by(|(_, one), (_, other)| score(**one).total_cmp(&score(**other)));
    best.map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LADDER: [u64; 6] = [400_000, 1_000_000, 2_500_000, 5_000_000, 8_000_000, 16_000_000];

    fn carried(bytes: u64, ms: u64) -> Estimate {
        let mut estimate = Estimate::default();
        estimate.add(bytes, Duration::from_millis(ms));
        estimate
    }

    #[test]
    fn throughput_takes_what_the_network_carries_with_something_to_spare() {
        assert_eq!(by_throughput(&LADDER, 0, &Estimate::default()), 0);
        // 1 MB in a second is 8 Mbit/s, of which nine tenths are used.
        let estimate = carried(1_000_000, 1_000);
        assert_eq!(by_throughput(&LADDER, 128_000, &estimate), 3);
        assert_eq!(by_throughput(&LADDER, 128_000, &carried(1_200_000, 1_000)), 4);
        assert_eq!(by_throughput(&LADDER, 128_000, &carried(1_000, 1_000)), 0);
    }

    /// Deleted, a player could need minutes to see that the network has become slower, or never forget.
    #[test]
    fn the_estimate_falls_fast_and_rises_slowly() {
        let mut estimate = carried(10_000_000, 10_000);
        let before = estimate.bits_per_second().unwrap();
        estimate.add(500_000, Duration::from_secs(4));
        let fallen = estimate.bits_per_second().unwrap();
        assert!(fallen < before * 0.5, "{before} {fallen}");
        estimate.add(4_000_000, Duration::from_secs(4));
        let risen = estimate.bits_per_second().unwrap();
        assert!(risen > fallen && risen < before * 0.9, "{fallen} {risen}");
        estimate.add(u64::MAX, Duration::ZERO);
        assert!(estimate.bits_per_second().unwrap().is_finite());
    }

    #[test]
    fn the_buffer_rule_climbs_the_ladder_as_the_buffer_fills() {
        let target = Duration::from_secs(30);
        let choices: Vec<usize> =
            (0..40).map(|seconds| by_buffer(&LADDER, Duration::from_secs(seconds), target)).collect();
        assert_eq!((choices[0], choices[29]), (0, 5), "{choices:?}");
        assert!(choices[..30].is_sorted(), "{choices:?}");
        assert!((0..6).all(|quality| choices.contains(&quality)), "{choices:?}");
        assert_eq!(by_buffer(&[500_000], Duration::from_secs(20), target), 0);
        assert_eq!(by_buffer(&LADDER, Duration::ZERO, Duration::ZERO), 0);
    }
}
