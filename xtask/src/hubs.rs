//! Types at the centre of a crate: which modules may take one whole.
//!
//! A hub owns the parts, and a file that takes the hub can reach all of them. So that such files stay few, they are listed. All
//! other modules below the hub's own borrow the parts that they need. A new file is not in the list.

use crate::graph::Module;
use crate::tokens::tokens;
use std::collections::BTreeMap;

/// A type, where it is, and the modules below that may name it.
struct Hub {
    room: &'static str,
    module: &'static str,
    name: &'static str,
    may_name: &'static [&'static str],
}

const HUBS: &[Hub] = &[Hub {
    room: "transport",
    module: "connection",
    name: "Connection",
    may_name: &[
        "acks",
        "api",
        "close",
        "frames",
        "handshake",
        "lane_change",
        "lane_frames",
        "migration",
        "multipath",
        "open",
        "own_moves",
        "receive",
        "repeats",
        "timers",
        "trace_state",
        "versions",
    ],
}];

/// Modules of a crate that name a hub and may not, and modules in the list that do not name it.
pub(crate) fn findings(room: &str, modules: &BTreeMap<Module, String>) -> Vec<String> {
    HUBS.iter().filter(|hub| hub.room == room).flat_map(|hub| hub.findings(modules)).collect()
}

impl Hub {
    fn findings(&self, modules: &BTreeMap<Module, String>) -> Vec<String> {
        let Hub { module, name, .. } = self;
        let naming: Vec<String> = modules
            .iter()
            .filter(|(path, code)| {
                path.len() > 1 && path.first().is_some_and(|first| first == module) && self.is_in(code)
            })
            .map(|(path, _)| path[1..].join("::"))
            .collect();
        let refused = naming.iter().filter(|path| !self.may_name.contains(&path.as_str()));
        let refused = refused.map(|path| {
            format!(
                "{module}::{path}: takes {name} whole; borrow the parts that it needs (xtask/src/hubs.rs)"
            )
        });
        let idle = self.may_name.iter().filter(|path| !naming.iter().any(|naming| naming == *path));
        let idle = idle
            .map(|path| format!("{module}::{path}: does not name {name}: take it out of xtask/src/hubs.rs"));
        refused.chain(idle).collect()
    }

    fn is_in(&self, code: &str) -> bool {
        tokens(code).contains(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUB: Hub = Hub { room: "room", module: "hub", name: "Hub", may_name: &["inside"] };

    fn found(modules: &[(&str, &str)]) -> Vec<String> {
        let path = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
        HUB.findings(&modules.iter().map(|(name, code)| (path(name), (*code).to_owned())).collect())
    }

    /// Deleted, any file could again call whatever the hub does elsewhere.
    #[test]
    fn only_listed_modules_take_the_hub_whole() {
        let inside = ("hub::inside", "impl Hub { fn a(&mut self) {} }");
        let all = [("hub", "struct Hub;"), ("user", "fn f(hub: &mut Hub) {}"), inside];
        assert_eq!(found(&all), [""; 0]);
        let outside = ("hub::outside", "fn f(hub: &mut Hub, part: &HubPart) {}");
        assert_eq!(found(&[all[0], inside, outside]).len(), 1);
        let part = ("hub::outside", "fn f(part: &HubPart) {}");
        assert_eq!(found(&[all[0], inside, part]), [""; 0]);
    }

    #[test]
    fn a_listed_module_that_needs_the_hub_no_more_leaves_the_list() {
        assert!(found(&[("hub", "struct Hub;"), ("hub::inside", "")])[0].contains("take it out"));
    }
}
