//! The configuration file of `tercel serve`: its keys are the flags of the command, and sites.
//!
//! A key that is a flag becomes that flag's word on the command line, before those that the user has typed. So the flag's own parser
//! judges it, a new flag is a key at once, and what the user has typed wins because the key is left out.
//!
//! | file | holds |
//! |---|---|
//! | file.rs | a file that was read, and its faults |
//! | flags.rs | the keys that are flags, from the definition of the command line |
//! | words.rs | from keys to words of the command line, and from its errors to places in the file |

#[cfg(test)]
mod faults;
pub(crate) mod file;
pub(crate) mod flags;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use crate::serve::ServeArgs;
use crate::serving::sites::ServedSites;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, Command};
use file::File;
use std::ffi::OsString;
use std::path::PathBuf;

/// The command whose flags are keys.
pub(crate) fn command() -> Command {
    ServeArgs::augment_args(Command::new("serve"))
}

/// `words`, the command line behind the program's name, with those of the file that it names, if it does; and the file's sites.
///
/// # Errors
/// The file cannot be read, or what is wrong with it.
pub(crate) fn expand(words: Vec<OsString>) -> Result<(Vec<OsString>, Option<ServedSites>), String> {
    let Some((first, typed)) = words.split_first().filter(|(first, _)| *first == "serve") else {
        return Ok((words, None));
    };
    let Some((path, given)) = named(typed) else { return Ok((words, None)) };
    let file = File::read(&path)?;
    let (of_file, sites) = file.resolve(Some(&given), typed)?;
    let words = [first.clone()].into_iter().chain(of_file).chain(typed.iter().cloned());
    Ok((words.collect(), sites))
}

/// The file that the typed words name, and what else they say. Mistakes in them are found later.
fn named(typed: &[OsString]) -> Option<(PathBuf, ArgMatches)> {
    let words = std::iter::once(OsString::from("serve")).chain(typed.iter().cloned());
    match command().ignore_errors(true).try_get_matches_from(words) {
        Ok(matches) => Some((matches.get_one::<PathBuf>("config").cloned()?, matches)),
        Err(error) => {
            debug_assert!(matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion));
            None
        }
    }
}
