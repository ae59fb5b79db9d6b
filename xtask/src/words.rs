//! Words that do not come back: private names that standard terms replaced, and turns of phrase that a reader stumbles over.
//! And comments that name a file which does not exist.
//!
//! Tests are exempt. A name counts wherever it stands, a phrase in comments only: a string may have to say it.

use std::collections::BTreeSet;
use std::path::Path;

/// Names of types, fields and functions, each with what to write.
const NAMES: &[(&str, &str)] = &[
    ("Tidings", "ControlFrames"),
    ("Desk", "ThreadState"),
    ("Outfit", "the shared configuration"),
    ("Pulse", "ConnectionTimeouts"),
    ("Bell", "ShutdownSignal"),
    ("Mood", "ReadBehaviour"),
    ("Errand", "TransferPlan"),
    ("Siege", "AttackRun"),
    ("Parting", "PathSummary"),
    ("Lesson", "SavedParameters"),
];

/// Phrases, each with what to write.
const PHRASES: &[(&str, &str)] = &[
    ("nobody", "no peer, no client, none"),
    ("somebody", "a peer, a user, a process"),
    ("anybody", "any client, any host, the user"),
    ("whoever", "the peer, the caller, the client that"),
    ("stranger", "unknown peer"),
    ("strangers", "unknown peers"),
    ("mail", "handed-over datagrams"),
    ("scenic route", "general path"),
    ("reluctance", "the numbers"),
    ("good-bye", "close"),
];

/// The names of all Rust files of the workspace, without folders.
pub(crate) fn file_names(root: &Path) -> BTreeSet<String> {
    let files =
        ["crates", "xtask", "peers", "fuzz"].iter().flat_map(|folder| crate::rust_files(&root.join(folder)));
    files.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

/// What a file says that it must not. `files`: the names that comments may mention.
pub(crate) fn findings(root: &Path, path: &Path, files: &BTreeSet<String>) -> Vec<String> {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    if name.ends_with("words.rs") {
        return Vec::new();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    in_text(&text, files).into_iter().map(|(line, told)| format!("{name}:{line}: {told}")).collect()
}

fn in_text(text: &str, files: &BTreeSet<String>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let comment = line.split_once("//").map_or("", |(_, comment)| comment).to_lowercase();
        let names = NAMES.iter().filter(|(name, _)| has(line, name));
        let phrases = PHRASES.iter().filter(|(phrase, _)| has(&comment, phrase));
        found.extend(names.chain(phrases).map(|(old, new)| (number, format!("not `{old}`: {new}"))));
        let unknown = mentioned(&comment).filter(|name| !files.contains(*name));
        found.extend(unknown.map(|name| (number, format!("there is no file {name}"))));
    }
    found
}

/// The Rust files that a comment names.
fn mentioned(comment: &str) -> impl Iterator<Item = &str> {
    let words = comment.split(|character| !crate::sources::is_word(character) && character != '.');
    let names = words.map(|word| word.trim_end_matches('.'));
    names.filter(|name| name.strip_suffix(".rs").is_some_and(|stem| !stem.is_empty() && !stem.contains('.')))
}

/// Whether a text has a word, or several, as such and not as parts of others.
fn has(text: &str, word: &str) -> bool {
    let is_part = |character: Option<char>| character.is_some_and(crate::sources::is_word);
    text.match_indices(word).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, the names and phrases of earlier days could come back.
    #[test]
    fn names_count_everywhere_and_phrases_in_comments() {
        let text = "/// Nobody reads it.\nlet a = Tidings::new(\"nobody\"); // for strangers\nlet email = b; // email\n\
                    mod tests { // whoever\n}";
        let told: Vec<String> = in_text(text, &BTreeSet::new())
            .into_iter()
            .map(|(line, text)| format!("{line} {text}"))
            .collect();
        let expected = [
            "1 not `nobody`: no peer, no client, none",
            "2 not `Tidings`: ControlFrames",
            "2 not `strangers`: unknown peers",
            "4 not `whoever`: the peer, the caller, the client that",
        ];
        assert_eq!(told, expected);
    }

    /// Deleted, a comment could send its reader to a file that was renamed.
    #[test]
    fn files_that_comments_name_exist() {
        let files = BTreeSet::from(["here.rs".to_owned()]);
        let told = in_text("//! See here.rs, folder/here.rs, `gone.rs` and no.rs.", &files);
        let expected = ["gone.rs", "no.rs"].map(|name| (1, format!("there is no file {name}")));
        assert_eq!(told, expected);
    }
}
