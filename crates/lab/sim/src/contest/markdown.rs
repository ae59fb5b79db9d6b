//! The page of the study.

use report::model::{Block, Cell, Study, Table};

/// The study as Markdown, with its plots as pictures of these names. `revision` is that of the program that made the records.
pub fn markdown(study: &Study, revision: &str, plots: &[&str]) -> String {
    let mut text = format!("# {}\n\n{}\n\n", study.title, study.question);
    text += &format!(
        "Made by `cargo xtask controllers` with revision {revision}; it writes this page, `results.json` and the pictures \
         anew. What follows from the figures, and what is wrong with our controllers, is in [reading.md](reading.md).\n\n"
    );
    text += "## What came out\n\n";
    text += &list(&study.findings);
    text += "\n## How it was measured\n\n";
    text += &list(&study.method);
    text += "\n## What to know beside it\n\n";
    text += &list(&study.notes);
    text += "\n## Pictures\n\n";
    for (name, title) in plots.iter().zip(study.blocks.iter().filter_map(plot_title)) {
        text += &format!("![{title}]({name}.svg)\n\n");
    }
    text += "## Figures\n";
    for block in &study.blocks {
        if let Block::Table(table) = block {
            text += &self::table(table);
        }
    }
    text
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}\n")).collect()
}

fn plot_title(block: &Block) -> Option<&str> {
    match block {
        Block::Plot(plot) => Some(&plot.title),
        Block::Table(_) | Block::Drawing(_) | Block::Grid(_) => None,
    }
}

fn table(table: &Table) -> String {
    let mut text = format!("\n### {}\n\n| {} | {} |\n", table.title, table.corner, table.columns.join(" | "));
    text += &format!("|---|{}\n", "---:|".repeat(table.columns.len()));
    for row in &table.rows {
        let cells: Vec<String> = row.cells.iter().map(cell).collect();
        text += &format!("| {} | {} |\n", row.name, cells.join(" | "));
    }
    text
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Empty | Cell::Trials(..) | Cell::Ratio(_) => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Number(value, digits) => format!("{value:.*}", usize::from(*digits)),
    }
}
