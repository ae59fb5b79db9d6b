//! From keys of a file to words of the command line, and from errors about these to places in the file.

use super::flags;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, Error};
use config::fault::{Fault, Span};
use config::read::{Item, Table, Value};
use std::any::TypeId;
use std::ffi::OsString;
use std::net::AddrParseError;
use std::num::ParseIntError;
use std::path::{Path, PathBuf};

/// A key's value as a word of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    /// The key.
    pub(crate) key: String,
    /// Where its name is.
    name: Span,
    /// Where the value is.
    value: Span,
    text: OsString,
}

/// The words for the keys of `table` that are flags of `command`. Paths are relative to `folder`.
pub(crate) fn of(table: &Table, command: &Command, folder: &Path) -> Vec<Word> {
    let mut words = Vec::new();
    for entry in &table.entries {
        let Some(flag) = flags::operators(command).find(|flag| flags::name(flag) == entry.name) else {
            continue;
        };
        let items = match &entry.item.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(&entry.item),
        };
        words.extend(items.iter().filter_map(|item| {
            let text = word(flag, item, folder)?;
            Some(Word { key: entry.name.clone(), name: entry.span.clone(), value: item.span.clone(), text })
        }));
    }
    words
}

/// `None` for what holds without it: some flags must not be given alone, even if they change nothing.
fn word(flag: &Arg, item: &Item, folder: &Path) -> Option<OsString> {
    let name = flags::name(flag);
    if let (Value::Text(text) | Value::Number(text), [default]) = (&item.value, flag.get_default_values())
        && default == text.as_str()
        && !matches!(flag.get_action(), ArgAction::Append)
    {
        return None;
    }
    let mut word = OsString::from(format!("--{name}"));
    match &item.value {
        Value::Switch(false) => return None,
        Value::Switch(true) => {}
        Value::Text(text) | Value::Number(text) if flag.is_positional() => {
            return Some(folder.join(text).into());
        }
        Value::Text(text) | Value::Number(text) => {
            word.push("=");
            word.push(located(flag, text, folder));
        }
        Value::Integer(_) | Value::List(_) | Value::Table(_) => return None,
    }
    Some(word)
}

/// What a flag is given, with the folder of the file before paths that do not begin at the root.
fn located(flag: &Arg, text: &str, folder: &Path) -> OsString {
    match flags::name(flag) {
        "access-log" if !matches!(text, "-" | "off") => folder.join(text).into(),
        "admin" => match text.strip_prefix("unix:") {
            Some(path) if !path.is_empty() => {
                let mut word = OsString::from("unix:");
                word.push(folder.join(path));
                word
            }
            _ => text.into(),
        },
        "identity" => {
            let parts = text.split_once('=').and_then(|(name, files)| Some((name, files.split_once(',')?)));
            let Some((name, (certificate, key))) = parts else { return text.into() };
            let mut word = OsString::from(format!("{name}="));
            word.push(folder.join(certificate));
            word.push(",");
            word.push(folder.join(key));
            word
        }
        _ if flag.get_value_parser().type_id() == TypeId::of::<PathBuf>() => folder.join(text).into(),
        _ => text.into(),
    }
}

/// The command line of `words` and then `typed`, with the command's name.
pub(crate) fn line(words: &[Word], typed: &[OsString]) -> Vec<OsString> {
    let words = words.iter().map(|word| word.text.clone());
    std::iter::once("serve".into()).chain(words).chain(typed.iter().cloned()).collect()
}

/// What is wrong with `words`, all of it where that is possible. What is wrong with `typed` is not told.
pub(crate) fn faults(mut words: Vec<Word>, typed: &[OsString], command: &Command) -> Vec<Fault> {
    let mut faults = Vec::new();
    let parse = |words: &[Word]| command.clone().try_get_matches_from(line(words, typed)).err();
    while let Some(error) = parse(&words) {
        let Some(at) = words.iter().position(|word| is_about(&error, word)) else {
            if faults.is_empty() {
                faults.extend(relation(&error, &words, parse));
            }
            break;
        };
        let word = words.remove(at);
        let what = reason(&error, command, &word.key);
        faults.push(Fault::new(word.value, format!("\"{}\": {what}", word.key)));
    }
    faults
}

/// What is wrong with a value of `key`, and what to write. The texts of the standard library tell no cure.
fn reason(error: &Error, command: &Command, key: &str) -> String {
    let Some(source) = std::error::Error::source(error) else { return brief(error) };
    if source.is::<ParseIntError>() {
        let flag = flags::operators(command).find(|flag| flags::name(flag) == key);
        let placeholder = flag.and_then(|flag| flag.get_value_names()?.first().map(ToString::to_string));
        let of = if placeholder.as_deref() == Some("SECONDS") { " of seconds" } else { "" };
        return format!("write a whole number{of}, without a unit");
    }
    if source.is::<AddrParseError>() {
        return "write an address such as 192.0.2.7 or 2001:db8::7, without a port".to_owned();
    }
    source.to_string()
}

/// Paths that are empty: they would be the folder of the file.
pub(crate) fn empty(table: &Table, command: &Command) -> Vec<Fault> {
    let is_path = |name: &str| {
        let mut flags = flags::operators(command);
        flags.any(|flag| {
            flags::name(flag) == name && flag.get_value_parser().type_id() == TypeId::of::<PathBuf>()
        })
    };
    let empty = table.entries.iter().filter(|entry| is_path(&entry.name)).flat_map(|entry| {
        let places = entry.item.texts().filter(|(text, _)| text.is_empty());
        places.map(|(_, span)| {
            Fault::new(span, format!("\"{}\" has a path: write one, or leave it out", entry.name))
        })
    });
    empty.collect()
}

/// Whether the value of `word` is what the error is about.
fn is_about(error: &Error, word: &Word) -> bool {
    let is_of_value = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let value = text(ContextKind::InvalidValue);
    let names = text(ContextKind::InvalidArg);
    let name = names.split([' ', '=', '[']).next().unwrap_or_default();
    let ends = word.text.to_string_lossy().ends_with(value);
    is_of_value && ends && (name == format!("--{}", word.key) || !name.starts_with('-'))
}

/// Keys that do not go together, or not alone: the first one without which all would be well.
fn relation(error: &Error, words: &[Word], parse: impl Fn(&[Word]) -> Option<Error>) -> Option<Fault> {
    let kind = error.kind();
    let concerned = |error: &Error| error.get(ContextKind::InvalidArg).map(ToString::to_string);
    let is_cause = |word: &&Word| {
        let others: Vec<Word> = words.iter().filter(|other| other.key != word.key).cloned().collect();
        parse(&others).is_none_or(|other| other.kind() != kind || concerned(&other) != concerned(error))
    };
    let cause = words.iter().find(is_cause)?;
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.as_slice(),
        _ => &[],
    };
    let key = |name: &String| {
        let name = name.trim_start_matches('-').split([' ', '=', '[']).next().unwrap_or_default();
        format!("\"{name}\"")
    };
    let others = missing.iter().map(key).collect::<Vec<_>>().join(" and ");
    let what = match kind {
        ErrorKind::MissingRequiredArgument => format!("\"{}\" is no use without {others}", cause.key),
        _ => format!("\"{}\": {}", cause.key, brief(error)),
    };
    Some(Fault::new(cause.name.clone(), what))
}

/// The place of the key that `text` speaks of first, by its flag or its value, for what is found to be wrong later.
pub(crate) fn place(words: &[Word], text: &str) -> Option<Span> {
    let mention = |word: &Word| {
        let flag = format!("--{}", word.key);
        let ends = |at: usize| {
            !text
                .get(at + flag.len()..)
                .unwrap_or_default()
                .starts_with(|letter: char| letter == '-' || letter.is_alphanumeric())
        };
        let by_flag = text.match_indices(&flag).map(|(at, _)| at).find(|at| ends(*at));
        by_flag.or_else(|| values(word).iter().find_map(|value| text.find(value)))
    };
    let mentions = words.iter().filter_map(|word| Some((mention(word)?, word)));
    mentions.min_by_key(|(at, _)| *at).map(|(_, word)| word.name.clone())
}

/// `text` with keys where it speaks of flags.
pub(crate) fn in_keys(text: &str) -> String {
    let word = |word: &str| match word.strip_prefix("--") {
        Some(flag) => {
            let name = flag.trim_end_matches([',', ':', ';', '.']);
            format!("\"{name}\"{}", flag.get(name.len()..).unwrap_or_default())
        }
        None => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// What the flag is given, and the paths in it, without what is too short to be known again.
fn values(word: &Word) -> Vec<String> {
    let text = word.text.to_string_lossy();
    let value = text.split_once('=').map_or(&*text, |(_, value)| value);
    let paths = value.split(['=', ',']).filter(|part| part.starts_with('/'));
    let whole = (!value.starts_with("--") && value.len() > 3).then_some(value);
    whole.into_iter().chain(paths).map(ToOwned::to_owned).collect()
}

/// The first line of an error.
fn brief(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
