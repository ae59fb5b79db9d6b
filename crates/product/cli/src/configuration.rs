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
use crate::serving::reload::Current;
use crate::serving::sites::ServedSites;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use file::File;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

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

/// What holds now for a server that was started by `before`, words that [`expand`] has made.
///
/// # Errors
/// As [`expand`].
pub(crate) fn read_again(before: &[OsString]) -> Result<Current, String> {
    let (words, sites) = expand(std::env::args_os().skip(1).collect())?;
    let matches = command().try_get_matches_from(&words);
    let args = matches.and_then(|matches| ServeArgs::from_arg_matches(&matches));
    let args = args.map_err(|error| error.to_string())?;
    Ok(Current { flags: Arc::new(args), sites, changed: changed_keys(before, &words) })
}

/// The keys with other values in `now` than in `before`, without those of certificates, which a running server loads again.
fn changed_keys(before: &[OsString], now: &[OsString]) -> Vec<String> {
    const RELOADED: [&str; 4] = ["cert", "key", "identity", "allow-expired-certificate"];
    let command = command();
    let matches = |words: &[OsString]| command.clone().try_get_matches_from(words).ok();
    let (Some(before), Some(now)) = (matches(before), matches(now)) else { return Vec::new() };
    let values = |of: &ArgMatches, id: &str| {
        of.get_raw(id).map(|values| values.map(ToOwned::to_owned).collect::<Vec<OsString>>())
    };
    let flags = flags::operators(&command).filter(|flag| {
        let id = flag.get_id().as_str();
        !RELOADED.contains(&flags::name(flag)) && values(&before, id) != values(&now, id)
    });
    flags.map(|flag| flags::name(flag).to_owned()).collect()
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
