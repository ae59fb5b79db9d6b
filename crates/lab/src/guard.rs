//! Ends the processes of a namespace when its owner ends, however that happens.
//!
//! The guard is a shell in the same namespace that reads from a pipe of which only the owner has the other end. When
//! the owner drops it, exits, panics or is killed, the kernel closes the pipe; the guard then kills every process whose
//! network namespace is its own, children of children too, and exits. With it the last user of the namespace is gone.
//!
//! Rejected: PR_SET_PDEATHSIG, which can only be set between fork and exec (that is `unsafe`), fires when the spawning
//! *thread* ends, and does not reach grandchildren; a list of process numbers, because numbers are used again.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input, then kills what shares its network namespace. Some passes over /proc, because a
/// process may fork while it runs, and the killed ones take a moment to go.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
while read -r _; do :; done
for pass in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29; do
    found=
    for process in /proc/[0-9]*; do
        if [ "$process" != "/proc/$$" ] && [ "$process/ns/net" -ef "/proc/$$/ns/net" ]; then
            kill -KILL "${process#/proc/}"
            found=yes
        fi
    done
    [ "$found" ] || exit 0
    PATH=/usr/bin:/bin sleep 0.02
done
"#;

/// A running guard; dropping it ends the processes it watches over and waits until they are gone.
#[derive(Debug)]
pub(crate) struct Guard {
    shell: Child,
}

impl Guard {
    /// Starts a guard in the namespace of the calling thread, in a process group of its own so that Ctrl-C passes it by.
    ///
    /// # Errors
    /// The kernel's, or `NotFound` where there is no /bin/sh.
    pub(crate) fn start() -> io::Result<Guard> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Guard { shell: command.spawn()? })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // it cannot fail but for a shell that somebody else reaped, and then there is nothing to wait for
        let _ = self.shell.wait();
    }
}
