//! Judgement, with facts of interfaces that are elsewhere.

use super::super::Severity;
use super::*;
use netlink::XdpAttached;

fn facts() -> Facts {
    Facts {
        link: Link {
            index: 2,
            name: "eth9".to_owned(),
            mac: None,
            mtu: 1_500,
            is_up: true,
            is_running: true,
            is_loopback: false,
            kind: None,
            bus: Some("pci".to_owned()),
            rx_queues: 4,
            tx_queues: 4,
            xdp: None,
        },
        driver: Some("ice".to_owned()),
        queues: (4, 4),
        qdiscs: vec!["fq".to_owned()],
        xdp: Some(XdpFeatures { driver_mode: true, zero_copy: true, several_buffers: true }),
        segments: Some(Switch::On),
        merges: Some(Switch::On),
        tried: Vec::new(),
    }
}

fn answer(facts: &Facts, check: &str) -> CheckResult {
    judge(facts).into_iter().find(|finding| finding.check == check).unwrap().answer
}

#[test]
fn a_good_card_needs_nothing() {
    assert!(judge(&facts()).iter().all(|finding| finding.answer.remedy.is_none()));
    assert_eq!(answer(&facts(), "link").found, "up, MTU 1500, ice");
    assert_eq!(answer(&facts(), "af_xdp").found, "driver mode, zero-copy");
}

#[test]
fn what_could_be_better_comes_with_its_command() {
    let mut facts = facts();
    facts.qdiscs = vec!["fq_codel".to_owned()];
    facts.merges = Some(Switch::Off);
    facts.link.xdp = Some(XdpAttached { mode: XdpMode::Driver, program_id: 7 });
    for (check, command) in [
        ("pacing", "tc qdisc replace dev eth9 root fq"),
        ("merging", "ethtool -K eth9 gro on"),
        ("af_xdp", "ip link set dev eth9 xdp off"),
    ] {
        assert!(answer(&facts, check).remedy.unwrap().contains(command), "{check}");
    }
    facts.qdiscs = vec!["mq".to_owned(), "fq_codel".to_owned()];
    assert!(answer(&facts, "pacing").remedy.unwrap().ends_with("dev eth9 root mq"));
    facts.link.is_up = false;
    assert!(answer(&facts, "link").remedy.unwrap().contains("ip link set eth9 up"));
    assert_eq!(judge(&facts).len(), 1, "nothing else means anything while it is down");
}

#[test]
fn the_loopback_interface_is_not_asked_what_it_cannot_have() {
    let mut facts = facts();
    facts.link.is_loopback = true;
    assert_eq!(judge(&facts).len(), 1);
    let refused = may_try("eth9", &[facts.link.clone()]).unwrap_err();
    assert!(refused.contains("gso"), "{refused}");
    assert!(may_try("eth8", &[facts.link]).unwrap_err().contains("eth9"));
}

#[test]
fn what_was_tried_is_told_mode_by_mode() {
    let refused = || Err("no driver support".to_owned());
    let tried = vec![("xdp zero-copy", Ok(())), ("xdp driver", refused()), ("xdp generic", refused())];
    let facts = Facts { tried, xdp: None, ..facts() };
    assert_eq!(answer(&facts, "xdp zero-copy").state, Severity::Good);
    assert_eq!(answer(&facts, "xdp driver"), CheckResult::note("no driver support"));
    assert_eq!(answer(&facts, "xdp generic").state, Severity::Limited);
    assert_eq!(answer(&facts, "af_xdp").state, Severity::Note);
}

#[test]
fn long_packets_are_told_of_where_the_mtu_has_them() {
    let told = |mtu, several_buffers| {
        let mut facts = facts();
        facts.link.mtu = mtu;
        facts.xdp = Some(XdpFeatures { driver_mode: true, zero_copy: false, several_buffers });
        answer(&facts, "long packets")
    };
    assert_eq!(told(1_500, false).state, Severity::Note);
    assert_eq!(told(9_000, true).state, Severity::Good);
    let limited = told(9_000, false);
    assert_eq!(limited.state, Severity::Limited);
    assert!(limited.found.contains("3770") && limited.remedy.unwrap().contains("--xdp-mode generic"));
}
