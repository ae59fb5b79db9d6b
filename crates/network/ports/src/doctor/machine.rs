//! Facts about the kernel, this process and its limits, and what each means.

use super::probes::{self, Offloads};
use super::{CheckOptions, CheckResult, Finding};
use crate::Memory;
use crate::capabilities::{BPF, Capabilities, IPC_LOCK, NET_ADMIN, NET_RAW};
use crate::open_error;
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use std::fs;
use std::thread::available_parallelism;
use udp::{BindOptions, SteeringChoice, Variant};

/// What is there, before anything is made of it.
pub(super) struct Facts {
    /// `6.12.3-generic`
    pub(super) kernel: String,
    /// Cores that this process may use, and all.
    pub(super) cores: (usize, usize),
    /// Flags of the first core.
    pub(super) cpu_flags: String,
    pub(super) capabilities: Capabilities,
    /// The program that could be given more.
    pub(super) program: String,
    pub(super) offloads: Result<Offloads, String>,
    /// Whether trains can leave without a copy.
    pub(super) lending: Result<(), String>,
    /// What the system allows an ordinary program in bytes: to receive, to send; `None` when it does not say.
    pub(super) limits: (Option<usize>, Option<usize>),
    pub(super) ebpf: Result<(), String>,
    /// Whether programs are compiled; `None` when the kernel does not say.
    pub(super) jit: Option<bool>,
    pub(super) xdp_socket: Result<(), String>,
    /// Bytes that may be locked in memory; `None` is without a limit.
    pub(super) memlock: Option<u64>,
    pub(super) classic: Result<(), String>,
    /// What this process may take.
    pub(super) memory: Option<Memory>,
}

impl Facts {
    pub(super) fn gather(request: &CheckOptions) -> Facts {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let count = |path: &str| read(path).lines().filter(|line| line.starts_with("processor")).count();
        let limit = |name: &str| read(&format!("/proc/sys/net/core/{name}")).trim().parse().ok();
        let allowed = available_parallelism().map_or(1, usize::from);
        Facts {
            kernel: uname().release().to_string_lossy().into_owned(),
            cores: (allowed, count("/proc/cpuinfo").max(allowed)),
            cpu_flags: cpu_flags(&read("/proc/cpuinfo")),
            capabilities: Capabilities::of_status(&read("/proc/self/status")).unwrap_or_default(),
            program: request.program.display().to_string(),
            offloads: probes::offloads(),
            lending: probes::lending(),
            limits: (limit("rmem_max"), limit("wmem_max")),
            ebpf: probes::ebpf(),
            jit: match read("/proc/sys/net/core/bpf_jit_enable").trim() {
                "" => None,
                text => Some(text != "0"),
            },
            xdp_socket: probes::xdp_socket().map_err(|error| error.to_string()),
            memlock: getrlimit(Resource::Memlock).current,
            classic: probes::steering(SteeringChoice::Classic),
            memory: Memory::available(),
        }
    }
}

type Check = fn(&Facts) -> CheckResult;

/// All checks, in the order in which they are told.
const CHECKS: &[(&str, Check)] = &[
    ("kernel", kernel),
    ("cores", cores),
    ("aes", aes),
    ("capabilities", capabilities),
    ("gso", gso),
    ("gro", gro),
    ("io_uring", io_uring),
    ("receive buffer", receive_buffer),
    ("send buffer", send_buffer),
    ("ebpf", ebpf),
    ("ebpf compiler", jit),
    ("steering", steering),
    ("af_xdp", af_xdp),
    ("locked memory", locked_memory),
    ("memory", memory),
];

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    CHECKS.iter().map(|(check, judge)| Finding { check, answer: judge(facts) }).collect()
}

fn kernel(facts: &Facts) -> CheckResult {
    let found = format!("Linux {}", facts.kernel);
    match version(&facts.kernel) {
        Some(version) if version < (5, 0) => {
            CheckResult::missing(format!("{found}: no GRO for UDP")).with("Linux 5.10 or newer")
        }
        Some(version) if version < (5, 10) => {
            CheckResult::limited(format!("{found}: AF_XDP without busy polling")).with("Linux 5.10 or newer")
        }
        Some(_) => CheckResult::good(found),
        None => CheckResult::note(found),
    }
}

fn cores(facts: &Facts) -> CheckResult {
    let (allowed, all) = facts.cores;
    if allowed < all {
        return CheckResult::note(format!("{allowed} of {all} may be used"));
    }
    CheckResult::good(if all == 1 { "1".to_owned() } else { format!("{all}: --workers auto uses them all") })
}

fn aes(facts: &Facts) -> CheckResult {
    let has = |flag: &str| facts.cpu_flags.split_whitespace().any(|found| found == flag);
    match (has("aes"), has("vaes")) {
        (true, true) => CheckResult::good("in hardware, several blocks at a time (VAES)"),
        (true, false) => CheckResult::good("in hardware"),
        (false, _) if facts.cpu_flags.is_empty() => CheckResult::note("the system does not say"),
        (false, _) => CheckResult::limited("none in hardware: ChaCha20-Poly1305 is faster here")
            .with("--cipher chacha20 where both ends are like this one"),
    }
}

fn capabilities(facts: &Facts) -> CheckResult {
    let found = facts.capabilities.to_string();
    match facts.capabilities.lacks(&[NET_RAW, NET_ADMIN, BPF]).as_slice() {
        [] => CheckResult::good(found),
        missing => CheckResult::limited(format!("{found}; AF_XDP needs {} too", missing.join(" ")))
            .with(setcap(facts)),
    }
}

fn setcap(facts: &Facts) -> String {
    open_error::setcap(&facts.program)
}

fn gso(facts: &Facts) -> CheckResult {
    match &facts.offloads {
        Ok(Offloads { gso: true, .. }) => CheckResult::good("a train of datagrams leaves in one piece"),
        Ok(_) => CheckResult::missing("this kernel cuts no trains up: sending costs several times more")
            .with("Linux 4.18 or newer; some sandboxes have no UDP_SEGMENT"),
        Err(why) => CheckResult::missing(why.clone()),
    }
}

fn gro(facts: &Facts) -> CheckResult {
    match &facts.offloads {
        Ok(Offloads { gro: true, .. }) => CheckResult::good("it arrives in one piece"),
        Ok(Offloads { gso: false, .. }) => CheckResult::note("cannot be tried without GSO"),
        Ok(_) => CheckResult::missing("datagrams arrive one by one")
            .with("Linux 5.0 or newer; some sandboxes have no UDP_GRO"),
        Err(why) => CheckResult::missing(why.clone()),
    }
}

fn io_uring(facts: &Facts) -> CheckResult {
    match &facts.lending {
        Ok(()) => CheckResult::good(
            "--datapath uring can send long trains without a copy; --datapath auto tells where that is cheaper",
        ),
        // Nothing is missing that a server needs.
        Err(why) => CheckResult::note(format!("--datapath uring would be gso: {why}")),
    }
}

fn receive_buffer(facts: &Facts) -> CheckResult {
    let granted = facts.offloads.as_ref().map(|offloads| offloads.buffers.0);
    buffer(("rmem_max", facts.limits.0), asked().receive_buffer, granted)
}

fn send_buffer(facts: &Facts) -> CheckResult {
    let granted = facts.offloads.as_ref().map(|offloads| offloads.buffers.1);
    buffer(("wmem_max", facts.limits.1), asked().send_buffer, granted)
}

fn buffer(limit: (&str, Option<usize>), asked: usize, granted: Result<usize, &String>) -> CheckResult {
    match (granted, limit) {
        (Err(why), _) => CheckResult::missing(why.clone()),
        // Who has CAP_NET_ADMIN goes beyond the limit.
        (Ok(granted), (name, Some(limit))) if granted >= asked && limit < asked => CheckResult::good(
            format!("{} KiB by privilege; {name} allows others {}", granted >> 10, limit >> 10),
        ),
        (Ok(granted), _) if granted >= asked => {
            CheckResult::good(format!("{} KiB, all that is asked for", asked >> 10))
        }
        (Ok(granted), (name, _)) => CheckResult::limited(format!(
            "{} KiB of {}: bursts are lost at high rates",
            granted >> 10,
            asked >> 10
        ))
        .with(format!("sudo sysctl -w net.core.{name}={asked}")),
    }
}

/// What ports ask for.
fn asked() -> BindOptions {
    BindOptions::new((core::net::Ipv4Addr::UNSPECIFIED, 0).into(), Variant::default())
}

fn ebpf(facts: &Facts) -> CheckResult {
    match &facts.ebpf {
        Ok(()) => CheckResult::good("programs may be loaded"),
        Err(why) => CheckResult::limited(why.clone()).with(setcap(facts)),
    }
}

fn jit(facts: &Facts) -> CheckResult {
    match facts.jit {
        Some(true) => CheckResult::good("on"),
        Some(false) => CheckResult::limited("off: programs are interpreted for every packet")
            .with("sudo sysctl -w net.core.bpf_jit_enable=1"),
        None => CheckResult::note("the kernel does not say"),
    }
}

fn steering(facts: &Facts) -> CheckResult {
    match (&facts.ebpf, &facts.classic) {
        (Ok(()), _) => CheckResult::good("by eBPF; classic BPF and hand-off are there too"),
        (Err(_), Ok(())) => CheckResult::good("by classic BPF, which is as good; hand-off is there too"),
        (Err(_), Err(why)) => CheckResult::limited(format!("by hand-off in user space only: {why}")),
    }
}

fn af_xdp(facts: &Facts) -> CheckResult {
    match (&facts.xdp_socket, &facts.ebpf) {
        (Ok(()), Ok(())) => CheckResult::good("sockets can be had; the interfaces say below what they take"),
        (Ok(()), Err(_)) => {
            CheckResult::limited("sockets can be had, but no program may be loaded").with(setcap(facts))
        }
        (Err(why), _) if facts.capabilities.lacks(&[NET_RAW]).is_empty() => {
            CheckResult::missing(format!("no socket: {why}")).with("a kernel with CONFIG_XDP_SOCKETS")
        }
        (Err(why), _) => CheckResult::limited(format!("no socket: {why}")).with(setcap(facts)),
    }
}

/// What an AF_XDP socket's frames take: 4,096 of 4 KiB with their rings.
const UMEM: u64 = 17 << 20;

fn locked_memory(facts: &Facts) -> CheckResult {
    match facts.memlock {
        None => CheckResult::good("without a limit"),
        Some(_) if facts.capabilities.has(IPC_LOCK) => CheckResult::good("without a limit (cap_ipc_lock)"),
        Some(bytes) if bytes >= UMEM => CheckResult::good(format!("{} KiB", bytes >> 10)),
        Some(bytes) => {
            CheckResult::limited(format!("{} KiB, too little for the frames of AF_XDP", bytes >> 10))
                .with("ulimit -l unlimited, or LimitMEMLOCK=infinity in the systemd unit")
        }
    }
}

/// Below this a server soon answers with 503, in bytes.
const LITTLE: u64 = 64 << 20;

fn memory(facts: &Facts) -> CheckResult {
    let Some(memory) = facts.memory else { return CheckResult::note("the system does not say how much") };
    let found = format!(
        "{} MiB to be had ({}): the connections of tercel serve may hold {} MiB of it",
        memory.bytes >> 20,
        memory.bound,
        memory.share() >> 20
    );
    match memory.bytes {
        0..LITTLE => CheckResult::limited(found).with("raise that limit, or tercel serve --memory"),
        _ => CheckResult::good(found),
    }
}

/// Major and minor number of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The flags of the first core: x86 calls them `flags`, ARM `Features`.
fn cpu_flags(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    line.and_then(|line| line.split_once(':')).map_or(String::new(), |(_, flags)| flags.trim().to_owned())
}

#[cfg(test)]
mod tests;
