//! What plots are drawn on: the plotting library's SVG, in tenths of a pixel, with texts and a legend of ours.
//!
//! The library places everything at whole units; tenths keep lines smooth. It has no fonts, so the width of a text is
//! estimated from the shapes of its letters, generously.

use super::ink::Ink;
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::element::{PathElement, Polygon, Rectangle};
use plotters::prelude::{DrawingArea, IntoDrawingArea as _};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontDesc, FontFamily, FontStyle, FontTransform, TextStyle};

/// Units per pixel.
pub(super) const TENTHS: f64 = 10.0;

/// Pixels of an ordinary letter's height.
pub(super) const LETTER: f64 = 12.0;

/// The library's drawing that ends in a text.
pub(super) type Backend<'a> = SVGBackend<'a>;

/// What went wrong while drawing; into a text, nothing does.
pub(super) type Failure = Box<dyn std::error::Error>;

/// A sheet of paper.
pub(super) struct Sheet<'a> {
    /// The library's view of it.
    pub(super) area: DrawingArea<Backend<'a>, Shift>,
    /// In pixels.
    pub(super) width: f64,
}

/// Which part of a text is at the place that is given.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    /// Its left end.
    Left,
    /// Its right end.
    Right,
}

/// How a name is shown in the legend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Swatch {
    /// A patch.
    Patch,
    /// A line with the series' marker.
    Line,
}

impl Swatch {
    /// Pixels before the name.
    fn room(self) -> f64 {
        if self == Swatch::Patch { 16.0 } else { 26.0 }
    }
}

/// A line of the legend.
pub(super) struct LegendLine<'a> {
    /// The series.
    pub(super) name: &'a str,
    /// Its ink.
    pub(super) ink: Ink,
    /// Its place among its kind: decides the marker.
    pub(super) place: usize,
    /// Its points are events, which no line joins.
    pub(super) is_of_events: bool,
}

impl<'a> Sheet<'a> {
    /// An empty sheet whose drawing goes into `buffer`; sizes in pixels.
    pub(super) fn new(buffer: &'a mut String, width: f64, height: f64) -> Sheet<'a> {
        let size = (tenths(width) as u32, tenths(height) as u32);
        Sheet { area: SVGBackend::with_string(buffer, size).into_drawing_area(), width }
    }

    /// A text whose middle line is at `y`.
    pub(super) fn text(&self, text: &str, at: (f64, f64), ink: Ink, anchor: Anchor) -> Result<(), Failure> {
        let anchor = if matches!(anchor, Anchor::Left) { HPos::Left } else { HPos::Right };
        let style = font(ink, FontStyle::Normal).pos(Pos::new(anchor, VPos::Center));
        Ok(self.area.draw_text(text, &style, (tenths(at.0), tenths(at.1)))?)
    }

    /// A text that is read upwards, from `at` on.
    pub(super) fn upright(&self, text: &str, at: (f64, f64), ink: Ink) -> Result<(), Failure> {
        let style = font(ink, FontStyle::Normal).transform(FontTransform::Rotate270);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        Ok(self.area.draw_text(text, &style, (tenths(at.0), tenths(at.1)))?)
    }

    /// The title, at the top.
    pub(super) fn title(&self, text: &str) -> Result<(), Failure> {
        let style = font(Ink::Text, FontStyle::Bold).pos(Pos::new(HPos::Left, VPos::Center));
        Ok(self.area.draw_text(text, &style, (tenths(2.0), tenths(12.0)))?)
    }

    /// A straight line.
    pub(super) fn line(&self, from: (f64, f64), to: (f64, f64), ink: Ink) -> Result<(), Failure> {
        let ends = [from, to].map(|(x, y)| (tenths(x), tenths(y)));
        Ok(self.area.draw(&PathElement::new(ends, ink.colour().stroke_width(10)))?)
    }

    /// A filled rectangle.
    pub(super) fn patch(&self, corners: [(f64, f64); 2], ink: Ink) -> Result<(), Failure> {
        let corners = corners.map(|(x, y)| (tenths(x), tenths(y)));
        Ok(self.area.draw(&Rectangle::new(corners, ink.colour().filled()))?)
    }

    /// Draws the legend with its first line's middle at `top`.
    pub(super) fn legend(&self, entries: &[LegendLine<'_>], swatch: Swatch, top: f64) -> Result<(), Failure> {
        for (entry, (x, row)) in entries.iter().zip(legend_places(entries, swatch, self.width)) {
            let y = top + row as f64 * LEGEND_ROW;
            let name = x + swatch.room();
            match swatch {
                Swatch::Patch => self.patch([(x, y - 5.0), (x + 10.0, y + 5.0)], entry.ink)?,
                Swatch::Line => {
                    let ends = [(tenths(x), tenths(y)), (tenths(x + 20.0), tenths(y))];
                    if !entry.is_of_events {
                        let style = entry.ink.as_line().colour().stroke_width(20);
                        self.area.draw(&PathElement::new(ends, style))?;
                    }
                    let middle = (tenths(x + 10.0), tenths(y));
                    let outline: Vec<_> = marker(entry.place)
                        .into_iter()
                        .map(|at| (middle.0 + at.0, middle.1 + at.1))
                        .collect();
                    self.area.draw(&Polygon::new(outline, entry.ink.colour().filled()))?;
                }
            }
            self.text(entry.name, (name, y), Ink::Text, Anchor::Left)?;
        }
        Ok(())
    }
}

/// The distance of the legend's lines.
const LEGEND_ROW: f64 = 19.0;

/// How high a legend of these entries is on a sheet of this width.
pub(super) fn legend_height(entries: &[LegendLine<'_>], swatch: Swatch, width: f64) -> f64 {
    legend_places(entries, swatch, width).last().map_or(0.0, |(_, row)| (row + 1) as f64 * LEGEND_ROW + 4.0)
}

/// Where each entry begins, and in which line. A single series needs no legend, and series without names have none.
fn legend_places(entries: &[LegendLine<'_>], swatch: Swatch, width: f64) -> Vec<(f64, usize)> {
    if entries.len() < 2 || entries.iter().all(|entry| entry.name.is_empty()) {
        return Vec::new();
    }
    let (mut x, mut row) = (2.0, 0);
    let mut places = Vec::new();
    for entry in entries {
        let room = swatch.room() + text_width(entry.name);
        if x > 2.0 && x + room > width {
            (x, row) = (2.0, row + 1);
        }
        places.push((x, row));
        x += room + 22.0;
    }
    places
}

/// The outline of a point of a line around its place: series that follow each other have different shapes.
pub(super) fn marker(place: usize) -> Vec<(i32, i32)> {
    const HALF: f64 = 4.0;
    // Corners, the direction of the first one, and a radius that makes the areas alike.
    let (corners, first, radius) = match place % 5 {
        0 => (16, 0.0, 1.0),
        1 => (4, 0.125, 1.2),
        2 => (3, -0.25, 1.4),
        3 => (4, 0.0, 1.25),
        _ => (3, 0.25, 1.4),
    };
    let corner = |number: i32| {
        let angle = (f64::from(number) / f64::from(corners) + first) * std::f64::consts::TAU;
        (tenths(angle.cos() * HALF * radius), tenths(angle.sin() * HALF * radius))
    };
    (0..corners).map(corner).collect()
}

/// Pixels as the library's units.
pub(super) fn tenths(pixels: f64) -> i32 {
    (pixels * TENTHS).round() as i32
}

/// The font of everything.
pub(super) fn font(ink: Ink, style: FontStyle) -> TextStyle<'static> {
    // The library divides by 1.24.
    let size = if matches!(style, FontStyle::Bold) { LETTER + 2.0 } else { LETTER } * 1.24 * TENTHS;
    FontDesc::new(FontFamily::Name("system-ui, sans-serif"), size, style).color(&ink.colour())
}

/// About how many pixels wide a text is.
pub(super) fn text_width(text: &str) -> f64 {
    let of_letter = |letter: char| match letter {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | ' ' | '.' | ',' | ':' | ';' | '|' | '(' | ')' | '/'
        | '-' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.92,
        'A'..='Z' => 0.70,
        '0'..='9' => 0.64,
        _ => 0.61,
    };
    text.chars().map(of_letter).sum::<f64>() * LETTER
}
