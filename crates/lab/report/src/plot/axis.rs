//! How figures are spread along an axis, and which of them are labelled.
//!
//! A figure's place is a number on an even axis: itself, its decimal logarithm, or the number of its nines. The plotting
//! library sees places only.

use crate::model::Scale;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// Percentiles that are labelled, where they lie within the data.
const PERCENTILES: [f64; 8] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999];

/// So many different figures label a logarithmic axis themselves.
const CHOSEN: usize = 12;

/// Where an axis begins and ends, and its labels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spread {
    scale: Scale,
    /// The place of the beginning.
    pub(super) low: f64,
    /// The place of the end.
    pub(super) high: f64,
    /// Places that are labelled.
    pub(super) ticks: Vec<Tick>,
}

/// A labelled place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Where.
    pub(super) place: f64,
    /// What is written there.
    pub(super) label: String,
}

/// What an axis shows beyond its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Zero where it is linear, and up to the next label: for what is compared by length or height.
    Rounded,
    /// Only the data: for what is walked along.
    Data,
}

impl Spread {
    /// For these figures, with about `count` labels.
    pub(super) fn of(scale: Scale, reach: Reach, figures: &[f64], count: usize) -> Spread {
        let places: Vec<f64> = figures.iter().filter_map(|&figure| place(scale, figure)).collect();
        let mut low = places.iter().copied().fold(f64::INFINITY, f64::min);
        let mut high = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if scale == Scale::Linear && (reach == Reach::Rounded || low.abs() < 0.2 * high.abs()) {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if high - low < 1e-9 * high.abs().max(1e-9) {
            high = low + if low == 0.0 { 1.0 } else { low.abs() };
        }
        let mut spread = Spread { scale, low, high, ticks: Vec::new() };
        // What is counted, such as rounds, has nothing between two whole numbers.
        let least_step = if figures.iter().all(|figure| figure.fract() == 0.0) { 1.0 } else { 0.0 };
        match scale {
            Scale::Linear => spread.label_evenly(reach, count, least_step),
            Scale::Logarithmic => spread.label_powers(reach, figures, count),
            Scale::Percentile => spread.label_nines(count),
        }
        spread
    }

    /// The place of a figure; `None` for what cannot be shown.
    pub(super) fn place(&self, figure: f64) -> Option<f64> {
        place(self.scale, figure)
    }

    /// Where bars begin.
    pub(super) fn origin(&self) -> f64 {
        if self.scale == Scale::Linear { 0.0 } else { self.low }
    }

    fn label_evenly(&mut self, reach: Reach, count: usize, least_step: f64) {
        let step = even_step((self.high - self.low) / count.max(1) as f64).max(least_step);
        if reach == Reach::Rounded {
            self.low = (self.low / step + 1e-9).floor() * step;
            let end = (self.high / step - 1e-9).ceil() * step;
            // An axis of few labels would be empty for the most part.
            self.high = if self.high < 0.75 * end { self.high * 1.05 } else { end };
        }
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let unit = Unit::of(self.low.abs().max(self.high.abs()));
        self.ticks = (first..=last.min(first + 100))
            .map(|at| at as f64 * step)
            .map(|figure| Tick { place: figure, label: unit.label(figure, step) })
            .collect();
    }

    fn label_powers(&mut self, reach: Reach, figures: &[f64], count: usize) {
        let mut wanted: Vec<f64> = figures.iter().copied().filter(|figure| *figure > 0.0).collect();
        wanted.sort_by(f64::total_cmp);
        wanted.dedup();
        // Few chosen values are better labels than round ones.
        if reach == Reach::Rounded || wanted.len() > CHOSEN {
            let (from, to) = (self.low.floor() as i32, self.high.ceil() as i32);
            let multiples: &[f64] = if (to - from) as usize * 3 <= count { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let powers = (from..=to).flat_map(|power| multiples.iter().map(move |m| m * 10_f64.powi(power)));
            wanted = powers.collect();
        }
        if reach == Reach::Rounded {
            let places = wanted.iter().map(|figure| figure.log10());
            let (low, high) = (self.low, self.high);
            self.low = places.clone().filter(|place| *place <= low + 1e-9).fold(low.floor(), f64::max);
            self.high = places.filter(|place| *place >= high - 1e-9).fold(high.ceil(), f64::min);
        }
        let apart = (self.high - self.low) / (count as f64 * 2.0);
        let mut last = f64::NEG_INFINITY;
        for figure in wanted {
            let place = figure.log10();
            if place < self.low - 1e-9 || place > self.high + 1e-9 || place - last < apart {
                continue;
            }
            last = place;
            self.ticks.push(Tick { place, label: rounded(figure) });
        }
    }

    fn label_nines(&mut self, count: usize) {
        let apart = (self.high - self.low) / (count as f64 * 1.2);
        let mut next = f64::INFINITY;
        // From the top, since the high ones matter.
        for percentile in PERCENTILES.into_iter().rev() {
            let Some(place) = place(Scale::Percentile, percentile) else { continue };
            if place >= self.low - 1e-9 && place <= self.high + 1e-9 && next - place >= apart {
                self.ticks.insert(0, Tick { place, label: format!("{percentile} %") });
                next = place;
            }
        }
    }
}

/// As the plotting library sees an axis: places, with labels at some of them.
impl Ranged for Spread {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.low) / (self.high - self.low);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Light lines between the labelled ones are not wanted.
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.ticks.iter().map(|tick| tick.place).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Spread {
    fn format_ext(&self, place: &f64) -> String {
        self.ticks
            .iter()
            .find(|tick| tick.place == *place)
            .map_or_else(String::new, |tick| tick.label.clone())
    }
}

fn place(scale: Scale, figure: f64) -> Option<f64> {
    let place = match scale {
        Scale::Linear => figure,
        Scale::Logarithmic if figure > 0.0 => figure.log10(),
        Scale::Percentile if figure < 100.0 => -(1.0 - figure / 100.0).log10(),
        Scale::Logarithmic | Scale::Percentile => return None,
    };
    place.is_finite().then_some(place)
}

/// The next of 1, 2, 5, 10, … from here.
fn even_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.max(1e-300).log10().floor());
    let multiple = [1.0, 2.0, 5.0].into_iter().find(|multiple| multiple * power >= rough * (1.0 - 1e-9));
    multiple.unwrap_or(10.0) * power
}

/// By what the figures of an axis are divided before they are written, and the letter for it.
#[derive(Clone, Copy, Debug)]
struct Unit(f64, &'static str);

impl Unit {
    /// Figures up to ten thousand are written out.
    fn of(largest: f64) -> Unit {
        [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
            .into_iter()
            .find(|(size, _)| largest >= *size && largest >= 1e4)
            .map_or(Unit(1.0, ""), |(size, letter)| Unit(size, letter))
    }

    /// With as many digits after the point as a step needs.
    fn label(self, figure: f64, step: f64) -> String {
        if figure == 0.0 {
            return "0".to_owned();
        }
        let digits = (-(step / self.0).log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize;
        format!("{:.digits$}{}", figure / self.0, self.1)
    }
}

/// A figure with three digits that count, at least; whole figures without a fraction.
pub(super) fn rounded(figure: f64) -> String {
    let Unit(size, letter) = Unit::of(figure.abs());
    let scaled = figure / size;
    let digits =
        if scaled.fract() == 0.0 { 0.0 } else { (2.0 - scaled.abs().log10().floor()).clamp(0.0, 6.0) };
    format!("{scaled:.digits$}{letter}", digits = digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(spread: &Spread) -> Vec<&str> {
        spread.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn even_axes_begin_at_zero_and_end_at_a_label() {
        let spread = Spread::of(Scale::Linear, Reach::Rounded, &[3.2, 8.7], 5);
        assert_eq!(labels(&spread), ["0", "2", "4", "6", "8", "10"]);
        let spread = Spread::of(Scale::Linear, Reach::Rounded, &[111e6, 146e6], 4);
        assert_eq!(labels(&spread), ["0", "50M", "100M", "150M"]);
        let spread = Spread::of(Scale::Linear, Reach::Rounded, &[-0.3, 0.2], 5);
        assert_eq!(labels(&spread), ["-0.3", "-0.2", "-0.1", "0", "0.1", "0.2"]);
        assert_eq!(spread.origin(), 0.0);
        let spread = Spread::of(Scale::Linear, Reach::Rounded, &[640.0], 3);
        assert_eq!((labels(&spread), spread.high), (vec!["0", "500"], 672.0));
        for strange in [&[][..], &[0.0], &[5.0], &[f64::NAN], &[1e300, -1e300]] {
            let spread = Spread::of(Scale::Linear, Reach::Rounded, strange, 5);
            assert!(spread.low < spread.high && spread.ticks.len() < 20, "{strange:?} {spread:?}");
        }
    }

    #[test]
    fn counts_are_labelled_by_whole_numbers() {
        let spread = Spread::of(Scale::Linear, Reach::Data, &[1.0, 2.0, 3.0], 10);
        assert_eq!(labels(&spread), ["1", "2", "3"]);
        let spread = Spread::of(Scale::Linear, Reach::Data, &[1.0, 2.5, 3.0], 4);
        assert_eq!(labels(&spread), ["1.0", "1.5", "2.0", "2.5", "3.0"]);
    }

    #[test]
    fn chosen_values_label_a_logarithmic_axis() {
        let spread = Spread::of(Scale::Logarithmic, Reach::Data, &[1.0, 4.0, 16.0, 64.0, 256.0], 10);
        assert_eq!(labels(&spread), ["1", "4", "16", "64", "256"]);
        let spread = Spread::of(Scale::Logarithmic, Reach::Rounded, &[130.0, 70_000.0, 0.0], 6);
        assert_eq!(labels(&spread), ["100", "1000", "10k", "100k"]);
        assert_eq!(spread.place(0.0), None);
        let spread = Spread::of(Scale::Logarithmic, Reach::Rounded, &[1.5, 4.0], 6);
        assert_eq!(labels(&spread), ["1", "2", "5"]);
    }

    #[test]
    fn percentiles_are_spread_by_nines() {
        let spread = Spread::of(Scale::Percentile, Reach::Data, &[50.0, 90.0, 99.0, 99.9, 100.0], 6);
        assert_eq!(labels(&spread), ["50 %", "90 %", "99 %", "99.9 %"]);
        assert!((spread.high - 3.0).abs() < 1e-9);
        assert_eq!(spread.place(100.0), None);
    }

    #[test]
    fn figures_are_short() {
        for (figure, text) in [
            (0.0, "0"),
            (152_644_777.0, "153M"),
            (12.829, "12.8"),
            (0.01234, "0.0123"),
            (9_999.0, "9999"),
            (2.0, "2"),
        ] {
            assert_eq!(rounded(figure), text);
        }
    }
}
