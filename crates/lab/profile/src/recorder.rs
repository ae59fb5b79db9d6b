//! perf at work: it watches a process, or a command that it starts, and afterwards says where it was.
//!
//! The event is the clock of the CPU, which virtual machines have too. Everything perf writes is in a folder that goes with
//! the [`Recorder`]; nothing is left in the user's home.

use crate::script::{self, Stack};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Samples per second and thread that is running, unless that would be too many.
const FREQUENCY: u32 = 997;

/// No more samples than this are taken of a busy thread.
const SAMPLES: f64 = 20_000.0;

/// Bytes of the stack that are kept with each sample: the loop of a worker keeps much on it.
const STACK: u32 = 16_384;

/// How often a waiting caller looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long perf may take to write what it has.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a command may take to end once it is asked to. perf waits for it without limit.
const GRACE: Duration = Duration::from_secs(5);

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A process that runs already, by its id.
    Process(u32),
    /// A program and its arguments, which perf starts.
    Command(Vec<OsString>),
}

/// perf, running.
#[derive(Debug)]
pub struct Recorder {
    perf: Child,
    folder: TempDir,
    seconds: Option<f64>,
    asked_to_end: bool,
}

impl Recorder {
    /// Begins to watch for `seconds`, or until the target ends.
    ///
    /// # Errors
    /// There is no such process or program, or perf is not installed.
    pub fn start(target: &Target, seconds: Option<f64>) -> io::Result<Recorder> {
        let folder = tempfile::Builder::new().prefix("tercel-profile-").tempdir()?;
        let frequency =
            seconds.map_or(FREQUENCY, |seconds| (SAMPLES / seconds).clamp(20.0, f64::from(FREQUENCY)) as u32);
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-B", "-N", "-e", "cpu-clock", "--max-size", "2G"]);
        command.args(["-F", &frequency.to_string(), "--call-graph", &format!("dwarf,{STACK}")]);
        command.arg("-o").arg(folder.path().join("perf.data"));
        match target {
            Target::Process(pid) => {
                if !PathBuf::from(format!("/proc/{pid}")).exists() {
                    let what = format!("there is no process {pid}");
                    return Err(io::Error::new(io::ErrorKind::NotFound, what));
                }
                let length = seconds.map_or("infinity".to_owned(), |seconds| format!("{seconds:.3}"));
                command.args(["-p", &pid.to_string(), "--", "sleep", &length]);
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            }
            // What the command says is its user's.
            Target::Command(words) => {
                find(words.first().map_or(OsStr::new(""), OsString::as_os_str))?;
                command.arg("--").args(words);
            }
        }
        let perf = command.spawn().map_err(|error| missing(&error))?;
        // perf ends a process by itself; a command is ended when its time is over.
        let seconds = seconds.filter(|_| matches!(target, Target::Command(_)));
        Ok(Recorder { perf, folder, seconds, asked_to_end: false })
    }

    /// Waits until the time is over or `stop` is set, and returns what was seen.
    ///
    /// # Errors
    /// perf was refused by the kernel, or failed otherwise; in a line, with what to do.
    pub fn finish(mut self, stop: &AtomicBool) -> io::Result<Vec<Stack>> {
        let status = self.wait(stop)?;
        let mut said = String::new();
        if let Some(pipe) = &mut self.perf.stderr {
            pipe.read_to_string(&mut said)?;
        }
        let data = self.folder.path().join("perf.data");
        // A command's own failure is not perf's, and what was seen of it counts.
        if !data.exists() || (!status.success() && !self.asked_to_end && !said.is_empty()) {
            return Err(refused(&said));
        }
        let mut script = Command::new("perf");
        script.args(["script", "--no-inline", "-F", script::FIELDS, "-i"]).arg(&data);
        script.env("DEBUGINFOD_URLS", "").stdin(Stdio::null());
        let printed = script.output().map_err(|error| missing(&error))?;
        let stacks = script::stacks(&String::from_utf8_lossy(&printed.stdout));
        if stacks.is_empty() && !printed.status.success() {
            return Err(refused(&String::from_utf8_lossy(&printed.stderr)));
        }
        Ok(stacks)
    }

    fn wait(&mut self, stop: &AtomicBool) -> io::Result<ExitStatus> {
        let (mut waited, mut since_asked) = (Duration::ZERO, Duration::ZERO);
        loop {
            if let Some(status) = self.perf.try_wait()? {
                return Ok(status);
            }
            let is_over = self.seconds.is_some_and(|seconds| waited.as_secs_f64() >= seconds);
            if !self.asked_to_end && (is_over || stop.load(Ordering::Relaxed)) {
                self.asked_to_end = true;
                signal(self.perf.id(), Signal::INT);
            }
            if since_asked > GRACE {
                // perf only waits for its command, which does not listen; what was seen of it counts.
                kill_descendants(self.perf.id());
            }
            if since_asked > PATIENCE {
                return Err(io::Error::other("perf does not end"));
            }
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
            since_asked += if self.asked_to_end { LOOK_EVERY } else { Duration::ZERO };
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if matches!(self.perf.try_wait(), Ok(None)) {
            // It then ends what it started.
            signal(self.perf.id(), Signal::TERM);
            let mut waited = Duration::ZERO;
            while waited < GRACE && matches!(self.perf.try_wait(), Ok(None)) {
                std::thread::sleep(LOOK_EVERY);
                waited += LOOK_EVERY;
            }
            if matches!(self.perf.try_wait(), Ok(None)) {
                kill_descendants(self.perf.id());
                signal(self.perf.id(), Signal::KILL);
                let _ = self.perf.wait();
            }
        }
    }
}

/// All that a process has started, and what that has started.
fn descendants(pid: u32) -> Vec<u32> {
    let (mut found, mut todo) = (Vec::new(), vec![pid]);
    while let Some(parent) = todo.pop() {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        for thread in threads.flatten() {
            let listed = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = listed.split_whitespace().filter_map(|child| child.parse::<u32>().ok());
            todo.extend(children.clone());
            found.extend(children);
        }
    }
    found
}

fn kill_descendants(pid: u32) {
    descendants(pid).into_iter().for_each(|child| signal(child, Signal::KILL));
}

/// perf says nothing that helps when it cannot start a program.
fn find(program: &OsStr) -> io::Result<()> {
    let is_path = Path::new(program).components().count() > 1;
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_there = if is_path {
        Path::new(program).is_file()
    } else {
        !program.is_empty() && std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    };
    let missing =
        || io::Error::new(io::ErrorKind::NotFound, format!("there is no program {}", program.display()));
    if is_there { Ok(()) } else { Err(missing()) }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended by itself, which is as good.
        let _ = kill_process(pid, signal);
    }
}

fn missing(error: &io::Error) -> io::Error {
    let what = match error.kind() {
        io::ErrorKind::NotFound => {
            "perf is not installed: apt install linux-perf (Debian), linux-tools-generic (Ubuntu) or perf (Fedora)".to_owned()
        }
        _ => format!("cannot start perf: {error}"),
    };
    io::Error::new(error.kind(), what)
}

/// What perf said in many lines, in one.
fn refused(said: &str) -> io::Error {
    let is_refusal = ["perf_event_paranoid", "Permission denied", "Operation not permitted", "No permission"];
    if is_refusal.iter().any(|word| said.contains(word)) {
        let what = "perf may not look at this process: be root, or set sysctl kernel.perf_event_paranoid=1";
        return io::Error::new(io::ErrorKind::PermissionDenied, what);
    }
    let last =
        said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it took no sample and said nothing");
    io::Error::other(format!("perf failed: {}", last.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_says_becomes_one_line() {
        let said =
            "Error:\nAccess to performance monitoring is limited.\nkernel.perf_event_paranoid is 3\n\n";
        assert_eq!(refused(said).kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(refused("a\n b \n\n").to_string(), "perf failed: b");
        assert!(missing(&io::ErrorKind::NotFound.into()).to_string().contains("apt install linux-perf"));
    }

    /// A shell in place of perf, which like its command does not listen to requests to end; and the command's id.
    fn deaf() -> (Recorder, u32) {
        let words = "trap '' TERM INT; sleep 300; exit 0";
        let perf = Command::new("sh").args(["-c", words]).stdin(Stdio::null()).spawn().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder { perf, folder, seconds: Some(0.0), asked_to_end: false };
        for _ in 0..1_500 {
            if let [command] = descendants(recorder.perf.id())[..] {
                return (recorder, command);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        panic!("the shell has not started its command");
    }

    /// Whether a process ends soon; one that its parent has not waited for has ended, too.
    fn ends(pid: u32) -> bool {
        (0..1_500).any(|_| {
            std::thread::sleep(LOOK_EVERY);
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        })
    }

    /// Deleted, a command that ignores the signal could keep its user waiting for ever, and go on after that.
    #[test]
    fn a_command_that_does_not_listen_is_killed() {
        let (recorder, command) = deaf();
        let perf = recorder.perf.id();
        drop(recorder);
        assert!(ends(command) && ends(perf));
        let (mut recorder, command) = deaf();
        let status = recorder.wait(&AtomicBool::new(false)).unwrap();
        assert!(status.success() && ends(command), "what waits for the command ends by itself");
    }

    #[test]
    fn a_process_that_is_not_there_is_called_so() {
        let error = Recorder::start(&Target::Process(u32::MAX), Some(1.0)).unwrap_err();
        assert_eq!(error.to_string(), "there is no process 4294967295");
        for program in ["no-such-program", "./no-such-program", ""] {
            let error = Recorder::start(&Target::Command(vec![program.into()]), None).unwrap_err();
            assert_eq!(error.to_string(), format!("there is no program {program}"));
        }
        assert!(find(OsStr::new("sh")).is_ok());
    }
}
