//! Which keys a configuration file has, and what each of them takes.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// A text that is known when we are compiled, or one that is derived from the command line.
pub type Text = Cow<'static, str>;

/// A key of a table.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: Text,
    /// What it takes.
    pub kind: Kind,
    /// What it means, in a sentence or two.
    pub about: Text,
    /// What holds without it, as TOML; `None` if nothing does.
    pub default: Option<Text>,
    /// Whether the table is no use without it.
    pub is_required: bool,
}

/// What a key takes.
#[derive(Clone, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// A string.
    Text,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A whole number.
    Integer(RangeInclusive<i64>),
    /// What a flag of the command line takes.
    Flag(FlagKind),
    /// An array. An array of one may be written without brackets.
    List(&'static Kind),
    /// A table.
    Table(&'static [Key]),
    /// An array of tables.
    Tables(&'static [Key]),
    /// A table with any keys.
    Map(&'static Kind),
    /// `true` for the table with its defaults, `false` for none, or the table.
    SwitchOrTable(&'static [Key]),
    /// The first of a string, the second of anything else.
    Either(&'static Kind, &'static Kind),
}

/// What a flag of the command line takes. Its own parser decides; a number may be written as such.
#[derive(Clone, Debug, Default)]
pub struct FlagKind {
    /// The words that it takes; none: any.
    pub choices: Vec<String>,
    /// Whether it may be given several times: then an array is taken, too.
    pub is_list: bool,
    /// Whether it may be given without a value: then `true` is taken, too.
    pub is_optional: bool,
    /// What to give, for people: `[ADDRESS:]PORT`.
    pub placeholder: String,
}

impl Key {
    /// A key that may be left out.
    pub const fn new(name: &'static str, kind: Kind, about: &'static str) -> Key {
        Key {
            name: Cow::Borrowed(name),
            kind,
            about: Cow::Borrowed(about),
            default: None,
            is_required: false,
        }
    }

    /// A key that may be left out; then `default` holds, which is TOML.
    pub const fn with_default(
        name: &'static str,
        kind: Kind,
        about: &'static str,
        default: &'static str,
    ) -> Key {
        let (name, about) = (Cow::Borrowed(name), Cow::Borrowed(about));
        Key { name, kind, about, default: Some(Cow::Borrowed(default)), is_required: false }
    }

    /// A key that must be there.
    #[must_use]
    pub const fn required(mut self) -> Key {
        self.is_required = true;
        self
    }
}

impl Kind {
    /// The keys of the table, or tables, that are taken.
    pub(crate) fn keys(&self) -> Option<&'static [Key]> {
        match self {
            Kind::Table(keys) | Kind::Tables(keys) | Kind::SwitchOrTable(keys) => Some(keys),
            Kind::Either(one, other) => one.keys().or(other.keys()),
            _ => None,
        }
    }

    /// What to give, for people.
    pub(crate) fn expected(&self) -> String {
        match self {
            Kind::Switch => "true or false".to_owned(),
            Kind::Text => "a string".to_owned(),
            Kind::Choice(words) => crate::fault::choice(words.iter().copied()),
            Kind::Integer(range) => {
                format!("a whole number from {} to {}", range.start(), range.end())
            }
            Kind::Flag(flag) => flag.expected(),
            Kind::List(of) => format!("{}, or an array of such", of.expected()),
            Kind::Table(_) | Kind::Map(_) => "a table: { … }".to_owned(),
            Kind::Tables(_) => "tables, each below a line with its name in double brackets".to_owned(),
            Kind::SwitchOrTable(_) => "true, false, or a table: { … }".to_owned(),
            Kind::Either(one, other) => format!("{}, or {}", one.expected(), other.expected()),
        }
    }
}

impl FlagKind {
    fn expected(&self) -> String {
        let mut text = match (self.choices.as_slice(), self.placeholder.as_str()) {
            ([], "") => "a string or a number".to_owned(),
            ([], placeholder) => placeholder.to_owned(),
            (words, _) => crate::fault::choice(words.iter().map(String::as_str)),
        };
        if self.is_list {
            text.push_str(", or an array of such");
        }
        if self.is_optional {
            text.push_str(", or true");
        }
        text
    }
}
