//! Which keys a server has: those that its folder keeps, if there is one.

use server::certificate;
use server::keys::Keys;
use std::path::Path;

/// What a server without kept keys cannot do.
const CONSEQUENCE: &str = "after a crash clients notice by a timeout only";

/// The keys in `folder`; without it those in the folder of the development certificate. A default folder that cannot be used is
/// told, and does not keep the server from running.
///
/// # Errors
/// One line: the folder that was asked for cannot be used, or there is no randomness.
pub(crate) fn find(folder: Option<&Path>) -> Result<Keys, String> {
    let found = match folder {
        Some(folder) => Keys::load_or_make(folder).map_err(|error| error.to_string())?,
        None => match default_keys() {
            Ok(keys) => keys,
            Err(problem) => {
                eprintln!("tercel: warning: {problem}: {CONSEQUENCE}");
                Keys::fresh().map_err(|error| error.to_string())?
            }
        },
    };
    if found.was_damaged {
        eprintln!(
            "tercel: warning: the file of kept keys was damaged and is replaced: connections of before are not reset"
        );
    }
    Ok(found)
}

fn default_keys() -> Result<Keys, String> {
    let Ok(folder) = certificate::default_folder(|name| std::env::var_os(name)) else {
        return Err(
            "no place for keys: set HOME or XDG_DATA_HOME, or name a folder with --state-dir".to_owned()
        );
    };
    Keys::load_or_make(&folder).map_err(|error| error.to_string())
}
