//! The file of ticket keys, watched: read again every few seconds, and its keys rotated, by a thread that may wait for a disk.

use crate::warnings::{Warning, Warnings};
use crypto::TicketKeys;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, sleep};
use std::time::Duration;

/// How often the file is read. A key is known for a whole period before it seals, which is a minute at least.
const INTERVAL: Duration = Duration::from_secs(5);

/// Starts the thread. It ends when nothing else holds the keys any more.
pub(crate) fn start(keys: &Arc<TicketKeys>, warnings: &Warnings) -> io::Result<()> {
    let (keys, warnings) = (Arc::downgrade(keys), warnings.clone());
    let watch = move || {
        loop {
            sleep(INTERVAL);
            let Some(keys) = keys.upgrade() else { return };
            if keys.refresh().is_err() {
                warnings.note(Warning::TicketKeysUnusable, 1);
            }
        }
    };
    Builder::new().name("ticket-keys".to_owned()).spawn(watch).map(drop)
}
