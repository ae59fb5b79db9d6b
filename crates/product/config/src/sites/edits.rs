//! Changes of responses: their fields, and pages for errors.

use super::Builder;
use super::folders::{Folder, has_file};
use crate::read::{Table, Value};
use server::sites::{Edit, NamePattern, Pages};
use std::fmt::Display;
use std::sync::Arc;

const HSTS: &str = "strict-transport-security";

/// The changes that `tables` say, one after the other; `None` for none.
pub(super) fn edits(builder: &mut Builder<'_>, tables: &[&Table]) -> Option<Arc<Edit>> {
    let mut edit = Edit::default();
    for table in tables {
        if let Some(headers) = table.table("headers") {
            self::headers(builder, headers, &mut edit);
        }
        hsts(table, &mut edit);
        cache_control(builder, table, &mut edit);
    }
    (!edit.is_empty()).then(|| Arc::new(edit))
}

fn headers(builder: &mut Builder<'_>, table: &Table, edit: &mut Edit) {
    field_changes(builder, table, |change| match change {
        FieldChange::Remove(name) => edit.remove(name),
        FieldChange::Set(name, value) => edit.set(name, value),
        FieldChange::Add(name, value) => edit.add(name, value),
    });
}

/// A change of the fields of a request or of a response.
pub(super) enum FieldChange<'a> {
    Remove(&'a str),
    Set(&'a str, &'a str),
    Add(&'a str, &'a str),
}

/// Applies the changes of a table with `remove`, `set` and `add`, in this order, and notes the errors.
pub(super) fn field_changes<E: Display>(
    builder: &mut Builder<'_>,
    table: &Table,
    mut apply: impl FnMut(FieldChange<'_>) -> Result<(), E>,
) {
    let mut note = |span, result: Result<(), E>| {
        if let Err(error) = result {
            builder.note(span, error.to_string());
        }
    };
    for (name, span) in table.list("remove") {
        note(span, apply(FieldChange::Remove(name)));
    }
    for entry in table.table("set").into_iter().flat_map(|table| &table.entries) {
        if let Value::Text(value) = &entry.item.value {
            note(entry.span.clone(), apply(FieldChange::Set(&entry.name, value)));
        }
    }
    for entry in table.table("add").into_iter().flat_map(|table| &table.entries) {
        for (value, _) in entry.item.texts() {
            note(entry.span.clone(), apply(FieldChange::Add(&entry.name, value)));
        }
    }
}

/// A value for all names, or rules by names.
fn cache_control(builder: &mut Builder<'_>, table: &Table, edit: &mut Edit) {
    let mut rules = Vec::new();
    match table.get("cache-control").map(|item| (&item.value, &item.span)) {
        Some((Value::Text(value), span)) => rules.push((Vec::new(), value.as_str(), span.clone())),
        _ => {
            for rule in table.tables("cache-control") {
                let patterns = name_patterns(builder, rule);
                rules.extend(rule.text("value").map(|(value, span)| (patterns, value, span)));
            }
        }
    }
    // The last one first, as each goes before those that are there.
    for (patterns, value, span) in rules.into_iter().rev() {
        if let Err(error) = edit.cache_control(patterns, value) {
            builder.note(span, error.to_string());
        }
    }
}

fn name_patterns(builder: &mut Builder<'_>, rule: &Table) -> Vec<NamePattern> {
    let mut patterns = Vec::new();
    for (text, span) in rule.list("match") {
        match NamePattern::parse(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => builder.note(span, format!("\"{text}\": {error}")),
        }
    }
    if let Some(item) = rule.get("match").filter(|_| rule.list("match").next().is_none()) {
        builder.note(item.span.clone(), "of which files? Write names such as \"*.css\", or \"*\" for all");
    }
    patterns
}

/// RFC 6797 §6.1.
fn hsts(table: &Table, edit: &mut Edit) {
    let none = Table::default();
    let of = match table.get("hsts").map(|item| &item.value) {
        Some(Value::Switch(true)) => &none,
        Some(Value::Table(table)) => table,
        Some(_) => {
            // The name is one.
            let _ = edit.remove(HSTS);
            return;
        }
        None => return,
    };
    let (seconds, _) = of.integer("max-age", 31_536_000);
    let mut value = format!("max-age={seconds}");
    if of.switch("include-subdomains", false) {
        value.push_str("; includeSubDomains");
    }
    if of.switch("preload", false) {
        value.push_str("; preload");
    }
    let _ = edit.set(HSTS, &value);
}

/// The pages of the first table that has one for a status.
pub(super) fn pages(builder: &mut Builder<'_>, tables: &[&Table], folder: Option<&Folder>) -> Pages {
    let mut pages = Pages::default();
    for table in tables {
        let Some(map) = table.table("error-pages") else { continue };
        let Some(folder) = folder else {
            let is_told = tables.iter().any(|table| table.get("root").is_some());
            if !is_told {
                builder.note(map.span.clone(), "pages for errors are files of the site's root: give it one");
            }
            continue;
        };
        pages.folder = folder.files.folder;
        for entry in &map.entries {
            let Value::Text(path) = &entry.item.value else { continue };
            let status = entry.name.parse::<u16>().ok().filter(|status| (400..600).contains(status));
            let Some(status) = status else {
                let what = format!("\"{}\" is no status of an error: write one from 400 to 599", entry.name);
                builder.note(entry.span.clone(), what);
                continue;
            };
            if !path.starts_with('/') || !has_file(&folder.path, path) {
                let root = folder.path.display();
                let what = format!(
                    "there is no file \"{path}\" in {root}: write its path there, which begins with a slash"
                );
                builder.note(entry.item.span.clone(), what);
                continue;
            }
            if pages.path(status).is_none() {
                pages.paths.push((status, path.clone()));
            }
        }
    }
    pages
}
