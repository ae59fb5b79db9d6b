//! What stands in a table's cell, before it is laid out: a figure, what goes with it, and how sure it is.

use crate::model::{Cell, Row, Table};

/// A cell in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// The figure, or the text.
    pub(crate) main: String,
    /// Its spread: `± 1.6`, or an interval.
    pub(crate) aside: String,
    /// Whether it is a ratio, and what its interval leaves open.
    pub(crate) verdict: Verdict,
    /// Each trial.
    pub(crate) trials: String,
}

/// What a ratio says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is no ratio.
    #[default]
    None,
    /// The two differ.
    Differs,
    /// Its interval includes 1: the two are not told apart.
    Open,
}

/// A row's name without the word that every page adds to published rows itself.
pub(crate) fn row_name(row: &Row) -> &str {
    let name = row.name.trim();
    let bare = |mark: &str| name.strip_suffix(mark).map(|bare| bare.trim_end_matches([',', ' ']));
    if row.is_published { bare("(published)").or_else(|| bare("published")).unwrap_or(name) } else { name }
}

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Texts.
    Left,
    /// Figures.
    Right,
}

/// Says what the mark before a ratio means, where a table needs it.
pub(crate) const OPEN_NOTE: &str = "≈: the 95 % interval includes 1, so no difference is shown.";

/// A cell in words; nothing for what is not finite.
pub(crate) fn words(cell: &Cell) -> Words {
    match cell {
        Cell::Text(text) => Words { main: text.clone(), ..Words::default() },
        Cell::Number(value, digits) if value.is_finite() => {
            Words { main: number(*value, *digits), ..Words::default() }
        }
        Cell::Trials(summary, digits) if summary.mean.is_finite() && !summary.values.is_empty() => {
            let many = summary.values.len() > 1;
            let each: Vec<String> = summary.values.iter().map(|value| number(*value, *digits)).collect();
            Words {
                main: number(summary.mean, *digits),
                aside: if many { format!("± {}", number(summary.sd, *digits)) } else { String::new() },
                verdict: Verdict::None,
                trials: if many { each.join("  ") } else { String::new() },
            }
        }
        Cell::Ratio(ratio) if ratio.ratio.is_finite() => {
            let open = ratio.spans_one();
            let digits = if ratio.ratio.abs() < 10.0 { 2 } else { 1 };
            Words {
                main: format!("{}{:.digits$}", if open { "≈ " } else { "" }, ratio.ratio),
                aside: format!("({:.digits$}–{:.digits$})", ratio.low, ratio.high),
                verdict: if open { Verdict::Open } else { Verdict::Differs },
                trials: String::new(),
            }
        }
        Cell::Empty | Cell::Number(..) | Cell::Trials(..) | Cell::Ratio(_) => Words::default(),
    }
}

/// A figure with this many digits after the point, and commas between thousands from ten thousand on.
pub(crate) fn number(value: f64, digits: u8) -> String {
    let text = format!("{value:.*}", usize::from(digits));
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = unsigned.find('.').map_or((unsigned, ""), |at| unsigned.split_at(at));
    if whole.len() < 5 {
        return text;
    }
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

/// Left where nothing but texts stands below the head.
pub(crate) fn alignment(table: &Table, column: usize) -> Align {
    let is_figure = |cell: &Cell| matches!(cell, Cell::Number(..) | Cell::Trials(..) | Cell::Ratio(_));
    let mut cells = table.rows.iter().filter_map(|row| row.cells.get(column));
    if cells.any(is_figure) { Align::Right } else { Align::Left }
}

/// Whether [`OPEN_NOTE`] is needed.
pub(crate) fn has_open_ratio(table: &Table) -> bool {
    let mut cells = table.rows.iter().flat_map(|row| &row.cells);
    cells.any(|cell| words(cell).verdict == Verdict::Open)
}

/// Seconds as people say them.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0 => format!("{:.1} s", seconds.max(0.0)),
        1..=119 => format!("{whole} s"),
        120..=7_199 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Ratio, Summary};

    #[test]
    fn cells_say_figure_spread_and_verdict() {
        let trials = words(&Cell::Trials(Summary::of([2.0, 4.0, 4.0, 10.0]), 1));
        assert_eq!((trials.main.as_str(), trials.aside.as_str()), ("5.0", "± 3.5"));
        assert_eq!(trials.trials, "2.0  4.0  4.0  10.0");
        assert_eq!(words(&Cell::Trials(Summary::of([2.0]), 1)).aside, "", "one trial has no spread");
        let open = words(&Cell::Ratio(Ratio { ratio: 1.01, low: 0.98, high: 1.04 }));
        assert_eq!((open.main.as_str(), open.aside.as_str()), ("≈ 1.01", "(0.98–1.04)"));
        let clear = words(&Cell::Ratio(Ratio { ratio: 4.0, low: 3.9, high: 4.2 }));
        assert_eq!((clear.main.as_str(), clear.verdict), ("4.00", Verdict::Differs));
        for nothing in [Cell::Empty, Cell::Number(f64::NAN, 1), Cell::Trials(Summary::default(), 1)] {
            assert_eq!(words(&nothing), Words::default());
        }
    }

    #[test]
    fn published_rows_are_marked_once() {
        let name = |name: &str, is_published| {
            row_name(&Row { name: name.to_owned(), is_published, cells: Vec::new() }).to_owned()
        };
        assert_eq!(name("UDP (published)", true), "UDP");
        assert_eq!(name("UDP, published", true), "UDP");
        assert_eq!(name("UDP", true), "UDP");
        assert_eq!(name("as published", false), "as published");
    }

    #[test]
    fn large_figures_are_grouped() {
        for (value, digits, text) in [
            (146_116_331.4, 0, "146,116,331"),
            (-12_345.678, 2, "-12,345.68"),
            (9_999.0, 0, "9999"),
            (-0.5, 1, "-0.5"),
            (100_000.0, 0, "100,000"),
        ] {
            assert_eq!(number(value, digits), text);
        }
        assert_eq!([0.4, 61.0, 130.0, 7_300.0].map(duration), ["0.4 s", "61 s", "2 min 10 s", "2 h 1 min"]);
    }
}
