//! What a client keeps of servers in a file, so that the next process resumes, and sends early data.
//!
//! One server behind the other, the one that was not used for longest first: a line with its key, then a line for each ticket, token
//! and state of the application (secret_file.rs). Each change is written at once, while the folder is locked (flock), because a ticket
//! must not come out again in another process; reading needs no lock. So several processes may share a file. The thread that
//! drives the client's connections waits for the disk, some four times for each connection.

use super::secret_file::{Fault, Format, SecretFile, hex, unhex};
use super::sessions::{Known, MAX_LEN, Server, ServerKey, SessionStore, SessionTicket};
use super::written::WrittenTicket;
use core::fmt;
use core::time::Duration;
use rustix::fs::{FlockOperation, flock};
use rustls::pki_types::UnixTime;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::Version;
use zeroize::Zeroizing;

/// 64 servers with four tickets of 32 KiB each, in hexadecimal digits, is the most that is written.
const FORMAT: Format = Format { name: "tercel sessions", version: "1", max_len: 20 << 20, is_durable: false };
/// Servers in a file. The one that was not used for longest gives way.
const MAX_SERVERS: usize = 64;
/// How long another process may hold the folder.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// Why a file of sessions cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionFileError {
    /// The system refuses to read or write it.
    System {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// It holds something else.
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// It holds sessions in the format of another version of tercel.
    OtherVersion {
        /// Which file.
        path: PathBuf,
    },
    /// It is a file of sessions that is cut or was changed.
    Torn {
        /// Which file.
        path: PathBuf,
    },
    /// All users of the machine may read or write it.
    Exposed {
        /// Which file.
        path: PathBuf,
    },
}

impl fmt::Display for SessionFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionFileError::System { path, error } => {
                write!(f, "cannot use the sessions in {}: {error}", path.display())
            }
            SessionFileError::Foreign { path } => {
                write!(f, "{} is no file of sessions: name another file, which will be made", path.display())
            }
            SessionFileError::OtherVersion { path } => write!(
                f,
                "the sessions in {} are in the format of another version of tercel: name another file for this version, or \
                 remove it, and servers give new ones",
                path.display()
            ),
            SessionFileError::Torn { path } => write!(
                f,
                "the sessions in {} are cut or changed: remove the file, and servers give new ones",
                path.display()
            ),
            SessionFileError::Exposed { path } => write!(
                f,
                "all users can read or write the sessions in {}: remove the file, since its secrets may be known, or allow its \
                 owner only (chmod 600)",
                path.display()
            ),
        }
    }
}

impl core::error::Error for SessionFileError {}

/// A store in a file, for the 64 servers that were met last. It is made with permissions for its owner alone, and several
/// processes may share it. Who reads it can resume the sessions in it.
///
/// A ticket from the file is used only by a client that trusts the server's certificates at that time and shows the same certificate of its
/// own as when it got the ticket; for others the handshake is a full one.
pub struct FileSessions {
    file: SecretFile,
    held: Mutex<Held>,
}

/// What the file said when it was read last.
#[derive(Default)]
struct Held {
    known: Known,
    stamp: Option<Stamp>,
    error: Option<SessionFileError>,
}

/// What tells one state of a file from the next: a new file has another inode or another time.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    changed: (i64, i64),
    len: u64,
}

impl Stamp {
    fn of(about: &Metadata) -> Stamp {
        Stamp { inode: about.ino(), changed: (about.mtime(), about.mtime_nsec()), len: about.len() }
    }
}

impl FileSessions {
    /// The sessions in a file; it is made if there is none.
    ///
    /// # Errors
    /// The file cannot be read or made, is no file of sessions, one of another version or a torn one, or is open to all users. It is
    /// left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<FileSessions, SessionFileError> {
        let file = SecretFile::new(path.as_ref(), FORMAT);
        let store = FileSessions { file, held: Mutex::default() };
        store.write(&mut store.lock(), |_| ()).map_err(|fault| store.error(fault))?;
        Ok(store)
    }

    /// What went wrong first since this was asked last. Connections go on without what could not be read or kept.
    pub fn take_error(&self) -> Option<SessionFileError> {
        self.lock().error.take()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, fault: Fault) -> SessionFileError {
        let path = self.file.path.clone();
        match fault {
            Fault::System(error) => SessionFileError::System { path, error },
            Fault::Foreign => SessionFileError::Foreign { path },
            Fault::OtherVersion => SessionFileError::OtherVersion { path },
            Fault::Torn => SessionFileError::Torn { path },
            Fault::Exposed => SessionFileError::Exposed { path },
        }
    }

    /// Reads the file if it is another one than before.
    fn read(&self, held: &mut Held) -> Result<(), Fault> {
        let stamp = match std::fs::metadata(&self.file.path) {
            Ok(about) => Some(Stamp::of(&about)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Fault::System(error)),
        };
        if stamp.is_some() && stamp == held.stamp {
            return Ok(());
        }
        held.known = Known::default();
        held.stamp = None;
        if stamp.is_some() {
            held.known = parse(&self.file.read()?, UnixTime::now().as_secs()).ok_or(Fault::Torn)?;
            held.stamp = stamp;
        }
        Ok(())
    }

    /// Changes what is in the file, before another process can.
    fn write<T>(&self, held: &mut Held, change: impl FnOnce(&mut Known) -> T) -> Result<T, Fault> {
        let _folder = self.lock_folder().map_err(Fault::System)?;
        // Whatever its stamp, which another process may have given again.
        held.stamp = None;
        self.read(held)?;
        let outcome = change(&mut held.known);
        self.file.replace(&print(&held.known))?;
        held.stamp = std::fs::metadata(&self.file.path).ok().map(|about| Stamp::of(&about));
        Ok(outcome)
    }

    /// The folder of the file, locked until it is dropped.
    fn lock_folder(&self) -> io::Result<File> {
        let folder = self.file.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new(".")))?;
        let mut waited = Duration::ZERO;
        loop {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(folder),
                Err(error) if waited >= PATIENCE => return Err(error.into()),
                Err(_) => std::thread::sleep(PAUSE),
            }
            waited += PAUSE;
        }
    }

    /// Notes what failed; `None` then.
    fn noted<T>(&self, held: &mut Held, outcome: Result<T, Fault>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(fault) => {
                held.error.get_or_insert_with(|| self.error(fault));
                None
            }
        }
    }

    fn look<T>(&self, key: &ServerKey, look: impl FnOnce(&mut Server) -> Option<T>) -> Option<T> {
        let mut held = self.lock();
        let read = self.read(&mut held);
        self.noted(&mut held, read)?;
        held.known.find(key).and_then(look)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Known) -> T) -> Option<T> {
        let mut held = self.lock();
        let written = self.write(&mut held, change);
        self.noted(&mut held, written)
    }
}

impl SessionStore for FileSessions {
    fn writes_tickets(&self) -> bool {
        true
    }

    fn put_ticket(&self, server: &ServerKey, ticket: SessionTicket) {
        let Some(written) = ticket.written().filter(|_| is_plain(server)) else { return };
        let ticket = SessionTicket::from(written.clone());
        self.change(|known| known.server(server, MAX_SERVERS).put_ticket(ticket));
    }

    fn take_ticket(&self, server: &ServerKey) -> Option<SessionTicket> {
        self.look(server, |server| server.tickets.back().map(|_| ()))?;
        self.change(|known| known.find(server)?.tickets.pop_back()).flatten()
    }

    fn has_ticket(&self, server: &ServerKey) -> bool {
        self.look(server, |server| server.tickets.back().map(|_| ())).is_some()
    }

    fn has_early_ticket(&self, server: &ServerKey) -> bool {
        self.look(server, |server| Some(server.has_early_ticket())) == Some(true)
    }

    fn put_token(&self, server: &ServerKey, token: Vec<u8>) {
        if token.len() <= MAX_LEN && is_plain(server) {
            self.change(|known| known.server(server, MAX_SERVERS).put_token(token));
        }
    }

    fn take_token(&self, server: &ServerKey) -> Option<Vec<u8>> {
        self.look(server, |server| server.tokens.back().map(|_| ()))?;
        self.change(|known| known.find(server)?.tokens.pop_back()).flatten()
    }

    fn put_application(&self, server: &ServerKey, state: Vec<u8>) {
        let is_known = |known: &mut Server| Some(known.application.as_ref() == Some(&state));
        if state.len() <= MAX_LEN && is_plain(server) && self.look(server, is_known) != Some(true) {
            self.change(|known| known.server(server, MAX_SERVERS).application = Some(state));
        }
    }

    fn application(&self, server: &ServerKey) -> Option<Vec<u8>> {
        self.look(server, |server| server.application.clone())
    }
}

impl fmt::Debug for FileSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSessions").field("path", &self.file.path).finish_non_exhaustive()
    }
}

/// Whether the name can stand in a line.
fn is_plain(server: &ServerKey) -> bool {
    (1..=255).contains(&server.name.len()) && server.name.bytes().all(|byte| byte.is_ascii_graphic())
}

fn print(known: &Known) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::new());
    for (key, server) in known.by_use() {
        let ServerKey { name, port, version, protocols } = key;
        text.push_str(&format!("server {name} {port} {:08x} {}\n", version.0, hex(protocols)));
        let tickets = server.tickets.iter().filter_map(SessionTicket::to_bytes).map(Zeroizing::new);
        tickets.for_each(|ticket| line(&mut text, "ticket", &ticket));
        server.tokens.iter().for_each(|token| line(&mut text, "token", token));
        server.application.iter().for_each(|state| line(&mut text, "application", state));
    }
    text
}

fn line(text: &mut String, what: &str, bytes: &[u8]) {
    [what, " ", &Zeroizing::new(hex(bytes)), "\n"].into_iter().for_each(|part| text.push_str(part));
}

/// What the lines say, without tickets that are too old. `None` if they are not what [`print`] writes.
fn parse(text: &str, now_s: u64) -> Option<Known> {
    let mut known = Known::default();
    let mut current = None;
    for line in text.lines() {
        let (what, rest) = line.split_once(' ')?;
        if what == "server" {
            let key = server_key(rest)?;
            known.server(&key, MAX_SERVERS);
            current = Some(key);
            continue;
        }
        let server = known.find(current.as_ref()?)?;
        let bytes = Zeroizing::new(unhex(rest)?);
        match what {
            "ticket" => {
                let ticket = WrittenTicket::from_bytes(&bytes)?;
                if !ticket.is_expired(now_s) {
                    server.put_ticket(SessionTicket::from(ticket));
                }
            }
            "token" => server.put_token(bytes.to_vec()),
            "application" => server.application = Some(bytes.to_vec()),
            _ => return None,
        }
    }
    Some(known)
}

fn server_key(text: &str) -> Option<ServerKey> {
    let mut words = text.split(' ');
    let name = words.next()?.to_owned();
    let port = words.next()?.parse().ok()?;
    let version = Version(u32::from_str_radix(words.next()?, 16).ok()?);
    let protocols = unhex(words.next()?)?;
    words.next().is_none().then_some(ServerKey { name, port, version, protocols })
}

#[cfg(test)]
mod tests;
