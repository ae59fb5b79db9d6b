//! SIGINT and SIGTERM: the first asks a command to end in good order, the second ends it.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the first signal sets, after which `wake` is called. The second signal ends the process with 130.
///
/// # Errors
/// The operating system takes no handler or no thread.
pub(crate) fn stop_flag(wake: impl Fn() + Send + 'static) -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let flag = Arc::clone(&stop);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            wake();
        }
    })?;
    Ok(stop)
}
