//! The items of a file: heads as one line each, and where their bodies are. Nothing is known of types.

use super::imports::{Import, leaves};
use crate::functions::blank;
use crate::sources::is_word;
use std::ops::Range;

/// What stands before a body or a semicolon.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Attributes that callers see, such as `#[non_exhaustive]`.
    pub(super) attributes: Vec<String>,
    /// All words before the body, with single spaces.
    pub(super) head: String,
    /// The bytes of the file between the braces.
    pub(super) body: Option<Range<usize>>,
}

/// A file, and the same without comments, texts and tests. Byte positions are the same in both.
pub(super) struct File {
    text: String,
    code: String,
    items: Vec<Item>,
    imports: Vec<Import>,
}

/// Attributes that are part of the interface. `derive` stands for implementations of traits.
const SHOWN: [&str; 6] =
    ["#[non_exhaustive", "#[derive(", "#[cfg(feature", "#[must_use", "#[default", "#[doc(hidden)"];

impl File {
    pub(super) fn new(text: String) -> File {
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let code = blank(&text[..end]);
        let mut file = File { text, code, items: Vec::new(), imports: Vec::new() };
        file.items = file.items_in(0..file.code.len());
        let trees = file.items.iter().filter_map(|item| item.head.split_once("use "));
        file.imports = trees.flat_map(|(_, tree)| leaves(tree)).collect();
        file
    }

    /// All items of the file, those of inline modules left out.
    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(super) fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// The items of a range: a module, an implementation, a trait.
    pub(super) fn items_in(&self, range: Range<usize>) -> Vec<Item> {
        let mut items = Vec::new();
        let mut at = range.start;
        while let Some((item, end)) = self.item(at, range.end) {
            items.push(item);
            at = end;
        }
        items
    }

    /// The parts between commas of a range: fields, variants.
    pub(super) fn parts(&self, range: Range<usize>) -> Vec<Item> {
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let end = self.find(at, range.end, |sign| sign == b',').unwrap_or(range.end);
            let (attributes, begin) = self.attributes(at, end);
            let head = one_line(&self.code[begin..end]);
            if !head.is_empty() {
                parts.push(Item { attributes, head, body: None });
            }
            at = end + 1;
        }
        parts
    }

    /// The item that begins at or behind a place, and where the next may begin.
    fn item(&self, at: usize, end: usize) -> Option<(Item, usize)> {
        let (attributes, begin) = self.attributes(at, end);
        // The braces of `pub use a::{b, c};` are no body.
        let mut words = self.code[begin..end].split_whitespace();
        let is_use = words.find(|word| !word.starts_with("pub")) == Some("use");
        let stop = self.find(begin, end, |sign| sign == b';' || (sign == b'{' && !is_use))?;
        let head = one_line(&self.code[begin..stop]);
        if self.code.as_bytes()[stop] == b';' {
            return Some((Item { attributes, head, body: None }, stop + 1));
        }
        let close = self.closing(stop, end);
        Some((Item { attributes, head, body: Some(stop + 1..close) }, close + 1))
    }

    /// The shown attributes that stand at a place, and where they end.
    fn attributes(&self, mut at: usize, end: usize) -> (Vec<String>, usize) {
        let mut shown = Vec::new();
        loop {
            at += self.code[at..end].len() - self.code[at..end].trim_start().len();
            let Some(open) = self.code[at..end].find('[').filter(|_| self.code[at..end].starts_with('#'))
            else {
                return (shown, at);
            };
            let close = self.closing(at + open, end);
            let text = one_line(&self.text[at..=close.min(end - 1)]);
            if SHOWN.iter().any(|known| text.starts_with(known)) {
                // The text of `must_use` is prose.
                let text = if text.starts_with("#[must_use") { "#[must_use]".to_owned() } else { text };
                shown.push(text);
            }
            at = close + 1;
        }
    }

    /// The first sign, outside of brackets, that is looked for.
    fn find(&self, from: usize, end: usize, is_it: impl Fn(u8) -> bool) -> Option<usize> {
        let bytes = self.code.as_bytes();
        let mut depth = 0_usize;
        for at in from..end {
            let sign = bytes[at];
            if depth == 0 && is_it(sign) {
                return Some(at);
            }
            // Not the brackets of types: `->`, `=>`, and comparisons and shifts, which have a space before them.
            let before = if at > 0 { bytes[at - 1] } else { b' ' };
            let is_operator = matches!(before, b'-' | b'=' | b' ') || (at > 1 && bytes[at - 2..at] == *b" <");
            // The bracket of a type that does not fit a line stands at the beginning of its last one.
            let is_operator = is_operator && !(sign == b'>' && self.begins_line(at));
            match sign {
                b'(' | b'[' | b'{' => depth += 1,
                b'<' if !is_operator => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b'>' if !is_operator => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        None
    }

    fn begins_line(&self, at: usize) -> bool {
        self.code[..at].trim_end_matches(' ').ends_with('\n')
    }

    /// Where the bracket that opens at a place is closed.
    fn closing(&self, open: usize, end: usize) -> usize {
        let bytes = self.code.as_bytes();
        let mut depth = 0_usize;
        for (at, sign) in bytes.iter().enumerate().take(end).skip(open) {
            match sign {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        end
    }
}

impl Item {
    /// Whether callers outside of the crate may see it.
    pub(super) fn is_public(&self) -> bool {
        self.head.starts_with("pub ")
    }

    /// Whether it is kept out of the documentation, and out of semver.
    pub(super) fn is_hidden(&self) -> bool {
        self.attributes.iter().any(|attribute| attribute.starts_with("#[doc(hidden)"))
    }

    /// Its kind and name: `struct`, `Body`. Implementations and imports have none.
    pub(super) fn name(&self) -> Option<(&str, &str)> {
        let words = self.head.trim_start_matches("pub ").split_inclusive(' ');
        let mut words = words.map(str::trim).skip_while(|word| matches!(*word, "async" | "unsafe" | "const"));
        let (kind, name) = (words.next()?, words.next());
        if matches!(kind, "struct" | "enum" | "trait" | "fn" | "type" | "mod" | "static" | "union") {
            let name = name?;
            return Some((kind, &name[..name.find(|sign| !is_word(sign)).unwrap_or(name.len())]));
        }
        // `const NAME: T = …`, whose keyword was skipped above.
        let is_constant = self.head.trim_start_matches("pub ").starts_with("const ");
        is_constant.then(|| ("const", kind.trim_end_matches(':')))
    }

    /// The interface of a type, field, function or constant: values and private fields are left out.
    pub(super) fn signature(&self) -> String {
        let kind = self.name().map_or("", |(kind, _)| kind);
        let head = match kind {
            "const" | "static" => self.head.split(" = ").next().unwrap_or_default().to_owned(),
            "struct" => without_private_fields(&self.head),
            // How an argument is bound is of no concern to callers.
            "fn" => self.head.replace("(mut ", "(").replace(", mut ", ", "),
            _ => self.head.clone(),
        };
        let before: String = self.attributes.iter().map(|attribute| format!("{attribute} ")).collect();
        format!("{before}{head}")
    }

    /// Whether a body follows the head.
    pub(super) fn has_body(&self) -> bool {
        self.body.is_some()
    }
}

/// A struct with fields without names, as in `struct A(_, pub B)`.
fn without_private_fields(head: &str) -> String {
    let Some((before, fields)) = head.strip_suffix(')').and_then(|head| head.split_once('(')) else {
        return head.to_owned();
    };
    let fields = fields.split(", ").map(|field| if field.starts_with("pub ") { field } else { "_" });
    format!("{before}({})", fields.collect::<Vec<_>>().join(", "))
}

/// Text with single spaces, and without the comma that rustfmt puts behind the last of several lines.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let joined = words.join(" ");
    [
        ("( ", "("),
        (", )", ")"),
        (" )", ")"),
        ("{ ", "{"),
        (", }", "}"),
        (" }", "}"),
        ("< ", "<"),
        (", >", ">"),
    ]
    .iter()
    .fold(joined, |text, (long, short)| text.replace(long, short))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOY: &str = "//! pub fn no() {}
pub use a::{b::C, d};
/// pub struct No;
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Yes<T> {
    /// Doc
    pub seen: Vec<T>,
    hidden: u8,
}
impl<T> Yes<T> where T: Fn() -> u8 {
    #[cfg(feature = \"x\")]
    pub async fn go(
        &self,
        by: [u8; 3],
    ) -> Result<(), E> { if a < b {} }
}
pub const MOST: u8 = 3;
#[cfg(test)]
mod tests { }";

    /// Deleted, the list of the public interface could lose items or show comments.
    #[test]
    fn items_are_told_from_what_surrounds_them() {
        let file = File::new(TOY.to_owned());
        let items = file.items();
        let heads: Vec<&str> = items.iter().map(|item| item.head.as_str()).collect();
        let whole = ["pub use a::{b::C, d}", "pub struct Yes<T>", "impl<T> Yes<T> where T: Fn() -> u8"];
        assert_eq!(heads[..3], whole);
        assert_eq!(items[1].signature(), "#[derive(Debug, Clone)] #[non_exhaustive] pub struct Yes<T>");
        let fields = file.parts(items[1].body.clone().unwrap());
        assert_eq!(fields[0].head, "pub seen: Vec<T>");
        assert!(!fields[1].is_public());
        let methods = file.items_in(items[2].body.clone().unwrap());
        let method = "#[cfg(feature = \"x\")] pub async fn go(&self, by: [u8; 3]) -> Result<(), E>";
        assert_eq!(methods[0].signature(), method);
        assert_eq!(methods[0].name(), Some(("fn", "go")));
        assert_eq!(items[3].signature(), "pub const MOST: u8");
        assert_eq!(items[3].name(), Some(("const", "MOST")));
    }

    /// Deleted, a trait whose bounds do not fit a line would be missing in the list.
    #[test]
    fn brackets_of_types_may_stand_on_lines_of_their_own() {
        let file =
            File::new("pub trait Long:\n    A<\n        B<C>,\n    > + D\n{\n    type E;\n}\n".to_owned());
        let item = file.items().first().unwrap();
        assert_eq!((item.head.as_str(), item.has_body()), ("pub trait Long: A<B<C>> + D", true));
    }
}
