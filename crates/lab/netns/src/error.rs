//! Why a lab could not be built.

use crate::emulator::EmulatorError;
use core::fmt;
use std::io;

/// Why a lab could not be built; its text is one line and says what to do.
#[derive(Debug)]
pub enum LabError {
    /// The kernel does not let this process make network namespaces.
    NotAllowed,
    /// An option is out of range.
    Option {
        /// Its name, as a field and as a flag.
        name: &'static str,
        /// What it may be.
        permitted: &'static str,
    },
    /// The link between the sides cannot be emulated.
    Emulator(EmulatorError),
    /// The kernel refused a step.
    Kernel {
        /// What was being done.
        doing: String,
        /// What the kernel said.
        error: io::Error,
    },
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::NotAllowed => f.write_str(
                "making network namespaces needs CAP_SYS_ADMIN and CAP_NET_ADMIN: \
                 run it with sudo, or under `unshare --user --map-root-user`",
            ),
            LabError::Option { name, permitted } => write!(f, "{name} must be {permitted}"),
            LabError::Emulator(error) => error.fmt(f),
            LabError::Kernel { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for LabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LabError::Kernel { error, .. } => Some(error),
            LabError::Emulator(error) => Some(error),
            LabError::NotAllowed | LabError::Option { .. } => None,
        }
    }
}

/// Says what was being done when the kernel refused. A refusal for want of a capability is told as such.
pub(crate) fn while_doing<T>(result: io::Result<T>, doing: impl Into<String>) -> Result<T, LabError> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => LabError::NotAllowed,
        _ => LabError::Kernel { doing: doing.into(), error },
    })
}
