//! Announcements of HTTP/3 in a file, so that the next process knows them. RFC 7838 §2.2.
//!
//! One JSON document with one entry for each origin. It is written when an announcement changes, to a file beside it that then takes
//! its name, so that a reader sees all of it or what was there before. Several processes may share it: each reads it again and
//! changes its own entry, and of two that write at the same time one is lost until it is heard again.
//!
//! Invariant: a file that is no cache is never written to.

use super::alt_svc::Alternative;
use super::origin::Origin;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the format.
const VERSION: u32 = 1;
/// Origins in a file. The one that expires first makes room.
const MAX_ORIGINS: usize = 1_024;
/// The largest file that is read, in bytes.
const MAX_SIZE: u64 = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    /// The version, by a name that says what the file is.
    tercel_alt_svc: u32,
    origins: BTreeMap<String, Vec<StoredAlternative>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredAlternative {
    /// `None`: the host of the origin.
    host: Option<String>,
    port: u16,
    /// Seconds since 1970.
    expires: u64,
}

impl Document {
    fn new() -> Document {
        Document { tercel_alt_svc: VERSION, origins: BTreeMap::new() }
    }

    /// Reads a file; an absent one is empty.
    fn read(path: &Path) -> Result<Document, String> {
        let mut text = Vec::new();
        match File::open(path).and_then(|file| file.take(MAX_SIZE + 1).read_to_end(&mut text)) {
            Ok(size) if size as u64 > MAX_SIZE => return Err("it is larger than 1 MiB".to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Document::new()),
            Err(error) => return Err(error.to_string()),
        }
        let document: Document = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        match document.tercel_alt_svc {
            VERSION => Ok(document),
            other => Err(format!("its version is {other}")),
        }
    }

    /// Removes what has expired, and what is too much.
    fn tidy(&mut self, unix_s: u64) {
        self.origins.values_mut().for_each(|entries| entries.retain(|entry| entry.expires > unix_s));
        self.origins.retain(|_, entries| !entries.is_empty());
        while self.origins.len() > MAX_ORIGINS {
            let last = |entries: &Vec<StoredAlternative>| entries.iter().map(|entry| entry.expires).max();
            let first = self.origins.iter().min_by_key(|(_, entries)| last(entries));
            let Some(name) = first.map(|(name, _)| name.clone()) else { return };
            self.origins.remove(&name);
        }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let beside = path.with_file_name(name);
        let written = File::create(&beside)
            .and_then(|mut file| file.write_all(&serde_json::to_vec(self)?))
            .and_then(|()| fs::rename(&beside, path));
        written.inspect_err(|_| _ = fs::remove_file(&beside))
    }
}

/// The file of a client.
#[derive(Debug)]
pub(crate) struct AltSvcFile {
    path: PathBuf,
}

/// What a file says of an origin.
pub(crate) type Known = (Origin, Vec<Alternative>);

impl AltSvcFile {
    /// Reads a file, or makes one, and returns what it says that has not expired.
    ///
    /// # Errors
    /// It is no cache, or cannot be written. The text says why.
    pub(crate) fn open(path: PathBuf) -> Result<(AltSvcFile, Vec<Known>), String> {
        let mut document = Document::read(&path)?;
        let unix_s = unix_now();
        document.tidy(unix_s);
        document.write(&path).map_err(|error| error.to_string())?;
        let alternative = |entry: StoredAlternative| Alternative {
            host: entry.host,
            port: entry.port,
            max_age: Duration::from_secs(entry.expires.saturating_sub(unix_s)),
        };
        let known = document.origins.into_iter().filter_map(|(name, entries)| {
            let origin = Origin::of(&name.parse().ok()?).ok()?;
            Some((origin, entries.into_iter().map(alternative).collect()))
        });
        let known = known.collect();
        Ok((AltSvcFile { path }, known))
    }

    /// Keeps what an origin announces; nothing withdraws it.
    ///
    /// # Errors
    /// It was not kept: the file is another program's by now, or the disk is full.
    pub(crate) fn keep(&self, origin: &Origin, alternatives: &[Alternative]) -> Result<(), String> {
        let mut document = Document::read(&self.path)?;
        let unix_s = unix_now();
        let entry = |alternative: &Alternative| StoredAlternative {
            host: alternative.host.clone(),
            port: alternative.port,
            expires: unix_s.saturating_add(alternative.max_age.as_secs()),
        };
        document.origins.insert(origin.to_string(), alternatives.iter().map(entry).collect());
        document.tidy(unix_s);
        document.write(&self.path).map_err(|error| error.to_string())
    }
}

fn unix_now() -> u64 {
    u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(number: usize) -> Origin {
        Origin::of(&format!("https://host{number}/").parse().unwrap()).unwrap()
    }

    fn at_port(port: u16, seconds: u64) -> Alternative {
        Alternative { host: None, port, max_age: Duration::from_secs(seconds) }
    }

    #[test]
    fn what_is_kept_is_read_again_until_it_expires_or_is_withdrawn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alt-svc.json");
        let (file, known) = AltSvcFile::open(path.clone()).unwrap();
        assert!(known.is_empty());
        let elsewhere = Alternative { host: Some("alt.example".to_owned()), ..at_port(8_443, 600) };
        file.keep(&origin(0), &[elsewhere.clone(), at_port(443, 0)]).unwrap();
        // Another process has the same file.
        let (other, known) = AltSvcFile::open(path.clone()).unwrap();
        assert_eq!(known.len(), 1);
        assert_eq!((known[0].0.clone(), known[0].1[0].host.clone()), (origin(0), elsewhere.host));
        assert_eq!(known[0].1.len(), 1, "the other alternative has expired");
        other.keep(&origin(1), &[at_port(1, 60)]).unwrap();
        file.keep(&origin(0), &[]).unwrap();
        let (_, known) = AltSvcFile::open(path).unwrap();
        assert_eq!(known.iter().map(|(origin, _)| origin.clone()).collect::<Vec<_>>(), [origin(1)]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    /// Deleted, a client could write over a file that it was pointed at by mistake.
    #[test]
    fn a_file_that_is_no_cache_is_named_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alt-svc.json");
        let (file, _) = AltSvcFile::open(path.clone()).unwrap();
        file.keep(&origin(0), &[at_port(443, 60)]).unwrap();
        let whole = fs::read(&path).unwrap();
        let newer = String::from_utf8(whole.clone()).unwrap().replace("_svc\":1", "_svc\":2");
        let foreign = [b"".as_slice(), b"{}", b"notes of mine", &whole[..whole.len() - 5], newer.as_bytes()];
        for text in foreign {
            fs::write(&path, text).unwrap();
            assert!(AltSvcFile::open(path.clone()).is_err());
            assert!(file.keep(&origin(1), &[at_port(1, 60)]).is_err());
            assert_eq!(fs::read(&path).unwrap(), text);
        }
        fs::write(&path, vec![b' '; MAX_SIZE as usize + 1]).unwrap();
        assert!(AltSvcFile::open(path).unwrap_err().contains("larger"));
        assert!(AltSvcFile::open(folder.path().join("absent/alt-svc.json")).is_err(), "it cannot be written");
    }

    #[test]
    fn the_file_is_bounded_and_what_expires_first_goes_first() {
        let entry = |expires: u64| vec![StoredAlternative { host: None, port: 1, expires }];
        let origins = (0..MAX_ORIGINS + 3).map(|number| (format!("https://host{number}:443"), number));
        let mut document = Document::new();
        document.origins = origins.map(|(name, number)| (name, entry(number as u64 + 10))).collect();
        document.tidy(0);
        assert_eq!(document.origins.len(), MAX_ORIGINS);
        assert!(!document.origins.contains_key("https://host2:443"));
        assert!(document.origins.contains_key("https://host3:443"));
        document.tidy(u64::MAX);
        assert!(document.origins.is_empty());
    }
}
