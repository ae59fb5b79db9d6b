//! From keys of a file to words of the command line, and from errors about these to places in the file.

use super::flags;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, Error};
use config::fault::{Fault, Span};
use config::read::{Item, Table, Value};
use std::any::TypeId;
use std::ffi::OsString;
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
        let what = std::error::Error::source(&error).map_or_else(|| brief(&error), ToString::to_string);
        faults.push(Fault::new(word.value, format!("\"{}\": {what}", word.key)));
    }
    faults
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
        by_flag.or(text.find(&*value(word)))
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

/// What the flag is given; a word that no text contains if that is too short to be known again.
fn value(word: &Word) -> std::borrow::Cow<'_, str> {
    let text = word.text.to_string_lossy();
    match text.split_once('=') {
        Some((_, value)) if value.len() > 3 => value.to_owned().into(),
        None if text.starts_with('/') => text,
        _ => "\0".into(),
    }
}

/// The first line of an error.
fn brief(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
