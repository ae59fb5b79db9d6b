//! A run on disk: a directory with results.json, report.md with its pictures, and report.html.
//!
//! Each file is complete or absent: it is written beside its place and then renamed. A directory belongs to one run, which may
//! be written again as it grows; another run is never overwritten.

use crate::model::{Block, Cell, Plot, Run};
use crate::{date, html, markdown};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Everything that was measured.
pub const RESULTS: &str = "results.json";

/// Makes a directory for a run that is yet to be measured, so that hours of measuring do not end with nowhere to keep them.
///
/// # Errors
/// It holds something, or cannot be made or written.
pub fn prepare(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory).map_err(|error| told(&error, "cannot create", directory))?;
    if fs::read_dir(directory)?.next().is_some() {
        return Err(taken(directory));
    }
    let probe = directory.join("writable.partial");
    let written = fs::write(&probe, "").and_then(|()| fs::remove_file(&probe));
    written.map_err(|error| told(&error, "cannot write", &probe))
}

/// Writes a run.
///
/// # Errors
/// The directory holds something else, or cannot be written.
pub fn write(run: &Run, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory).map_err(|error| told(&error, "cannot create", directory))?;
    claim(run, directory)?;
    let run = &finite(run);
    let pages = markdown::report(run);
    for (name, svg) in &pages.pictures {
        replace(&directory.join(name), svg)?;
    }
    replace(&directory.join("report.md"), &pages.text)?;
    replace(&directory.join("report.html"), &html::report(run))?;
    let json = serde_json::to_string_pretty(run).map_err(io::Error::other)?;
    replace(&directory.join(RESULTS), &(json + "\n"))
}

/// The run in a directory that [`write()`] made, or in a file like its results.json.
///
/// # Errors
/// There is none, or it was made by a program that writes it otherwise.
pub fn read(from: &Path) -> io::Result<Run> {
    let file = if from.is_dir() { from.join(RESULTS) } else { from.to_owned() };
    let text = fs::read_to_string(&file).map_err(|error| told(&error, "cannot read", &file))?;
    serde_json::from_str(&text).map_err(|error| {
        let what = format!("{} is no result of tercel bench: {error}", file.display());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

/// A directory below `base` that no run has yet, named by the moment when this one began.
pub fn fresh(base: &Path, began: &str) -> PathBuf {
    let name = date::as_name(began);
    let numbered = (2_u32..).map(|number| base.join(format!("{name}-{number}")));
    let mut candidates = std::iter::once(base.join(&name)).chain(numbered);
    candidates.find(|path| !path.exists()).unwrap_or_else(|| base.join(name))
}

/// Whether the directory is this run's, or has no owner.
fn claim(run: &Run, directory: &Path) -> io::Result<()> {
    let is_empty = fs::read_dir(directory)?.next().is_none();
    if is_empty || read(directory).is_ok_and(|there| there.began == run.began) {
        return Ok(());
    }
    Err(taken(directory))
}

fn taken(directory: &Path) -> io::Error {
    let what = format!("{} is not empty: name another directory", directory.display());
    io::Error::new(io::ErrorKind::AlreadyExists, what)
}

fn replace(file: &Path, content: &str) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".partial");
    let beside = PathBuf::from(beside);
    let done = fs::write(&beside, content).and_then(|()| fs::rename(&beside, file));
    done.map_err(|error| told(&error, "cannot write", file))
}

fn told(error: &io::Error, what: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
}

/// Without what JSON cannot hold: figures that are no numbers become absent.
fn finite(run: &Run) -> Run {
    let mut run = run.clone();
    for study in &mut run.studies {
        for block in &mut study.blocks {
            match block {
                Block::Table(table) => {
                    table.rows.iter_mut().flat_map(|row| &mut row.cells).for_each(make_finite);
                }
                Block::Plot(plot) => make_plot_finite(plot),
                Block::Grid(grid) => grid.plots.iter_mut().for_each(make_plot_finite),
                Block::Drawing(_) => {}
            }
        }
    }
    run
}

fn make_plot_finite(plot: &mut Plot) {
    for series in &mut plot.series {
        series.points.retain(|point| point.x.is_finite() && point.y.is_finite());
        for point in &mut series.points {
            point.interval = point.interval.filter(|ends| ends.iter().all(|end| end.is_finite()));
        }
    }
}

fn make_finite(cell: &mut Cell) {
    let is_finite = match cell {
        Cell::Empty | Cell::Text(_) => true,
        Cell::Number(value, _) => value.is_finite(),
        Cell::Trials(summary, _) => {
            let all = [summary.mean, summary.sd, summary.median];
            all.iter().chain(&summary.values).all(|value| value.is_finite())
        }
        Cell::Ratio(ratio) => [ratio.ratio, ratio.low, ratio.high].iter().all(|value| value.is_finite()),
    };
    if !is_finite {
        *cell = Cell::Empty;
    }
}

#[cfg(test)]
mod tests;
