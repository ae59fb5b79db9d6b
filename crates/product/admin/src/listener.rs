//! The socket of the admin address.

use crate::address::Address;
use crate::service::{self, Open, Socket};
use crate::snapshot::Source;
use socket2::{Domain, Protocol, Type};
use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The owner and the group of a socket may ask.
const MODE: u32 = 0o660;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// The socket, which is bound. Dropped, a socket in the file system is removed.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    file: Option<SocketFile>,
}

/// Whether another process of the same server may have the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It must be free.
    Free,
    /// The process whose place this one takes has it still.
    Inherited,
}

impl Listener {
    /// Binds the address. A socket in the file system that a server has left behind is replaced.
    ///
    /// # Errors
    /// What the system says; `AddrInUse` where another server has it.
    pub fn bind(address: &Address, place: Place) -> io::Result<Listener> {
        match address {
            Address::Tcp(at) => {
                let socket = bind_tcp(*at, place)?;
                let address = Address::Tcp(socket.local_addr()?);
                Ok(Listener { socket: Socket::Tcp(socket), address, file: None })
            }
            Address::Unix(path) => {
                if place == Place::Free {
                    remove_stale(path)?;
                }
                let (socket, file) = bind_unix(path, place)?;
                Ok(Listener { socket: Socket::Unix(socket), address: address.clone(), file: Some(file) })
            }
        }
    }

    /// Where it is, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Answers on a thread of its own until what is returned is dropped.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub fn serve(self, source: Arc<dyn Source>) -> io::Result<Serving> {
        let Listener { socket, file, .. } = self;
        let open = service::start(socket, source)?;
        Ok(Serving { _open: open, _file: file })
    }
}

/// An admin address that answers. Dropped, it takes no more connections, and its socket in the file system is removed unless another
/// process has replaced it.
#[derive(Debug)]
pub struct Serving {
    _open: Open,
    _file: Option<SocketFile>,
}

/// A socket in the file system, which goes with its server.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another server may have replaced it.
        if fs::metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            // Nothing is left to be done about a folder that has become read-only.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The address is bound alone, so that a port in use is an error even where it belongs to another server of the same user. Then it
/// lets in a process that takes the place of this one.
fn bind_tcp(at: SocketAddr, place: Place) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(place == Place::Inherited)?;
    socket.bind(&at.into())?;
    socket.set_reuse_port(true)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// The socket takes the place of another one in one step.
fn bind_unix(path: &Path, place: Place) -> io::Result<(UnixListener, SocketFile)> {
    let at = if place == Place::Inherited { path.with_extension("new") } else { path.to_owned() };
    let socket = UnixListener::bind(&at)?;
    fs::set_permissions(&at, Permissions::from_mode(MODE))?;
    socket.set_nonblocking(true)?;
    let file = SocketFile { path: path.to_owned(), inode: fs::metadata(&at)?.ino() };
    if at != path {
        fs::rename(&at, path)?;
    }
    Ok((socket, file))
}

/// Removes a socket at which no server listens any more.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    match UnixStream::connect(path) {
        Err(error) if is_socket && error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a server that was killed could not be started again, or a second one could take the address of the first.
    #[test]
    fn a_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let address = Address::Unix(path.clone());
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "left behind");
        let listener = Listener::bind(&address, Place::Free).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        assert_eq!(Listener::bind(&address, Place::Free).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists());
        fs::write(&path, "a file of the operator's").unwrap();
        assert!(Listener::bind(&address, Place::Free).is_err());
        assert!(path.exists());
    }

    /// Deleted, an upgrade could leave its operator without an address, or the end of the old process remove that of the new one.
    #[test]
    fn a_process_takes_the_address_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let any = Address::Tcp(([127, 0, 0, 1], 0).into());
        for address in [Address::Unix(path.clone()), any] {
            let before = Listener::bind(&address, Place::Free).unwrap();
            let address = before.address().clone();
            assert_eq!(Listener::bind(&address, Place::Free).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            let after = Listener::bind(&address, Place::Inherited).unwrap();
            assert_eq!(after.address(), &address);
            drop(before);
            match &address {
                Address::Unix(path) => drop(UnixStream::connect(path).unwrap()),
                Address::Tcp(at) => drop(std::net::TcpStream::connect(at).unwrap()),
            }
        }
        assert!(!path.exists());
    }
}
