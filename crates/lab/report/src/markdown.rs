//! A run as Markdown, for a repository's pages. Pictures are files beside it.

use crate::cells::{self, Align, OPEN_NOTE, alignment, duration, words};
use crate::escape::markdown as escape;
use crate::model::{Block, PlotGrid, Run, Study, Table};
use crate::{date, plot};
use std::fmt::Write as _;

/// The page and the pictures that it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// report.md.
    pub text: String,
    /// Names and contents of SVG files that lie beside it.
    pub pictures: Vec<(String, String)>,
}

/// A run as a page.
pub fn report(run: &Run) -> Pages {
    let mut pages = Pages::default();
    let out = &mut pages.text;
    let _ = writeln!(out, "# tercel: measurements of {}\n", escape(&date::for_people(&run.began)));
    let _ = writeln!(out, "{}\n", escape(&summary(run)));
    if !run.environment.is_empty() {
        let _ = writeln!(out, "| | |\n|:--|:--|");
        for (name, value) in &run.environment {
            let _ = writeln!(out, "| {} | {} |", escape(name), escape(value));
        }
        out.push('\n');
    }
    for each in &run.studies {
        study(each, &mut pages);
    }
    let _ = writeln!(
        pages.text,
        "Figures are means of all trials ± their standard deviation. An interval is the 95 % interval of a ratio: of the \
         rounds' ratios within a run (Student), of the trials between runs (Welch), by their logarithms. Rows marked *published* were measured by others, on other machines, in other years. Every trial \
         is in [results.json](results.json)."
    );
    pages
}

/// How long it took, and what the reader must know before all figures.
fn summary(run: &Run) -> String {
    let mut text = format!("Took {}.", duration(run.seconds));
    if run.is_quick {
        text.push_str(" Sizes were reduced for a quick look: the figures are indications.");
    }
    if run.was_interrupted {
        text.push_str(" It was interrupted: not everything was measured.");
    }
    text
}

fn study(study: &Study, pages: &mut Pages) {
    let out = &mut pages.text;
    let _ = writeln!(out, "## {} · {}\n", escape(&study.id.to_uppercase()), escape(&study.title));
    if !study.question.is_empty() {
        let _ = writeln!(out, "*{}*\n", escape(&study.question));
    }
    if let Some(problem) = &study.problem {
        let _ = writeln!(out, "**Not finished:** {}\n", escape(problem));
    }
    list(out, "", &study.findings);
    for (number, block) in study.blocks.iter().enumerate() {
        let (title, svg) = match block {
            Block::Table(shown) => {
                table(shown, &mut pages.text);
                continue;
            }
            Block::Plot(shown) => (&shown.title, plot::svg(shown)),
            Block::Drawing(shown) => (&shown.title, shown.svg.clone()),
            Block::Grid(shown) => {
                grid(shown, &picture_name(&study.id, number + 1), pages);
                continue;
            }
        };
        let name = picture_name(&study.id, number + 1);
        let _ = writeln!(pages.text, "![{}]({name})\n", escape(title));
        pages.pictures.push((name, svg));
    }
    let out = &mut pages.text;
    list(out, "**Method**\n\n", &study.method);
    list(out, "**Notes**\n\n", &study.notes);
}

/// One file for each picture: `e4-5-1.svg` and so on where a plot were `e4-5.svg`.
fn grid(grid: &PlotGrid, name: &str, pages: &mut Pages) {
    let _ = writeln!(pages.text, "**{}**\n", escape(&grid.title));
    let stem = name.trim_end_matches(".svg");
    for (number, (plot, svg)) in grid.plots.iter().zip(plot::svgs(grid)).enumerate() {
        let name = format!("{stem}-{}.svg", number + 1);
        let _ = writeln!(pages.text, "![{}]({name})", escape(&plot.title));
        pages.pictures.push((name, svg));
    }
    pages.text.push('\n');
}

fn list(out: &mut String, head: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    out.push_str(head);
    for item in items {
        let _ = writeln!(out, "- {}", escape(item));
    }
    out.push('\n');
}

/// The file of the picture that is a study's block of this number, from 1 on. Studies have short names, but a name must not leave the
/// directory.
pub(crate) fn picture_name(study: &str, number: usize) -> String {
    let safe: String =
        study.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    format!("{safe}-{number}.svg")
}

fn table(table: &Table, out: &mut String) {
    let _ = writeln!(out, "**{}**\n", escape(&table.title));
    let _ = write!(out, "| {} |", escape(&table.corner));
    for head in &table.columns {
        let _ = write!(out, " {} |", escape(head));
    }
    out.push_str("\n|:--|");
    for column in 0..table.columns.len() {
        out.push_str(if alignment(table, column) == Align::Right { "--:|" } else { ":--|" });
    }
    out.push('\n');
    for row in &table.rows {
        let mark = if row.is_published { " *(published)*" } else { "" };
        let _ = write!(out, "| {}{mark} |", escape(cells::row_name(row)));
        for place in 0..table.columns.len() {
            let cell = row.cells.get(place).map(words).unwrap_or_default();
            let aside =
                if cell.aside.is_empty() { String::new() } else { format!(" {}", escape(&cell.aside)) };
            let main = escape(&cell.main);
            let main = if cell.verdict == cells::Verdict::Differs { format!("**{main}**") } else { main };
            let _ = write!(out, " {main}{aside} |");
        }
        out.push('\n');
    }
    if cells::has_open_ratio(table) {
        let _ = write!(out, "\n{OPEN_NOTE}\n");
    }
    out.push('\n');
}

#[cfg(test)]
mod tests;
