//! Every test of the workspace by name, and whether the ordinary run of CI (`cargo test --workspace`) runs it.
//!
//! A name is `crate::module::function` for tests beside the code, `crate::file::module::function` for those in a crate's
//! `tests/`, and `crate::file` for a program in `tests/` that is no harness. Files that no `mod` leads to are not compiled and do not
//! count.

use crate::functions::{self, Function};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A function of a crate, or a whole test program.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The directory of its crate.
    pub(crate) room: String,
    pub(crate) place: String,
    pub(crate) function: Function,
    pub(crate) kind: Kind,
}

/// What a function is to the ordinary run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not a test.
    Plain,
    /// A test that runs.
    Test,
    /// A test that does not, and why.
    Idle(String),
}

/// All functions by full name, and all modules.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) entries: BTreeMap<String, Vec<Entry>>,
    pub(crate) modules: std::collections::BTreeSet<String>,
}

/// A file that is the root of a compilation, and the names of what it declares.
struct Target {
    room: String,
    prefix: Vec<String>,
    /// The `cfg` attributes of the declarations that lead here.
    conditions: Vec<String>,
    /// Whether it has its own `main` where others have the harness.
    is_program: bool,
}

impl Inventory {
    /// Reads the crates below `root/crates` and `root/xtask`.
    pub(crate) fn of(root: &Path) -> Inventory {
        let mut inventory = Inventory::default();
        for directory in crate::crate_folders(root).iter().chain([&root.join("xtask")]) {
            inventory.read_crate(root, directory);
        }
        inventory
    }

    /// What is wrong with naming this test as the one that shows something, if anything is.
    pub(crate) fn objection(&self, name: &str) -> Option<String> {
        let Some(entries) = self.entries.get(name) else {
            return Some("there is no such test".to_owned());
        };
        if entries.iter().any(|entry| entry.kind == Kind::Test) {
            return None;
        }
        let idle = entries.iter().find_map(|entry| match &entry.kind {
            Kind::Idle(why) => Some(why.clone()),
            Kind::Plain | Kind::Test => None,
        });
        Some(idle.unwrap_or_else(|| "it is a function, not a test".to_owned()))
    }

    /// Adds the functions of one file, given as text.
    #[cfg(test)]
    pub(crate) fn add(&mut self, room: &str, place: &str, text: &str) {
        let target = Target {
            room: room.to_owned(),
            prefix: vec![room.to_owned()],
            conditions: Vec::new(),
            is_program: false,
        };
        self.add_functions(functions::read(text).functions, place, &target);
    }

    /// Whether a test is called this, in whichever module.
    pub(crate) fn is_test_function(&self, name: &str) -> bool {
        let tests = self.entries.values().flatten().filter(|entry| entry.kind != Kind::Plain);
        tests.map(|entry| &entry.function.name).any(|function| function == name)
    }

    fn read_crate(&mut self, root: &Path, directory: &Path) {
        let room = name_of(directory);
        let programs = programs(directory);
        let target = |prefix: Vec<String>, is_program| Target {
            room: room.clone(),
            prefix,
            conditions: Vec::new(),
            is_program,
        };
        for main in ["src/lib.rs", "src/main.rs"] {
            self.read_file(root, &directory.join(main), &target(vec![room.clone()], false));
        }
        for (folder, is_test) in [("src/bin", false), ("tests", true)] {
            for entry in std::fs::read_dir(directory.join(folder)).into_iter().flatten().flatten() {
                let path = entry.path();
                let file = if path.is_dir() { path.join("main.rs") } else { path.clone() };
                let name = name_of(&path.with_extension(""));
                let is_program = is_test && programs.contains(&name);
                self.read_file(root, &file, &target(vec![room.clone(), name], is_program));
            }
        }
    }

    fn read_file(&mut self, root: &Path, path: &Path, target: &Target) {
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let source = functions::read(&text);
        self.modules.insert(target.prefix.join("::"));
        let place = path.strip_prefix(root).unwrap_or(path).display().to_string();
        self.add_functions(source.functions, &place, target);
        for declaration in source.declarations {
            let mut prefix = target.prefix.clone();
            prefix.extend(declaration.modules.iter().cloned());
            prefix.push(declaration.name.clone());
            let mut conditions = target.conditions.clone();
            conditions.extend(declaration.attributes.iter().filter(|it| it.starts_with("cfg(")).cloned());
            let (room, is_program) = (target.room.clone(), target.is_program);
            let below = Target { room, prefix, conditions, is_program };
            let given = declaration.attributes.iter().find_map(|attribute| attribute.strip_prefix("path = "));
            let file = match given {
                Some(given) => path.with_file_name(given.trim_matches('"')),
                None => module_file(path, &declaration, target.prefix.len()),
            };
            self.read_file(root, &file, &below);
        }
    }

    fn add_functions(&mut self, functions: Vec<Function>, place: &str, target: &Target) {
        for function in functions {
            let kind = kind(&function, target);
            let is_main = target.is_program && function.name == "main" && target.prefix.len() == 2;
            let mut name: Vec<&str> = target.prefix.iter().map(String::as_str).collect();
            name.extend(function.modules.iter().map(String::as_str));
            if !is_main {
                name.push(&function.name);
            }
            let place = format!("{place}:{}", function.line);
            let name = name.join("::");
            let entry = Entry { room: target.room.clone(), place, function, kind };
            self.entries.entry(name).or_default().push(entry);
        }
    }
}

/// Where `mod name;` in the file `from` is. `depth` is 1 for a crate's root and 2 for those of tests and programs.
fn module_file(from: &Path, declaration: &functions::Declaration, depth: usize) -> PathBuf {
    let stem = from.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_root = matches!(stem.as_str(), "mod" | "lib" | "main")
        || depth == 2
            && from.parent().is_some_and(|folder| matches!(name_of(folder).as_str(), "tests" | "bin"));
    let mut folder =
        if is_root { from.parent().unwrap_or(from).to_path_buf() } else { from.with_extension("") };
    folder.extend(&declaration.modules);
    let file = folder.join(format!("{}.rs", declaration.name));
    if file.exists() { file } else { folder.join(&declaration.name).join("mod.rs") }
}

fn kind(function: &Function, target: &Target) -> Kind {
    if target.is_program && function.name == "main" && target.prefix.len() == 2 {
        return Kind::Test;
    }
    if !function.attributes.iter().any(|attribute| attribute == "test" || attribute.ends_with("::test")) {
        return Kind::Plain;
    }
    if target.is_program {
        return Kind::Idle("its file has no harness, so it does not run".to_owned());
    }
    if function.attributes.iter().any(|attribute| attribute == "ignore" || attribute.starts_with("ignore ="))
    {
        return Kind::Idle("the ordinary run ignores it".to_owned());
    }
    let conditions = function.attributes.iter().chain(&target.conditions);
    let condition = conditions.into_iter().find(|it| it.starts_with("cfg(") && *it != "cfg(test)");
    match condition {
        Some(condition) => Kind::Idle(format!("it is there with {condition} only")),
        None => Kind::Test,
    }
}

/// The test programs of a crate that bring their own `main`.
fn programs(directory: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    let targets = manifest.get("test").and_then(toml::Value::as_array).into_iter().flatten();
    let own = targets.filter(|target| target.get("harness").and_then(toml::Value::as_bool) == Some(false));
    own.filter_map(|target| Some(target.get("name")?.as_str()?.to_owned())).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
