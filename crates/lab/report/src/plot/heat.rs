//! A heat map: a row for each name, a column for each series, and a colour for how many times the best of its row a figure is.
//!
//! Figures stand in their cells where the columns are wide enough. The names of the columns stand upright above them.

use super::axis::rounded;
use super::ink::Ink;
use super::sheet::{Anchor, Failure, LETTER, LegendLine, Sheet, Swatch, legend_height, text_width};
use crate::model::{NEVER, Plot};

/// Pixels of a row, and around a cell.
const ROW: f64 = 16.0;
const BETWEEN: f64 = 1.0;
/// Figures need columns of so many pixels.
const LEGIBLE: f64 = 34.0;
/// A colour is for figures up to this; the last one for all above.
const STEPS: [f64; 4] = [1.1, 1.5, 2.0, 5.0];
/// What the legend says of each colour.
const NAMES: [&str; 5] = ["up to 1.1 times the best", "1.5", "2", "5", "more, or not there"];

/// A heat map, arranged.
pub(super) struct Heat<'a> {
    plot: &'a Plot,
    rows: &'a [String],
    /// Where the cells begin, in pixels.
    left: f64,
    column: f64,
    head: f64,
}

impl<'a> Heat<'a> {
    /// Arranges a plot on a sheet of this width.
    pub(super) fn new(plot: &'a Plot, rows: &'a [String], width: f64) -> Heat<'a> {
        let widest = |names: &mut dyn Iterator<Item = &str>| names.map(text_width).fold(0.0, f64::max);
        let left = (widest(&mut rows.iter().map(String::as_str)) + 10.0).min(width / 2.0);
        let column = (width - left) / plot.series.len().max(1) as f64;
        let head = widest(&mut plot.series.iter().map(|series| series.name.as_str())) + 10.0;
        Heat { plot, rows, left, column, head }
    }

    fn legend(&self) -> Vec<LegendLine<'static>> {
        let line = |(place, name): (usize, &&'static str)| LegendLine {
            name,
            ink: Ink::Heat(place),
            place,
            is_of_events: false,
        };
        NAMES.iter().enumerate().map(line).collect()
    }

    /// How high the sheet must be.
    pub(super) fn height(&self, width: f64) -> f64 {
        legend_height(&self.legend(), Swatch::Patch, width) + self.head + self.rows.len() as f64 * ROW + 4.0
    }

    /// Draws below `top`.
    pub(super) fn draw(&self, sheet: &Sheet<'_>, top: f64) -> Result<(), Failure> {
        sheet.legend(&self.legend(), Swatch::Patch, top + LETTER)?;
        let top = top + legend_height(&self.legend(), Swatch::Patch, sheet.width) + self.head;
        for (place, name) in self.rows.iter().enumerate() {
            let y = top + (place as f64 + 0.5) * ROW;
            sheet.text(name, (self.left - 6.0, y), Ink::Text, Anchor::Right)?;
        }
        for (place, series) in self.plot.series.iter().enumerate() {
            let x = self.left + place as f64 * self.column;
            sheet.upright(&series.name, (x + self.column / 2.0, top - 4.0), Ink::Text)?;
            for point in &series.points {
                let y = top + point.x * ROW;
                let ends = (x + self.column - BETWEEN, y + ROW - BETWEEN);
                sheet.patch([(x, y), ends], Ink::Heat(step(point.y)))?;
                if self.column >= LEGIBLE {
                    let text = if point.y >= NEVER { "–".to_owned() } else { rounded(point.y) };
                    let right = x + (self.column + text_width(&text)) / 2.0;
                    sheet.text(&text, (right, y + ROW / 2.0), Ink::Text, Anchor::Right)?;
                }
            }
        }
        Ok(())
    }
}

/// The place of a figure's colour.
fn step(figure: f64) -> usize {
    STEPS.iter().take_while(|most| figure > **most).count()
}
