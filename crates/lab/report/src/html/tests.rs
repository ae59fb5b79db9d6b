//! What a reader would not forgive: a page that loads something, breaks out of its boxes, or lets a text become markup.

use super::*;
use crate::sample;

#[test]
fn the_page_is_whole_and_loads_nothing() {
    let page = report(&sample::run());
    for part in [
        "Measurements, 21 November 2026<",
        "Begun on 21 November 2026, 18:30 UTC, done in 6 min 52 s",
        "href=\"#e1\"",
        "id=\"e1\"",
        "results.json",
        "Which is faster?",
        "gso is 4.6 times",
        "One core was busy",
        "Two processes",
        "Not finished: killed",
        "A quick look",
        "published",
        "131.4",
        "± 1.6",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    let loading =
        page.matches(" src=").count() + page.matches("<link").count() + page.matches("@import").count();
    assert_eq!(loading, 1, "only the frame has a source");
    assert!(page.contains(" src=\"data:image/svg+xml") && !page.contains("url("), "and that is in the page");
    assert_eq!(page.matches("href=").count(), 2 + 2, "two studies, the results and the drawing alone");
    assert!(page.contains("href=\"e1-3.svg\"") && !titled("A", &sample::run()).contains("e1-3.svg"));
    assert_eq!(page.matches("<svg").count(), 2 + 2, "a plot in two widths, and two small ones");
    assert!(page.contains("height=\"310\""), "a frame is as high as its drawing");
}

#[test]
fn texts_stay_texts() {
    let page = report(&sample::run());
    assert!(!page.contains("<script"), "neither the hostile texts nor the frame's script are the page's");
    let shown = page.matches("&lt;script&gt;alert(1)&lt;/script&gt;").count();
    assert!(shown > 12, "they are shown: {shown}");
}

#[test]
fn every_element_is_closed() {
    let page = report(&sample::run());
    for name in [
        "div", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "section", "figure", "svg", "p",
        "nav",
    ] {
        let opened = page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
        assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}");
    }
    // Heads and rows have as many columns as each other: a corner, a pair, a pair, a text.
    let first_row = page.split("<tbody>").nth(1).and_then(|rest| rest.split("</tr>").next()).unwrap();
    assert_eq!(first_row.matches("<td").count(), 5, "{first_row}");
    assert_eq!(page.matches("colspan=\"2\"").count(), 2);
}

#[test]
fn studies_of_one_name_have_addresses_of_their_own() {
    let study = |id: &str| Study { id: id.to_owned(), ..Study::default() };
    let run = Run { studies: vec![study("e1"), study("e1"), study("\"><"), study("")], ..Run::default() };
    assert_eq!(anchors(&run), ["e1", "e1-1", "-2", "-3"]);
}
