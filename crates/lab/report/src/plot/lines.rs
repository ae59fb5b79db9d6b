//! Points joined by lines.

use super::Width;
use super::axis::{Reach, Spread};
use super::ink::Ink;
use super::sheet::{Anchor, Backend, Failure, LegendLine, Sheet, Swatch};
use super::sheet::{LETTER, TENTHS, font, legend_height, marker, tenths, text_width};
use crate::model::{Plot, Point};
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::{EmptyElement, ErrorBar, Polygon};
use plotters::prelude::DrawingArea;
use plotters::series::LineSeries;
use plotters::style::{Color as _, FontStyle, ShapeStyle};

/// More points than this on a line are not marked one by one.
const MARKED: usize = 40;

type Chart<'a, 'b> = ChartContext<'a, Backend<'b>, Cartesian2d<Spread, Spread>>;

/// A plot of lines, arranged.
pub(super) struct Lines<'a> {
    plot: &'a Plot,
    entries: Vec<LegendLine<'a>>,
    x: Spread,
    y: Spread,
    size: Width,
}

/// Pixels between the parts.
const LABEL_ROW: f64 = 22.0;

impl<'a> Lines<'a> {
    /// Arranges a plot on a sheet of this size. The vertical axis reaches as far as that of the plots `beside` it.
    pub(super) fn new(
        plot: &'a Plot,
        beside: &[Plot],
        entries: Vec<LegendLine<'a>>,
        size: Width,
    ) -> Lines<'a> {
        let figures: Vec<f64> = beside
            .iter()
            .flat_map(|plot| &plot.series)
            .flat_map(|series| &series.points)
            .flat_map(|point| [point.y].into_iter().chain(point.interval.into_iter().flatten()))
            .collect();
        let abscissae: Vec<f64> =
            plot.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
        let labels = if size == Width::Small { 3 } else { 5 };
        Lines {
            plot,
            entries,
            x: Spread::of(plot.x.scale, Reach::Data, &abscissae, (size.pixels() / 70.0) as usize),
            y: Spread::of(plot.y.scale, Reach::Rounded, &figures, labels),
            size,
        }
    }

    /// How high the sheet must be.
    pub(super) fn height(&self) -> f64 {
        let width = self.size.pixels();
        let plain = if self.size == Width::Small { 120.0 } else { (width * 0.42).clamp(210.0, 300.0) };
        plain + legend_height(&self.entries, Swatch::Line, width) + 2.0 * LABEL_ROW
    }

    /// Draws below `top`.
    pub(super) fn draw(&self, sheet: &Sheet<'_>, top: f64) -> Result<(), Failure> {
        sheet.legend(&self.entries, Swatch::Line, top + LETTER)?;
        let top = top + legend_height(&self.entries, Swatch::Line, sheet.width);
        sheet.text(&self.plot.y.label, (2.0, top + LABEL_ROW / 2.0), Ink::Muted, Anchor::Left)?;
        let (_, height) = sheet.area.dim_in_pixel();
        let bottom = f64::from(height) / TENTHS;
        sheet.text(
            &self.plot.x.label,
            (sheet.width - 2.0, bottom - LABEL_ROW / 2.0),
            Ink::Muted,
            Anchor::Right,
        )?;
        self.draw_chart(&sheet.area.margin(tenths(top + LABEL_ROW), tenths(LABEL_ROW), 0, 0))
    }

    fn draw_chart<'b>(&self, area: &DrawingArea<Backend<'b>, Shift>) -> Result<(), Failure> {
        let widest = self.y.ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
        let last = self.x.ticks.last().map_or(0.0, |tick| text_width(&tick.label));
        let mut chart = ChartBuilder::on(area)
            .margin_right(tenths(last / 2.0 + 4.0))
            .margin_top(tenths(6.0))
            .y_label_area_size(tenths(widest + 10.0))
            .x_label_area_size(tenths(LABEL_ROW))
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(Ink::Grid.colour().stroke_width(10))
            .light_line_style(plotters::style::TRANSPARENT)
            .axis_style(Ink::Grid.colour().stroke_width(10))
            .set_all_tick_mark_size(tenths(4.0))
            .label_style(font(Ink::Muted, FontStyle::Normal))
            .draw()?;
        // What was published lies behind what was measured.
        for is_published in [true, false] {
            for (series, entry) in self.plot.series.iter().zip(&self.entries) {
                if series.is_published != is_published {
                    continue;
                }
                if entry.is_of_events {
                    self.draw_events(&mut chart, &series.points, entry)?;
                } else {
                    self.draw_series(&mut chart, &series.points, entry)?;
                }
            }
        }
        Ok(())
    }

    fn draw_events(
        &self,
        chart: &mut Chart<'_, '_>,
        points: &[Point],
        entry: &LegendLine<'_>,
    ) -> Result<(), Failure> {
        let places = points.iter().filter_map(|point| Some((self.x.place(point.x)?, self.y.place(point.y)?)));
        let fill = entry.ink.colour().filled();
        let marks = places.map(|at| EmptyElement::at(at) + Polygon::new(marker(entry.place), fill));
        chart.draw_series(marks)?;
        Ok(())
    }

    fn draw_series(
        &self,
        chart: &mut Chart<'_, '_>,
        points: &[Point],
        entry: &LegendLine<'_>,
    ) -> Result<(), Failure> {
        let places: Vec<(f64, f64)> = points
            .iter()
            .filter_map(|point| Some((self.x.place(point.x)?, self.y.place(point.y)?)))
            .collect();
        let line: ShapeStyle = entry.ink.as_line().colour().stroke_width(20);
        chart.draw_series(LineSeries::new(places.iter().copied(), line))?;
        let bars = points.iter().filter_map(|point| {
            let [low, high] = point.interval?.map(|end| self.y.place(end));
            let (x, y) = (self.x.place(point.x)?, self.y.place(point.y)?);
            let style: ShapeStyle = entry.ink.colour().stroke_width(12);
            Some(ErrorBar::new_vertical(x, low?, y, high?, style, 70))
        });
        chart.draw_series(bars)?;
        if places.len() <= MARKED && self.size != Width::Small {
            let fill = entry.ink.colour().filled();
            let marks =
                places.into_iter().map(|at| EmptyElement::at(at) + Polygon::new(marker(entry.place), fill));
            chart.draw_series(marks)?;
        }
        Ok(())
    }
}
