//! What a crate exports: `pub use` followed from its root to the definitions.

use super::imports::{Import, leaves};
use super::items::{File, Item};
use std::collections::BTreeMap;
use std::path::Path;

/// A module: the crate's name and the path in it.
pub(super) type Module = Vec<String>;

/// The files of all crates, by module.
pub(super) struct Workspace {
    files: BTreeMap<Module, File>,
}

/// Where an item is defined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Definition {
    pub(super) module: Module,
    pub(super) name: String,
}

/// The definitions that a crate exports, each with its public paths.
#[derive(Default)]
pub(super) struct Exports {
    pub(super) definitions: BTreeMap<Definition, Vec<String>>,
}

impl Workspace {
    pub(super) fn load(root: &Path) -> Workspace {
        let folders = crate::crate_folders(root);
        let files = folders.iter().flat_map(|folder| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let read = move |path: std::path::PathBuf| {
                let inside = path.strip_prefix(folder).ok()?.to_string_lossy().into_owned();
                Some((format!("{name}/{inside}"), std::fs::read_to_string(&path).ok()?))
            };
            crate::rust_files(folder).into_iter().filter_map(read).collect::<Vec<_>>()
        });
        Workspace::of(files)
    }

    /// Files by path, as in `server/src/tcp/mod.rs`.
    pub(super) fn of(files: impl IntoIterator<Item = (String, String)>) -> Workspace {
        let modules = files.into_iter().filter_map(|(path, text)| {
            let path = path.strip_suffix(".rs")?;
            let (krate, inside) = path.split_once("/src/")?;
            let mut module = vec![krate.to_owned()];
            module.extend(inside.split('/').map(str::to_owned));
            if matches!(inside.rsplit('/').next(), Some("lib" | "mod" | "main")) {
                module.pop();
            }
            Some((module, File::new(text)))
        });
        Workspace { files: modules.collect() }
    }

    pub(super) fn file(&self, module: &[String]) -> Option<&File> {
        self.files.get(module)
    }

    pub(super) fn has_crate(&self, name: &str) -> bool {
        self.files.contains_key(std::slice::from_ref(&name.to_owned()))
    }

    /// A definition's file and head.
    pub(super) fn item(&self, definition: &Definition) -> Option<(&File, &Item)> {
        let file = self.file(&definition.module)?;
        let is_it =
            |item: &Item| item.name().is_some_and(|(kind, name)| kind != "mod" && name == definition.name);
        file.items().iter().find(|item| is_it(item)).map(|item| (file, item))
    }

    /// The files of a type's crate in which its name means it: its own, and those that import it.
    pub(super) fn files_that_know(&self, definition: &Definition) -> Vec<&File> {
        let krate = definition.module.first();
        let of_crate = self.files.iter().filter(|(module, _)| module.first() == krate);
        let knows = |module: &Module| {
            *module == definition.module
                || self.resolve(module, std::slice::from_ref(&definition.name)).as_ref() == Some(definition)
        };
        of_crate.filter(|(module, _)| knows(module)).map(|(_, file)| file).collect()
    }

    /// The imports of a module.
    pub(super) fn imports(&self, module: &[String]) -> &[Import] {
        self.file(module).map_or(&[], File::imports)
    }

    /// A path as it is written in a module, from the root of its crate on. Types of other people's crates keep theirs.
    pub(super) fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let (head, rest) = path.split_first()?;
        let mut base: Module = match head.as_str() {
            "crate" => module[..1].to_vec(),
            "self" => module.to_vec(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            _ => {
                let child = [module, std::slice::from_ref(head)].concat();
                if self.files.contains_key(&child) { child } else { vec![head.clone()] }
            }
        };
        let mut rest = rest;
        while let Some((_, behind)) = rest.split_first().filter(|(next, _)| *next == "super") {
            base.pop();
            rest = behind;
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The definition that a path means in a module; `None` for types of other people's crates, parameters and primitives.
    pub(super) fn resolve(&self, module: &[String], path: &[String]) -> Option<Definition> {
        self.resolve_within(module, path, 12)
    }

    fn resolve_within(&self, module: &[String], path: &[String], steps: u8) -> Option<Definition> {
        let steps = steps.checked_sub(1)?;
        if let [name] = path {
            let here = Definition { module: module.to_vec(), name: name.clone() };
            if self.item(&here).is_some() {
                return Some(here);
            }
        }
        let (head, rest) = path.split_first()?;
        for import in self.imports(module) {
            if import.name == *head && import.path.as_slice() != path {
                let whole = [import.path.as_slice(), rest].concat();
                return self.resolve_absolute(&self.absolute(module, &whole)?, steps);
            }
            if import.name == "*"
                && let Some(target) = self.absolute(module, &import.path)
                && let Some(found) = self.resolve_absolute(&[target.as_slice(), path].concat(), steps)
            {
                return Some(found);
            }
        }
        if path.len() < 2 {
            return None;
        }
        self.resolve_absolute(&self.absolute(module, path)?, steps)
    }

    fn resolve_absolute(&self, path: &[String], steps: u8) -> Option<Definition> {
        let (name, module) = path.split_last()?;
        self.file(module)?;
        self.resolve_within(module, std::slice::from_ref(name), steps)
    }
}

impl Exports {
    pub(super) fn of(workspace: &Workspace, krate: &str) -> Exports {
        let mut exports = Exports::default();
        exports.module(workspace, &[krate.to_owned()], krate);
        exports
    }

    fn module(&mut self, workspace: &Workspace, module: &[String], path: &str) {
        if let Some(file) = workspace.file(module) {
            self.items(workspace, (file, file.items()), module, path);
        }
    }

    fn items(
        &mut self,
        workspace: &Workspace,
        (file, items): (&File, &[Item]),
        module: &[String],
        path: &str,
    ) {
        for item in items.iter().filter(|item| item.is_public() && !item.is_hidden()) {
            if let Some(tree) = item.head.strip_prefix("pub use ") {
                leaves(tree).iter().for_each(|import| self.import(workspace, import, module, path));
            } else if let Some(("mod", name)) = item.name() {
                let inner = [module, &[name.to_owned()]].concat();
                let path = format!("{path}::{name}");
                match item.body.clone() {
                    Some(body) => self.items(workspace, (file, &file.items_in(body)), &inner, &path),
                    None => self.module(workspace, &inner, &path),
                }
            } else if let Some((_, name)) = item.name() {
                self.add(
                    Definition { module: module.to_vec(), name: name.to_owned() },
                    format!("{path}::{name}"),
                );
            }
        }
    }

    fn import(&mut self, workspace: &Workspace, import: &Import, module: &[String], path: &str) {
        let Some(target) = workspace.absolute(module, &import.path) else { return };
        let named = format!("{path}::{}", import.name);
        if workspace.file(&target).is_some() {
            // A module, or all that it exports.
            let path = if import.name == "*" { path } else { &named };
            self.module(workspace, &target, path);
        } else if let Some((name, inside)) = target.split_last()
            && let Some(found) = workspace.resolve(inside, std::slice::from_ref(name))
        {
            self.add(found, named);
        }
    }

    fn add(&mut self, definition: Definition, path: String) {
        let paths = self.definitions.entry(definition).or_default();
        paths.push(path);
        paths.sort_by_key(|path| (path.matches("::").count(), path.clone()));
        paths.dedup();
    }
}
