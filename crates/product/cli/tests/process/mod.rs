//! Processes of a test: each has a deadline and is killed at the end of its test, however that ends.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The machine may be busy; nothing here takes a second on an idle one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const STEP: Duration = Duration::from_millis(10);

/// A process that does not outlive its test.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Process {
        Process(command.stdin(Stdio::null()).spawn().expect("the program starts"))
    }

    /// Its end, and its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(status) = self.0.try_wait().expect("a status") {
                return status.code();
            }
            assert!(waited < PATIENCE, "the program hangs");
            sleep(STEP);
            waited += STEP;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
