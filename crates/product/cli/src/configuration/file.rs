//! A configuration file that was read: what it says, and what is wrong with it.

use super::{command, flags, words};
use crate::serve::ServeArgs;
use crate::serving::sites::ServedSites;
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches as _};
use config::fault::{Fault, Faults};
use config::read::{Table, read};
use config::shape::{Key, Kind};
use config::sites::Settings;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The keys that are no flags are this one and "acme".
const SITE_KEY: &str = "site";

/// A file, and what it says.
#[derive(Debug)]
pub(crate) struct File {
    /// As the user has named it.
    name: String,
    folder: PathBuf,
    text: String,
    /// What it says, without what is wrong with it.
    pub(crate) table: Table,
    faults: Vec<Fault>,
}

/// Rules about certificates of clients where none is asked for one.
fn without_authorities(settings: &Settings, args: &ServeArgs) -> Vec<Fault> {
    let what = "clients are asked for certificates where the key \"client-ca\" says whose are accepted: add it above [[site]], with client-auth = \"optional\" if other routes are for all";
    let rules = settings.client_certificates.iter().filter(|_| args.client_ca.is_none());
    rules.map(|span| Fault::new(span.clone(), what)).collect()
}

/// All keys of a file.
pub(crate) fn keys() -> Vec<Key> {
    let about = "A host, or several: which names, certificates, files and routes.";
    let site = Key::new(SITE_KEY, Kind::Tables(config::sites::SITE), about);
    let about = "How certificates are ordered from an authority and renewed (ACME), for sites without any.";
    let acme = Key::new("acme", Kind::Table(config::sites::ACME), about);
    flags::keys(&command()).into_iter().chain([acme, site]).collect()
}

impl File {
    /// Reads the file. What is wrong with it is kept.
    ///
    /// # Errors
    /// One line: it cannot be read.
    pub(crate) fn read(path: &Path) -> Result<File, String> {
        let name = path.display();
        let cannot = |why: &str| format!("cannot read the configuration {name}: {why}");
        let bytes = std::fs::read(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => cannot("there is no such file"),
            ErrorKind::IsADirectory => cannot("it is a folder; name the file in it"),
            ErrorKind::PermissionDenied => cannot(
                "this user may not; run this as one who may, or change the file's owner or permissions",
            ),
            _ => cannot(&error.to_string()),
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let what = "from here on this is no text in UTF-8: save the file as such";
            Faults::new(&name.to_string(), &text, vec![Fault::new(at..at, what)]).to_string()
        })?;
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        Ok(File::of(name.to_string(), folder, text))
    }

    /// The file `name` in `folder`, with this text.
    pub(crate) fn of(name: String, folder: &Path, mut text: String) -> File {
        // A byte order mark is no character of the first line.
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let (table, faults) = read(&text, &keys());
        // Absolute, so that what it names is found from wherever the command is run.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        File { name, folder, text, table, faults }
    }

    /// The words of the command line for it, without those for what was `given` by the words that the user has typed; and its sites.
    ///
    /// # Errors
    /// What is wrong with the file: keys, values, and the files that it names.
    pub(crate) fn resolve(
        &self,
        given: Option<&ArgMatches>,
        typed: &[OsString],
    ) -> Result<(Vec<OsString>, Option<ServedSites>), String> {
        let command = command();
        let is_given = |key: &str| {
            let flag = flags::operators(&command).find(|flag| flags::name(flag) == key);
            let source = flag.and_then(|flag| given?.value_source(flag.get_id().as_str()));
            source == Some(ValueSource::CommandLine)
        };
        let mut words = words::of(&self.table, &command, &self.folder);
        words.retain(|word| !is_given(&word.key));
        let mut faults = words::faults(words.clone(), typed, &command);
        let (settings, of_sites) = config::sites::sites(&self.table, &self.folder);
        // A key that is misspelt is missing, too: that is told once.
        faults.extend(of_sites.into_iter().filter(|_| self.faults.is_empty()));
        faults.extend(self.beside_sites());
        faults.extend(words::empty(&self.table, &command));
        self.judge(faults)?;
        let matches = command.try_get_matches_from(words::line(&words, typed));
        let line = words::line(&words, &[]).split_off(1);
        // What the user has typed wrongly is told by the command line itself.
        let Ok(args) = matches.and_then(|matches| ServeArgs::from_arg_matches(&matches)) else {
            return Ok((line, None));
        };
        if let Err(what) = args.check() {
            // What is wrong with typed words has no place here, and is told where they are used.
            let place = words::place(&words, &what).or(typed.is_empty().then_some(0..0));
            let faults = place.map(|place| Fault::new(place, words::in_keys(&what)));
            self.judge(faults.into_iter().collect())?;
        }
        self.judge(without_authorities(&settings, &args))?;
        if !self.has_sites() {
            return Ok((line, None));
        }
        if let Some(what) = args.cannot_order().filter(|_| !settings.orders.is_empty()) {
            let of = |ordered: &config::sites::Ordered| Fault::new(ordered.span.clone(), what);
            self.judge(settings.orders.iter().map(of).collect())?;
        }
        let load = |certificate: &Path, key: &Path| args.load(certificate, key);
        let state = args.state_folder();
        match ServedSites::load(settings, args.cert.as_deref(), state.as_deref(), load) {
            Ok(sites) => Ok((line, Some(sites))),
            Err(faults) => {
                let in_keys = |fault: Fault| Fault { what: words::in_keys(&fault.what), ..fault };
                Err(self.tell(faults.into_iter().map(in_keys).collect()))
            }
        }
    }

    fn has_sites(&self) -> bool {
        self.table.tables(SITE_KEY).next().is_some()
    }

    /// Keys that mean nothing where there are sites.
    fn beside_sites(&self) -> Vec<Fault> {
        const OF_ONE_FOLDER: [&str; 3] = ["root", "no-listing", "dot-files"];
        let keys = self.table.entries.iter().filter(|_| self.has_sites());
        let keys = keys.filter(|entry| OF_ONE_FOLDER.contains(&entry.name.as_str()));
        let what = |name: &str| {
            format!(
                "\"{name}\" is for a server of one folder: each site has a root, listing and dot-files of its own"
            )
        };
        keys.map(|entry| Fault::new(entry.span.clone(), what(&entry.name))).collect()
    }

    /// All that can be known to be wrong without a server.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.resolve(None, &[]).map(drop)
    }

    fn judge(&self, more: Vec<Fault>) -> Result<(), String> {
        let faults: Vec<Fault> = self.faults.iter().cloned().chain(more).collect();
        if faults.is_empty() { Ok(()) } else { Err(self.tell(faults)) }
    }

    fn tell(&self, faults: Vec<Fault>) -> String {
        Faults::new(&self.name, &self.text, faults).to_string()
    }
}
