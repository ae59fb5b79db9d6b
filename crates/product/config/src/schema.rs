//! The JSON schema of a configuration file, for editors. Source: json-schema.org, draft 2020-12.

use crate::shape::{FlagKind, Key, Kind};
use serde_json::{Map, Value, json};

/// The schema of a file whose keys are `keys`.
pub fn schema(title: &str, keys: &[Key]) -> Value {
    let mut schema = of_keys(keys);
    if let Value::Object(fields) = &mut schema {
        fields.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        fields.insert("title".to_owned(), json!(title));
    }
    schema
}

fn of_keys(keys: &[Key]) -> Value {
    let properties: Map<String, Value> = keys.iter().map(|key| (key.name.to_string(), of_key(key))).collect();
    let required: Vec<&str> =
        keys.iter().filter(|key| key.is_required).map(|key| key.name.as_ref()).collect();
    let mut schema = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if let (Value::Object(fields), false) = (&mut schema, required.is_empty()) {
        fields.insert("required".to_owned(), json!(required));
    }
    schema
}

fn of_key(key: &Key) -> Value {
    let mut schema = of_kind(&key.kind);
    if let Value::Object(fields) = &mut schema {
        fields.insert("description".to_owned(), json!(key.about));
        if let Some(default) = key.default.as_deref().and_then(crate::print::to_json) {
            fields.insert("default".to_owned(), default);
        }
    }
    schema
}

fn of_kind(kind: &Kind) -> Value {
    match kind {
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::Text => json!({ "type": "string" }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Integer(range) => {
            json!({ "type": "integer", "minimum": range.start(), "maximum": range.end() })
        }
        Kind::Flag(flag) => of_flag(flag),
        Kind::List(of) => one_or_many(of_kind(of)),
        Kind::Table(keys) => of_keys(keys),
        Kind::Tables(keys) => json!({ "type": "array", "items": of_keys(keys) }),
        Kind::Map(of) => json!({ "type": "object", "additionalProperties": of_kind(of) }),
        Kind::Either(one, other) => json!({ "anyOf": [of_kind(one), of_kind(other)] }),
        Kind::SwitchOrTable(keys) => json!({ "anyOf": [{ "type": "boolean" }, of_keys(keys)] }),
    }
}

fn of_flag(flag: &FlagKind) -> Value {
    let one = match flag.choices.as_slice() {
        [] => json!({ "type": ["string", "number"] }),
        words => json!({ "enum": words }),
    };
    let one = if flag.is_optional { json!({ "anyOf": [one, { "type": "boolean" }] }) } else { one };
    if flag.is_list { one_or_many(one) } else { one }
}

fn one_or_many(one: Value) -> Value {
    json!({ "anyOf": [one, { "type": "array", "items": one }] })
}
