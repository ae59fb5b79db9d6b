//! Why a server cannot begin.

use crate::keys::KeysError;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why a server cannot begin. The text says what is wrong, and what to do where that can be said.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError {
    /// The port cannot be had over TCP: another program has it, or this user may not have it.
    Listen(SocketAddr, io::Error),
    /// The port or the data path cannot be had over UDP.
    DataPath(String),
    /// There is no certificate that can be served.
    Identity(String),
    /// A setting cannot work, or contradicts another.
    Setting(String),
    /// The cores cannot be kept.
    Cores(String),
    /// The state folder cannot be used.
    State(KeysError),
    /// The access log cannot be written.
    AccessLog(io::Error),
    /// The capture of datagrams cannot be written.
    Capture(io::Error),
    /// A thread, a descriptor or randomness cannot be had.
    System(io::Error),
}

impl fmt::Display for BindError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindError::Listen(at, error) => listen(*at, error, out),
            BindError::Identity(text) => write!(out, "no certificate to serve: {text}"),
            BindError::DataPath(text) | BindError::Setting(text) | BindError::Cores(text) => {
                out.write_str(text)
            }
            BindError::State(error) => error.fmt(out),
            BindError::AccessLog(error) => write!(out, "cannot write the access log: {error}"),
            BindError::Capture(error) => write!(out, "cannot write the capture: {error}"),
            BindError::System(error) => write!(out, "cannot start the server: {error}"),
        }
    }
}

fn listen(at: SocketAddr, error: &io::Error, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (ip, port) = (at.ip(), at.port());
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            write!(
                out,
                "TCP port {port} on {ip} is in use by another program: end that one, or choose another port"
            )
        }
        io::ErrorKind::PermissionDenied => write!(
            out,
            "TCP port {port} may not be bound by this user: choose a port above 1023, or grant CAP_NET_BIND_SERVICE"
        ),
        _ => write!(out, "cannot listen on TCP {at}: {error}"),
    }
}

impl Error for BindError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BindError::Listen(_, error)
            | BindError::AccessLog(error)
            | BindError::Capture(error)
            | BindError::System(error) => Some(error),
            BindError::State(error) => Some(error),
            BindError::DataPath(_) | BindError::Identity(_) | BindError::Setting(_) | BindError::Cores(_) => {
                None
            }
        }
    }
}
