//! Ends the processes of a namespace when its owner ends, however that happens.
//!
//! The guard is a shell in the same namespace that reads from a pipe of which only the owner has the other end. When
//! the owner drops it, exits, panics or is killed, the kernel closes the pipe; the guard then kills every process whose
//! network namespace is its own, children of children too, and exits. With it the last user of the namespace is gone.
//!
//! Rejected: PR_SET_PDEATHSIG, which can only be set between fork and exec (that is `unsafe`), fires when the spawning
//! *thread* ends, and does not reach grandchildren; a list of process numbers, because numbers are used again.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// Says that it watches, waits for the end of its input, then kills what shares its network namespace. Some passes over
/// /proc, because a process may fork while it runs, and the killed ones take a moment to go.
///
/// It refuses where it would kill the wrong ones: /proc shows the numbers of another PID namespace, or the network
/// namespace is its parent's, which is never a lab's.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
cd -P /proc/self && [ "$PWD" = "/proc/$$" ] || exit 1
[ "/proc/$PPID/ns/net" -ef "/proc/$$/ns/net" ] && exit 1
cd /
echo ready
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
    /// The kernel's, `NotFound` where there is no /bin/sh, `Unsupported` where /proc is not of this PID namespace.
    pub(crate) fn start() -> io::Result<Guard> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut guard = Guard { shell: command.spawn()? };
        let (mut word, output) = ([0; 6], guard.shell.stdout.take());
        if output.is_some_and(|mut output| output.read_exact(&mut word).is_ok()) && word == *b"ready\n" {
            return Ok(guard);
        }
        let message = "processes in a lab cannot be watched over: mount /proc of this PID namespace";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // it cannot fail but for a shell that was reaped elsewhere, and then there is nothing to wait for
        let _ = self.shell.wait();
    }
}
