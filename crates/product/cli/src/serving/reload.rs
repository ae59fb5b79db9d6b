//! What a running server takes from its files again: certificates, sites and their routes. The rest of a configuration needs a restart.
//!
//! SIGHUP and `tercel reload` read all of it; the files of certificates are also looked at every few seconds. Everything is checked before anything is
//! replaced.

use super::log::{self, Level};
use super::sites::{Certificates, ServedSites};
use super::systemd;
use acme::{Again, Hooks, Manager};
use admin::{Expiry, Reload, Reloads};
use server::certificate;
use server::credentials::Credentials;
use server::date::unix_now;
use server::sites::LiveSites;
use server::{Builder, Handle, watch};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Looks at files between two warnings about a certificate that expires soon: a day.
const LOOKS_A_DAY: u64 = 24 * 3_600 / watch::INTERVAL.as_secs();

/// Said of a reload that was a success.
pub(crate) const RELOADED: &str = "reloaded: new requests and handshakes go by what the files say now";
/// Said of one that was of no avail.
pub(crate) const KEPT: &str = "nothing is reloaded, and what was in use stays";

/// Said of keys that a reload leaves as they were, if there are any.
pub(crate) fn restart_warning(keys: &[String]) -> Option<String> {
    let names: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
    (!names.is_empty()).then(|| format!("these take effect with a restart only: {}", names.join(", ")))
}

/// What the flags say of certificates.
pub(crate) trait CertificateFlags: Send + Sync {
    /// The files that they name.
    fn certificate_files(&self) -> Vec<PathBuf>;

    /// A certificate, if it can be used.
    fn load_files(&self, certificate: &Path, key: &Path) -> Result<Credentials, String>;

    /// A server with the certificates of flags and `of_sites`.
    fn identified(&self, of_sites: &Certificates) -> Result<Builder, String>;
}

/// What the command line and the configuration say now.
pub(crate) struct Current {
    pub(crate) flags: Arc<dyn CertificateFlags>,
    pub(crate) sites: Option<ServedSites>,
    /// Keys that are not as they were when the server started, and need a restart.
    pub(crate) changed: Vec<String>,
}

/// Reads the command line and the configuration again, or says what is wrong.
pub(crate) type ReadAgain = Box<dyn Fn() -> Result<Current, String> + Send + Sync>;

/// A server that runs, and what it was started with.
pub(crate) struct Reloader {
    handle: Handle,
    sites: Option<LiveSites>,
    read: ReadAgain,
    shown: Mutex<Shown>,
    reloads: Mutex<Reloads>,
    orders: Option<Manager>,
    /// One reload at a time: one by a signal and one by the admin address may coincide.
    turn: Mutex<()>,
    /// For `systemctl status`.
    status: String,
}

/// The certificates that clients are shown.
struct Shown {
    flags: Arc<dyn CertificateFlags>,
    certificates: Certificates,
    /// Their files when they were loaded.
    loaded: Vec<Stamp>,
    expiries: Vec<Expiry>,
    /// Their files at the last look.
    seen: Vec<Stamp>,
    looks: u64,
}

/// A file, and what changes with its content: inode, size and time of change.
type Stamp = (PathBuf, Option<(u64, u64, i64, i64)>);

impl Reloader {
    /// Looks at the files of certificates from now on.
    ///
    /// # Errors
    /// One line: the system has no thread left.
    pub(crate) fn start(
        handle: Handle,
        sites: Option<LiveSites>,
        read: ReadAgain,
        (flags, certificates): (Arc<dyn CertificateFlags>, Certificates),
        orders: Option<Manager>,
        status: &str,
    ) -> Result<Arc<Reloader>, String> {
        let loaded = stamps(&*flags, &certificates);
        let expiries = expiries(&loaded);
        let shown = Shown { flags, certificates, seen: loaded.clone(), loaded, expiries, looks: 0 };
        let (shown, reloads, turn) = (Mutex::new(shown), Mutex::default(), Mutex::default());
        let status = status.to_owned();
        let reloader = Arc::new(Reloader { handle, sites, read, shown, reloads, orders, turn, status });
        reloader.watch().map_err(|error| error.to_string())?;
        Ok(reloader)
    }

    /// Carries out what is ordered, from now on.
    ///
    /// # Errors
    /// One line: the system has no thread left.
    pub(crate) fn begin_orders(self: &Arc<Reloader>) -> Result<(), String> {
        let Some(manager) = &self.orders else { return Ok(()) };
        let (reloader, handle) = (Arc::downgrade(self), self.handle.clone());
        manager.hook(Hooks {
            note: Box::new(|what| say(&format!("acme: {what}"))),
            warn: Box::new(|what| log::warn(&format!("acme: {what}"))),
            renewed: Box::new(move || {
                reloader.upgrade().into_iter().for_each(|reloader| reloader.load_again());
            }),
            is_ending: Box::new(move || handle.is_ending()),
        });
        self.order(self.shown().certificates.orders(), Again::InTime)
    }

    fn order(&self, orders: Vec<acme::Order>, again: Again) -> Result<(), String> {
        let Some(manager) = &self.orders else { return Ok(()) };
        manager.order(orders, again).map_err(|error| format!("cannot order certificates: {error}"))
    }

    /// What is ordered.
    pub(crate) fn orders(&self) -> Option<&Manager> {
        self.orders.as_ref()
    }

    /// Reads everything again. Says on standard error how it went, too.
    pub(crate) fn reload(&self) -> Reload {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        systemd::reloading();
        let outcome = self.reload_and_say();
        systemd::ready(&self.status);
        outcome
    }

    fn reload_and_say(&self) -> Reload {
        match self.try_reload() {
            Ok(with_restart) => {
                self.count(|reloads| {
                    reloads.succeeded += 1;
                    reloads.last_s = Some(unix_now());
                });
                say(RELOADED);
                restart_warning(&with_restart).iter().for_each(|warning| log::warn(warning));
                Reload::Done { with_restart }
            }
            Err(why) => {
                self.count(|reloads| reloads.failed += 1);
                let why = why.trim_end().to_owned();
                log::say(Level::Warning, &format!("tercel: {why}"));
                log::warn(KEPT);
                Reload::Fault(why)
            }
        }
    }

    fn count(&self, change: impl FnOnce(&mut Reloads)) {
        change(&mut self.reloads.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// How often files were read again.
    pub(crate) fn reloads(&self) -> Reloads {
        *self.reloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when clients take the certificates that they are shown.
    pub(crate) fn expiries(&self) -> Vec<Expiry> {
        self.shown().expiries.clone()
    }

    /// Returns the keys that have changed and need a restart.
    fn try_reload(&self) -> Result<Vec<String>, String> {
        let Current { flags, sites, changed } = (self.read)()?;
        let (sites, certificates) = match (&self.sites, sites) {
            (Some(live), Some(served)) => (Some((live, served.sites)), served.certificates),
            (None, None) => (None, Certificates::default()),
            (Some(_), None) => {
                return Err("a server of sites needs a restart to serve without them".to_owned());
            }
            (None, Some(_)) => return Err("a server without sites needs a restart to serve them".to_owned()),
        };
        let orders = certificates.orders();
        self.show(&mut self.shown(), flags, certificates)?;
        if let Some((live, sites)) = sites {
            live.replace(sites);
        }
        self.order(orders, Again::AtOnce)?;
        Ok(changed)
    }

    /// Shows these certificates from now on.
    fn show(
        &self,
        shown: &mut Shown,
        flags: Arc<dyn CertificateFlags>,
        certificates: Certificates,
    ) -> Result<(), String> {
        let loaded = stamps(&*flags, &certificates);
        let builder = flags.identified(&certificates)?;
        builder.replace_identities(&self.handle).map_err(|error| error.to_string())?;
        let expiries = expiries(&loaded);
        *shown = Shown { flags, certificates, seen: loaded.clone(), loaded, expiries, looks: shown.looks };
        Ok(())
    }

    /// Looks at the files of certificates every few seconds, and loads them again once they have changed and changed no more.
    ///
    /// # Errors
    /// The system has no thread left.
    fn watch(self: &Arc<Reloader>) -> std::io::Result<()> {
        let reloader = Arc::downgrade(self);
        watch::start("certificates", move || match reloader.upgrade() {
            Some(reloader) => {
                reloader.look();
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        })
    }

    /// A certificate that was ordered has come.
    fn load_again(&self) {
        let mut shown = self.shown();
        let flags = Arc::clone(&shown.flags);
        let again = shown.certificates.again(|certificate, key| flags.load_files(certificate, key));
        if let Err(why) = again.and_then(|certificates| self.show(&mut shown, flags, certificates)) {
            log::warn(&format!("certificates are not reloaded, those in use stay: {why}"));
        }
    }

    fn look(&self) {
        let mut shown = self.shown();
        shown.looks += 1;
        let now = stamps(&*shown.flags, &shown.certificates);
        let is_settled = now == std::mem::replace(&mut shown.seen, now.clone());
        let has_changed = now != shown.loaded && is_settled;
        // Loading warns of those that expire soon.
        if !has_changed && !shown.looks.is_multiple_of(LOOKS_A_DAY) {
            return;
        }
        shown.loaded = now;
        let flags = Arc::clone(&shown.flags);
        let again = shown.certificates.again(|certificate, key| flags.load_files(certificate, key));
        match again.and_then(|certificates| self.show(&mut shown, flags, certificates)) {
            Ok(()) if has_changed => say("reloaded: certificates, whose files have changed"),
            Ok(()) => {}
            Err(why) => say(&format!("warning: certificates are not reloaded, those in use stay: {why}")),
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamps(flags: &dyn CertificateFlags, certificates: &Certificates) -> Vec<Stamp> {
    let stamp = |path: PathBuf| {
        let found = std::fs::metadata(&path).ok();
        let stamp = found.map(|file| (file.ino(), file.size(), file.mtime(), file.mtime_nsec()));
        (path, stamp)
    };
    flags.certificate_files().into_iter().chain(certificates.files()).map(stamp).collect()
}

/// Of those of the files that are certificates, each once.
fn expiries(files: &[Stamp]) -> Vec<Expiry> {
    let mut found: Vec<Expiry> = Vec::new();
    for (file, _) in files {
        if let Some(expires_s) = certificate::expiry(file)
            && found.iter().all(|known| known.file != *file)
        {
            found.push(Expiry { file: file.clone(), expires_s });
        }
    }
    found
}

fn say(what: &str) {
    log::note(&format!("tercel: {what}"));
}
