//! Upgrades of a server while clients download: one that fails when the old process has given its queues away, and two that do not.
//!
//! A queue has one AF_XDP socket. The old process leaves its queues and goes on by the kernel's UDP, and the new one takes them.

use crate::case::Case;
use crate::connection::expect;
use crate::transfers::text;
use base::pattern;
use bench::pair::ProgramPair;
use bench::site::{End, Site};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);
/// Larger than what waits on the way, so that most of a download is sent after the upgrades.
const SIZE: usize = 40_000_000;
/// What a server says when its queues are its own.
const OPEN: &str = "HTTP/3 goes by AF_XDP again";

pub(crate) fn run(case: &Case, site: &Site, never: &AtomicBool) -> Result<String, String> {
    let pair = ProgramPair::new(Path::new(PROGRAM), site, never).map_err(text)?;
    let mut server = Server::start(case, site, pair.folder())?;
    let fetch = |server: &Server| {
        let url = server.url("bytes/1MB");
        pair.fetch(case.client, &[], &[&url, "--verify-pattern"], PATIENCE).map(drop).map_err(text)
    };
    fetch(&server)?;
    let mut downloads = vec![Download::start(site, &server)?, Download::start(site, &server)?];
    // The new process cannot write the ready file, and ends.
    let away = server.place.with_extension("away");
    fs::rename(&server.place, &away).map_err(text)?;
    server.signal("USR2");
    server.wait_for("no upgrade, and this server goes on", 1)?;
    server.wait_for(OPEN, 1)?;
    fs::rename(&away, &server.place).map_err(text)?;
    fetch(&server).map_err(|problem| format!("after an upgrade that failed: {problem}"))?;
    for upgrade in 1..=2 {
        let told = |problem: String| format!("upgrade {upgrade}: {problem}");
        server.upgrade(upgrade).map_err(told)?;
        fetch(&server).map_err(told)?;
        server.wait_for(OPEN, 1 + upgrade).map_err(told)?;
        fetch(&server).map_err(told)?;
        downloads.push(Download::start(site, &server).map_err(told)?);
    }
    let running = server.processes.iter().filter(|process| is_running(**process)).count();
    expect(running == 3, || format!("{running} processes run, not 3"))?;
    for (number, download) in downloads.into_iter().enumerate() {
        download.finish().map_err(|problem| format!("download {number}: {problem}"))?;
    }
    server.stop()?;
    Ok(String::new())
}

/// A server, and all processes that it has been.
struct Server {
    child: Child,
    processes: Vec<u64>,
    /// The folder of the ready file.
    place: PathBuf,
    said: PathBuf,
    address: SocketAddr,
}

impl Server {
    fn start(case: &Case, site: &Site, folder: &Path) -> Result<Server, String> {
        let (place, said) = (folder.join("place"), folder.join("said"));
        fs::create_dir_all(&place).map_err(text)?;
        let at = site.ipv4(End::Server);
        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg(folder).args(["--access-log", "off"]);
        command.arg("--listen").arg(SocketAddr::new(at, 0).to_string());
        command.args(case.server.flags(site.interface(End::Server))).args(case.server_flags());
        command.arg("--ready-file").arg(place.join("ready")).env("XDG_DATA_HOME", folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said).map_err(text)?);
        let child = site.spawn(End::Server, &mut command).map_err(text)?;
        let address = SocketAddr::new(at, 0);
        let mut server = Server { processes: vec![child.id().into()], child, place, said, address };
        server.wait_until("it does not start", |server| server.ready().is_some())?;
        let port = server.ready().and_then(|ready| u16::try_from(ready["port"].as_u64()?).ok());
        server.address.set_port(port.ok_or("the server does not say its port")?);
        Ok(server)
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}/{path}", self.address)
    }

    fn ready(&self) -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(self.place.join("ready")).ok()?).ok()
    }

    fn signal(&self, name: &str) {
        let process = self.processes.last().copied().unwrap_or_default();
        let _ = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    }

    /// The upgrade of this number takes place.
    fn upgrade(&mut self, number: usize) -> Result<(), String> {
        self.signal("USR2");
        self.wait_for("tercel: upgraded: process ", number)?;
        let process = self.ready().and_then(|ready| ready["pid"].as_u64());
        self.processes.push(process.ok_or("the ready file names no process")?);
        Ok(())
    }

    /// Waits until it has said this as often.
    fn wait_for(&mut self, what: &str, count: usize) -> Result<(), String> {
        let has_said = |server: &Server| {
            fs::read_to_string(&server.said).is_ok_and(|said| said.matches(what).count() >= count)
        };
        self.wait_until(&format!("it has not said \"{what}\" {count} times"), has_said)
    }

    fn wait_until(&mut self, problem: &str, condition: impl Fn(&Server) -> bool) -> Result<(), String> {
        let mut waited = Duration::ZERO;
        while !condition(self) {
            if waited >= PATIENCE {
                return Err(format!("{problem}: {}", fs::read_to_string(&self.said).unwrap_or_default()));
            }
            // One that has ended is no zombie.
            let _ = self.child.try_wait();
            sleep(STEP);
            waited += STEP;
        }
        Ok(())
    }

    /// All that were replaced end by themselves, then the last one does.
    fn stop(mut self) -> Result<(), String> {
        let last = self.processes.last().copied().unwrap_or_default();
        self.wait_until("an old process does not end", |server| {
            server.processes.iter().all(|process| *process == last || !is_running(*process))
        })?;
        self.signal("TERM");
        self.wait_until("the last process does not end", |_| !is_running(last))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only their numbers are known of all but the first, and the last may be none of those that are.
        let last = self.ready().and_then(|ready| ready["pid"].as_u64());
        for process in self.processes.iter().copied().chain(last).filter(|process| is_running(*process)) {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        }
        let _ = self.child.wait();
    }
}

/// Whether it runs; one that has ended and was not waited for does not.
fn is_running(process: u64) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// A client that reads no further than it is asked to.
struct Download {
    child: Child,
    content: ChildStdout,
    first: Vec<u8>,
}

impl Download {
    /// Returns when its first bytes have come.
    fn start(site: &Site, server: &Server) -> Result<Download, String> {
        let mut command = Command::new(PROGRAM);
        command.args(["get", "-k", "-q", "--http", "3", "-o", "-", &server.url(&format!("bytes/{SIZE}"))]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = site.spawn(End::Client, &mut command).map_err(text)?;
        let mut content = child.stdout.take().ok_or("no pipe")?;
        let mut first = vec![0; 100_000];
        let read = content.read_exact(&mut first).map_err(text);
        let download = Download { child, content, first };
        read.map(|()| download)
    }

    /// Reads the rest, and looks at each byte.
    fn finish(mut self) -> Result<(), String> {
        let mut all = std::mem::take(&mut self.first);
        self.content.read_to_end(&mut all).map_err(text)?;
        let status = self.child.wait().map_err(text)?;
        expect(status.success() && all.len() == SIZE, || format!("{} bytes, {status}", all.len()))?;
        let expected = pattern::at(0).iter().cycle().take(SIZE);
        expect(all.iter().eq(expected), || "the content differs".to_owned())
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
