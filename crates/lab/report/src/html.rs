//! A run as a page of its own: nothing in it is loaded from elsewhere, so it opens offline and can be kept.
//!
//! It follows the reader's light or dark and fits desks and phones: wide tables scroll inside their box, plots are there in
//! two widths. Pictures that were drawn elsewhere stand in frames whose address is the picture itself: such a frame has an
//! origin of its own, so neither names, nor styles, nor scripts of a flame graph meet the page's. The page forbids itself and its
//! frames to load anything.
//!
//! Rejected: a template engine, for a page whose parts are a dozen; scripts of the page's own, which it does not need; frames in a
//! sandbox, which browsers put into a process of its own and leave out of pictures of the page.

use crate::cells::{self, Align, OPEN_NOTE, Verdict, alignment, duration, words};
use crate::date;
use crate::escape::{data_address, markup};
use crate::markdown::picture_name;
use crate::model::{Block, Cell, Drawing, Plot, PlotGrid, Row, Run, Study, Table};
use crate::plot::{self, Width};
use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};

/// What frames may be as high as, in pixels: a foreign drawing is not trusted with more.
const HIGHEST: u32 = 4_000;

/// What the page allows itself: styles and scripts that are in it, frames and pictures that are in it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; frame-src data:";

/// How to read it.
const LEGEND: &str = "Figures are means of all trials ± their standard deviation; point at one to see each trial. An \
    interval behind a ratio is its 95 % interval: of the rounds' ratios within a run (Student), of the trials between runs (Welch), by their logarithms. Whiskers are intervals too. Grey: published by others, measured on \
    other machines in other years, for orientation only.";

/// A run as a page, which expects results.json beside it.
pub fn report(run: &Run) -> String {
    let intro = format!(
        "<p class=\"muted\">Begun on {}, done in {}. Every trial is in <a href=\"results.json\">results.json</a>.</p>",
        markup(&date::for_people(&run.began)),
        duration(run.seconds)
    );
    page(&format!("Measurements, {}", date::day(&run.began)), (&intro, Files::Beside), run)
}

/// The studies as a page that stands alone, under this heading: for what was not measured by a run.
pub fn titled(head: &str, run: &Run) -> String {
    page(head, ("", Files::Elsewhere), run)
}

/// Two runs side by side as a page; `run` is what [`crate::compare::Comparison::as_run`] makes of them.
pub fn comparison(run: &Run) -> String {
    page("Two runs side by side", ("", Files::Elsewhere), run)
}

/// Where the pictures of a run lie as files.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Files {
    /// Beside the page, by the names that [`picture_name`] gives them.
    Beside,
    /// Nowhere that the page knows.
    #[default]
    Elsewhere,
}

/// A whole page: `head` is a text, `intro` is markup.
fn page(head: &str, (intro, files): (&str, Files), run: &Run) -> String {
    let mut out = Page { text: String::new(), files };
    let (head, ids) = (markup(head), anchors(run));
    out.line("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">");
    out.line("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    out.line(format_args!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">"));
    out.line(format_args!("<title>tercel: {head}</title>"));
    out.line(format_args!(
        "<style>\n{}{}</style>\n</head>",
        include_str!("html/style.css"),
        plot::style_sheet()
    ));
    out.line(format_args!("<body>\n<div class=\"page\">\n<header>\n<h1>{head}</h1>\n{intro}"));
    if run.is_quick {
        out.warning("A quick look: sizes and trials were reduced, so figures are indications.");
    }
    if run.was_interrupted {
        out.warning("Interrupted: not everything was measured.");
    }
    out.environment(&run.environment);
    out.line("</header>");
    out.contents(run, &ids);
    out.line("<main>");
    for (study, id) in run.studies.iter().zip(&ids) {
        out.study(study, id);
    }
    out.line(format_args!(
        "</main>\n<footer class=\"small\">\n<p>{LEGEND}</p>\n</footer>\n</div>\n</body>\n</html>"
    ));
    out.text
}

/// A name for each study that an address may end with, and that no other has.
fn anchors(run: &Run) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let name = |(number, study): (usize, &Study)| {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
        let plain: String = study.id.chars().filter(is_plain).collect();
        let id =
            if plain.is_empty() || !seen.insert(plain.clone()) { format!("{plain}-{number}") } else { plain };
        seen.insert(id.clone());
        id
    };
    run.studies.iter().enumerate().map(name).collect()
}

/// A page that is being written.
#[derive(Default)]
struct Page {
    text: String,
    files: Files,
}

impl Page {
    fn line(&mut self, text: impl Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{text}");
    }

    fn contents(&mut self, run: &Run, ids: &[String]) {
        self.line("<nav aria-label=\"Contents\">\n<ol>");
        for (study, id) in run.studies.iter().zip(ids) {
            let mark =
                if study.problem.is_some() { " <span class=\"mark\">· not finished</span>" } else { "" };
            let (name, title) = (markup(&study.id.to_uppercase()), markup(&study.title));
            self.line(format_args!(
                "<li><a href=\"#{id}\"><b>{name}</b> <span>{title}{mark}</span></a></li>"
            ));
        }
        self.line("</ol>\n</nav>");
    }

    fn warning(&mut self, text: &str) {
        self.line(format_args!("<p class=\"warning\">{}</p>", markup(text)));
    }

    fn environment(&mut self, pairs: &[(String, String)]) {
        self.line("<dl class=\"environment\">");
        for (name, value) in pairs {
            self.line(format_args!("<dt>{}</dt><dd>{}</dd>", markup(name), markup(value)));
        }
        self.line("</dl>");
    }

    fn study(&mut self, study: &Study, id: &str) {
        let (name, title) = (markup(&study.id.to_uppercase()), markup(&study.title));
        self.line(format_args!("<section id=\"{id}\">\n<h2><b>{name}</b>{title}</h2>"));
        if !study.question.is_empty() {
            self.line(format_args!("<p class=\"question\">{}</p>", markup(&study.question)));
        }
        if let Some(problem) = &study.problem {
            self.warning(&format!("Not finished: {problem}"));
        }
        self.list("findings", &study.findings);
        for (number, block) in study.blocks.iter().enumerate() {
            match block {
                Block::Table(shown) => self.table(shown),
                Block::Plot(shown) => self.plot(shown),
                Block::Drawing(shown) => self.drawing(shown, &picture_name(&study.id, number + 1)),
                Block::Grid(shown) => self.grid(shown),
            }
        }
        if !study.notes.is_empty() {
            self.line("<h3>Notes</h3>");
            self.list("notes", &study.notes);
        }
        if !study.method.is_empty() {
            self.line("<details>\n<summary>Method</summary>");
            self.list("notes", &study.method);
            self.line("</details>");
        }
        if study.seconds > 0.0 {
            self.line(format_args!("<p class=\"small\">Measured in {}.</p>", duration(study.seconds)));
        }
        self.line("</section>");
    }

    fn list(&mut self, class: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.line(format_args!("<ul class=\"{class}\">"));
        for item in items {
            self.line(format_args!("<li>{}</li>", markup(item)));
        }
        self.line("</ul>");
    }

    fn table(&mut self, table: &Table) {
        let title = markup(&table.title);
        self.line(format_args!("<figure>\n<figcaption>{title}</figcaption>"));
        self.line(format_args!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">"
        ));
        self.line(format_args!("<table>\n<thead><tr><th scope=\"col\">{}</th>", markup(&table.corner)));
        let columns: Vec<Column> = (0..table.columns.len()).map(|place| Column::of(table, place)).collect();
        for (head, column) in table.columns.iter().zip(&columns) {
            let head = markup(head);
            match column {
                Column::Text => self.line(format_args!("<th scope=\"col\">{head}</th>")),
                Column::Figure => self.line(format_args!("<th scope=\"col\" class=\"figure\">{head}</th>")),
                Column::Pair => {
                    self.line(format_args!("<th scope=\"col\" colspan=\"2\" class=\"figure\">{head}</th>"));
                }
            }
        }
        self.line("</tr></thead>\n<tbody>");
        for row in &table.rows {
            self.row(row, &columns);
        }
        self.line("</tbody>\n</table>\n</div>");
        if cells::has_open_ratio(table) {
            self.line(format_args!("<p class=\"small\">{OPEN_NOTE}</p>"));
        }
        self.line("</figure>");
    }

    fn row(&mut self, row: &Row, columns: &[Column]) {
        let name = markup(cells::row_name(row));
        if row.is_published {
            self.line(format_args!(
                "<tr class=\"published\"><th scope=\"row\">{name}<span class=\"tag\">published</span></th>"
            ));
        } else {
            self.line(format_args!("<tr><th scope=\"row\">{name}</th>"));
        }
        for (place, column) in columns.iter().enumerate() {
            let cell = row.cells.get(place).unwrap_or(&Cell::Empty);
            self.line(column.cell(cell));
        }
        self.line("</tr>");
    }

    fn plot(&mut self, shown: &Plot) {
        self.line(format_args!("<figure>\n<figcaption>{}</figcaption>", markup(&shown.title)));
        self.line(format_args!("<div class=\"desk\">{}</div>", plot::inlined(shown, Width::Wide)));
        self.line(format_args!("<div class=\"phone\">{}</div>", plot::inlined(shown, Width::Narrow)));
        self.line("</figure>");
    }

    fn grid(&mut self, shown: &PlotGrid) {
        self.line(format_args!("<figure>\n<figcaption>{}</figcaption>", markup(&shown.title)));
        self.line("<div class=\"grid\">");
        for plot in &shown.plots {
            let title = markup(&plot.title);
            self.line(format_args!("<div>\n<p>{title}</p>{}</div>", plot::inlined_of(plot, shown)));
        }
        self.line("</div>\n</figure>");
    }

    fn drawing(&mut self, shown: &Drawing, file: &str) {
        let title = markup(&shown.title);
        let height = height_of(&shown.svg).clamp(40, HIGHEST);
        let link = match self.files {
            Files::Beside => format!(" <a href=\"{file}\">{file}</a>"),
            Files::Elsewhere => String::new(),
        };
        self.line(format_args!("<figure>\n<figcaption>{title}{link}</figcaption>"));
        self.line(format_args!(
            "<iframe class=\"drawing\" height=\"{height}\" title=\"{title}\" \
             src=\"{}\"></iframe>",
            data_address("image/svg+xml", &shown.svg)
        ));
        self.line("</figure>");
    }
}

/// How a column of a table is set: spreads stand in a column of their own, so that figures stand below each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Text,
    Figure,
    Pair,
}

impl Column {
    fn of(table: &Table, place: usize) -> Column {
        let mut cells = table.rows.iter().filter_map(|row| row.cells.get(place));
        if alignment(table, place) == Align::Left {
            Column::Text
        } else if cells.any(|cell| !words(cell).aside.is_empty()) {
            Column::Pair
        } else {
            Column::Figure
        }
    }

    fn cell(self, cell: &Cell) -> String {
        let shown = words(cell);
        let class = match shown.verdict {
            Verdict::None => "",
            Verdict::Differs => " differs",
            Verdict::Open => " open",
        };
        let trials = if shown.trials.is_empty() {
            String::new()
        } else {
            format!(" title=\"each trial: {}\"", markup(&shown.trials))
        };
        let (main, aside) = (markup(&shown.main), markup(&shown.aside));
        match self {
            Column::Text => format!("<td>{main}</td>"),
            Column::Figure => format!("<td class=\"figure{class}\"{trials}>{main}</td>"),
            Column::Pair => {
                format!(
                    "<td class=\"figure{class}\"{trials}>{main}</td><td class=\"aside\"{trials}>{aside}</td>"
                )
            }
        }
    }
}

/// The height that an SVG document asks for.
fn height_of(svg: &str) -> u32 {
    let head =
        svg.find("<svg").and_then(|at| svg.get(at..)).and_then(|rest| rest.split('>').next()).unwrap_or("");
    let value = head.split(" height=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("");
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(400)
}

#[cfg(test)]
mod tests;
