//! Bars with whiskers, lying, so that names can be read: a group for each name, and in it a bar for each series.
//!
//! Names stand before their bars where there is room, and above them on narrow sheets.

use super::axis::{Reach, Spread, rounded};
use super::ink::Ink;
use super::sheet::{Anchor, Failure, LegendLine, Sheet, Swatch};
use super::sheet::{LETTER, TENTHS, legend_height, tenths, text_width};
use crate::model::{Plot, Point};
use plotters::coord::ranged1d::Ranged as _;

/// Pixels of a bar's thickness and of what lies around it.
const BAR: f64 = 15.0;
const BETWEEN_BARS: f64 = 3.0;
const BETWEEN_GROUPS: f64 = 13.0;
const NAME_ROW: f64 = 18.0;
const LABEL_ROW: f64 = 22.0;

/// A plot of bars, arranged.
pub(super) struct Bars<'a> {
    plot: &'a Plot,
    entries: Vec<LegendLine<'a>>,
    groups: Vec<Group<'a>>,
    values: Spread,
    /// Where the bars begin, in pixels.
    left: f64,
    names: Names,
}

/// Where the groups' names are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Before,
    Above,
}

struct Group<'a> {
    name: &'a str,
    /// A series' place in the plot, and its figure.
    bars: Vec<(usize, Point)>,
}

impl<'a> Bars<'a> {
    /// Arranges a plot on a sheet of this width.
    pub(super) fn new(
        plot: &'a Plot,
        names: &'a [String],
        entries: Vec<LegendLine<'a>>,
        width: f64,
    ) -> Bars<'a> {
        let all = || plot.series.iter().flat_map(|series| &series.points);
        let figures: Vec<f64> = all()
            .flat_map(|point| [point.y].into_iter().chain(point.interval.into_iter().flatten()))
            .collect();
        let of_group = |place: usize| {
            let bar = |(number, series): (usize, &'a crate::model::Series)| {
                let point = series.points.iter().find(|point| point.x == place as f64)?;
                Some((number, *point))
            };
            plot.series.iter().enumerate().filter_map(bar).collect()
        };
        let groups =
            names.iter().enumerate().map(|(place, name)| Group { name, bars: of_group(place) }).collect();
        let widest = names.iter().map(|name| text_width(name)).fold(0.0, f64::max) + 10.0;
        let names = if widest <= width * 0.36 { Names::Before } else { Names::Above };
        let left = if names == Names::Before { widest } else { 2.0 };
        let values = Spread::of(plot.y.scale, Reach::Rounded, &figures, ((width - left) / 65.0) as usize);
        Bars { plot, entries, groups, values, left, names }
    }

    /// How high the sheet must be.
    pub(super) fn height(&self, width: f64) -> f64 {
        let groups: f64 = self.groups.iter().map(|group| self.group_height(group)).sum();
        legend_height(&self.entries, Swatch::Patch, width) + groups + 2.0 * LABEL_ROW + 6.0
    }

    fn group_height(&self, group: &Group<'_>) -> f64 {
        let name = if self.names == Names::Above { NAME_ROW } else { 0.0 };
        name + group.bars.len().max(1) as f64 * (BAR + BETWEEN_BARS) + BETWEEN_GROUPS
    }

    /// Draws below `top`.
    pub(super) fn draw(&self, sheet: &Sheet<'_>, top: f64) -> Result<(), Failure> {
        sheet.legend(&self.entries, Swatch::Patch, top + LETTER)?;
        let top = top + legend_height(&self.entries, Swatch::Patch, sheet.width);
        let bottom = top + self.groups.iter().map(|group| self.group_height(group)).sum::<f64>();
        self.draw_axis(sheet, top, bottom)?;
        let mut y = top + BETWEEN_GROUPS / 2.0;
        for group in &self.groups {
            self.draw_group(sheet, group, y)?;
            y += self.group_height(group);
        }
        let origin = self.at(sheet, self.values.origin());
        sheet.line((origin, top), (origin, bottom), Ink::Muted)
    }

    fn draw_axis(&self, sheet: &Sheet<'_>, top: f64, bottom: f64) -> Result<(), Failure> {
        for tick in &self.values.ticks {
            let x = self.at(sheet, tick.place);
            sheet.line((x, top), (x, bottom), Ink::Grid)?;
            // The outermost labels stay on the sheet.
            let half = text_width(&tick.label) / 2.0;
            let end = (x + half).max(2.0 * half).min(sheet.width - 2.0);
            sheet.text(&tick.label, (end, bottom + LABEL_ROW / 2.0), Ink::Muted, Anchor::Right)?;
        }
        let at = (sheet.width - 2.0, bottom + LABEL_ROW * 1.5);
        sheet.text(&self.plot.y.label, at, Ink::Muted, Anchor::Right)
    }

    fn draw_group(&self, sheet: &Sheet<'_>, group: &Group<'_>, top: f64) -> Result<(), Failure> {
        let mut y = top;
        let bars = group.bars.len().max(1) as f64 * (BAR + BETWEEN_BARS) - BETWEEN_BARS;
        match self.names {
            Names::Before => {
                let at = (self.left - 8.0, top + bars / 2.0);
                sheet.text(group.name, at, Ink::Text, Anchor::Right)?;
            }
            Names::Above => {
                sheet.text(
                    group.name,
                    (self.left + 6.0, top + NAME_ROW / 2.0 - 1.0),
                    Ink::Text,
                    Anchor::Left,
                )?;
                y += NAME_ROW;
            }
        }
        for (series, point) in &group.bars {
            if let Some(entry) = self.entries.get(*series) {
                self.draw_bar(sheet, point, entry.ink, y)?;
            }
            y += BAR + BETWEEN_BARS;
        }
        Ok(())
    }

    fn draw_bar(&self, sheet: &Sheet<'_>, point: &Point, ink: Ink, top: f64) -> Result<(), Failure> {
        let Some(place) = self.values.place(point.y) else { return Ok(()) };
        let (origin, end, middle) =
            (self.at(sheet, self.values.origin()), self.at(sheet, place), top + BAR / 2.0);
        sheet.patch([(origin.min(end), top), (origin.max(end), top + BAR)], ink)?;
        let mut outermost = origin.max(end);
        if let Some([Some(low), Some(high)]) =
            point.interval.map(|ends| ends.map(|end| self.values.place(end)))
        {
            let (low, high) = (self.at(sheet, low), self.at(sheet, high));
            sheet.line((low, middle), (high, middle), Ink::Text)?;
            for x in [low, high] {
                sheet.line((x, middle - 3.5), (x, middle + 3.5), Ink::Text)?;
            }
            outermost = outermost.max(high);
        }
        sheet.text(&rounded(point.y), (outermost + 6.0, middle), Ink::Muted, Anchor::Left)
    }

    /// The pixel of a place. On the right there is room for a value.
    fn at(&self, sheet: &Sheet<'_>, place: f64) -> f64 {
        let (left, right) = (tenths(self.left), tenths(sheet.width - 44.0));
        f64::from(self.values.map(&place, (left, right))) / TENTHS
    }
}
