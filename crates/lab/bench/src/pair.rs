//! A server of ours and clients of ours, as processes at the two ends of a site.
//!
//! Everything is as a user would run it: `tercel serve`, `tercel get`, their JSON. A [`Server`] that is dropped is killed.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use crate::folder::Folder;
use crate::method::Method;
use crate::process::{Ended, Running};
use crate::site::{End, Site};

/// How long a server may take to listen, and to end.
const SHORT: Duration = Duration::from_secs(15);

/// The program, the place, and what they share.
#[derive(Debug)]
pub struct ProgramPair<'a> {
    /// The tercel program.
    pub program: &'a Path,
    /// Where both run.
    pub site: &'a Site,
    /// Set when all shall end.
    pub stop: &'a AtomicBool,
    folder: Folder,
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    running: Running,
    summary: PathBuf,
    /// Where it listens.
    pub address: SocketAddr,
}

impl<'a> ProgramPair<'a> {
    /// Prepares; nothing runs yet.
    ///
    /// # Errors
    /// No folder can be made for temporary files.
    pub fn new(program: &'a Path, site: &'a Site, stop: &'a AtomicBool) -> io::Result<ProgramPair<'a>> {
        Ok(ProgramPair { program, site, stop, folder: Folder::make()? })
    }

    /// The folder that lasts as long as the pair.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a server on `cores` (any, if there are none) at `address`, with the flags of `method` and `more`, and
    /// waits until it listens.
    ///
    /// # Errors
    /// It does not start, or says why it cannot: its last line is in the error.
    pub fn serve(
        &self,
        method: Method,
        address: IpAddr,
        cores: &[usize],
        more: &[&str],
    ) -> io::Result<Server> {
        let (ready, summary) = (self.folder.fresh("ready.json"), self.folder.fresh("summary.json"));
        let mut command = Command::new(self.program);
        command.args(["serve", "--access-log", "off", "--listen", &SocketAddr::new(address, 0).to_string()]);
        command.args(method.flags(self.site.interface(End::Server))).args(more);
        command.arg("--ready-file").arg(&ready).arg("--summary-file").arg(&summary);
        // The development certificate is kept in the user's data folder: a measurement leaves nothing there.
        command.env("XDG_DATA_HOME", self.folder.path());
        let child = self.site.spawn(End::Server, Running::prepare(&mut command))?;
        let mut running = Running::adopt("the server", child, cores)?;
        running.wait_ready(SHORT, self.stop, || ready.exists())?;
        let told = json(&std::fs::read_to_string(&ready)?)?;
        let port = told["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| io::Error::other("the server does not say its port"))?;
        Ok(Server { running, summary, address: SocketAddr::new(address, port) })
    }

    /// Starts `tercel get` on `cores` (any, if there are none) with the flags of `method` and `more`.
    ///
    /// # Errors
    /// It does not start.
    pub fn get(&self, method: Method, cores: &[usize], more: &[&str]) -> io::Result<Running> {
        let mut command = Command::new(self.program);
        command.args(["get", "--insecure", "--json", "--quiet"]);
        command.args(method.flags(self.site.interface(End::Client))).args(more);
        let child = self.site.spawn(End::Client, Running::prepare(&mut command))?;
        Running::adopt("the client", child, cores)
    }

    /// Starts `tercel load` on `cores` (any, if there are none) with the flags of `more`.
    ///
    /// # Errors
    /// It does not start.
    pub fn load(&self, cores: &[usize], more: &[&str]) -> io::Result<Running> {
        let mut command = Command::new(self.program);
        command.args(["load", "--insecure", "--json", "--quiet"]).args(more);
        let child = self.site.spawn(End::Client, Running::prepare(&mut command))?;
        Running::adopt("the client", child, cores)
    }

    /// Runs a client to its end: its account, and a value for each line that it printed.
    ///
    /// # Errors
    /// It fails, or takes longer than `patience`.
    pub fn fetch(
        &self,
        method: Method,
        cores: &[usize],
        more: &[&str],
        patience: Duration,
    ) -> io::Result<(Ended, Vec<Value>)> {
        let ended = self.get(method, cores, more)?.finish(patience, self.stop)?;
        let lines =
            ended.output.lines().filter(|line| line.starts_with('{')).map(json).collect::<Result<_, _>>()?;
        Ok((ended, lines))
    }
}

impl Server {
    /// The process's id.
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// A URL of it.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}/{path}", self.address)
    }

    /// Asks it to end, and returns its account and its summary.
    ///
    /// # Errors
    /// It fails, or does not end.
    pub fn finish(self, stop: &AtomicBool) -> io::Result<(Ended, Value)> {
        self.running.ask_to_end();
        let ended = self.running.finish(SHORT, stop)?;
        Ok((ended, json(&std::fs::read_to_string(&self.summary)?)?))
    }
}

/// One line of JSON.
fn json(text: &str) -> io::Result<Value> {
    serde_json::from_str(text.trim())
        .map_err(|error| io::Error::other(format!("no JSON from tercel: {error}")))
}

/// A number that tercel's JSON must have.
///
/// # Errors
/// It does not.
pub fn number(from: &Value, name: &str) -> io::Result<f64> {
    from[name].as_f64().ok_or_else(|| io::Error::other(format!("tercel's JSON has no number \"{name}\"")))
}
