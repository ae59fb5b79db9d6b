//! The modules of a crate as code: comments, strings and tests are left out.

use crate::functions::blank;
use crate::graph::Module;
use std::collections::BTreeMap;
use std::path::Path;

/// The code of each module below `source`. Tests, in files of their own or at the end of a file, are left out.
pub(crate) fn modules(source: &Path) -> BTreeMap<Module, String> {
    let files = crate::rust_files(source).into_iter();
    files
        .filter_map(|path| {
            let text = std::fs::read_to_string(&path).ok()?;
            Some((module_of(source, &path)?, code(&text)))
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

/// A text without its tests, comments, strings and characters; what separates words still does.
pub(crate) fn code(text: &str) -> String {
    blank(text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text))
}

/// Whether the character may be part of a name.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
