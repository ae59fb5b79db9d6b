//! Signals. SIGINT and SIGTERM: the first asks a command to end in good order, the second ends it. A server also heeds
//! SIGUSR1, SIGUSR2 and SIGHUP.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a command does about signals. All of it happens on the thread that waits for them.
pub(crate) trait OnSignal: Send + 'static {
    /// The first SIGINT or SIGTERM; the flag is set.
    fn stop(&self);

    /// The second one; the process ends when this returns.
    fn end(&self) {}

    /// Any other signal that the command waits for.
    fn other(&self, _signal: i32) {}
}

impl<F: Fn() + Send + 'static> OnSignal for F {
    fn stop(&self) {
        self();
    }
}

/// A flag that the first signal sets, after which `wake` is called. The second signal ends the process with 130.
///
/// # Errors
/// The operating system takes no handler or no thread.
pub(crate) fn stop_flag(wake: impl Fn() + Send + 'static) -> std::io::Result<Arc<AtomicBool>> {
    wait_for(&[SIGINT, SIGTERM], wake)
}

/// Does a server's duties when signals arrive.
///
/// # Errors
/// The operating system takes no handler or no thread.
pub(crate) fn heed(duties: ServerDuties) -> std::io::Result<()> {
    wait_for(&[SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2], duties).map(drop)
}

fn wait_for(signals: &[i32], duties: impl OnSignal) -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new(signals)?;
    let flag = Arc::clone(&stop);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if signal != SIGINT && signal != SIGTERM {
                duties.other(signal);
            } else if flag.swap(true, Ordering::Relaxed) {
                duties.end();
                std::process::exit(130);
            } else {
                duties.stop();
            }
        }
    })?;
    Ok(stop)
}

/// What a server does about signals.
pub(crate) struct ServerDuties {
    /// Tells it to stop.
    pub(crate) stop: Box<dyn Fn() + Send>,
    /// Reads certificates and configuration again (SIGHUP, also that of a terminal which goes).
    pub(crate) reload: Box<dyn Fn() + Send>,
    /// Opens the access log anew (SIGUSR1).
    pub(crate) reopen: Box<dyn Fn() + Send>,
    /// What must not be left behind when a second signal ends the process.
    pub(crate) tidy: Box<dyn Fn() + Send>,
    /// Begins an upgrade of the program (SIGUSR2).
    pub(crate) upgrade: Box<dyn Fn() + Send>,
}

impl OnSignal for ServerDuties {
    fn stop(&self) {
        (self.stop)();
    }

    fn end(&self) {
        (self.tidy)();
    }

    fn other(&self, signal: i32) {
        match signal {
            SIGUSR1 => (self.reopen)(),
            SIGHUP => (self.reload)(),
            _ => (self.upgrade)(),
        }
    }
}
