//! What is wrong with a configuration file: the place, the reason, and what to do.

use std::fmt;
use std::fmt::Write as _;
use std::ops::Range;

/// Faults that are printed at most. More follow from one mistake, mostly.
const MOST: usize = 20;

/// A place in a file, in bytes.
pub type Span = Range<usize>;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub span: Span,
    /// The reason, and what to do, in one line.
    pub what: String,
}

impl Fault {
    /// `what` is wrong at `span`.
    pub fn new(span: Span, what: impl Into<String>) -> Fault {
        Fault { span, what: what.into() }
    }
}

/// All faults of a file. It prints them in the order of their places, each with its line.
#[derive(Debug)]
pub struct Faults<'a> {
    file: &'a str,
    text: &'a str,
    faults: Vec<Fault>,
}

impl<'a> Faults<'a> {
    /// The faults of `file`, whose content is `text`.
    pub fn new(file: &'a str, text: &'a str, mut faults: Vec<Fault>) -> Faults<'a> {
        faults.sort_by(|one, other| (one.span.start, &one.what).cmp(&(other.span.start, &other.what)));
        faults.dedup();
        Faults { file, text, faults }
    }

    fn write(&self, fault: &Fault, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column, text } = Position::of(self.text, fault.span.start);
        writeln!(out, "{}:{line}:{column}: {}", self.file, fault.what)?;
        let number = line.to_string();
        // As wide as the text, with its tabs, so that the marks stand below what they mean.
        let blank = |letter: char| if letter == '\t' { '\t' } else { ' ' };
        let before: String = text.chars().take(column - 1).map(blank).collect();
        let marked = self.text.get(fault.span.clone()).and_then(|text| text.lines().next());
        let marks = "^".repeat(marked.map_or(1, |text| text.chars().count()).max(1));
        writeln!(out, " {number} | {text}\n {:1$} | {before}{marks}", "", number.len())
    }
}

impl fmt::Display for Faults<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.faults.iter().take(MOST).try_for_each(|fault| self.write(fault, out))?;
        match self.faults.len().checked_sub(MOST) {
            Some(more @ 1..) => writeln!(out, "and {more} more"),
            _ => Ok(()),
        }
    }
}

/// A place for people. Lines and columns begin with 1, columns count characters.
#[derive(Debug, PartialEq, Eq)]
struct Position<'a> {
    line: usize,
    column: usize,
    text: &'a str,
}

impl Position<'_> {
    fn of(text: &str, offset: usize) -> Position<'_> {
        let offset = (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (before, after) = text.split_at(offset);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let end = after.find(['\r', '\n']).map_or(text.len(), |at| offset + at);
        Position {
            line: before.matches('\n').count() + 1,
            column: before.get(start..).unwrap_or_default().chars().count() + 1,
            text: text.get(start..end).unwrap_or_default(),
        }
    }
}

/// Names for people: `a`, `b` or `c`, each in quotes.
pub(crate) fn choice<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        let before = match at {
            0 => "",
            _ if at + 1 == names.len() => " or ",
            _ => ", ",
        };
        // Writing to a text does not fail.
        let _ = write!(text, "{before}\"{name}\"");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let text = "a = 1\nté = 2\r\n\n";
        for (offset, line, column, whole) in [
            (0, 1, 1, "a = 1"),
            (5, 1, 6, "a = 1"),
            (6, 2, 1, "té = 2"),
            (8, 2, 2, "té = 2"),
            (10, 2, 4, "té = 2"),
            (15, 3, 1, ""),
            (99, 4, 1, ""),
        ] {
            assert_eq!(Position::of(text, offset), Position { line, column, text: whole }, "{offset}");
        }
    }

    #[test]
    fn faults_are_printed_in_order_with_marks_below_what_they_mean() {
        let text = "\tone = 1\ntwo = 2\n";
        let faults = vec![Fault::new(9..12, "second"), Fault::new(1..4, "first"), Fault::new(1..4, "first")];
        let printed = Faults::new("f.toml", text, faults).to_string();
        let expected =
            "f.toml:1:2: first\n 1 | \tone = 1\n   | \t^^^\nf.toml:2:1: second\n 2 | two = 2\n   | ^^^\n";
        assert_eq!(printed, expected);
        let many = (0..MOST + 3).map(|number| Fault::new(0..1, number.to_string())).collect();
        assert!(Faults::new("f", text, many).to_string().ends_with("and 3 more\n"));
    }

    #[test]
    fn a_choice_reads_as_a_sentence() {
        assert_eq!(choice(["a"]), "\"a\"");
        assert_eq!(choice(["a", "b", "c"]), "\"a\", \"b\" or \"c\"");
    }
}
