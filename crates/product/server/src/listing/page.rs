//! A listing as a page: one table, without scripts. Its look is in page.css, which follows the reader's light or dark scheme.

use super::MAX_ENTRIES;
use super::read::{Contents, Item, Kind};
use super::text::{Html, Size, link};
use super::view::{Direction, Key, Order, View};
use crate::date;
use core::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// Writes the page of `path`.
pub(super) fn write(path: &[u8], contents: &Contents, view: View) -> String {
    let mut text = String::with_capacity(2 * STYLE.len() + 240 * contents.items.len());
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content=\"width=device-width\">\n\
         <title>/{}</title>\n<style>\n{STYLE}</style>\n<main>\n<h1>",
        Html(path)
    );
    write_way(&mut text, path, view.order);
    text.push_str("</h1>\n<table>\n<thead><tr>");
    for (key, name) in [(Key::Name, "Name"), (Key::Size, "Size"), (Key::Time, "Modified")] {
        write_column(&mut text, key, name, view.order);
    }
    text.push_str("\n<tbody>\n");
    if !path.is_empty() {
        let _ = writeln!(text, "<tr><td class=u><a href=\"../{}\">..</a><td><td>", view.order.query());
    }
    contents.items.iter().for_each(|item| write_item(&mut text, item, view.order));
    text.push_str("</table>\n");
    if contents.is_cut {
        let _ = writeln!(
            text,
            "<p class=cut>This folder has more than {MAX_ENTRIES} entries. Only {MAX_ENTRIES} of them were read.</p>"
        );
    }
    write_sum(&mut text, contents, view.order);
    text.push_str("</main>\n");
    text
}

/// The folders on the way from the root, each a link.
fn write_way(text: &mut String, path: &[u8], order: Order) {
    let segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
    let up = |levels: usize| if levels == 0 { "./".to_owned() } else { "../".repeat(levels) };
    let _ = write!(text, "<a href=\"{}{}\">Home</a>", up(segments.len()), order.query());
    for (depth, name) in (1..).zip(&segments) {
        text.push_str("<span>/</span>");
        let name = Html(name);
        let _ = match segments.len() - depth {
            0 => write!(text, "<bdi>{name}</bdi>"),
            levels => write!(text, "<a href=\"{}{}\">{name}</a>", up(levels), order.query()),
        };
    }
}

/// The head of a column. Its link sorts by it, or turns the order round.
fn write_column(text: &mut String, key: Key, name: &str, order: Order) {
    let is_sorted = order.key == key;
    let (state, direction) = match (is_sorted, order.direction) {
        (true, Direction::Ascending) => (" aria-sort=ascending", Direction::Descending),
        (true, Direction::Descending) => (" aria-sort=descending", Direction::Ascending),
        // The largest and the newest are what people look for.
        (false, _) if key == Key::Name => ("", Direction::Ascending),
        (false, _) => ("", Direction::Descending),
    };
    let query = match (Order { key, direction }).query() {
        "" => "./",
        query => query,
    };
    let _ = write!(text, "\n<th scope=col{state}><a href=\"{query}\">{name}</a>");
}

fn write_item(text: &mut String, item: &Item, order: Order) {
    let (href, name) = (link(&item.name), Html(&item.name));
    let _ = match item.kind {
        Kind::Folder => {
            write!(text, "<tr><td class=d><a href=\"{href}/{}\">{name}</a><td>", order.query())
        }
        Kind::File => write!(
            text,
            "<tr><td class=f><a href=\"{href}\">{name}</a><td title=\"{} bytes\">{}",
            item.size,
            Size(item.size)
        ),
    };
    let modified = date::rfc3339(item.modified_s);
    let (day, time) = modified.split_once('T').unwrap_or((&modified, ""));
    let minutes = time.get(..5).unwrap_or_default();
    let _ = writeln!(text, "<td><time datetime={modified}>{day}<i> {minutes}</i></time>");
}

/// How much there is.
fn write_sum(text: &mut String, contents: &Contents, order: Order) {
    let folders = contents.items.iter().filter(|item| item.kind == Kind::Folder).count();
    let files = contents.items.len() - folders;
    let bytes = contents.items.iter().map(|item| item.size).fold(0, u64::saturating_add);
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let json = match order.query() {
        "" => "?json".to_owned(),
        query => format!("{query}&amp;json"),
    };
    let _ = match contents.items.len() {
        0 => writeln!(text, "<p>This folder is empty. <a href=\"{json}\">JSON</a></p>"),
        _ => writeln!(
            text,
            "<p>{folders} folder{}, {files} file{}, {}. Times are UTC. <a href=\"{json}\">JSON</a></p>",
            plural(folders),
            plural(files),
            Size(bytes)
        ),
    };
}
