//! Warnings, printed into memory or into a pipe that is not read.

use super::*;
use std::sync::Mutex;

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn wait_for(&self, what: &str) {
        for _ in 0..5_000 {
            if self.text().contains(what) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{what} does not come: {}", self.text());
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Fails without it: an operator sees nothing of refusals and 503s while the server runs.
#[test]
fn a_warning_is_printed_soon_and_not_for_each_event() {
    let memory = Memory::default();
    let (warnings, printer) = start(memory.clone()).unwrap();
    for _ in 0..1_000 {
        warnings.note(Warning::Unavailable, 2);
    }
    memory.wait_for("2000 responses with status 503: ");
    // Within the interval nothing more is printed until the end, which tells the rest.
    warnings.note(Warning::Unavailable, 7);
    warnings.note(Warning::LogLinesLost, 1);
    memory.wait_for("1 lines of the access log were lost");
    assert_eq!(memory.text().lines().count(), 2, "{}", memory.text());
    drop(printer);
    memory.wait_for("tercel: warning: 7 responses with status 503: ");
    assert_eq!(memory.text().lines().count(), 3, "{}", memory.text());
}

#[test]
fn a_kind_is_told_again_after_the_interval() {
    let memory = Memory::default();
    let (warnings, _printer) = start_with(memory.clone(), Duration::from_millis(250)).unwrap();
    let mut watch = warnings.watch();
    watch.on_total(Warning::SlowClients, 3);
    memory.wait_for("warning: 3 connections");
    watch.on_total(Warning::SlowClients, 3);
    watch.on_total(Warning::SlowClients, 8);
    memory.wait_for("warning: 5 connections");
}

/// Standard error may be a pipe that is not read: neither the threads that warn nor the end of the program wait for it.
#[test]
fn a_blocked_output_blocks_nobody() {
    struct Blocked;
    impl Write for Blocked {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            std::thread::sleep(Duration::from_secs(3_600));
            Ok(0)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (warnings, printer) = start(Blocked).unwrap();
    warnings.note(Warning::BudgetExceeded, 1);
    for _ in 0..30_000 {
        if warnings.untold(Warning::BudgetExceeded) == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..1_000 {
        warnings.note(Warning::BudgetExceeded, 1);
    }
    let began = uptime();
    drop(printer);
    assert!(uptime() - began < PATIENCE + Duration::from_secs(2));
}
