//! Folders of files, and which of their files a request gets.

use super::Builder;
use super::compress::compression;
use crate::fault::Span;
use crate::read::Table;
use server::files::DotFiles;
use server::handler::{FileOptions, Generated, Listing};
use server::sites::{FilesOf, Template};
use std::path::{Path, PathBuf};

/// A folder that files are served from.
pub(super) struct Folder {
    /// Its path.
    pub(super) path: PathBuf,
    pub(super) files: FilesOf,
}

/// The folder that `table` names, or the site's; `None` if there is none, or it is no use.
pub(super) fn folder(builder: &mut Builder<'_>, table: &Table, site: Option<&Table>) -> Option<Folder> {
    let tables = [Some(table), site];
    let having =
        |name: &'static str| tables.into_iter().flatten().find(move |table| table.get(name).is_some());
    let switch = |name| having(name).is_some_and(|table| table.switch(name, false));
    let (root, span) = having("root")?.text("root")?;
    let path = root_path(builder, root, &span)?;
    let mut options = match FileOptions::folder(&path) {
        Ok(options) => options,
        Err(error) => {
            let also = if root.starts_with('~') || root.contains('$') {
                "; ~ and $NAME stand for themselves: write the whole path"
            } else {
                ""
            };
            builder.note(span, format!("{error}{also}"));
            return None;
        }
    };
    options.dot_files = if switch("dot-files") { DotFiles::Serve } else { DotFiles::Hide };
    options.listing = if switch("listing") { Listing::On } else { Listing::Off };
    options.generated = Generated::Hide;
    options.compression = having("compress").and_then(|table| compression(builder, table));
    let index = index(builder, having("index"));
    // A single one is looked for by the handler of the folder itself.
    let index = match index.as_deref() {
        None => Vec::new(),
        Some([one]) => {
            options.index = one.clone();
            Vec::new()
        }
        Some(several) => {
            options.index = String::new();
            several.to_vec()
        }
    };
    let candidates = candidates(builder, having("try-files"), &path);
    let folder = builder.settings.sites.folder(options);
    let is_below_prefix = table.switch("strip-prefix", false);
    Some(Folder { path, files: FilesOf { folder, is_below_prefix, index, candidates } })
}

/// The path of a root. An empty one would be the folder of the configuration, with the keys that may be in it.
pub(super) fn root_path(builder: &mut Builder<'_>, root: &str, span: &Span) -> Option<PathBuf> {
    if root.is_empty() {
        builder.note(span.clone(), "a root has a path: write \".\" for the folder of this file");
        return None;
    }
    Some(builder.place.join(root))
}

fn index(builder: &mut Builder<'_>, table: Option<&Table>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for (text, span) in table?.list("index") {
        if text.is_empty() || text.contains('/') {
            builder.note(
                span,
                format!("\"{text}\" is no name of a file in a folder: write one without slashes"),
            );
        } else {
            names.push(text.to_owned());
        }
    }
    Some(names)
}

fn candidates(builder: &mut Builder<'_>, table: Option<&Table>, root: &Path) -> Vec<Template> {
    let mut templates = Vec::new();
    let list: Vec<_> = table.into_iter().flat_map(|table| table.list("try-files")).collect();
    let count = list.len();
    for (at, (text, span)) in list.into_iter().enumerate() {
        if text.contains("{query}") || text.contains("{host}") {
            builder.note(span, format!("\"{text}\": a file is found by {{path}} or {{rest}}"));
            continue;
        }
        match Template::path(text) {
            Ok(template) => templates.push(template),
            Err(error) => builder.note(span.clone(), format!("\"{text}\": {error}")),
        }
        if at + 1 == count && !text.contains('{') && !has_file(root, text) {
            builder.note(
                span,
                format!("there is no file {text} in {}, to which all is tried at last", root.display()),
            );
        }
    }
    templates
}

/// Whether there is a file, or a folder, at the path `of_url` below `root`.
pub(super) fn has_file(root: &Path, of_url: &str) -> bool {
    root.join(of_url.trim_start_matches('/')).exists()
}
