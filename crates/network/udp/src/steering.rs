//! How the datagrams of a connection find their worker's socket among those bound to one address.
//!
//! The rule is one for all: the worker is byte 3 of the destination connection ID, modulo the number of workers (see
//! `ebpf::steer`). An eBPF program applies it to sockets that it is given by name, a classic BPF program to the order in
//! which they were bound, which needs no privilege. Without either, the kernel chooses by addresses and ports, and workers
//! pass on in user space what is not theirs.

use core::fmt;
use core::str::FromStr;
use std::io;
use std::os::fd::BorrowedFd;

use ebpf::steer::ReuseportProgram;

use crate::sys;

/// What the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SteeringChoice {
    /// The first of the others that this system permits, in their order.
    #[default]
    Auto,
    /// An eBPF program, or an error.
    Ebpf,
    /// A classic BPF program, or an error.
    Classic,
    /// The kernel's hash of addresses and ports, then user space.
    HandOff,
}

impl SteeringChoice {
    /// All of them.
    pub const ALL: [SteeringChoice; 4] =
        [SteeringChoice::Auto, SteeringChoice::Ebpf, SteeringChoice::Classic, SteeringChoice::HandOff];

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            SteeringChoice::Auto => "auto",
            SteeringChoice::Ebpf => "ebpf",
            SteeringChoice::Classic => "classic",
            SteeringChoice::HandOff => "hand-off",
        }
    }
}

impl fmt::Display for SteeringChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads what [`SteeringChoice::name`] writes; the error says what there is to choose from.
impl FromStr for SteeringChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<SteeringChoice, String> {
        let found = SteeringChoice::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| format!("there is no steering \"{name}\": auto, ebpf, classic or hand-off"))
    }
}

/// What is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// There is one worker, and nothing to choose.
    Single,
    /// An eBPF program.
    Ebpf,
    /// A classic BPF program.
    Classic,
    /// The kernel's hash of addresses and ports; workers hand over what is not theirs.
    HandOff,
}

impl Steering {
    /// All of them.
    pub const ALL: [Steering; 4] = [Steering::Single, Steering::Ebpf, Steering::Classic, Steering::HandOff];

    /// Its name, for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Steering::Single => "single",
            Steering::Ebpf => "ebpf",
            Steering::Classic => "classic",
            Steering::HandOff => "hand-off",
        }
    }
}

impl fmt::Display for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whom a group of sockets consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Members {
    /// These sockets and no others, in the order of binding.
    Ours,
    /// Perhaps other sockets too.
    Perhaps,
}

/// Loads the eBPF program for `sockets`, which make a group, and attaches it.
pub(crate) fn steer_by_ebpf(sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let workers = u8::try_from(sockets.len()).map_err(io::Error::other)?;
    let mut program = ReuseportProgram::load(workers).map_err(io::Error::other)?;
    for (index, socket) in (0..workers).zip(sockets) {
        program.insert(index, socket).map_err(io::Error::other)?;
    }
    let Some(first) = sockets.first() else { return Ok(()) };
    program.attach(first).map_err(io::Error::other)
}

/// Attaches the classic program to `sockets`, which make a group and were bound in this order.
pub(crate) fn steer_by_classic(sockets: &[BorrowedFd<'_>], members: Members) -> io::Result<()> {
    if members == Members::Perhaps {
        return Err(io::Error::other(
            "a classic program counts all sockets of the address, and others may share it",
        ));
    }
    let Some(first) = sockets.first() else { return Ok(()) };
    sys::attach_classic(*first, &classic_program(sockets.len() as u32))
}

/// The program: it sees the UDP payload and returns a worker's number. A load beyond the end returns 0.
fn classic_program(workers: u32) -> [libc::sock_filter; 10] {
    const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    const MODULO: u32 = libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K;
    // A jump passes over that many of the instructions that follow: `jt` if the comparison holds, else `jf`.
    let filter = |code: u32, k: u32, (jt, jf): (u8, u8)| libc::sock_filter { code: code as u16, jt, jf, k };
    let plain = |code: u32, k: u32| filter(code, k, (0, 0));
    [
        plain(LOAD_BYTE, 0),
        filter(libc::BPF_JMP | libc::BPF_JSET, 0x80, (2, 0)),
        // A short header: the ID, of 8 bytes, begins at byte 1.
        plain(LOAD_BYTE, 4),
        plain(libc::BPF_JMP | libc::BPF_JA, 3),
        // A long header: the ID's length is at byte 5, the ID behind it. An ID without a byte 3 is worker 0's.
        plain(LOAD_BYTE, 5),
        filter(libc::BPF_JMP | libc::BPF_JGE, 4, (0, 3)),
        plain(LOAD_BYTE, 9),
        plain(MODULO, workers.max(1)),
        plain(libc::BPF_RET | libc::BPF_A, 0),
        plain(libc::BPF_RET | libc::BPF_K, 0),
    ]
}
