//! Where a measurement was made: what is needed to repeat it.

use std::fmt;
use std::process::{Command, Stdio};

use serde::Serialize;

/// Instructions that encryption and copies are made of, by the kernel's names.
const INSTRUCTIONS: [&str; 10] =
    ["aes", "pclmulqdq", "avx2", "vaes", "vpclmulqdq", "avx512f", "avx512vl", "avx512bw", "gfni", "erms"];

/// The size of the second cache of the first core.
const SECOND_CACHE: &str = "/sys/devices/system/cpu/cpu0/cache/index2/size";

/// The machine and the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Environment {
    /// The kernel's name and release.
    pub kernel: String,
    /// The CPU's model, as the kernel names it, with its family, its model and the microarchitecture that they stand for.
    pub cpu: String,
    /// What the CPU has of the instructions that measurements depend on, and the size of its second cache.
    pub cpu_features: String,
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
            cpu_features: cpu_features(&read("/proc/cpuinfo"), read(SECOND_CACHE).trim()),
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
    let (name, family, model) = (field(info, "model name"), field(info, "cpu family"), field(info, "model"));
    if family.is_empty() {
        return name.to_owned();
    }
    let known = match (field(info, "vendor_id"), family.parse(), model.parse()) {
        ("AuthenticAMD", Ok(family), Ok(model)) => zen(family, model),
        _ => None,
    };
    let known = known.map_or(String::new(), |known| format!(": {known}"));
    format!("{name} (family {family}, model {model}{known})")
}

/// The microarchitecture of AMD's CPUs, where it is known. Source: Linux, arch/x86/kernel/cpu/amd.c.
const fn zen(family: u32, model: u32) -> Option<&'static str> {
    match (family, model) {
        (0x17, 0x00..=0x2f | 0x50..=0x5f) => Some("Zen 1"),
        (0x17, 0x30..=0x4f | 0x60..=0x7f | 0x90..=0x91 | 0xa0..=0xaf) => Some("Zen 2"),
        (0x19, 0x00..=0x0f | 0x20..=0x5f) => Some("Zen 3"),
        (0x19, 0x10..=0x1f | 0x60..=0xaf) => Some("Zen 4"),
        (0x1a, 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => Some("Zen 5"),
        _ => None,
    }
}

/// The [`INSTRUCTIONS`] that /proc/cpuinfo has, and the size of the second cache, if it is known.
fn cpu_features(info: &str, second_cache: &str) -> String {
    let flags: Vec<&str> = field(info, "flags").split(' ').collect();
    let mut known: Vec<&str> = INSTRUCTIONS.into_iter().filter(|name| flags.contains(name)).collect();
    let cache = format!("L2 {second_cache}");
    known.extend((!second_cache.is_empty()).then_some(cache.as_str()));
    known.join(", ")
}

/// A field of the first core in /proc/cpuinfo; empty if there is none.
fn field<'a>(info: &'a str, name: &str) -> &'a str {
    let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
    line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
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

    /// Deleted, results could be said to be of another generation of CPUs than the one that they were measured on.
    #[test]
    fn a_microarchitecture_is_named_by_family_and_model() {
        let info = |family: u32, model: u32| {
            format!(
                "vendor_id\t: AuthenticAMD\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: AMD EPYC\n"
            )
        };
        let [milan, genoa, turin] =
            [(25, 1), (25, 17), (26, 2)].map(|(family, model)| cpu_model(&info(family, model)));
        assert_eq!(milan, "AMD EPYC (family 25, model 1: Zen 3)");
        assert_eq!(genoa, "AMD EPYC (family 25, model 17: Zen 4)");
        assert_eq!(turin, "AMD EPYC (family 26, model 2: Zen 5)");
        assert_eq!(cpu_model(&info(25, 0xff)), "AMD EPYC (family 25, model 255)");
        let flags = "processor\t: 0\nflags\t\t: fpu aes avx2 avx512f vaes avx512_vnni\n";
        assert_eq!(cpu_features(flags, "1024K"), "aes, avx2, vaes, avx512f, L2 1024K");
        assert_eq!(cpu_features("", ""), "");
    }
}
