//! Child processes on cores of their own, with the operating system's account of them.
//!
//! A child dies with the guard that holds it, by its process id. Its CPU time is what the kernel adds to our children's
//! account when it is reaped (getrusage, RUSAGE_CHILDREN), so it counts all of its threads, start and end included. Children
//! must therefore be reaped one at a time, which one thread does by nature. The sum of user and system time is what the
//! scheduler counted, to the microsecond; only how it is shared between the two goes by ticks.
//!
//! Its end is waited for with a descriptor of the process (pidfd), which wakes us at that moment and costs nothing before.
//! Rejected: looking every so often, which adds up to one interval to each measured time.

use std::io::{self, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, BorrowedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::Serialize;

/// How often a parent looks whether a child that tells of itself in a file is ready. Nothing is measured meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often a parent that waits for a descriptor looks whether all shall end. Rare enough not to disturb other programs on its core.
const LISTEN_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A child that does not outlive us.
#[derive(Debug)]
pub struct Running {
    child: Child,
    name: String,
}

/// CPU seconds of a process, from the operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// In the program.
    pub user_s: f64,
    /// In the kernel on its behalf.
    pub system_s: f64,
}

impl Usage {
    /// Both.
    pub fn total_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// What our children used that were reaped so far.
    fn of_children() -> Usage {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Usage::default() };
        let seconds = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64 / 1e6;
        Usage { user_s: seconds(usage.user_time()), system_s: seconds(usage.system_time()) }
    }
}

/// Whether an error means no more than that all is to end: a child that died by the signal that is meant for us is no failure of
/// its own.
pub fn is_interruption(error: &io::Error, stop: &AtomicBool) -> bool {
    error.kind() == io::ErrorKind::Interrupted || stop.load(Ordering::Relaxed)
}

/// Ended: what it printed and what it used.
#[derive(Debug)]
pub struct Ended {
    /// Its standard output.
    pub output: String,
    /// Its CPU time.
    pub usage: Usage,
    /// When it ended, by [`cpu::clock_seconds`].
    pub ended_at: f64,
}

impl Running {
    /// Starts a command on one core. Its standard output is kept for [`Running::finish`]; it must fit into a pipe.
    ///
    /// # Errors
    /// The core is not ours, or the program cannot be started.
    pub fn start(name: &str, core: usize, command: &mut Command) -> io::Result<Running> {
        Running::prepare(command);
        // A child begins where its parent is.
        let home = cpu::allowed();
        cpu::pin(core)?;
        let child = command.spawn();
        cpu::pin_to(&home)?;
        let child = child.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start {}: {error}", command.get_program().display()))
        })?;
        Ok(Running { child, name: name.to_owned() })
    }

    /// Takes over a child that was started elsewhere, such as in a namespace, with [`Running::prepare`]d pipes, and keeps it
    /// on `cores` from now on. Threads that it started in the instants before stay where they were.
    ///
    /// # Errors
    /// A core is not ours. The child is then killed.
    pub fn adopt(name: &str, child: Child, cores: &[usize]) -> io::Result<Running> {
        let running = Running { child, name: name.to_owned() };
        if !cores.is_empty() {
            cpu::pin_process(Some(running.pid()?), cores)?;
        }
        Ok(running)
    }

    /// Sets the pipes that [`Running::finish`] reads.
    pub fn prepare(command: &mut Command) -> &mut Command {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `is_ready`.
    ///
    /// # Errors
    /// The child ended before, `patience` is over, or `stop` was set.
    pub fn wait_ready(
        &mut self,
        patience: Duration,
        stop: &AtomicBool,
        is_ready: impl Fn() -> bool,
    ) -> io::Result<()> {
        let deadline = Deadline::after(patience);
        while !is_ready() {
            if let Some(status) = self.child.try_wait()? {
                return Err(self.failure(status));
            }
            deadline.check(&self.name, stop)?;
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits for the first line on the child's standard output.
    ///
    /// # Errors
    /// The child ended before, `patience` is over, or `stop` was set.
    pub fn first_line(&mut self, patience: Duration, stop: &AtomicBool) -> io::Result<String> {
        let deadline = Deadline::after(patience);
        let mut line = Vec::new();
        loop {
            let Some(pipe) = self.child.stdout.as_mut() else { return Err(io::Error::other("no pipe")) };
            deadline.wait_for(pipe.as_fd(), &self.name, stop)?;
            let mut byte = [0];
            if pipe.read(&mut byte)? == 0 {
                let status = self.child.wait()?;
                return Err(self.failure(status));
            }
            if byte == *b"\n" {
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            line.extend(byte);
        }
    }

    /// Asks the child to end in good order (SIGTERM).
    pub fn ask_to_end(&self) {
        if let Ok(pid) = self.pid() {
            // It may have ended by itself, which is as good.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Waits for the child to end.
    ///
    /// # Errors
    /// It failed, did not end in `patience`, or `stop` was set.
    pub fn finish(mut self, patience: Duration, stop: &AtomicBool) -> io::Result<Ended> {
        let process = pidfd_open(self.pid()?, PidfdFlags::empty())?;
        Deadline::after(patience).wait_for(process.as_fd(), &self.name, stop)?;
        let ended_at = cpu::clock_seconds();
        let before = Usage::of_children();
        let status = self.child.wait()?;
        let after = Usage::of_children();
        if !status.success() {
            return Err(self.failure(status));
        }
        let usage =
            Usage { user_s: after.user_s - before.user_s, system_s: after.system_s - before.system_s };
        Ok(Ended { output: text(self.child.stdout.take()), usage, ended_at })
    }

    fn pid(&self) -> io::Result<Pid> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| io::Error::other("a process without a number"))
    }

    /// With the last line that the child wrote for people.
    fn failure(&mut self, status: ExitStatus) -> io::Error {
        let said = text(self.child.stderr.take());
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        io::Error::other(format!("{} ended with {status}: {last}", self.name))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has already ended, which is what they are for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Until when the caller waits.
struct Deadline {
    at: f64,
    patience: Duration,
}

impl Deadline {
    fn after(patience: Duration) -> Deadline {
        Deadline { at: cpu::clock_seconds() + patience.as_secs_f64(), patience }
    }

    /// Fails when the wait for `name` is to end.
    fn check(&self, name: &str, stop: &AtomicBool) -> io::Result<()> {
        if stop.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
        }
        if cpu::clock_seconds() > self.at {
            return Err(io::Error::other(format!("{name} was not done in {} s", self.patience.as_secs())));
        }
        Ok(())
    }

    /// Waits until there is something to read from `fd`: of a process, that it has ended.
    fn wait_for(&self, fd: BorrowedFd<'_>, name: &str, stop: &AtomicBool) -> io::Result<()> {
        loop {
            self.check(name, stop)?;
            match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&LISTEN_EVERY)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn text(pipe: Option<impl io::Read>) -> String {
    let mut text = Vec::new();
    if let Some(pipe) = pipe {
        // What could be read is what there is to say.
        let _ = pipe.take(1 << 20).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Running {
        let core = cpu::allowed()[0];
        Running::start("shell", core, Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn children_are_accounted_for_and_do_not_outlive_us() {
        let go_on = AtomicBool::new(false);
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done";
        let ended = shell(busy).finish(PATIENCE, &go_on).unwrap();
        assert!(ended.output == "done\n" && ended.usage.total_s() > 0.005, "{ended:?}");
        let failed = shell("echo what happened >&2; exit 3").finish(PATIENCE, &go_on).unwrap_err();
        assert!(failed.to_string().contains("what happened"), "{failed}");
        let early = shell("exit 0").wait_ready(PATIENCE, &go_on, || false).unwrap_err();
        assert!(early.to_string().contains("ended"), "{early}");
        let stopped = shell("sleep 100").finish(PATIENCE, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
        let late = shell("sleep 100").finish(Duration::from_millis(30), &go_on).unwrap_err();
        assert!(late.to_string().contains("not done"), "{late}");
        let before = cpu::clock_seconds();
        let slept = shell("sleep 0.2").finish(PATIENCE, &go_on).unwrap();
        assert!((before + 0.2..=cpu::clock_seconds()).contains(&slept.ended_at), "{before} {slept:?}");
        let missing = Running::start("nothing", cpu::allowed()[0], &mut Command::new("/no/such/program"));
        assert!(missing.unwrap_err().to_string().contains("/no/such/program"));
    }
}
