//! From the text of a file to values that have the names and types of its table of keys, each with its place.

use crate::fault::{Fault, Span, choice};
use crate::shape::{FlagKind, Key, Kind};
use crate::suggest::suggest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A table of a file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its place, or that of its name.
    pub span: Span,
    /// In the order of the file.
    pub entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key's name.
    pub name: String,
    /// Its place.
    pub span: Span,
    /// What it is set to.
    pub item: Item,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its place.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Integer(i64),
    /// A number for a flag, as it is written.
    Number(String),
    /// A string.
    Text(String),
    /// An array, or one that was written without brackets.
    List(Vec<Item>),
    /// A table.
    Table(Table),
}

impl Table {
    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Item> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.item)
    }

    /// Where `name` is.
    pub fn place(&self, name: &str) -> Option<Span> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.span.clone())
    }

    /// The string that `name` is set to.
    pub fn text(&self, name: &str) -> Option<(&str, Span)> {
        self.get(name)?.texts().next()
    }

    /// The strings that `name` is set to.
    pub fn list(&self, name: &str) -> impl Iterator<Item = (&str, Span)> {
        self.get(name).into_iter().flat_map(Item::texts)
    }

    /// Whether `name` is true.
    pub fn switch(&self, name: &str, default: bool) -> bool {
        match self.get(name).map(|item| &item.value) {
            Some(Value::Switch(is_on)) => *is_on,
            _ => default,
        }
    }

    /// The whole number that `name` is set to.
    pub fn integer(&self, name: &str, default: i64) -> (i64, Span) {
        match self.get(name) {
            Some(Item { span, value: Value::Integer(number) }) => (*number, span.clone()),
            _ => (default, 0..0),
        }
    }

    /// The table that `name` is set to.
    pub fn table(&self, name: &str) -> Option<&Table> {
        match &self.get(name)?.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The tables that `name` is set to.
    pub fn tables(&self, name: &str) -> impl Iterator<Item = &Table> {
        let items = match self.get(name).map(|item| &item.value) {
            Some(Value::List(items)) => items.as_slice(),
            _ => &[],
        };
        items.iter().filter_map(|item| if let Value::Table(table) = &item.value { Some(table) } else { None })
    }
}

impl Item {
    /// The string that it is, or the strings in the array that it is.
    pub fn texts(&self) -> impl Iterator<Item = (&str, Span)> {
        let items = match &self.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(self),
        };
        items.iter().filter_map(|item| match &item.value {
            Value::Text(text) => Some((text.as_str(), item.span.clone())),
            _ => None,
        })
    }
}

impl Kind {
    /// Whether a value of this type is taken, if it is right otherwise.
    fn is_of(&self, value: &DeValue<'_>) -> bool {
        match value {
            DeValue::Boolean(_) => matches!(self, Kind::Switch | Kind::SwitchOrTable(_)),
            DeValue::Array(_) => matches!(self, Kind::Tables(_) | Kind::List(_)),
            DeValue::Table(_) => {
                matches!(self, Kind::Table(_) | Kind::Tables(_) | Kind::SwitchOrTable(_) | Kind::Map(_))
            }
            _ => false,
        }
    }
}

/// Reads `text`, whose keys are `keys`. What is wrong is left out of the table and noted.
pub fn read(text: &str, keys: &[Key]) -> (Table, Vec<Fault>) {
    let (document, faults) = DeTable::parse_recoverable(text);
    if !faults.is_empty() {
        let of = |error: toml::de::Error| {
            let what = error.message().lines().next().unwrap_or_default();
            Fault::new(error.span().unwrap_or_default(), format!("this is not TOML: {what}"))
        };
        return (Table::default(), faults.into_iter().take(1).map(of).collect());
    }
    let mut reader = Reader { faults: Vec::new(), tables: vec![("the server".to_owned(), keys)] };
    let table = reader.table(document.get_ref(), keys, 0..0);
    (table, reader.faults)
}

struct Reader<'k> {
    faults: Vec<Fault>,
    /// The tables around the one at hand, the outermost first: how each is written, and its keys.
    tables: Vec<(String, &'k [Key])>,
}

impl<'k> Reader<'k> {
    fn note(&mut self, span: Span, what: impl Into<String>) {
        self.faults.push(Fault::new(span, what));
    }

    fn table(&mut self, table: &DeTable<'_>, keys: &'k [Key], span: Span) -> Table {
        let mut entries = Vec::new();
        for (name, value) in table {
            let (text, place) = (name.get_ref().as_ref(), name.span());
            match keys.iter().find(|key| key.name == text) {
                Some(key) => {
                    let item = self.item(key, &key.kind, value);
                    entries.extend(item.map(|item| Entry { name: text.to_owned(), span: place, item }));
                }
                None => {
                    let cure = self.cure(text, keys);
                    self.note(place, format!("there is no key \"{text}\"{cure}"));
                }
            }
        }
        // A misspelt key is told as such, and is not missing.
        let meant = |name: &str| suggest(name, keys.iter().map(|key| key.name.as_ref()));
        for key in keys.iter().filter(|key| key.is_required) {
            if !table.keys().any(|name| meant(name.get_ref()) == Some(key.name.as_ref())) {
                self.note(span.clone(), format!("\"{}\" is missing: {}", key.name, key.about));
            }
        }
        entries.sort_by_key(|entry| entry.span.start);
        Table { span, entries }
    }

    /// What to do about a key that is none of `keys`: most are misspelt, or stand in another table than they belong to.
    fn cure(&self, name: &str, keys: &[Key]) -> String {
        let has = |keys: &[Key]| keys.iter().any(|key| key.name == name);
        if let Some(inner) = keys.iter().find(|key| key.kind.keys().is_some_and(has)) {
            let inner = self.written(inner);
            return format!(" here: it is one of {inner}, so write it there");
        }
        if let Some((at, (owner, _))) = self.tables.iter().enumerate().rfind(|(_, (_, keys))| has(keys)) {
            let inner = self.tables.get(at + 1).map_or("this table", |(inner, _)| inner);
            return format!(" here: it is one of {owner}, so write it above {inner}");
        }
        let names = keys.iter().map(|key| key.name.as_ref());
        match suggest(name, names.clone()) {
            Some(meant) => format!(": did you mean \"{meant}\"?"),
            None if keys.len() <= 16 => format!(": there are {}", choice(names)),
            None => ": tercel config schema has all keys".to_owned(),
        }
    }

    /// How the table of `key` is written.
    fn written(&self, key: &Key) -> String {
        let name = &key.name;
        match &key.kind {
            Kind::Tables(_) => {
                let mut outer =
                    self.tables.iter().filter_map(|(outer, _)| outer.strip_prefix("[[")?.strip_suffix("]]"));
                outer.next_back().map_or_else(|| format!("[[{name}]]"), |outer| format!("[[{outer}.{name}]]"))
            }
            _ => format!("\"{name}\""),
        }
    }

    /// A table of `key` within the one at hand.
    fn inner(&mut self, key: &Key, table: &DeTable<'_>, keys: &'k [Key], span: Span) -> Table {
        let written = self.written(key);
        self.tables.push((written, keys));
        let table = self.table(table, keys, span);
        self.tables.pop();
        table
    }

    /// The value of `key`, or a part of it, which is of `kind`.
    fn item(&mut self, key: &Key, kind: &'k Kind, value: &Spanned<DeValue<'_>>) -> Option<Item> {
        let span = value.span();
        let found = match (kind, value.get_ref()) {
            (Kind::Either(text, _), DeValue::String(_)) => return self.item(key, text, value),
            (Kind::Either(_, other), found) if other.is_of(found) => return self.item(key, other, value),
            (Kind::Switch | Kind::SwitchOrTable(_), DeValue::Boolean(is_on)) => Value::Switch(*is_on),
            (Kind::Text, DeValue::String(text)) => Value::Text(text.to_string()),
            (Kind::Choice(words), DeValue::String(text)) => {
                return self.choice(key, words, text, span);
            }
            (Kind::Integer(range), DeValue::Integer(number)) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) if range.contains(&number) => Value::Integer(number),
                    _ => return self.mismatch(key, kind, value),
                }
            }
            (Kind::Flag(flag), value_of) => return self.flag(key, flag, value_of, value),
            (Kind::List(of), DeValue::Array(array)) => {
                Value::List(array.iter().filter_map(|value| self.item(key, of, value)).collect())
            }
            (Kind::List(of), _) => {
                let one = self.item(key, of, value)?;
                Value::List(vec![one])
            }
            (Kind::Table(keys) | Kind::SwitchOrTable(keys), DeValue::Table(table)) => {
                Value::Table(self.inner(key, table, keys, span.clone()))
            }
            (Kind::Map(of), DeValue::Table(table)) => Value::Table(self.map(key, of, table, span.clone())),
            (Kind::Tables(keys), DeValue::Array(array)) => {
                let of = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
                    DeValue::Table(table) => {
                        let span = value.span();
                        let table = self.inner(key, table, keys, span.clone());
                        Some(Item { span, value: Value::Table(table) })
                    }
                    _ => self.mismatch(key, kind, value),
                };
                Value::List(array.iter().filter_map(of).collect())
            }
            (Kind::Tables(_), DeValue::Table(_)) => {
                let (name, written) = (&key.name, self.written(key));
                self.note(span, format!("\"{name}\" may be there several times: write {written}"));
                return None;
            }
            _ => return self.mismatch(key, kind, value),
        };
        Some(Item { span, value: found })
    }

    fn map(&mut self, key: &Key, of: &'k Kind, table: &DeTable<'_>, span: Span) -> Table {
        let mut entries = Vec::new();
        for (name, value) in table {
            let item = self.item(key, of, value);
            let entry = |item| Entry { name: name.get_ref().to_string(), span: name.span(), item };
            entries.extend(item.map(entry));
        }
        entries.sort_by_key(|entry| entry.span.start);
        Table { span, entries }
    }

    fn choice(&mut self, key: &Key, words: &[&str], text: &str, span: Span) -> Option<Item> {
        if words.contains(&text) {
            return Some(Item { span, value: Value::Text(text.to_owned()) });
        }
        let what = match suggest(text, words.iter().copied()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("give {}", choice(words.iter().copied())),
        };
        self.note(span, format!("\"{}\" takes no \"{text}\": {what}", key.name));
        None
    }

    /// What a flag takes, as the word that it would be on the command line.
    fn flag(
        &mut self,
        key: &Key,
        flag: &FlagKind,
        found: &DeValue<'_>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Item> {
        let span = value.span();
        let text = match found {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) if number.radix() == 10 && flag.choices.is_empty() => {
                return Some(Item { span, value: Value::Number(number.as_str().to_owned()) });
            }
            DeValue::Float(number) if flag.choices.is_empty() => {
                return Some(Item { span, value: Value::Number(number.as_str().to_owned()) });
            }
            DeValue::Boolean(is_on) if flag.is_optional => {
                return Some(Item { span, value: Value::Switch(*is_on) });
            }
            DeValue::Array(array) if array.is_empty() => {
                self.note(
                    span,
                    format!(
                        "\"{}\" takes at least one value: leave it out for what holds by default",
                        key.name
                    ),
                );
                return None;
            }
            DeValue::Array(array) if flag.is_list => {
                let one = FlagKind { is_list: false, ..flag.clone() };
                let items = array.iter().filter_map(|value| self.flag(key, &one, value.get_ref(), value));
                return Some(Item { span, value: Value::List(items.collect()) });
            }
            _ => return self.mismatch(key, &key.kind, value),
        };
        if !flag.choices.is_empty() {
            let words: Vec<&str> = flag.choices.iter().map(String::as_str).collect();
            return self.choice(key, &words, &text, span);
        }
        Some(Item { span, value: Value::Text(text) })
    }

    fn mismatch(&mut self, key: &Key, kind: &Kind, value: &Spanned<DeValue<'_>>) -> Option<Item> {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(number) => &format!("the number {}", number.as_str()),
            DeValue::Float(_) => "a number with a point",
            DeValue::Boolean(true) => "true",
            DeValue::Boolean(false) => "false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        let cure = match (kind, value.get_ref()) {
            (Kind::Integer(_), DeValue::String(text))
                if text.starts_with(|first: char| first.is_ascii_digit()) =>
            {
                ": write the number alone, without quotes and without a unit"
            }
            (Kind::Text, DeValue::Integer(_) | DeValue::Float(_)) => ": write it in quotes",
            (Kind::Flag(flag), DeValue::Array(_)) if flag.choices.is_empty() => {
                let default = key.default.as_deref().map(|default| format!(": by default it is {default}"));
                &default.unwrap_or_else(|| ": write one value".to_owned())
            }
            _ => "",
        };
        self.note(value.span(), format!("\"{}\" takes {}, not {found}{cure}", key.name, kind.expected()));
        None
    }
}
