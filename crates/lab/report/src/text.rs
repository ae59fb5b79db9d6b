//! A study for a terminal: what was asked, what came out, tables whose points stand below each other, what makes it doubtful.
//!
//! Pictures are left to the page; a line says that they are there.

use crate::cells::{self, Align, OPEN_NOTE, Words, alignment, words};
use crate::model::{Block, Row, Run, Study, Table};
use std::fmt::Write as _;

/// Whether the reader's terminal has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Escape sequences: what was published is grey, titles are bold.
    Terminal,
    /// Plain text.
    None,
}

/// Columns of running text.
const WIDTH: usize = 100;

/// A head may be this wide before it is broken.
const HEAD: usize = 12;

/// Everything that a run found.
pub fn run(run: &Run, colours: Colours) -> String {
    let mut out = String::new();
    let widest = run.environment.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in &run.environment {
        let _ = writeln!(out, "{name:widest$}  {value}");
    }
    for each in &run.studies {
        let _ = write!(out, "\n{}", study(each, colours));
    }
    out
}

/// What a study found.
pub fn study(study: &Study, colours: Colours) -> String {
    let mut out = String::new();
    let title = format!("{} · {}", study.id.to_uppercase(), study.title);
    let _ = writeln!(out, "{}", bold(&title, colours));
    paragraph(&mut out, "", &study.question);
    if let Some(problem) = &study.problem {
        paragraph(&mut out, "Not finished: ", problem);
    }
    if !study.findings.is_empty() {
        out.push('\n');
    }
    for finding in &study.findings {
        paragraph(&mut out, "• ", finding);
    }
    let mut pictures = 0;
    for block in &study.blocks {
        match block {
            Block::Table(shown) => {
                let _ = write!(out, "\n{}", table(shown, colours));
            }
            Block::Plot(_) | Block::Drawing(_) => pictures += 1,
            Block::Grid(grid) => pictures += grid.plots.len(),
        }
    }
    if !study.notes.is_empty() {
        out.push('\n');
    }
    for note in &study.notes {
        paragraph(&mut out, "Note: ", note);
    }
    if pictures > 0 {
        let what = if pictures == 1 { "1 picture is".to_owned() } else { format!("{pictures} pictures are") };
        let _ = writeln!(out, "{}", grey(&format!("{what} in the report."), colours));
    }
    out
}

/// A table with its title.
pub fn table(table: &Table, colours: Colours) -> String {
    let columns: Vec<Column> = (0..table.columns.len()).map(|place| Column::of(table, place)).collect();
    let corner = wrap(&table.corner, HEAD.max(longest_word(&table.corner)));
    let names: Vec<String> = table.rows.iter().map(row_name).collect();
    let name_width = names.iter().chain(&corner).map(|name| width(name)).max().unwrap_or(0);
    let mut out = String::new();
    let _ = writeln!(out, "{}", bold(&table.title, colours));
    let lines = columns.iter().map(|column| column.head.len()).max().unwrap_or(0).max(corner.len());
    for line in 0..lines {
        // Heads stand on the rule.
        let part = |of: &[String]| (line + of.len()).checked_sub(lines).and_then(|at| of.get(at)).cloned();
        let mut text = pad_right(&part(&corner).unwrap_or_default(), name_width);
        for column in &columns {
            text.push_str("   ");
            text.push_str(&column.set_head(&part(&column.head).unwrap_or_default()));
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
    let all = name_width + columns.iter().map(|column| 3 + column.width).sum::<usize>();
    let _ = writeln!(out, "{}", grey(&"─".repeat(all), colours));
    for (row, name) in table.rows.iter().zip(&names) {
        let mut text = pad_right(name, name_width);
        for (place, column) in columns.iter().enumerate() {
            text.push_str("   ");
            text.push_str(&column.set(&row.cells.get(place).map(words).unwrap_or_default()));
        }
        let text = text.trim_end();
        let _ = writeln!(out, "{}", if row.is_published { grey(text, colours) } else { text.to_owned() });
    }
    if cells::has_open_ratio(table) {
        let _ = writeln!(out, "{}", grey(OPEN_NOTE, colours));
    }
    out
}

fn row_name(row: &Row) -> String {
    let name = cells::row_name(row);
    if row.is_published { format!("{name} (published)") } else { name.to_owned() }
}

/// A column, measured.
struct Column {
    head: Vec<String>,
    align: Align,
    /// Of the figures, and of what stands beside them.
    parts: [usize; 2],
    width: usize,
}

impl Column {
    fn of(table: &Table, place: usize) -> Column {
        let shown: Vec<Words> = table.rows.iter().filter_map(|row| row.cells.get(place)).map(words).collect();
        let align = alignment(table, place);
        let main = shown.iter().map(|cell| width(&cell.main)).max().unwrap_or(0);
        let aside = shown.iter().map(|cell| width(&cell.aside)).max().unwrap_or(0);
        let inner = if aside > 0 { main + 1 + aside } else { main };
        let head = table.columns.get(place).map_or("", String::as_str);
        let head = wrap(head, inner.max(HEAD).max(longest_word(head)));
        let width = head.iter().map(|line| width(line)).max().unwrap_or(0).max(inner);
        Column { head, align, parts: [main, aside], width }
    }

    fn set_head(&self, line: &str) -> String {
        match self.align {
            Align::Left => pad_right(line, self.width),
            Align::Right => pad_left(line, self.width),
        }
    }

    fn set(&self, cell: &Words) -> String {
        let [main, aside] = self.parts;
        match self.align {
            Align::Left => pad_right(&cell.main, self.width),
            Align::Right if aside == 0 => pad_left(&cell.main, self.width),
            Align::Right => {
                let both = format!("{} {}", pad_left(&cell.main, main), pad_right(&cell.aside, aside));
                pad_left(&both, self.width)
            }
        }
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad_right(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(width(text))))
}

fn pad_left(text: &str, to: usize) -> String {
    format!("{}{text}", " ".repeat(to.saturating_sub(width(text))))
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(width).max().unwrap_or(0)
}

/// Lines of at most `limit` letters, but for longer words.
fn wrap(text: &str, limit: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A text in lines, the first behind `mark`.
fn paragraph(out: &mut String, mark: &str, text: &str) {
    let indent = width(mark);
    for (number, line) in wrap(text, WIDTH - indent).iter().enumerate() {
        let before = if number == 0 { mark.to_owned() } else { " ".repeat(indent) };
        let _ = writeln!(out, "{before}{line}");
    }
}

fn grey(text: &str, colours: Colours) -> String {
    if colours == Colours::Terminal { format!("\x1b[90m{text}\x1b[0m") } else { text.to_owned() }
}

fn bold(text: &str, colours: Colours) -> String {
    if colours == Colours::Terminal { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
