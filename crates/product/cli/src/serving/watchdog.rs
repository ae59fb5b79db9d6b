//! systemd's watchdog: it hears that the server lives as long as each thread of the server says so. Source: sd_watchdog_enabled(3).
//!
//! The sign of life is an answer of each thread to a question, at its next turn, not a timer that runs beside them: a thread that hangs lets the
//! watchdog end the service, which is started again.

use super::operations::silent;
use super::systemd;
use server::Handle;
use std::io;
use std::thread::{Builder, sleep};
use std::time::Duration;

/// Starts the thread that tells systemd, if that wants to hear it.
///
/// # Errors
/// The system has no thread left.
pub(crate) fn start(handle: Handle) -> io::Result<()> {
    let told = |name: &str| std::env::var(name).ok();
    let Some(limit) = limit(told("WATCHDOG_USEC").as_deref(), told("WATCHDOG_PID").as_deref()) else {
        return Ok(());
    };
    Builder::new().name("watchdog".to_owned()).spawn(move || watch(&handle, limit)).map(drop)
}

/// A third of the limit passes between two signs of life, and another third is for the threads to answer.
fn watch(handle: &Handle, limit: Duration) {
    loop {
        if silent(handle, limit / 3) == 0 {
            systemd::alive();
        }
        sleep(limit / 3);
    }
}

/// How long systemd waits for a sign of life of this process.
fn limit(micros: Option<&str>, process: Option<&str>) -> Option<Duration> {
    let is_ours = process.is_none_or(|process| process.parse() == Ok(std::process::id()));
    let micros: u64 = micros?.parse().ok()?;
    (is_ours && micros > 0).then(|| Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_that_of_this_process() {
        let own = std::process::id().to_string();
        assert_eq!(limit(Some("3000000"), None), Some(Duration::from_secs(3)));
        assert_eq!(limit(Some("3000000"), Some(&own)), Some(Duration::from_secs(3)));
        for (micros, process) in [(None, None), (Some("0"), None), (Some("x"), None), (Some("1"), Some("1"))]
        {
            assert_eq!(limit(micros, process), None);
        }
    }
}
