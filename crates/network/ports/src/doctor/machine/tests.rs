//! Judgement, with facts of machines that are elsewhere.

use super::super::Severity;
use super::*;

fn facts() -> Facts {
    Facts {
        kernel: "6.12.3-generic".to_owned(),
        cores: (8, 8),
        cpu_flags: "fpu aes vaes".to_owned(),
        capabilities: Capabilities::of_status("CapEff:\t000001ffffffffff").unwrap(),
        program: "/usr/bin/tercel".to_owned(),
        offloads: Ok(Offloads { gso: true, gro: true, buffers: (8 << 20, 4 << 20) }),
        lending: Ok(()),
        limits: (Some(8 << 20), None),
        ebpf: Ok(()),
        jit: Some(true),
        xdp_socket: Ok(()),
        memlock: Some(8 << 20),
        classic: Ok(()),
        memory: Some(Memory { bytes: 8 << 30, bound: "free memory" }),
    }
}

fn answer(facts: &Facts, check: &str) -> CheckResult {
    judge(facts).into_iter().find(|finding| finding.check == check).unwrap().answer
}

#[test]
fn a_machine_that_has_it_all_needs_nothing() {
    for finding in judge(&facts()) {
        assert_eq!(finding.answer.state, Severity::Good, "{finding:?}");
        assert_eq!(finding.answer.remedy, None, "{finding:?}");
    }
}

#[test]
fn an_ordinary_user_is_told_each_command() {
    let refused = || Err("not permitted".to_owned());
    let facts = Facts {
        capabilities: Capabilities::default(),
        offloads: Ok(Offloads { gso: true, gro: true, buffers: (208 << 10, 208 << 10) }),
        ebpf: refused(),
        xdp_socket: refused(),
        ..facts()
    };
    let setcap = "sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep /usr/bin/tercel";
    for (check, remedy) in [
        ("capabilities", setcap),
        ("ebpf", setcap),
        ("af_xdp", setcap),
        ("receive buffer", "sudo sysctl -w net.core.rmem_max=8388608"),
        ("send buffer", "sudo sysctl -w net.core.wmem_max=4194304"),
    ] {
        let answer = answer(&facts, check);
        assert_eq!(answer.remedy.as_deref(), Some(remedy), "{check}");
        assert_eq!(answer.state, Severity::Limited, "{check}");
    }
    assert!(answer(&facts, "locked memory").remedy.unwrap().contains("ulimit -l unlimited"));
    // Steering by classic BPF needs no privilege.
    assert_eq!(answer(&facts, "steering").state, Severity::Good);
}

#[test]
fn a_limit_that_privilege_overcomes_is_told() {
    let answer = answer(&Facts { limits: (Some(208 << 10), None), ..facts() }, "receive buffer");
    assert_eq!(answer.state, Severity::Good);
    assert!(answer.found.contains("rmem_max allows others 208"), "{answer:?}");
}

#[test]
fn old_kernels_and_small_machines_are_seen_as_such() {
    let old = Facts { kernel: "4.19.0".to_owned(), ..facts() };
    assert_eq!(answer(&old, "kernel").state, Severity::Missing);
    let older = Facts { kernel: "5.4.0-200-generic".to_owned(), ..facts() };
    assert_eq!(answer(&older, "kernel").state, Severity::Limited);
    let odd = Facts { kernel: "next".to_owned(), cpu_flags: "fpu".to_owned(), cores: (2, 8), ..facts() };
    assert_eq!(answer(&odd, "kernel").state, Severity::Note);
    assert!(answer(&odd, "aes").remedy.unwrap().contains("chacha20"));
    assert_eq!(answer(&odd, "cores").found, "2 of 8 may be used");
    let without = Facts { offloads: Ok(Offloads { gso: false, gro: false, buffers: (1, 1) }), ..facts() };
    assert_eq!(answer(&without, "gso").state, Severity::Missing);
    assert_eq!(answer(&without, "gro").state, Severity::Note);
}

#[test]
fn a_kernel_without_the_sockets_cannot_be_helped_by_privileges() {
    let facts = Facts { xdp_socket: Err("Address family not supported".to_owned()), ..facts() };
    assert!(answer(&facts, "af_xdp").remedy.unwrap().contains("CONFIG_XDP_SOCKETS"));
}

#[test]
fn flags_of_both_architectures_are_found() {
    assert_eq!(cpu_flags("processor\t: 0\nflags\t\t: fpu aes\n"), "fpu aes");
    assert_eq!(cpu_flags("Features\t: fp asimd aes pmull\n"), "fp asimd aes pmull");
    assert_eq!(cpu_flags(""), "");
}

#[test]
fn little_memory_is_said_with_what_bounds_it() {
    let little = Some(Memory { bytes: 32 << 20, bound: "ulimit -v" });
    let answer = answer(&Facts { memory: little, ..facts() }, "memory");
    assert_eq!(answer.state, Severity::Limited);
    assert!(answer.found.contains("ulimit -v") && answer.found.contains("16 MiB"), "{answer:?}");
}
