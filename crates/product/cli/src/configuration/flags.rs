//! The keys of a configuration file that are flags of `tercel serve`, from the definition of the command line.

use crate::help::LABORATORY;
use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};
use config::print::quoted;
use config::shape::{FlagKind, Key, Kind};

/// Flags that are no keys: one names the file itself, the others print help.
const APART: [&str; 3] = ["config", "help", "help_lab"];

/// The flags of `command` that are keys: those of operators.
pub(crate) fn operators(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|flag| {
        !APART.contains(&flag.get_id().as_str()) && flag.get_help_heading() != Some(LABORATORY)
    })
}

/// The key of a flag: its long name.
pub(crate) fn name(flag: &Arg) -> &str {
    flag.get_long().unwrap_or(flag.get_id().as_str())
}

/// The keys that are flags of `command`.
pub(crate) fn keys(command: &Command) -> Vec<Key> {
    operators(command).map(key).collect()
}

fn key(flag: &Arg) -> Key {
    let is_switch = matches!(flag.get_action(), ArgAction::SetTrue);
    let about = flag.get_long_help().or(flag.get_help()).map(StyledStr::to_string).unwrap_or_default();
    Key {
        name: name(flag).to_owned().into(),
        kind: if is_switch { Kind::Switch } else { Kind::Flag(kind(flag)) },
        about: about.split_whitespace().collect::<Vec<_>>().join(" ").into(),
        default: if is_switch { Some("false".into()) } else { default(flag).map(Into::into) },
        is_required: false,
    }
}

fn kind(flag: &Arg) -> FlagKind {
    let names = flag.get_value_names().unwrap_or_default();
    FlagKind {
        choices: flag.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        is_list: matches!(flag.get_action(), ArgAction::Append),
        is_optional: flag.get_num_args().is_some_and(|count| count.min_values() == 0),
        placeholder: names.first().map(ToString::to_string).unwrap_or_default(),
    }
}

/// What the flag is without being given, as TOML.
fn default(flag: &Arg) -> Option<String> {
    let text = flag.get_default_values().first()?.to_string_lossy();
    Some(if text.parse::<i64>().is_ok() { text.into_owned() } else { quoted(&text) })
}
