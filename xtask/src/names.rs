//! Which type a name means in a module of a crate: one that the module defines or imports.

use crate::graph::Module;
use crate::tokens::{behind, split};
use std::collections::{BTreeMap, BTreeSet};

/// A type of the crate: the module that defines it, and its name.
pub(crate) type Type = (Module, String);

/// The types of a crate, and what each module calls them.
#[derive(Default)]
pub(crate) struct Names {
    modules: BTreeSet<Module>,
    /// The modules that define a type of this name.
    defined: BTreeMap<String, Vec<Module>>,
    /// What a module imports, by the name that it uses: the path from the crate root; `None` where another crate has it.
    imported: BTreeMap<(Module, String), Option<Module>>,
}

impl Names {
    pub(crate) fn new(modules: &BTreeMap<Module, Vec<&str>>) -> Names {
        let mut names = Names { modules: modules.keys().cloned().collect(), ..Names::default() };
        for (module, tokens) in modules {
            for (at, token) in tokens.iter().enumerate() {
                match (*token, tokens.get(at + 1)) {
                    ("struct" | "enum" | "union" | "type", Some(name)) => {
                        names.defined.entry((*name).to_owned()).or_default().push(module.clone());
                    }
                    ("use", Some(_)) => {
                        let end = tokens[at..].iter().position(|token| *token == ";").unwrap_or(0);
                        names.import(module, &[], &tokens[at + 1..at + end.max(1)]);
                    }
                    _ => {}
                }
            }
        }
        names
    }

    /// Notes what a use tree brings, below `base`.
    fn import(&mut self, module: &Module, base: &[&str], tree: &[&str]) {
        if let Some(open) = tree.iter().position(|token| *token == "{") {
            let mut base = base.to_vec();
            base.extend(tree[..open].iter().filter(|token| **token != "::"));
            for part in split(&tree[open + 1..behind(tree, open) - 1]) {
                self.import(module, &base, part);
            }
            return;
        }
        let (path, alias) = match tree {
            [path @ .., "as", alias] => (path, Some(*alias)),
            path => (path, None),
        };
        let words = path.iter().filter(|token| **token != "::");
        let path: Vec<&str> = base.iter().chain(words).copied().collect();
        if let Some(name) = alias.or(path.last().copied()) {
            let path = self.absolute(module, &path);
            self.imported.insert((module.clone(), name.to_owned()), path);
        }
    }

    /// The type that a path means in a module; `None` when the crate has none of it, or it cannot be told.
    pub(crate) fn find(&self, module: &Module, path: &[&str]) -> Option<Type> {
        let (name, prefix) = path.split_last()?;
        let full: Module =
            match (prefix.split_first(), self.imported.get(&(module.clone(), path[0].to_owned()))) {
                (None, None) => module.iter().cloned().chain([(*name).to_owned()]).collect(),
                (None, Some(imported)) => imported.clone()?,
                (Some((_, rest)), Some(imported)) => {
                    let rest = rest.iter().chain([name]).map(|word| (*word).to_owned());
                    imported.clone()?.into_iter().chain(rest).collect()
                }
                (Some(_), None) => self.absolute(module, path)?,
            };
        let (name, place) = full.split_last()?;
        let candidates = self.defined.get(name)?.iter();
        // A module may pass on what one of its children defines; a child sees what its ancestors define.
        let fit = |candidate: &&Module| candidate.starts_with(place) || place.starts_with(candidate);
        let best = candidates.filter(fit).min_by_key(|candidate| candidate.len().abs_diff(place.len()))?;
        Some((best.clone(), name.clone()))
    }

    /// A path from the crate root; `None` where it leads to another crate.
    fn absolute(&self, module: &Module, path: &[&str]) -> Option<Module> {
        let supers = path.iter().take_while(|word| **word == "super").count();
        let (base, skipped) = match *path.first()? {
            "crate" => (&[][..], 1),
            "super" => (&module[..module.len().saturating_sub(supers)], supers),
            "self" => (&module[..], 1),
            child => {
                let children: Module = module.iter().cloned().chain([child.to_owned()]).collect();
                (self.modules.contains(&children).then_some(&module[..])?, 0)
            }
        };
        let rest = path.iter().skip(skipped).map(|word| (*word).to_owned());
        Some(base.iter().cloned().chain(rest).collect())
    }
}
