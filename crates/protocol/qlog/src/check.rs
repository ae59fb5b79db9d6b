//! A check of traces against the schemas of the drafts, for tests: names of events, their members, which of these must be there, and
//! their types. Compiled with the feature `check` only.
//!
//! The schema is a text of our own (check/schema.txt), which lists what tercel records. A member that it does not list is an error,
//! although the drafts permit extensions: tercel records none. check/schema-0.3.txt does so for documents of qlog 0.3, into which
//! `tercel qlog` converts traces.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// Types by name; the type of an event is its name.
struct Schema<'a>(HashMap<&'a str, &'a str>);

const TEXT: &str = include_str!("check/schema.txt");
const TEXT_0_3: &str = include_str!("check/schema-0.3.txt");

/// Reads a JSON text sequence and checks the header and all events. Returns the records, the header first.
///
/// # Errors
/// The first thing that is wrong, with the number of its record.
pub fn records(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let text = core::str::from_utf8(bytes).map_err(|error| format!("not UTF-8: {error}"))?;
    let joined = joined(TEXT);
    let schema = Schema::of(&joined);
    let mut found = Vec::new();
    let mut records = text.split('\u{1e}');
    if records.next() != Some("") {
        return Err("does not begin with a record separator".to_owned());
    }
    for (number, record) in records.enumerate() {
        let fails = |what: String| format!("record {number}: {what}: {record}");
        if !record.ends_with('\n') {
            return Err(fails("does not end with a line feed".to_owned()));
        }
        let value: Value = serde_json::from_str(record).map_err(|error| fails(error.to_string()))?;
        let outcome = if number == 0 { schema.check("Header", &value) } else { schema.event(&value) };
        outcome.map_err(fails)?;
        found.push(value);
    }
    if found.is_empty() { Err("no header".to_owned()) } else { Ok(found) }
}

/// Reads a document of qlog 0.3 and checks it with all its events.
///
/// # Errors
/// The first thing that is wrong.
pub fn document(bytes: &[u8]) -> Result<Value, String> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let joined = joined(TEXT_0_3);
    let schema = Schema::of(&joined);
    schema.check("Document", &document)?;
    let traces = document["traces"].as_array().into_iter().flatten();
    for events in traces.filter_map(|trace| trace["events"].as_array()) {
        if !events.iter().filter_map(|event| event["time"].as_f64()).is_sorted() {
            return Err("events that are not in the order of time".to_owned());
        }
        events
            .iter()
            .try_for_each(|event| schema.event(event).map_err(|error| format!("{error}: {event}")))?;
    }
    Ok(document)
}

/// Lines that begin with a space go on with the line before.
fn joined(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.fold(
        String::new(),
        |whole, line| {
            if line.starts_with(' ') { whole + line } else { whole + "\n" + line }
        },
    )
}

impl<'a> Schema<'a> {
    fn of(joined: &'a str) -> Schema<'a> {
        let types = joined.lines().filter_map(|line| line.split_once(' '));
        Schema(types.map(|(name, members)| (name, members.trim())).collect())
    }

    fn event(&self, value: &Value) -> Result<(), String> {
        let members = value.as_object().ok_or("not an object")?;
        let known = ["time", "name", "data", "tuple"];
        if let Some(other) = members.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("unknown member {other}"));
        }
        if !members.get("time").is_some_and(Value::is_number) {
            return Err("no time".to_owned());
        }
        if members.get("tuple").is_some_and(|tuple| !tuple.is_string()) {
            return Err("a tuple that is no text".to_owned());
        }
        let name = members.get("name").and_then(Value::as_str).ok_or("no name")?;
        self.check(name, members.get("data").ok_or("no data")?).map_err(|error| format!("{name}: {error}"))
    }

    /// Checks a value against a type.
    fn check(&self, ty: &str, value: &Value) -> Result<(), String> {
        let wrong = || Err(format!("{value} is no {ty}"));
        let is = |holds: bool| if holds { Ok(()) } else { wrong() };
        if let Some(inner) =
            ty.strip_suffix("]+").or(ty.strip_suffix(']')).and_then(|ty| ty.strip_prefix('['))
        {
            let Some(list) = value.as_array() else { return wrong() };
            if ty.ends_with('+') && list.is_empty() {
                return Err(format!("{ty} is empty"));
            }
            return list.iter().try_for_each(|value| self.check(inner, value));
        }
        match ty {
            "any" => Ok(()),
            "text" => is(value.is_string()),
            "bool" => is(value.is_boolean()),
            "ms" => is(value.is_number()),
            "uint" => is(value.is_u64() || value.as_str().is_some_and(|text| text.parse::<u64>().is_ok())),
            "hex" => is(value.as_str().is_some_and(is_hex)),
            _ if ty.ends_with('/') => {
                let chosen = value.get("frame_type").and_then(Value::as_str).ok_or("no frame_type")?;
                self.check(&format!("{ty}{chosen}"), value)
            }
            _ => match self.0.get(ty) {
                Some(words) if words.starts_with('=') => {
                    is(value.as_str().is_some_and(|text| is_word(words.trim_start_matches('='), text)))
                }
                Some(members) => self.members(members, value.as_object().ok_or("not an object")?),
                None => is(value.as_str().is_some_and(|text| is_word(ty, text))),
            },
        }
    }

    fn members(&self, members: &str, value: &Map<String, Value>) -> Result<(), String> {
        let known: Vec<(&str, &str)> =
            members.split_whitespace().filter_map(|member| member.split_once('=')).collect();
        for (name, ty) in &known {
            let plain = name.trim_end_matches('?');
            match value.get(plain) {
                Some(value) => self.check(ty, value).map_err(|error| format!("{plain}: {error}"))?,
                None if name.ends_with('?') => {}
                None => return Err(format!("{plain} is missing")),
            }
        }
        let is_known =
            |key: &&String| known.iter().any(|(name, _)| name.trim_end_matches('?') == key.as_str());
        match value.keys().find(|key| !is_known(key)) {
            Some(other) => Err(format!("unknown member {other}")),
            None => Ok(()),
        }
    }
}

/// Whether a text is one of the words; one that ends in `*` stands for all that begin so.
fn is_word(words: &str, text: &str) -> bool {
    words.split('|').any(|word| match word.strip_suffix('*') {
        Some(prefix) => text.starts_with(prefix),
        None => word == text,
    })
}

fn is_hex(text: &str) -> bool {
    text.len().is_multiple_of(2) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
