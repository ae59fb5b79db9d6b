//! What a run of the laboratory holds: studies, and in each of them tables and plots in the order in which they are read.
//!
//! It is plain data: results.json is this, and every page is drawn from this. What was published by others stands beside what
//! was measured here, and is marked so that it is never mistaken for it.

use crate::stats::{Ratio, Summary};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One run: some studies, on one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// When it began: RFC 3339, in UTC.
    pub began: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Whether sizes were reduced for a quick look.
    pub is_quick: bool,
    /// Whether it ended early because it was told to.
    pub was_interrupted: bool,
    /// The machine and the program: names and values, in the order in which they are shown.
    pub environment: Vec<(String, String)>,
    /// The studies, in order.
    pub studies: Vec<Study>,
}

/// One study's result, or as much of it as there is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// A short name: `e1`.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// What was asked, in a sentence or two.
    pub question: String,
    /// How it was measured: one item for each thing that a reader must know to repeat it.
    pub method: Vec<String>,
    /// What came out, in a sentence each, with figures. Made from the data, so it is true of this run.
    pub findings: Vec<String>,
    /// Tables and pictures in the order in which they are read.
    pub blocks: Vec<Block>,
    /// What makes a figure doubtful, and what is missing.
    pub notes: Vec<String>,
    /// Why it could not be finished.
    pub problem: Option<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Every trial as it was measured.
    pub raw: Value,
}

/// A part of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Figures.
    Table(Table),
    /// A picture of figures.
    Plot(Plot),
    /// Small pictures beside each other.
    Grid(PlotGrid),
    /// A picture that was drawn elsewhere.
    Drawing(Drawing),
}

/// Rows of figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The head of the first column, which holds the rows' names.
    pub corner: String,
    /// The other columns' heads, with units.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is about. Rows are compared across runs by it.
    pub name: String,
    /// Whether it was published by others, not measured here.
    pub is_published: bool,
    /// One for each column.
    pub cells: Vec<Cell>,
}

/// What is in a table's cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// Nothing: not measured, or not applicable.
    #[default]
    Empty,
    /// Words.
    Text(String),
    /// A single figure, and how many digits after the point are worth showing.
    Number(f64, u8),
    /// Trials: shown as mean and standard deviation, with this many digits after the point.
    Trials(Summary, u8),
    /// One series over another, with its interval.
    Ratio(Ratio),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<Option<Ratio>> for Cell {
    fn from(ratio: Option<Ratio>) -> Cell {
        ratio.map_or(Cell::Empty, Cell::Ratio)
    }
}

/// A picture of figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// Bars, lines or a heat map.
    pub kind: PlotKind,
    /// The horizontal axis. Bars have none but for its label.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// One for each line, or for each colour of bars.
    pub series: Vec<Series>,
}

/// Small pictures of lines beside each other, with one vertical axis for all: a picture for each contestant, say. Lines have no
/// names there; the title says what each of them is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlotGrid {
    /// What all of them show.
    pub title: String,
    /// The pictures. Each has its contestant's name for a title.
    pub plots: Vec<Plot>,
}

/// How figures are drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotKind {
    /// A group of bars for each of these names; `x` of a point is the name's place in the list.
    Bars(Vec<String>),
    /// Points joined by lines.
    #[default]
    Lines,
    /// The same, but the points of the series with these names are events, which nothing joins.
    LinesAndMarks(Vec<String>),
    /// A row for each of these names, a column for each series, and in each cell, by colour, how many times the best of its row
    /// the figure is; `x` of a point is the row's place in the list, [`NEVER`] stands for what did not come.
    Heat(Vec<String>),
}

/// How many times the best of its row something is in a heat map that did not come. JSON has no infinity.
pub const NEVER: f64 = 1e9;

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// How figures are spread along it.
    pub scale: Scale,
}

/// How figures are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly. Bars begin at zero.
    #[default]
    Linear,
    /// By powers of ten; figures of zero and less are left out.
    Logarithmic,
    /// By nines: a percentile `p` is at -log10(1 - p / 100), labelled 90 %, 99 %, 99.9 %.
    Percentile,
}

/// A line, or bars of one colour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// As the legend calls it.
    pub name: String,
    /// Whether it was published by others: drawn in grey.
    pub is_published: bool,
    /// In the order of `x`.
    pub points: Vec<Point>,
}

/// A point, with an interval where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// The ends of the interval of `y`.
    pub interval: Option<[f64; 2]>,
}

/// A picture that was drawn elsewhere, such as a flame graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// What it shows.
    pub title: String,
    /// A whole SVG document, without scripts that load anything.
    pub svg: String,
}
