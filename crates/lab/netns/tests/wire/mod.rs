//! Three hosts on threads for the emulator's tests: left, wire, right, each in a network namespace of its own.
//!
//! Made with `ip`, so that what tests the emulator does not depend on the crate's own namespaces. Nothing remains: a namespace ends
//! with the last thread in it.
#![allow(clippy::allow_attributes, dead_code, reason = "each user takes another part")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what cannot be set up fails the test")]

use std::process::Command;
use std::sync::mpsc::{Sender, channel};

type Job = Box<dyn FnOnce() + Send>;

/// A thread in a namespace of its own, which runs what it is given, one after the other.
pub(crate) struct Host {
    jobs: Sender<Job>,
    /// The thread's number, by which others name its namespace.
    pub(crate) id: i32,
}

impl Host {
    pub(crate) fn new() -> Host {
        let (jobs, todo) = channel::<Job>();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("a network namespace");
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            todo.into_iter().for_each(|job| job());
        });
        Host { jobs, id: told.recv().unwrap() }
    }

    /// Runs `job` in the namespace and waits for it. What it starts (threads, sockets) stays in the namespace.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        self.jobs.send(Box::new(move || drop(tell.send(job())))).unwrap();
        told.recv().expect("the job ended well")
    }

    pub(crate) fn ip(&self, arguments: &str) {
        let words: Vec<String> = arguments.split_whitespace().map(String::from).collect();
        self.run(move || {
            let output = Command::new("ip").args(&words).output().expect("ip is installed");
            assert!(
                output.status.success(),
                "ip {}: {}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        });
    }
}

/// left0 (10.9.0.1, fd09::1) and right0 (10.9.0.2, fd09::2), whose near ends on the wire are `wl` and `wr`.
pub(crate) struct Wire {
    pub(crate) left: Host,
    pub(crate) wire: Host,
    pub(crate) right: Host,
}

impl Wire {
    pub(crate) fn new(mtu: u32) -> Wire {
        let wire = Wire { left: Host::new(), wire: Host::new(), right: Host::new() };
        for (near, far, host, n) in [("wl", "left0", &wire.left, 1), ("wr", "right0", &wire.right, 2)] {
            let (id, other) = (host.id, 3 - n);
            wire.wire.ip(&format!(
                "link add {near} mtu {mtu} type veth peer name {far} mtu {mtu} address 02:00:00:00:09:0{n} netns {id}"
            ));
            wire.wire.ip(&format!("link set {near} addrgenmode none"));
            wire.wire.ip(&format!("link set {near} up"));
            host.ip("link set lo up");
            host.ip(&format!("link set {far} addrgenmode none"));
            host.ip(&format!("addr add 10.9.0.{n}/24 dev {far}"));
            host.ip(&format!("addr add fd09::{n}/64 dev {far} nodad"));
            host.ip(&format!("link set {far} up"));
            host.ip(&format!("neigh add 10.9.0.{other} lladdr 02:00:00:00:09:0{other} dev {far}"));
            host.ip(&format!("neigh add fd09::{other} lladdr 02:00:00:00:09:0{other} dev {far}"));
        }
        wire
    }

    /// Starts an emulator on the wire.
    pub(crate) fn emulate(&self, options: netns::emulator::EmulatorOptions) -> netns::emulator::Emulator {
        let options = netns::emulator::EmulatorOptions { left: "wl".into(), right: "wr".into(), ..options };
        self.wire.run(move || netns::emulator::Emulator::start(&options)).expect("the emulator starts")
    }
}

/// Whether namespaces can be made; says so when not.
pub(crate) fn is_root() -> bool {
    requirements::root("making network namespaces")
}
