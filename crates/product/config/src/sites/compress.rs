//! Compression of files.

use super::Builder;
use crate::read::{Table, Value};
use crate::units;
use server::compress::{Coding, CompressOptions, Compression, MediaRange};

/// What the key "compress" of `table` says; `None` if files are not compressed.
pub(super) fn compression(builder: &mut Builder<'_>, table: &Table) -> Option<Compression> {
    let item = table.get("compress")?;
    let none = Table::default();
    let of = match &item.value {
        Value::Switch(true) => &none,
        Value::Table(table) => table,
        _ => return None,
    };
    if let Some(known) = builder.compressions.get(&item.span.start) {
        return Some(known.clone());
    }
    let mut options = CompressOptions::default();
    if of.get("codings").is_some() {
        options.codings = codings(builder, of);
    }
    if of.get("types").is_some() {
        options.types = types(builder, of);
    }
    let (min_size, _) = of.integer("min-size", 1_024);
    options.min_size = u64::try_from(min_size).unwrap_or_default();
    if let Some((text, span)) = of.text("cache") {
        // Nothing is no size anywhere else.
        let bytes = if matches!(text.trim(), "0" | "0B") { Ok(0) } else { units::bytes(text) };
        match bytes {
            Ok(bytes) => options.cache_bytes = bytes,
            Err(what) => builder.note(span, format!("\"{text}\": {what}")),
        }
    }
    let compression = Compression::new(options);
    builder.compressions.insert(item.span.start, compression.clone());
    Some(compression)
}

fn codings(builder: &mut Builder<'_>, table: &Table) -> Vec<Coding> {
    let mut codings = Vec::new();
    for (text, span) in table.list("codings") {
        // The reader takes no other name.
        let named = Coding::ALL.into_iter().find(|coding| coding.name() == text);
        let Some(coding) = named else { continue };
        if codings.contains(&coding) {
            builder.note(span, format!("there is \"{text}\" already: name each coding once"));
        } else {
            codings.push(coding);
        }
    }
    if codings.is_empty()
        && let Some(item) = table.get("codings").filter(|_| table.list("codings").next().is_none())
    {
        builder.note(
            item.span.clone(),
            "nothing is compressed without a coding: name one, or write compress = false",
        );
    }
    codings
}

fn types(builder: &mut Builder<'_>, table: &Table) -> Vec<MediaRange> {
    let mut types = Vec::new();
    for (text, span) in table.list("types") {
        match MediaRange::parse(text) {
            Ok(range) => types.push(range),
            Err(error) => builder.note(span, format!("\"{text}\": {error}")),
        }
    }
    types
}
