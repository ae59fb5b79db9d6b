//! The modules of a crate as code: comments, strings and tests are left out.

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
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string_len(rest),
            'r' if !code.ends_with(is_word) => raw_string_len(rest),
            '\'' => character_len(rest),
            _ => 0,
        };
        if skipped == 0 {
            code.push(first);
        } else if first != '/' {
            code.push_str("\"\"");
        }
        rest = &rest[skipped.max(first.len_utf8())..];
    }
    code
}

/// Whether the character may be part of a name.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of `r"…"` or `r#"…"#`; 0 if it is none.
fn raw_string_len(text: &str) -> usize {
    let hashes = text[1..].chars().take_while(|&character| character == '#').count();
    if !text[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = 2 + hashes;
    text[begin..].find(&end).map_or(text.len(), |at| begin + at + end.len())
}

/// The length of a character in quotes; 0 if it is a lifetime.
fn character_len(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => text.get(3..).unwrap_or("").find('\'').map_or(0, |at| 3 + at + 1),
        Some(_) => characters.next().filter(|(_, character)| *character == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_tests_are_left_out() {
        let text =
            "a /* b */ \"c \\\" d\" r#\"e \" f\"# '\\'' 'g' &'h i // j\nfor_\n#[cfg(test)]\nmod tests {\n k";
        assert_eq!(code(text), "a  \"\" \"\" \"\" \"\" &'h i \nfor_\n");
    }
}
