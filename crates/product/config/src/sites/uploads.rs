//! Routes by which clients store files.

use super::folders::root_path;
use super::{Builder, OfSite};
use crate::read::Table;
use crate::units;
use server::files::{DotFiles, Root};
use server::sites::{Action, ServiceOf};
use server::uploads::Uploads;
use std::sync::Arc;

/// The route of the key "upload"; `None` if there is no folder for it.
pub(super) fn upload(builder: &mut Builder<'_>, table: &Table, of_site: &OfSite<'_>) -> Option<Action> {
    let none = Table::default();
    let own = table.table("upload").unwrap_or(&none);
    let Some((root, span)) = own.text("root").or_else(|| of_site.table.text("root")) else {
        let span = table.place("upload").unwrap_or_default();
        let what =
            "uploads into which folder? Give the site a root, or the route: upload = { root = \"FOLDER\" }";
        builder.note(span, what);
        return None;
    };
    let root = match Root::open(&root_path(builder, root, &span)?) {
        Ok(root) => root,
        Err(error) => {
            builder.note(span, error.to_string());
            return None;
        }
    };
    let dot_files = if own.switch("dot-files", false) { DotFiles::Serve } else { DotFiles::Hide };
    let mut most = 1 << 30;
    if let Some((text, span)) = own.text("max-size") {
        match units::bytes(text) {
            Ok(bytes) => most = bytes,
            Err(what) => builder.note(span, format!("\"{text}\": {what}")),
        }
    }
    let is_below_prefix = own.switch("strip-prefix", false);
    Some(Action::Service(ServiceOf {
        service: Arc::new(Uploads::new(root, dot_files, most)),
        is_below_prefix,
    }))
}
