//! The socket of the admin address.

use crate::address::Address;
use crate::reload::Reach;
use crate::service::{self, Open, Socket};
use crate::snapshot::Source;
use socket2::{Domain, Protocol, Type};
use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
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

impl Listener {
    /// Binds the address. A socket in the file system that a server has left behind is replaced.
    ///
    /// # Errors
    /// What the system says; `AddrInUse` where another server has it.
    pub fn bind(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Tcp(at) => {
                let socket = bind_tcp(*at)?;
                let address = Address::Tcp(socket.local_addr()?);
                Ok(Listener { socket: Socket::Tcp(socket), address, file: None })
            }
            Address::Unix(path) => {
                remove_stale(path)?;
                let socket = UnixListener::bind(path)?;
                fs::set_permissions(path, Permissions::from_mode(MODE))?;
                Listener::of_unix(socket, path)
            }
        }
    }

    /// Takes the socket of the process whose place this one takes; `None` if it is not at this address.
    ///
    /// # Errors
    /// The system refuses.
    pub fn inherit(socket: OwnedFd, address: &Address) -> io::Result<Option<Listener>> {
        match address {
            Address::Tcp(asked) => {
                let socket = TcpListener::from(socket);
                let Ok(at) = socket.local_addr() else { return Ok(None) };
                let is_asked = at.ip() == asked.ip() && (asked.port() == 0 || asked.port() == at.port());
                socket.set_nonblocking(true)?;
                let address = Address::Tcp(at);
                Ok(is_asked.then(|| Listener { socket: Socket::Tcp(socket), address, file: None }))
            }
            Address::Unix(path) => {
                let socket = UnixListener::from(socket);
                if socket.local_addr().ok().and_then(|at| at.as_pathname().map(Path::to_owned)).as_ref()
                    != Some(path)
                {
                    return Ok(None);
                }
                Listener::of_unix(socket, path).map(Some)
            }
        }
    }

    fn of_unix(socket: UnixListener, path: &Path) -> io::Result<Listener> {
        socket.set_nonblocking(true)?;
        let file = SocketFile { path: path.to_owned(), inode: fs::metadata(path)?.ino(), is_ours: true };
        let address = Address::Unix(path.to_owned());
        Ok(Listener { socket: Socket::Unix(socket), address, file: Some(file) })
    }

    /// A copy of the socket, for [`Listener::inherit`].
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn copy(&self) -> io::Result<OwnedFd> {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_fd().try_clone_to_owned(),
            Socket::Unix(socket) => socket.as_fd().try_clone_to_owned(),
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
        let Listener { socket, address, file } = self;
        let reach = if address.is_local() { Reach::ThisMachine } else { Reach::Others };
        let open = service::start(socket, reach, source)?;
        Ok(Serving { _open: open, file })
    }
}

/// An admin address that answers. Dropped, it takes no more connections, and its socket in the file system is removed unless another
/// process has replaced it.
#[derive(Debug)]
pub struct Serving {
    _open: Open,
    file: Option<SocketFile>,
}

impl Serving {
    /// Takes no more connections. The socket is that of another process from now on.
    pub fn leave(mut self) {
        if let Some(file) = &mut self.file {
            file.is_ours = false;
        }
    }
}

/// A socket in the file system, which goes with its server.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    inode: u64,
    is_ours: bool,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another server may have replaced it.
        if self.is_ours && fs::metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            // Nothing is left to be done about a folder that has become read-only.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn bind_tcp(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
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
        let listener = Listener::bind(&address).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        assert_eq!(Listener::bind(&address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists());
        fs::write(&path, "a file of the operator's").unwrap();
        assert!(Listener::bind(&address).is_err());
        assert!(path.exists());
    }

    struct Nothing;

    impl Source for Nothing {
        fn stage(&self) -> crate::Stage {
            crate::Stage::Draining
        }

        fn silent(&self) -> usize {
            0
        }

        fn snapshot(&self) -> crate::Snapshot {
            crate::Snapshot::default()
        }

        fn reload(&self) -> crate::Reload {
            crate::Reload::Fault(String::new())
        }
    }

    /// Deleted, an upgrade could leave its operator without an address, or the end of the old process remove that of the new one.
    #[test]
    fn a_process_takes_the_address_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let any = Address::Tcp(([127, 0, 0, 1], 0).into());
        for address in [Address::Unix(path.clone()), any] {
            let before = Listener::bind(&address).unwrap();
            let address = before.address().clone();
            assert_eq!(Listener::bind(&address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            let after = Listener::inherit(before.copy().unwrap(), &address).unwrap().unwrap();
            assert_eq!(after.address(), &address);
            let other = Address::Unix("/nowhere".into());
            assert!(Listener::inherit(before.copy().unwrap(), &other).unwrap().is_none());
            let other = Address::Tcp(([127, 0, 0, 2], 0).into());
            assert!(Listener::inherit(before.copy().unwrap(), &other).unwrap().is_none());
            before.serve(Arc::new(Nothing)).unwrap().leave();
            match &address {
                Address::Unix(path) => drop(UnixStream::connect(path).unwrap()),
                Address::Tcp(at) => drop(std::net::TcpStream::connect(at).unwrap()),
            }
        }
        assert!(!path.exists());
    }
}
