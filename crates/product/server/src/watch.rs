//! Files that are looked at every few seconds, by threads that may wait for a disk: ticket keys, and certificates of the command.

use crate::warnings::{Warning, Warnings};
use crypto::TicketKeys;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::{Builder, sleep};
use std::time::Duration;

/// How often files are looked at. A ticket key is known for a whole period before it seals, which is a minute at least.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// Starts a thread that calls `look` after each [`INTERVAL`] until that breaks.
///
/// # Errors
/// The system has no thread left.
pub fn start(name: &str, mut look: impl FnMut() -> ControlFlow<()> + Send + 'static) -> io::Result<()> {
    let watch = move || {
        loop {
            sleep(INTERVAL);
            if look().is_break() {
                return;
            }
        }
    };
    Builder::new().name(name.to_owned()).spawn(watch).map(drop)
}

/// Reads the file of ticket keys again, and rotates its keys, until nothing else holds them any more.
pub(crate) fn ticket_keys(keys: &Arc<TicketKeys>, warnings: &Warnings) -> io::Result<()> {
    let (keys, warnings) = (Arc::downgrade(keys), warnings.clone());
    start("ticket-keys", move || {
        let Some(keys) = keys.upgrade() else { return ControlFlow::Break(()) };
        if keys.refresh().is_err() {
            warnings.note(Warning::TicketKeysUnusable, 1);
        }
        ControlFlow::Continue(())
    })
}
