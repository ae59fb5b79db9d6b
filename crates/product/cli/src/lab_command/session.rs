//! A server and a command in a lab, from the first one's start to the last one's end.

use netns::Lab;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

/// How often it is looked whether a server is ready, or has ended.
const STEP: Duration = Duration::from_millis(10);
/// How long a server may take to write its ready file, and to end when asked to.
const PATIENCE: Duration = Duration::from_secs(30);

/// What runs in a lab.
pub(crate) struct Session<'a> {
    pub(crate) lab: &'a Lab,
    /// A command line for the shell, on the server's side.
    pub(crate) server: Option<&'a str>,
    /// How long the server gets if it writes no ready file.
    pub(crate) settle: Duration,
    /// What the server writes when it is ready.
    pub(crate) ready_file: Option<&'a Path>,
}

impl Session<'_> {
    /// Runs a command on the client's side; its exit code, 128 and the signal's number if a signal ended it.
    ///
    /// # Errors
    /// One line: a program is missing, the server ended early or was not ready in time.
    pub(crate) fn run(&self, program: &OsString, arguments: &[OsString]) -> Result<ExitCode, String> {
        let mut server = self.server.map(|line| self.start_server(line)).transpose()?;
        if let Some(server) = &mut server {
            self.wait_for(server)?;
        }
        let mut command = Command::new(program);
        command.args(arguments).envs(environment(self.lab)).env("TERCEL_LAB_SIDE", "client");
        let spawned = self.lab.client().spawn(&mut command);
        let child = spawned.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        let status = wait(child)?;
        drop(server);
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }

    fn start_server(&self, line: &str) -> Result<Server, String> {
        if let Some(file) = self.ready_file {
            // one from an earlier run says nothing about this one
            let _ = std::fs::remove_file(file);
        }
        let mut command = Command::new("/bin/sh");
        // told to end, the shell lets the program in the foreground end first
        command
            .args(["-c", &format!("trap 'exit 143' TERM\n{line}")])
            .envs(environment(self.lab))
            .env("TERCEL_LAB_SIDE", "server");
        // a group of its own: a signal reaches what the shell started, and Ctrl-C does not, before the command's end
        command.process_group(0);
        // standard output is the command's alone
        let stderr = std::io::stderr().as_fd().try_clone_to_owned();
        command.stdout(stderr.map_or_else(|_| Stdio::null(), Stdio::from)).stdin(Stdio::null());
        let spawned = self.lab.server().spawn(&mut command);
        spawned.map(Server).map_err(|error| format!("cannot run the server: {error}"))
    }

    fn wait_for(&self, server: &mut Server) -> Result<(), String> {
        let patience = if self.ready_file.is_some() { PATIENCE } else { self.settle };
        let mut waited = Duration::ZERO;
        while waited < patience {
            if let Ok(Some(status)) = server.0.try_wait() {
                return Err(format!("the server ended before the command began ({status})"));
            }
            if self.ready_file.is_some_and(Path::exists) {
                return Ok(());
            }
            let step = STEP.min(patience - waited);
            std::thread::sleep(step);
            waited += step;
        }
        match self.ready_file {
            Some(file) => Err(format!("the server has not written {} in {PATIENCE:?}", file.display())),
            None => Ok(()),
        }
    }
}

/// A server's shell, in a process group of its own. When this is dropped the group is asked to end and the shell waited
/// for; what does not end in time is killed. What is left in the background then ends with the lab.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            if let Ok(None) = self.0.try_wait() {
                // it fails if the last one ends just now
                let _ = kill_process_group(Pid::from_child(&self.0), signal);
            }
            let mut waited = Duration::ZERO;
            while waited < PATIENCE {
                let Ok(None) = self.0.try_wait() else { return };
                std::thread::sleep(STEP);
                waited += STEP;
            }
        }
    }
}

/// Waits for the command. SIGTERM is passed on to it; SIGINT is not, because a terminal sends it to the command too,
/// and it alone decides what Ctrl-C means.
fn wait(mut child: Child) -> Result<ExitStatus, String> {
    let pid = Pid::from_child(&child);
    let forwarding = forward(pid).map_err(|error| format!("cannot take signals: {error}"))?;
    let status = child.wait().map_err(|error| format!("cannot wait for the command: {error}"));
    forwarding.close();
    status
}

fn forward(pid: Pid) -> std::io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGTERM {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    })?;
    Ok(handle)
}

/// What both sides find in their environment.
pub(crate) fn variables(lab: &Lab) -> Vec<(String, Value)> {
    environment(lab).into_iter().map(|(name, value)| (name, Value::from(value))).collect()
}

fn environment(lab: &Lab) -> Vec<(String, String)> {
    let of = |name: &str, side: &netns::Namespace| {
        [
            (format!("TERCEL_LAB_{name}_INTERFACE"), side.interface().to_owned()),
            (format!("TERCEL_LAB_{name}_IPV4"), side.ipv4().to_string()),
            (format!("TERCEL_LAB_{name}_IPV6"), side.ipv6().to_string()),
        ]
    };
    of("SERVER", lab.server()).into_iter().chain(of("CLIENT", lab.client())).collect()
}
