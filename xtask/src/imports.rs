//! Import cycles inside a crate.
//!
//! At every level of the module tree the children of one module are the nodes, and a path that leads from anywhere inside
//! one child to anywhere inside another is an edge. Paths to an ancestor's own items are not edges: a directory is one noun,
//! and its files are parts of it. The shortest cycle of each level is reported.

use crate::tidy::Graph;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// A module's name from the crate root: `["connection", "receive"]`.
type Module = Vec<String>;

/// The shortest import cycle of each level of the module tree below `source`, as text.
pub(crate) fn cycles(source: &Path) -> Vec<String> {
    let modules: BTreeMap<Module, String> = crate::rust_files(source)
        .into_iter()
        .filter_map(|path| Some((module_of(source, &path)?, std::fs::read_to_string(&path).ok()?)))
        .collect();
    let mut levels: BTreeMap<Module, Graph> = BTreeMap::new();
    for (from, text) in &modules {
        for to in imports(from, text, &modules) {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(child), Some(other)) = (from.get(shared), to.get(shared)) {
                let level = levels.entry(from[..shared].to_vec()).or_default();
                level.entry(child.clone()).or_default().insert(other.clone());
            }
        }
    }
    levels
        .iter()
        .filter_map(|(parent, graph)| {
            let cycle = shortest_cycle(graph)?;
            Some(format!("crate::{} {}", parent.join("::"), cycle.join(" -> ")))
        })
        .collect()
}

fn module_of(source: &Path, path: &Path) -> Option<Module> {
    let relative = path.strip_prefix(source).ok()?.with_extension("");
    let mut module: Module = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.iter().any(|part| part == "tests" || part == "bin") {
        return None;
    }
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    Some(module)
}

/// The modules that a file names by `crate::` or `super::` paths, tests at its end left out.
fn imports(from: &Module, text: &str, modules: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let code: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut found = BTreeSet::new();
    for (start, keyword) in ["crate::", "super::"].iter().flat_map(|word| code.match_indices(word)) {
        let before = code[..start].chars().next_back();
        if before.is_some_and(|character| character.is_alphanumeric() || character == '_' || character == ':')
        {
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

fn shortest_cycle(graph: &Graph) -> Option<Vec<String>> {
    graph.keys().filter_map(|start| cycle_through(graph, start)).min_by_key(Vec::len)
}

fn cycle_through(graph: &Graph, start: &str) -> Option<Vec<String>> {
    let mut waiting = VecDeque::from([vec![start.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(path) = waiting.pop_front() {
        for next in path.last().and_then(|last| graph.get(last)).into_iter().flatten() {
            let mut longer = path.clone();
            longer.push(next.clone());
            if next == start {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                waiting.push_back(longer);
            }
        }
    }
    None
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

    #[test]
    fn a_cycle_is_found_and_the_shortest_is_told() {
        let edge =
            |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|name| (*name).to_owned()).collect());
        let graph: Graph =
            [edge("a", &["b"]), edge("b", &["c"]), edge("c", &["a", "b"])].into_iter().collect();
        assert_eq!(shortest_cycle(&graph).map(|cycle| cycle.len()), Some(3), "b -> c -> b");
        let graph: Graph = [edge("a", &["b", "c"]), edge("b", &["c"])].into_iter().collect();
        assert_eq!(shortest_cycle(&graph), None);
    }
}
