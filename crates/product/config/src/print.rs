//! A configuration as a whole, with what holds by default: as TOML, or as JSON.

use crate::read::{Item, Table, Value};
use crate::shape::{Key, Kind};
use serde_json::{Map, Value as Json};
use std::fmt::Write as _;

/// The whole of a file as TOML, which is a file that says the same. Keys without a value are comments, but for those of tables.
pub fn to_toml(keys: &[Key], table: &Table) -> String {
    let mut out = String::new();
    write_table(keys, table, "", &mut out);
    out
}

/// The whole of a file as JSON. Keys without a value are null.
pub fn whole_json(keys: &[Key], table: &Table) -> Json {
    let of = |key: &Key| {
        let value = match (table.get(&key.name), &key.kind) {
            (Some(_), Kind::Tables(keys)) => {
                table.tables(&key.name).map(|table| whole_json(keys, table)).collect()
            }
            (
                Some(Item { value: Value::Table(table), .. }),
                Kind::Table(keys) | Kind::SwitchOrTable(keys),
            ) => whole_json(keys, table),
            (Some(item), _) => item_json(item),
            (None, Kind::Tables(_)) => Json::Array(Vec::new()),
            (None, _) => key.default.as_deref().and_then(to_json).unwrap_or(Json::Null),
        };
        (key.name.to_string(), value)
    };
    Json::Object(keys.iter().map(of).collect())
}

/// Lines of simple values first: what follows the heading of a table belongs to that.
fn write_table(keys: &[Key], table: &Table, path: &str, out: &mut String) {
    let (tables_of, simple): (Vec<&Key>, Vec<&Key>) =
        keys.iter().partition(|key| matches!(key.kind, Kind::Tables(_)));
    for key in simple {
        let name = &key.name;
        // Writing to a text does not fail.
        let _ = match (table.get(name), &key.kind, &key.default) {
            (
                Some(Item { value: Value::Table(inner), .. }),
                Kind::Table(keys) | Kind::SwitchOrTable(keys),
                _,
            ) => {
                writeln!(out, "{name} = {}", inline(keys, inner))
            }
            (Some(item), ..) => writeln!(out, "{name} = {}", item_toml(item)),
            (None, _, Some(default)) => writeln!(out, "{name} = {default}"),
            (None, kind, None) if path.is_empty() => writeln!(out, "# {name} = {}", kind.expected()),
            (None, _, None) => Ok(()),
        };
    }
    for key in tables_of {
        let Kind::Tables(keys) = &key.kind else { continue };
        let path = if path.is_empty() { key.name.to_string() } else { format!("{path}.{}", key.name) };
        for table in table.tables(&key.name) {
            let _ = writeln!(out, "\n[[{path}]]");
            write_table(keys, table, &path, out);
        }
    }
}

/// A table in one line, with what holds by default.
fn inline(keys: &[Key], table: &Table) -> String {
    let of = |key: &Key| {
        let value = match (table.get(&key.name), &key.kind) {
            (
                Some(Item { value: Value::Table(inner), .. }),
                Kind::Table(keys) | Kind::SwitchOrTable(keys),
            ) => inline(keys, inner),
            (Some(item), _) => item_toml(item),
            (None, _) => key.default.as_deref()?.to_owned(),
        };
        Some(format!("{} = {value}", key.name))
    };
    let parts: Vec<String> = keys.iter().filter_map(of).collect();
    if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join(", ")) }
}

fn item_toml(item: &Item) -> String {
    match &item.value {
        Value::Switch(is_on) => is_on.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Number(text) => text.clone(),
        Value::Text(text) => quoted(text),
        Value::List(items) => format!("[{}]", items.iter().map(item_toml).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let part =
                |entry: &crate::read::Entry| format!("{} = {}", quoted(&entry.name), item_toml(&entry.item));
            let parts: Vec<String> = table.entries.iter().map(part).collect();
            if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join(", ")) }
        }
    }
}

fn item_json(item: &Item) -> Json {
    match &item.value {
        Value::Switch(is_on) => Json::from(*is_on),
        Value::Integer(number) => Json::from(*number),
        Value::Number(text) => to_json(text).unwrap_or(Json::Null),
        Value::Text(text) => Json::from(text.as_str()),
        Value::List(items) => items.iter().map(item_json).collect(),
        Value::Table(table) => {
            let entries = table.entries.iter();
            Json::Object(
                entries.map(|entry| (entry.name.clone(), item_json(&entry.item))).collect::<Map<_, _>>(),
            )
        }
    }
}

/// `text` as a string of TOML.
pub fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A value of TOML as JSON.
pub(crate) fn to_json(value: &str) -> Option<Json> {
    let table: toml::Table = format!("value = {value}").parse().ok()?;
    serde_json::to_value(table.get("value")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read;
    use serde_json::json;

    static PAGE: &[Key] = &[
        Key::new("name", Kind::Text, ""),
        Key::with_default("size", Kind::Integer(1..=9), "", "3"),
        Key::new("fields", Kind::Map(&Kind::Text), ""),
    ];

    fn keys() -> Vec<Key> {
        vec![
            Key::with_default("on", Kind::Switch, "", "false"),
            Key::new("words", Kind::List(&Kind::Text), ""),
            Key::new("page", Kind::Table(PAGE), ""),
            Key::new("pages", Kind::Tables(PAGE), ""),
        ]
    }

    /// Deleted, what is printed could be another configuration, or none.
    #[test]
    fn what_is_printed_says_the_same() {
        let text =
            "words = 'a\"b'\npage.name = 'n'\n[[pages]]\nsize = 4\nfields = { 'a b' = '1\\2' }\n[[pages]]\n";
        let (table, faults) = read(text, &keys());
        assert_eq!(faults, []);
        let printed = to_toml(&keys(), &table);
        let (again, faults) = read(&printed, &keys());
        assert_eq!(faults, [], "{printed}");
        assert_eq!(to_toml(&keys(), &again), printed);
        let expected = json!({
            "on": false,
            "words": ["a\"b"],
            "page": { "name": "n", "size": 3, "fields": null },
            "pages": [
                { "name": null, "size": 4, "fields": { "a b": "1\\2" } },
                { "name": null, "size": 3, "fields": null },
            ],
        });
        assert_eq!((whole_json(&keys(), &table), whole_json(&keys(), &again)), (expected.clone(), expected));
        let (nothing, _) = read("", &keys());
        assert_eq!(
            to_toml(&keys(), &nothing),
            "on = false\n# words = a string, or an array of such\n# page = a table: { … }\n"
        );
    }
}
