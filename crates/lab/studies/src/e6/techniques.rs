//! The techniques of study E6: how each is left out, and what others found it to be worth.
//!
//! Those that are chosen when tercel is built are in `builds`; those that need another place to be measured in `steering` and
//! `departures`. What nothing leaves out is in [`ELSEWHERE`], in words: a row that was not measured is not shown.

use bench::method::Method;

use crate::downloads::DownloadSeries;

/// UDP payload of full packets, the same for all: an Ethernet frame over IPv4.
pub(super) const PAYLOAD: u16 = 1_472;
/// The same as flags, and the cipher.
pub(super) const SIZE: [&str; 6] = ["--packet-size", "1472", "--mtu-search", "off", "--cipher", "aes128"];

/// A technique.
#[derive(Clone, Copy, Debug)]
pub(super) struct Technique {
    /// The row: what it is like without, or with something else instead.
    pub(super) name: &'static str,
    /// What was claimed for it.
    pub(super) published: Option<&'static str>,
    /// The server's data path.
    method: Method,
    /// Flags that leave it out at the server, and at the client.
    server: &'static [&'static str],
    client: &'static [&'static str],
}

impl Technique {
    pub(super) fn lane(&self) -> DownloadSeries {
        let both = |flags: &[&'static str]| [&SIZE, flags].concat();
        DownloadSeries::apart(self.name, self.method, &both(self.server), &both(self.client))
    }
}

/// Left out at the server only: it is about sending.
const fn sending(
    name: &'static str,
    published: Option<&'static str>,
    server: &'static [&'static str],
) -> Technique {
    Technique { name, published, method: Method::Gso, server, client: &[] }
}

/// Left out at both ends.
const fn both(
    name: &'static str,
    published: Option<&'static str>,
    flags: &'static [&'static str],
) -> Technique {
    Technique { name, published, method: Method::Gso, server: flags, client: flags }
}

/// All that are left out, one at a time.
pub(super) const TECHNIQUES: [Technique; 16] = [
    sending("without GSO on send", Some("about 5 times in typical cases"), &["--without", "gso"]),
    sending("without sendmmsg", Some("a saved system call per packet only"), &["--without", "sendmmsg"]),
    sending("without GSO and sendmmsg", None, &["--without", "gso,sendmmsg"]),
    both("without GRO on receive", Some("35 % of receive CPU"), &["--without", "gro"]),
    both("without recvmmsg", None, &["--without", "recvmmsg"]),
    both("one message taken in before acting", None, &["--without", "receive-batches"]),
    Technique {
        name: "one datagram per system call, both ways",
        published: None,
        method: Method::Plain,
        server: &[],
        client: &[],
    },
    Technique {
        name: "AF_XDP in the driver instead of kernel UDP",
        published: None,
        method: Method::XdpDriver,
        server: &[],
        client: &[],
    },
    Technique {
        name: "long trains by io_uring, without a copy where the interface takes them so",
        published: None,
        method: Method::Uring,
        server: &[],
        client: &[],
    },
    sending("bursts of 4 packets a send", None, &["--pacing-burst", "4"]),
    sending("bursts of 16 packets a send", None, &["--pacing-burst", "16"]),
    both(
        "an acknowledgement for every second packet",
        Some("25 % of the sender's CPU"),
        &["--ack-frequency", "off", "--ack-every", "2"],
    ),
    both("no ACK frequency, every 10th packet", None, &["--ack-frequency", "off", "--ack-every", "10"]),
    sending("stream data copied into packets, then encrypted", None, &["--aead", "copy"]),
    both("packets encrypted by a library", None, &["--aead", "library"]),
    both("BBR instead of the controller that chooses", None, &["--congestion", "bbr"]),
];

/// Those of connections. Only a build with the feature `experiments` can do without them: each is compared with everything in that
/// build.
pub(super) const IN_CONNECTIONS: [Technique; 5] = [
    both("header protection packet by packet", None, &["--without", "train-masks"]),
    both("acknowledged ranges not merged", None, &["--without", "merged-acks"]),
    both(
        "in-order data copied before it is lent",
        Some("fast paths: 5 % alone"),
        &["--without", "lent-data"],
    ),
    both("the application's buffers copied", None, &["--without", "shared-buffers"]),
    both("packets of a train that are alike one by one", None, &["--without", "runs"]),
];

/// What is not in the table, and why.
pub(super) const ELSEWHERE: [&str; 6] = [
    "io_uring spares a copy on network cards. Between two ends of one machine, over veth or loopback, the kernel copies all the same, and \
     tercel sends as without it: that row then shows what having it costs (docs/decisions/024).",
    "Without GRO at the client the kernel cuts the server's trains into packets before they cross a veth pair or loopback, on the \
     server's CPU time: on a real link the card or the driver would do that in either case.",
    "AF_XDP in its other modes, and against each way through the kernel, is study E1.",
    "How tercel is built, and cannot be switched off: streams own their data, and information is sent again, never packets; nothing \
     is allocated per packet; buffers are contiguous; the state of a connection lies in one slab of its worker, without virtual calls \
     for each packet; a packet whose frames are in order takes the shortest way.",
    "Header protection inside the payload's encryption is not built; the row on header protection compares masks for a whole train \
     with masks for each packet.",
    "Of the congestion controllers the table has auto, which is CUBIC on such a link, and BBR; NewReno, CUBIC and Prague are chosen by --congestion, too.",
];
