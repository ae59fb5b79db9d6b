//! That tables remain tables, and that pictures are where the page looks for them.

use super::*;
use crate::sample;

#[test]
fn tables_have_as_many_cells_as_columns() {
    let pages = report(&sample::run());
    let rows: Vec<&str> = pages.text.lines().filter(|line| line.starts_with('|')).collect();
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let (environment, table) = rows.split_at(4);
    assert!(environment.iter().all(|line| bars(line) == 3), "{environment:#?}");
    assert_eq!(table.len(), 2 + 4);
    assert!(table.iter().all(|line| bars(line) == 5), "{table:#?}");
    assert!(
        pages.text.contains("| 612.0") || pages.text.contains("| 610.0 ± 11.1 | **4.64**"),
        "{}",
        pages.text
    );
    assert!(pages.text.contains("LSQUIC *(published)*") && pages.text.contains("≈ 1.00"));
}

#[test]
fn pictures_lie_beside_the_page() {
    let pages = report(&sample::run());
    assert_eq!(pages.pictures.len(), 2 + 2, "a plot, a drawing, two of a grid");
    for (name, svg) in &pages.pictures {
        assert!(pages.text.contains(&format!("]({name})")) && svg.contains("</svg>"), "{name}");
    }
    assert_eq!(picture_name("../e1", 3), "---e1-3.svg");
}

#[test]
fn texts_stay_texts() {
    let pages = report(&sample::run());
    assert!(!pages.text.contains("<script") && pages.text.contains("&lt;script>"), "{}", pages.text);
}
