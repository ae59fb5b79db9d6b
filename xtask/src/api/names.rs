//! The types that a signature names.

use super::exports::{Definition, Exports, Workspace};
use crate::sources::is_word;
use crate::tokens::{behind, tokens};

/// Crates of others whose types may stand in the interface. A break of theirs is a break of ours (docs/decisions/009).
const PERMITTED: [&str; 10] = [
    "std",
    "core",
    "alloc",
    "bytes",
    "http",
    "http_body",
    "rustls_pki_types",
    "tokio",
    "tower_service",
    "tower_layer",
];

/// Types that a signature names and `tercel` does not export, with their paths.
pub(super) fn unexported(
    workspace: &Workspace,
    exports: &Exports,
    definition: &Definition,
    signature: &str,
) -> Vec<String> {
    let paths = paths(signature).into_iter();
    paths.filter_map(|path| leak(workspace, exports, &definition.module, &path)).collect()
}

fn leak(workspace: &Workspace, exports: &Exports, module: &[String], path: &[String]) -> Option<String> {
    if let Some(found) = workspace.resolve(module, path) {
        let told = format!("{}::{}", found.module.join("::"), found.name);
        return (!exports.definitions.contains_key(&found)).then_some(told);
    }
    let (head, rest) = path.split_first()?;
    let imported = workspace.imports(module).iter().find(|import| import.name == *head);
    let whole = match imported {
        Some(import) => [import.path.as_slice(), rest].concat(),
        None if rest.is_empty() => return None,
        None => path.to_vec(),
    };
    let krate = whole.first()?;
    let is_known = PERMITTED.contains(&krate.as_str()) || workspace.has_crate(krate);
    let is_ours = matches!(krate.as_str(), "crate" | "self" | "super" | "Self");
    // An associated type of a parameter begins in capitals.
    let is_parameter = krate.starts_with(char::is_uppercase);
    (!is_known && !is_ours && !is_parameter).then(|| whole.join("::"))
}

/// The paths of types in a signature.
fn paths(signature: &str) -> Vec<Vec<String>> {
    let tokens = tokens(signature);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "#" {
            at = behind(&tokens, at + 1).max(at + 1);
            continue;
        }
        let mut path = Vec::new();
        while let Some(word) = tokens.get(at).filter(|token| token.starts_with(is_word)) {
            path.push((*word).to_owned());
            at += 1;
            if tokens.get(at) != Some(&"::") {
                break;
            }
            at += 1;
        }
        if path.last().is_some_and(|last| last.starts_with(char::is_uppercase)) {
            found.push(path);
        } else if path.is_empty() {
            at += 1;
        }
    }
    found
}

/// Whether a head implements something for the type `name`: `Some(true)` a trait, `Some(false)` methods of its own.
pub(super) fn implemented(head: &str, name: &str) -> Option<bool> {
    let rest = head.strip_prefix("impl").filter(|rest| rest.starts_with(['<', ' ']))?;
    let tokens = tokens(rest);
    let begin = behind(&tokens, 0);
    let tokens = &tokens[begin..];
    let of_trait =
        tokens.iter().position(|token| *token == "for").filter(|at| tokens.get(at + 1) != Some(&"<"));
    let own = &tokens[of_trait.map_or(0, |at| at + 1)..];
    let own = own.iter().skip_while(|token| matches!(**token, "&" | "mut"));
    let path: Vec<&str> =
        own.copied().take_while(|token| token.starts_with(is_word) || *token == "::").collect();
    (path.last() == Some(&name)).then_some(of_trait.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, methods of one type could be listed as those of another.
    #[test]
    fn implementations_belong_to_the_type_behind_for() {
        assert_eq!(implemented("impl<T: Fn() -> u8> Own<T> where T: Copy", "Own"), Some(false));
        assert_eq!(implemented("impl From<Other> for Own", "Own"), Some(true));
        assert_eq!(implemented("impl From<Other> for Own", "Other"), None);
        assert_eq!(implemented("impl<S> Service<Request<Body>> for &Client", "Client"), Some(true));
        assert_eq!(implemented("implement", "Own"), None);
    }

    /// Deleted, a type of a dependency could stand in a signature unseen.
    #[test]
    fn the_types_of_a_signature_are_found() {
        let found = paths("#[derive(Debug)] pub fn go<T>(by: &mut a::B<C>, n: u8) -> Result<(), crate::E>");
        let joined: Vec<String> = found.iter().map(|path| path.join("::")).collect();
        assert_eq!(joined, ["T", "a::B", "C", "Result", "crate::E"]);
    }
}
