//! Facts about an interface, and what each means.

use super::{CheckResult, Finding, probes};
use netlink::ethtool::{self, Switch};
use netlink::{Link, XdpFeatures, XdpMode};
use std::fs;
use std::path::Path;

/// What is there, before anything is made of it.
pub(super) struct Facts {
    pub(super) link: Link,
    /// The name of a card's driver.
    pub(super) driver: Option<String>,
    /// Queues in use: receiving, sending.
    pub(super) queues: (u32, u32),
    pub(super) qdiscs: Vec<String>,
    /// What the driver offers to XDP; `None` when it cannot be asked.
    pub(super) xdp: Option<XdpFeatures>,
    /// Whether the interface cuts up trains itself; `None` when it does not say.
    pub(super) segments: Option<Switch>,
    pub(super) merges: Option<Switch>,
    /// AF_XDP modes that were tried, and what came of them.
    pub(super) tried: Vec<(&'static str, Result<(), String>)>,
}

impl Facts {
    pub(super) fn gather(link: Link, tried: Vec<(&'static str, Result<(), String>)>) -> Facts {
        let name = link.name.as_str();
        let channels = ethtool::channels(name).ok().filter(|found| found.receiving() > 0);
        let switch = |feature| ethtool::feature(name, feature).ok().map(|feature| feature.switch);
        Facts {
            driver: driver(name),
            queues: channels.map_or((link.rx_queues, link.tx_queues), |c| (c.receiving(), c.sending())),
            qdiscs: netlink::qdiscs(link.index).unwrap_or_default(),
            xdp: netlink::xdp_features(link.index).ok(),
            segments: switch("tx-udp-segmentation"),
            merges: switch("rx-gro"),
            tried,
            link,
        }
    }
}

/// Whether AF_XDP may be tried on this interface.
///
/// # Errors
/// There is none of that name, or it is the loopback interface.
pub(super) fn may_try(name: &str, links: &[Link]) -> Result<(), String> {
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    match links.iter().find(|link| link.name == name) {
        None => Err(format!("there is no interface named {name}: there are {}", names.join(", "))),
        Some(link) if link.is_loopback => {
            Err(format!("{name} has no driver to try AF_XDP on: use --datapath gso there"))
        }
        Some(_) => Ok(()),
    }
}

fn driver(name: &str) -> Option<String> {
    let link = fs::read_link(Path::new("/sys/class/net").join(name).join("device/driver")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

type Check = fn(&Facts) -> CheckResult;

/// All checks of a real interface, in the order in which they are told.
const CHECKS: &[(&str, Check)] = &[
    ("link", link),
    ("queues", queues),
    ("segmentation", segmentation),
    ("merging", merging),
    ("pacing", pacing),
    ("af_xdp", af_xdp),
    ("long packets", long_packets),
];

/// Those of the loopback interface, which has no driver and no queue, and of interfaces that are down.
const FEW_CHECKS: &[(&str, Check)] = &[("link", link)];

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let is_idle = facts.link.is_loopback || !facts.link.is_up;
    let checks = if is_idle { FEW_CHECKS } else { CHECKS };
    let mut findings: Vec<Finding> =
        checks.iter().map(|(check, judge)| Finding { check, answer: judge(facts) }).collect();
    for (mode, outcome) in &facts.tried {
        let answer = match outcome {
            Ok(()) => CheckResult::good("works"),
            // Every interface should have generic mode; the others are a question of its driver.
            Err(why) if *mode == probes::GENERIC => CheckResult::limited(why.clone()),
            Err(why) => CheckResult::note(why.clone()),
        };
        findings.push(Finding { check: mode, answer });
    }
    findings
}

fn link(facts: &Facts) -> CheckResult {
    let Link { name, mtu, kind, is_up, is_running, .. } = &facts.link;
    let what = facts.driver.as_ref().or(kind.as_ref()).map_or(String::new(), |what| format!(", {what}"));
    let found = format!("MTU {mtu}{what}");
    match (is_up, is_running) {
        (false, _) => CheckResult::note(format!("down, {found}")).with(format!("sudo ip link set {name} up")),
        (true, false) => CheckResult::limited(format!("up without a carrier, {found}")),
        (true, true) if *mtu < 1_280 => CheckResult::missing(format!("up, {found}: QUIC needs 1280"))
            .with(format!("sudo ip link set {name} mtu 1500")),
        (true, true) => CheckResult::good(format!("up, {found}")),
    }
}

fn queues(facts: &Facts) -> CheckResult {
    let (receiving, sending) = facts.queues;
    CheckResult::note(match receiving {
        1 => format!("1 receiving, {sending} sending: one worker with --datapath xdp"),
        _ => {
            format!("{receiving} receiving, {sending} sending: up to {receiving} workers with --datapath xdp")
        }
    })
}

fn segmentation(facts: &Facts) -> CheckResult {
    match facts.segments {
        Some(Switch::On) => CheckResult::good("the interface cuts up trains itself"),
        Some(Switch::Off) => CheckResult::note("the kernel cuts up trains before the interface"),
        None => CheckResult::note("the interface does not say"),
    }
}

fn merging(facts: &Facts) -> CheckResult {
    match facts.merges {
        Some(Switch::On) => CheckResult::good("datagrams are merged as they arrive (rx-gro)"),
        Some(Switch::Off) => CheckResult::limited("datagrams arrive one by one")
            .with(format!("sudo ethtool -K {} gro on", facts.link.name)),
        None => CheckResult::note("the interface does not say"),
    }
}

/// Departure times are honoured by the fq queueing discipline. Source: tc-fq(8), `SO_TXTIME`.
fn pacing(facts: &Facts) -> CheckResult {
    let has = |kind: &str| facts.qdiscs.iter().any(|found| found == kind);
    if facts.qdiscs.is_empty() || has("noqueue") {
        return CheckResult::note("no queue: tercel paces by itself");
    }
    let found = facts.qdiscs.join(" ");
    if has("fq") {
        return CheckResult::good(format!("{found}: the kernel holds packets until they are due"));
    }
    let name = &facts.link.name;
    let command = if has("mq") {
        // Under mq each queue has a discipline of its own; the default is used when mq is made anew.
        format!("sudo sysctl -w net.core.default_qdisc=fq && sudo tc qdisc replace dev {name} root mq")
    } else {
        format!("sudo tc qdisc replace dev {name} root fq")
    };
    CheckResult::note(format!("{found}: tercel paces by itself")).with(command)
}

fn af_xdp(facts: &Facts) -> CheckResult {
    let name = &facts.link.name;
    if let Some(attached) = &facts.link.xdp {
        let place = match attached.mode {
            XdpMode::Driver => "in driver mode",
            XdpMode::Generic => "in generic mode",
            XdpMode::Hardware => "on the card",
            XdpMode::Several => "in several modes",
        };
        return CheckResult::limited(format!("program {} is attached {place}", attached.program_id))
            .with(format!("stop who uses it; a forgotten one goes by: sudo ip link set dev {name} xdp off"));
    }
    match facts.xdp {
        Some(XdpFeatures { zero_copy: true, .. }) => CheckResult::good("driver mode, zero-copy"),
        Some(XdpFeatures { driver_mode: true, .. }) => CheckResult::good("driver mode, copying"),
        Some(_) => CheckResult::note("generic mode only: the driver offers nothing"),
        None => CheckResult::note("generic mode; this kernel does not tell what the driver offers"),
    }
}

/// Packets longer than a frame of AF_XDP, which the MTU may carry.
fn long_packets(facts: &Facts) -> CheckResult {
    let (mtu, frame) = (facts.link.mtu, xdp::FRAME_PAYLOAD);
    let takes_several = match facts.xdp {
        Some(XdpFeatures { driver_mode: true, several_buffers, .. }) => several_buffers,
        // Generic mode, which does not depend on the driver.
        _ => true,
    };
    match (mtu as usize > frame + 28, takes_several) {
        (false, true) => CheckResult::note(format!("MTU {mtu}; AF_XDP would follow a larger one")),
        (false, false) => CheckResult::note(format!(
            "MTU {mtu}; with a larger one AF_XDP would send {frame} bytes at most: the driver has no multi-buffer XDP"
        )),
        (true, true) => CheckResult::good(format!(
            "AF_XDP follows the MTU of {mtu} (from Linux 6.6, and not in zero-copy mode)"
        )),
        (true, false) => CheckResult::limited(format!(
            "AF_XDP sends {frame} bytes at most, though the MTU is {mtu}: the driver has no multi-buffer XDP"
        ))
        .with("for longer packets: --xdp-mode generic, or --datapath gso".to_owned()),
    }
}

#[cfg(test)]
mod tests;
