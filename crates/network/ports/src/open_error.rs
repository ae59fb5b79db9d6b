//! What a refusal by AF_XDP means to the user of a program, not of a library: everything that is missing at once, with the
//! command for all of it. The kernel complains of one thing at a time, and a command for that one alone would take away what
//! the program has been granted before: `setcap` replaces.

use crate::capabilities::{BPF, Capabilities, NET_ADMIN, NET_RAW};
use ebpf::EbpfError;
use std::{env, fs};
use xdp::XdpError;

/// Grants all that AF_XDP needs to `program`.
pub(crate) fn setcap(program: &str) -> String {
    format!("sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep {program}")
}

/// Why no ports were opened on this many `queues` of an interface, in one line.
pub(crate) fn explain(error: &XdpError, queues: u32) -> String {
    match error {
        XdpError::NotPermitted | XdpError::Program(EbpfError::NotPermitted { .. }) => {
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            let held = Capabilities::of_status(&status).unwrap_or_default();
            not_permitted(held, &program()).unwrap_or_else(|| error.to_string())
        }
        XdpError::Memlock { needed } => memlock(*needed, queues),
        _ => error.to_string(),
    }
}

/// `None` when the process has all privileges and something else forbids it.
fn not_permitted(held: Capabilities, program: &str) -> Option<String> {
    let missing = held.lacks(&[NET_RAW, NET_ADMIN, BPF]);
    if missing.is_empty() {
        return None;
    }
    Some(format!(
        "AF_XDP needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, and this process lacks {}: run it as root, or grant them: {}",
        missing.join(" and ").to_uppercase().replace(" AND ", " and "),
        setcap(program)
    ))
}

/// What is `needed` for each queue counts for all of this user's processes together.
fn memlock(needed: u64, queues: u32) -> String {
    let all = needed.saturating_mul(queues.max(1).into());
    let of = if queues > 1 { format!(" for {queues} queues") } else { String::new() };
    format!(
        "AF_XDP needs {} MiB of locked memory{of}, more than this user may lock: raise the limit (ulimit -l {}, or \
         LimitMEMLOCK=infinity in the systemd unit), or grant CAP_IPC_LOCK",
        all >> 20,
        all >> 10
    )
}

fn program() -> String {
    env::current_exe().map_or_else(|_| "PROGRAM".to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_named_with_a_command_that_takes_nothing_away() {
        let held = |bits: u64| Capabilities::of_status(&format!("CapEff:\t{bits:016x}")).unwrap();
        let none = not_permitted(held(0), "/bin/x").unwrap();
        assert!(none.contains("lacks CAP_NET_RAW and CAP_NET_ADMIN and CAP_BPF:"), "{none}");
        let two = not_permitted(held(1 << 12 | 1 << 13), "/bin/x").unwrap();
        assert!(two.contains("lacks CAP_BPF:"), "{two}");
        for text in [none, two] {
            assert!(text.ends_with("sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep /bin/x"), "{text}");
            assert!(text.len() < 250 && !text.contains('\n'));
        }
        assert_eq!(not_permitted(held(u64::MAX), "/bin/x"), None);
    }

    #[test]
    fn locked_memory_is_counted_for_all_queues() {
        let one = explain(&XdpError::Memlock { needed: 16 << 20 }, 1);
        assert!(one.contains("16 MiB of locked memory,") && one.contains("ulimit -l 16384,"), "{one}");
        let four = explain(&XdpError::Memlock { needed: 16 << 20 }, 4);
        assert!(
            four.contains("64 MiB of locked memory for 4 queues") && four.contains("ulimit -l 65536,"),
            "{four}"
        );
    }
}
