//! Imports and re-exports, leaf by leaf.

/// One leaf of an import: the path, and the name that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    pub(super) name: String,
}

/// The leaves of `a::{b, c::D as E, f::*}`. The path of a glob is that of its module.
pub(super) fn leaves(tree: &str) -> Vec<Import> {
    let tree = tree.trim().trim_start_matches("::");
    if let Some((before, inner)) = tree.split_once('{') {
        let inner = inner.strip_suffix('}').unwrap_or(inner);
        let before: Vec<String> = words(before);
        let parts = split(inner).into_iter().flat_map(leaves);
        return parts
            .map(|leaf| {
                let rest = if leaf.path == ["self"] { Vec::new() } else { leaf.path };
                let path = [before.clone(), rest].concat();
                let name =
                    if leaf.name == "self" { path.last().cloned().unwrap_or_default() } else { leaf.name };
                Import { path, name }
            })
            .collect();
    }
    let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut path = words(path);
    let name = match (alias, path.last().map(String::as_str)) {
        ("", Some("*")) => path.pop().unwrap_or_default(),
        ("", Some(last)) => last.to_owned(),
        (alias, _) => alias.trim().to_owned(),
    };
    vec![Import { path, name }]
}

fn words(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The parts between commas outside of braces.
fn split(inner: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, sign) in inner.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&inner[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, an export in nested braces, under another name or by a glob could be missed.
    #[test]
    fn imports_are_read_leaf_by_leaf() {
        let shown = |tree| {
            let told = leaves(tree).into_iter().map(|leaf| format!("{} {}", leaf.path.join("::"), leaf.name));
            told.collect::<Vec<_>>()
        };
        let read = shown("a::{b::{self, C as D}, e::*, F}");
        assert_eq!(read, ["a::b b", "a::b::C D", "a::e *", "a::F F"]);
        assert_eq!(shown("quic"), ["quic quic"]);
    }
}
