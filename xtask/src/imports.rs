//! Imports inside a crate: a path by `crate::` or `super::` is an arrow to the module that it names.

use crate::graph::{Arrow, Module};
use crate::sources::is_word;
use std::collections::{BTreeMap, BTreeSet};

/// An arrow for each module that a module names.
pub(crate) fn arrows(modules: &BTreeMap<Module, String>) -> Vec<Arrow> {
    let mut arrows = Vec::new();
    for (from, code) in modules {
        let imported = imports(from, code, modules).into_iter();
        arrows.extend(imported.map(|to| {
            let reason = format!("use {}", to.join("::"));
            Arrow { from: from.clone(), to, reason }
        }));
    }
    arrows
}

/// The modules that a file names by `crate::` or `super::` paths.
fn imports(from: &Module, code: &str, modules: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    for (start, keyword) in ["crate::", "super::"].iter().flat_map(|word| code.match_indices(word)) {
        let before = code[..start].chars().next_back();
        if before.is_some_and(|character| is_word(character) || character == ':') {
            continue;
        }
        let mut base: Module = if keyword == "crate::" { Vec::new() } else { from.clone() };
        let mut rest = &code[start..];
        if keyword == "crate::" {
            rest = &rest["crate::".len()..];
        }
        while let Some(after) = rest.strip_prefix("super::") {
            base.pop();
            rest = after;
        }
        let rest = rest.split(';').next().unwrap_or("");
        for path in expand(rest) {
            let mut module = base.clone();
            module.extend(path);
            while !module.is_empty() && !modules.contains_key(&module) {
                module.pop();
            }
            found.insert(module);
        }
    }
    found
}

/// The paths of a use tree such as `a::{b::C, d}`: nesting is flattened, what is no identifier ends a path.
fn expand(tree: &str) -> Vec<Module> {
    let mut paths = Vec::new();
    let mut stack: Vec<Module> = vec![Vec::new()];
    let mut current: Module = Vec::new();
    let mut word = String::new();
    for character in tree.chars() {
        match character {
            '_' => word.push('_'),
            letter if letter.is_alphanumeric() => word.push(letter),
            ':' => {
                if !word.is_empty() {
                    current.push(core::mem::take(&mut word));
                }
            }
            '{' => stack.push(current.clone()),
            ',' | '}' => {
                current.push(core::mem::take(&mut word));
                paths.push(core::mem::replace(&mut current, stack.last().cloned().unwrap_or_default()));
                if character == '}' {
                    stack.pop();
                }
                if stack.len() <= 1 {
                    return paths;
                }
            }
            ' ' | '\n' => {}
            _ => break,
        }
    }
    current.push(word);
    paths.push(current);
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_trees_are_flattened() {
        let paths = expand("a::{b::C, d, e::{F, g}}");
        let joined: Vec<String> = paths.iter().map(|path| path.join("::")).collect();
        assert!(joined.contains(&"a::b::C".to_owned()), "{joined:?}");
        assert!(joined.contains(&"a::d".to_owned()), "{joined:?}");
        assert!(joined.contains(&"a::e::F".to_owned()), "{joined:?}");
    }
}
