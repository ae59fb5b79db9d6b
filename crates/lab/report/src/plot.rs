//! Pictures of figures, as SVG: bars with whiskers, lines, and heat maps.
//!
//! Drawn by the library plotters, which writes SVG and needs no fonts. The colours follow the reader's light or dark by a
//! style sheet; what was published by others is grey. Nothing in a picture has an id, this many fit on one page.
//!
//! Rejected: upright bars, whose names do not fit below them; one picture for all screens, whose letters are dust on a
//! phone (see [`Width`]).

mod axis;
mod bars;
mod heat;
mod ink;
mod lines;
mod sheet;

use crate::model::{Plot, PlotGrid, PlotKind};
use bars::Bars;
use heat::Heat;
use ink::Ink;
use lines::Lines;
use sheet::{Failure, LegendLine, Sheet};

/// How wide a picture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// For a desk: 760 pixels.
    Wide,
    /// For a phone: 350 pixels, with letters of the same size.
    Narrow,
    /// For several beside each other: 300 pixels, and half as high as the others.
    Small,
}

impl Width {
    fn pixels(self) -> f64 {
        match self {
            Width::Wide => 760.0,
            Width::Narrow => 350.0,
            Width::Small => 300.0,
        }
    }
}

/// What stands above the figures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heading {
    Title,
    None,
}

/// Pixels of a title.
const TITLE: f64 = 34.0;

/// A plot as an SVG document of its own: with its title, in light or dark as the reader has it.
pub fn svg(plot: &Plot) -> String {
    render(plot, std::slice::from_ref(plot), (Width::Wide, Heading::Title), &own_style())
}

/// The plots of a grid as SVG documents of their own, each with its title.
pub fn svgs(grid: &PlotGrid) -> Vec<String> {
    let style = own_style();
    let draw = |plot| render(plot, &grid.plots, (Width::Small, Heading::Title), &style);
    grid.plots.iter().map(draw).collect()
}

fn own_style() -> String {
    format!("<style>{}{}</style>", style_sheet(), PAPER)
}

/// A plot as a part of a page that has its title and [`style_sheet`].
pub fn inlined(plot: &Plot, width: Width) -> String {
    render(plot, std::slice::from_ref(plot), (width, Heading::None), "")
}

/// A plot of a grid as a part of a page.
pub fn inlined_of(plot: &Plot, grid: &PlotGrid) -> String {
    render(plot, &grid.plots, (Width::Small, Heading::None), "")
}

/// What a page needs for the colours of its plots.
pub fn style_sheet() -> String {
    ink::style_sheet()
}

/// The paper of a document of its own.
const PAPER: &str = ".plot{background:#fff}@media(prefers-color-scheme:dark){.plot{background:#14181d}}";

/// `beside` are the plots with which it shares the vertical axis, itself included.
fn render(plot: &Plot, beside: &[Plot], (width, heading): (Width, Heading), style: &str) -> String {
    // Drawing into a text does not fail; if the library thinks otherwise, the reader sees why there is no picture.
    draw(plot, beside, (width, heading), style).unwrap_or_else(|error| {
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\"><desc>{error:?}</desc></svg>")
    })
}

fn draw(
    plot: &Plot,
    beside: &[Plot],
    (size, heading): (Width, Heading),
    style: &str,
) -> Result<String, Failure> {
    let width = size.pixels();
    let top = if heading == Heading::Title { TITLE } else { 0.0 };
    let mut buffer = String::new();
    let mut on_sheet = |figures: f64, draw: &dyn Fn(&Sheet<'_>) -> Result<(), Failure>| {
        let height = top + figures;
        let sheet = Sheet::new(&mut buffer, width, height);
        titled(&sheet, plot, heading)?;
        draw(&sheet)?;
        sheet.area.present()?;
        Ok::<f64, Failure>(height)
    };
    let height = match &plot.kind {
        PlotKind::Bars(names) => {
            let bars = Bars::new(plot, names, entries(plot), width);
            on_sheet(bars.height(width), &|sheet| bars.draw(sheet, top))?
        }
        PlotKind::Heat(rows) => {
            let heat = Heat::new(plot, rows, width);
            on_sheet(heat.height(width), &|sheet| heat.draw(sheet, top))?
        }
        PlotKind::Lines | PlotKind::LinesAndMarks(_) => {
            let lines = Lines::new(plot, beside, entries(plot), size);
            on_sheet(lines.height(), &|sheet| lines.draw(sheet, top))?
        }
    };
    let body = buffer.split_once('>').map_or("", |(_, body)| body);
    let (wide, high) = (sheet::tenths(width), sheet::tenths(height));
    let opening = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" aria-label=\"{}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {wide} {high}\">",
        crate::escape::markup(&plot.title)
    );
    Ok(format!("{opening}{style}{}", ink::classify(body)))
}

fn titled(sheet: &Sheet<'_>, plot: &Plot, heading: Heading) -> Result<(), Failure> {
    if heading == Heading::Title { sheet.title(&plot.title) } else { Ok(()) }
}

/// One for each series, with its ink.
fn entries(plot: &Plot) -> Vec<LegendLine<'_>> {
    let (mut published, mut measured) = (0, 0);
    plot.series
        .iter()
        .map(|series| {
            let count = if series.is_published { &mut published } else { &mut measured };
            let place = *count;
            *count += 1;
            let is_of_events =
                matches!(&plot.kind, PlotKind::LinesAndMarks(names) if names.contains(&series.name));
            let ink = Ink::of_series(place, series.is_published);
            LegendLine { name: &series.name, ink, place, is_of_events }
        })
        .collect()
}

#[cfg(test)]
mod tests;
