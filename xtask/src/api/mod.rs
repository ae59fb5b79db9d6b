//! `cargo xtask api`: the public interface of the crate `tercel` as a file, so that a review sees each change of it.
//!
//! The list is made from source: re-exports are followed from `tercel/src/lib.rs` to the definitions in other crates. Implementations
//! are found by name, in the crate of the type. Behind the list stand the types that signatures name and that `tercel` does not
//! export: those of internal crates and of dependencies. `cargo xtask api --write` writes the file anew.

mod exports;
mod imports;
mod items;
mod names;

use crate::sources::is_word;
use exports::{Definition, Exports, Workspace};
use items::{File, Item};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The file, from the root of the workspace.
const LIST: &str = "crates/product/tercel/api.txt";

/// Compares the list with the source, or writes it with `--write`.
pub(crate) fn run(flag: Option<&str>) -> Result<String, String> {
    let root = crate::root();
    let made = list(&Workspace::load(&root));
    let path = root.join(LIST);
    if flag == Some("--write") {
        std::fs::write(&path, &made).map_err(|error| format!("{LIST}: {error}"))?;
    }
    let kept = std::fs::read_to_string(&path).map_err(|error| format!("{LIST}: {error}"))?;
    let lines = made.lines().count();
    match difference(&kept, &made) {
        None => Ok(format!("api: {lines} lines, as in {LIST}")),
        Some(text) => Err(format!(
            "{text}api: the public interface changed: cargo xtask api --write, and commit {LIST}"
        )),
    }
}

/// The lines that only one of the two has.
fn difference(kept: &str, made: &str) -> Option<String> {
    let [old, new] = [kept, made].map(|text| text.lines().collect::<BTreeSet<_>>());
    let gone = old.difference(&new).map(|line| format!("- {line}\n"));
    let come = new.difference(&old).map(|line| format!("+ {line}\n"));
    (kept != made).then(|| gone.chain(come).collect())
}

fn list(workspace: &Workspace) -> String {
    let exports = Exports::of(workspace, "tercel");
    let mut out = String::from("# The public interface of tercel. Made by `cargo xtask api --write`.\n");
    let mut leaks = BTreeSet::new();
    let by_path = exports
        .definitions
        .iter()
        .filter_map(|(definition, paths)| Some((paths.first()?, paths, definition)));
    for (path, paths, definition) in by_path.collect::<BTreeSet<_>>() {
        let _ = writeln!(out, "\n{}", paths.join(", "));
        for signature in signatures(workspace, definition) {
            let _ = writeln!(out, "    {signature}");
            let unknown = names::unexported(workspace, &exports, definition, signature.types());
            leaks.extend(unknown.into_iter().map(|name| format!("{path}: {name}")));
        }
    }
    out.push_str("\n# Types that are named above and not exported\n");
    leaks.iter().for_each(|leak| out.push_str(&format!("{leak}\n")));
    out
}

/// A line of the list.
struct Signature {
    depth: usize,
    text: String,
    /// Where the types begin: behind a variant's name, which is no type.
    from: usize,
}

impl Signature {
    fn new(depth: usize, item: &Item) -> Signature {
        Signature { depth, text: item.signature(), from: 0 }
    }

    fn of_variant(item: &Item) -> Signature {
        let from = item.signature().len() - item.head.trim_start_matches(is_word).len();
        Signature { from, ..Signature::new(1, item) }
    }

    /// A method of a trait. Braces say that it has a default.
    fn of_trait(item: &Item) -> Signature {
        let end = if item.has_body() { " { .. }" } else { "" };
        let signature = Signature::new(1, item);
        Signature { text: format!("{}{end}", signature.text), ..signature }
    }

    fn types(&self) -> &str {
        self.text.get(self.from..).unwrap_or_default()
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}{}", "    ".repeat(self.depth), self.text)
    }
}

/// What callers see of a definition: its head, its fields, variants or methods, and its implementations.
fn signatures(workspace: &Workspace, definition: &Definition) -> Vec<Signature> {
    let Some((file, item)) = workspace.item(definition) else { return Vec::new() };
    let mut lines = vec![Signature::new(0, item)];
    let kind = item.name().map_or("", |(kind, _)| kind);
    let body = item.body.clone().unwrap_or_default();
    let visible = |item: &&Item| !item.is_hidden();
    match kind {
        "struct" | "union" => {
            let fields = file.parts(body);
            lines.extend(
                fields
                    .iter()
                    .filter(visible)
                    .filter(|field| field.is_public())
                    .map(|field| Signature::new(1, field)),
            );
        }
        "enum" => lines.extend(file.parts(body).iter().filter(visible).map(Signature::of_variant)),
        "trait" => lines.extend(file.items_in(body).iter().filter(visible).map(Signature::of_trait)),
        _ => {}
    }
    if matches!(kind, "struct" | "enum" | "union") {
        let own = workspace.files_that_know(definition);
        lines.extend(own.into_iter().flat_map(|file| implementations(file, &definition.name)));
    }
    lines
}

/// The implementations for a type in a file: methods that callers see; of a trait, the types that it is given.
fn implementations(file: &File, name: &str) -> Vec<Signature> {
    let mut lines = Vec::new();
    for item in file.items() {
        let Some(of_trait) = names::implemented(&item.head, name) else { continue };
        let body = item.body.clone().map(|body| file.items_in(body)).unwrap_or_default();
        let is_shown = |inner: &Item| {
            let is_type = inner.name().is_some_and(|(kind, _)| kind == "type");
            !inner.is_hidden() && if of_trait { is_type } else { inner.is_public() }
        };
        let inner: Vec<Item> = body.into_iter().filter(is_shown).collect();
        if of_trait || !inner.is_empty() {
            lines.push(Signature::new(0, item));
            lines.extend(inner.iter().map(|inner| Signature::new(1, inner)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toy() -> Workspace {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        Workspace::of([
            file("tercel/src/lib.rs", "pub use inner::Shown;\npub mod deep { pub use inner::deep::*; }"),
            file(
                "inner/src/lib.rs",
                "pub mod deep;\nmod other;\npub use other::Shown;\nuse other::Hidden;\n\
                 impl Shown { pub fn give(&self) -> Hidden { x } fn private(&self) {} }",
            ),
            file(
                "inner/src/other.rs",
                "use regex::Regex;\n#[non_exhaustive]\npub struct Shown { pub a: u8, b: u8 }\n\
                 pub struct Hidden;\nimpl From<Regex> for Shown { fn from(_: Regex) -> Shown { x } }",
            ),
            file(
                "inner/src/deep.rs",
                "pub fn dive(into: &crate::Shown) -> http::Uri { x }\npub(crate) fn no() {}",
            ),
        ])
    }

    /// Deleted, a change of the public interface, or a type of a dependency in it, could land unseen.
    #[test]
    fn the_list_follows_exports_and_tells_types_that_are_not_exported() {
        let made = list(&toy());
        let expected = "\
tercel::Shown
    #[non_exhaustive] pub struct Shown
        pub a: u8
    impl Shown
        pub fn give(&self) -> Hidden
    impl From<Regex> for Shown

";
        assert!(made.contains(expected), "{made}");
        assert!(
            made.contains("tercel::deep::dive\n    pub fn dive(into: &crate::Shown) -> http::Uri\n"),
            "{made}"
        );
        let leaks = "exported\ntercel::Shown: inner::other::Hidden\ntercel::Shown: regex::Regex\n";
        assert!(made.ends_with(leaks), "{made}");
        assert!(!made.contains("private") && !made.contains("fn no"), "{made}");
    }

    /// Deleted, the check could pass although something changed.
    #[test]
    fn lines_that_differ_are_told() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\nc\n").as_deref(), Some("- b\n+ c\n"));
        assert!(difference("a\nb\n", "b\na\n").is_some());
    }
}
