//! Where a measurement was made: what is needed to repeat it.

use std::fmt;
use std::process::{Command, Stdio};

use serde::Serialize;

/// The machine and the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Environment {
    /// The kernel's name and release.
    pub kernel: String,
    /// The CPU's model, as the kernel names it.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The revision of the working directory, `-dirty` when something is not committed; empty outside a repository.
    pub revision: String,
    /// This program's version.
    pub version: &'static str,
    /// Upper limits of socket buffers in bytes: receive, send.
    pub socket_buffers_max: [u64; 2],
    /// The default congestion control of the kernel's TCP outside labs, by the kernel's name.
    pub tcp_congestion: String,
    /// How many processes wanted to run in the last minute, when the measurement began: others disturb it.
    pub load: f64,
}

impl Environment {
    /// This machine, now. What cannot be found out is empty or zero.
    pub fn here() -> Environment {
        let limit = |name: &str| read(&format!("/proc/sys/net/core/{name}")).trim().parse().unwrap_or(0);
        let name = rustix::system::uname();
        Environment {
            kernel: format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy()),
            cpu: cpu_model(&read("/proc/cpuinfo")),
            cores: cpu::allowed().len(),
            revision: revision(),
            version: env!("CARGO_PKG_VERSION"),
            socket_buffers_max: [limit("rmem_max"), limit("wmem_max")],
            tcp_congestion: tcp_congestion(),
            load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Environment { kernel, cpu, cores, version, revision, load, .. } = self;
        write!(f, "{kernel}, {cpu}, {cores} cores, tercel {version} {revision}, load {load}")
    }
}

/// The congestion control that the kernel's TCP uses by default in the calling thread's network namespace; empty if it does not say.
/// Routes may name another: `Site::tcp_congestion` tells what connections have.
fn tcp_congestion() -> String {
    read("/proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// From /proc/cpuinfo. Virtual machines often hide the name, so family and model go along.
fn cpu_model(info: &str) -> String {
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
    };
    let (name, family, model) = (field("model name"), field("cpu family"), field("model"));
    if family.is_empty() { name.to_owned() } else { format!("{name} (family {family}, model {model})") }
}

fn revision() -> String {
    let described = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    described.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name() {
        let here = Environment::here();
        assert!(here.kernel.starts_with("Linux ") && here.cores > 0, "{here:?}");
        let info = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n";
        assert_eq!(cpu_model(info), "AMD EPYC (family 26, model 2)");
        assert_eq!(cpu_model("Processor : ARM"), "");
    }
}
