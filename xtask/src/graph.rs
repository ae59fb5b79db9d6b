//! Arrows between the modules of a crate, and the cycles that they form.
//!
//! At every level of the module tree the children of one module are the nodes. An arrow that leads from anywhere inside one
//! child to anywhere inside another is an edge there. Arrows to or from an ancestor are not edges: a directory is one noun,
//! and its files are parts of it. The shortest cycle of each level is reported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A module's name from the crate root: `["connection", "receive"]`.
pub(crate) type Module = Vec<String>;

/// What a module uses, and of which module: the reason names it in a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) from: Module,
    pub(crate) to: Module,
    pub(crate) reason: String,
}

/// Nodes, their successors, and one reason for each edge.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// The shortest cycle of each level of the module tree, as text.
pub(crate) fn cycles(arrows: impl IntoIterator<Item = Arrow>) -> Vec<String> {
    let mut levels: BTreeMap<Module, Graph> = BTreeMap::new();
    for Arrow { from, to, reason } in arrows {
        let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        if let (Some(child), Some(other)) = (from.get(shared), to.get(shared)) {
            let level = levels.entry(from[..shared].to_vec()).or_default();
            level.entry(child.clone()).or_default().entry(other.clone()).or_insert(reason);
        }
    }
    let found = levels.iter().filter_map(|(parent, graph)| Some((parent, graph, shortest_cycle(graph)?)));
    found
        .map(|(parent, graph, cycle)| format!("crate::{} {}", parent.join("::"), tell(graph, &cycle)))
        .collect()
}

fn tell(graph: &Graph, cycle: &[String]) -> String {
    let mut text = cycle.first().cloned().unwrap_or_default();
    for pair in cycle.windows(2) {
        let reason = graph.get(&pair[0]).and_then(|edges| edges.get(&pair[1]));
        text.push_str(&format!(" -> {} ({})", pair[1], reason.map_or("", String::as_str)));
    }
    text
}

fn shortest_cycle(graph: &Graph) -> Option<Vec<String>> {
    graph.keys().filter_map(|start| cycle_through(graph, start)).min_by_key(Vec::len)
}

fn cycle_through(graph: &Graph, start: &str) -> Option<Vec<String>> {
    let mut waiting = VecDeque::from([vec![start.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(path) = waiting.pop_front() {
        for next in path.last().and_then(|last| graph.get(last)).into_iter().flat_map(BTreeMap::keys) {
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

    fn arrow(from: &str, to: &str) -> Arrow {
        let module = |path: &str| path.split("::").map(str::to_owned).collect();
        Arrow { from: module(from), to: module(to), reason: format!("{from} uses {to}") }
    }

    #[test]
    fn a_cycle_is_found_and_the_shortest_is_told() {
        let found = cycles([arrow("a", "b"), arrow("b", "c"), arrow("c", "a"), arrow("c", "b")]);
        assert_eq!(found, ["crate:: b -> c (b uses c) -> b (c uses b)"]);
        assert_eq!(cycles([arrow("a", "b"), arrow("a", "c"), arrow("b", "c")]), [""; 0]);
    }

    #[test]
    fn a_directory_and_its_files_are_one_noun() {
        assert_eq!(cycles([arrow("a", "a::b"), arrow("a::b", "a")]), [""; 0]);
        assert_eq!(cycles([arrow("a::b", "c"), arrow("c::d", "a")]).len(), 1, "but not to others");
    }
}
