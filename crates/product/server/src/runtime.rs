//! The tokio runtime in which services run over HTTP/3: that of the program, or one of the server's.

use std::io;
use std::thread::Builder;
use tokio::runtime::{EnterGuard, Handle};
use tokio::sync::oneshot;

/// A runtime to enter.
pub(crate) struct Runtime {
    handle: Handle,
    /// Its end ends the server's own runtime.
    _keeper: Option<oneshot::Sender<()>>,
}

impl Runtime {
    /// The runtime in which this is called, or else a new one on a thread of its own.
    ///
    /// # Errors
    /// The system has no descriptors or threads left.
    pub(crate) fn find() -> io::Result<Runtime> {
        if let Ok(handle) = Handle::try_current() {
            return Ok(Runtime { handle, _keeper: None });
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (keeper, ended) = oneshot::channel::<()>();
        Builder::new().name("tercel-tokio".to_owned()).spawn(move || {
            // Until the other end is dropped.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Runtime { handle, _keeper: Some(keeper) })
    }

    /// That of the program.
    pub(crate) fn of(handle: Handle) -> Runtime {
        Runtime { handle, _keeper: None }
    }

    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }
}
