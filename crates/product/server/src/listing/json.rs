//! A listing as JSON: one object, the entries in the order that was asked for.
//!
//! `{"path": "/a/", "is_complete": true, "entries": [{"name": "b", "kind": "file", "size": 3, "modified":
//! "2026-11-21T04:31:20Z", "href": "b"}]}`. Folders have no size, and their `href` ends with a slash. `href` is exact where a
//! name is not UTF-8.

use super::read::{Contents, Kind};
use super::text::{Json, link};
use crate::date;
use core::fmt::Write as _;

/// Writes the listing of `path`.
pub(super) fn write(path: &[u8], contents: &Contents) -> String {
    let mut text = String::with_capacity(128 + 160 * contents.items.len());
    let slash = if path.is_empty() { "" } else { "/" };
    let path = [b"/", path, slash.as_bytes()].concat();
    // Writing to a string does not fail.
    let _ = write!(text, "{{\"path\":{},\"is_complete\":{},\"entries\":[", Json(&path), !contents.is_cut);
    for (place, item) in contents.items.iter().enumerate() {
        let comma = if place == 0 { "\n" } else { ",\n" };
        let (name, href) = (Json(&item.name), link(&item.name));
        let modified = date::rfc3339(item.modified_s);
        let _ = match item.kind {
            Kind::Folder => write!(
                text,
                "{comma}{{\"name\":{name},\"kind\":\"folder\",\"modified\":\"{modified}\",\"href\":\"{href}/\"}}"
            ),
            Kind::File => write!(
                text,
                "{comma}{{\"name\":{name},\"kind\":\"file\",\"size\":{},\"modified\":\"{modified}\",\"href\":\"{href}\"}}",
                item.size
            ),
        };
    }
    text.push_str("\n]}\n");
    text
}
