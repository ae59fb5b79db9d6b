//! Who sends: tercel with each of its controllers, the kernel's TCP with two, and other implementations as they come.

use serde::Serialize;
use sim::networks::{ALGORITHMS, name as controller_name};

use crate::contestants::{Contestant, Http, Installed, InstalledServers};

/// The sender that chooses by itself, beginning with as many packets as RFC 9002 §7.2 recommends.
pub(super) const TEN: &str = "tercel auto, ten packets";

/// The kernel's controllers that are compared.
const KERNEL: [&str; 2] = ["cubic", "bbr"];

/// How the sender's congestion controller is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Control {
    /// By `tercel serve --congestion`, which has this name in lower case.
    Flag(&'static str),
    /// By itself, with `tercel serve --initial-window` of so many packets.
    Begin(&'static str),
    /// By the namespace: the kernel's name of it.
    Kernel(&'static str),
    /// The library's default.
    Default,
}

impl Control {
    /// What `tercel serve` is started with. It searches for the packet size, as it does by default.
    pub(super) fn flags(self) -> Vec<String> {
        const SEARCH: [&str; 2] = ["--mtu-search", "fast"];
        let controller = match self {
            Control::Flag(name) => vec!["--congestion", name],
            Control::Begin(packets) => vec!["--congestion", "auto", "--initial-window", packets],
            Control::Kernel(_) | Control::Default => return Vec::new(),
        };
        controller.into_iter().chain(SEARCH).map(str::to_ascii_lowercase).collect()
    }
}

/// A server, what it speaks, and its controller.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) name: String,
    pub(super) server: Installed,
    pub(super) http: Http,
    pub(super) control: Control,
}

impl Sender {
    /// Whether it is tercel.
    pub(super) fn is_ours(&self) -> bool {
        self.server.who == Contestant::Tercel
    }
}

/// All senders that this machine has, and a sentence for each that it lacks. `kernel` has the names of the kernel's controllers.
pub(super) fn senders(field: &InstalledServers, kernel: &str) -> (Vec<Sender>, Vec<String>) {
    let (mut senders, mut absent) = (Vec::new(), field.absent.clone());
    for server in &field.installed {
        let mut add = |name: String, http, control| {
            senders.push(Sender { name, server: server.clone(), http, control });
        };
        match server.who {
            Contestant::Tercel => {
                for algorithm in ALGORITHMS {
                    let name = controller_name(algorithm);
                    add(format!("tercel {name}"), Http::Three, Control::Flag(name));
                }
                add(TEN.to_owned(), Http::Three, Control::Begin("10"));
            }
            Contestant::Nginx => {
                for name in KERNEL {
                    if kernel.split_whitespace().any(|known| known == name) {
                        add(format!("TCP {}", name.to_uppercase()), Http::Two, Control::Kernel(name));
                    } else {
                        absent.push(format!("The kernel has no {name} for TCP."));
                    }
                }
            }
            who => add(who.name().trim_end_matches(" + h3").to_owned(), Http::Three, Control::Default),
        }
    }
    (senders, absent)
}
