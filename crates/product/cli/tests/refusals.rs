//! What `tercel serve --datapath xdp` says where it cannot work: in a lab, without privileges, on an interface that is down.
//!
//! Deleted, a user who lacks a privilege could be told of one of several, or be given a command that takes others away.
//! Skipped, with a word about it, where network namespaces are not permitted or `setpriv` is missing.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

use std::process::{Command, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");

/// Runs a script in a lab, where `$SERVE` begins a server on AF_XDP. Returns what it said on standard error, or `None` where
/// that is not permitted.
fn said(script: &str) -> Option<String> {
    let data = TempDir::new().expect("a folder");
    let serve = format!("{PROGRAM} serve --listen 0.0.0.0:0 --http 3 --access-log off --datapath xdp");
    // Whatever happens, no test waits for longer than this.
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60", PROGRAM, "lab", "--direct", "--queues=2", "--", "sh", "-c", script]);
    command.env("XDG_DATA_HOME", data.path()).env("SERVE", serve);
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if text.contains("needs CAP_SYS_ADMIN") || output.status.code() == Some(127) {
        requirements::missing(text);
        return None;
    }
    Some(text)
}

/// With these privileges alone, though root by name.
fn with(privileges: &str) -> String {
    format!("setpriv --inh-caps=-all --bounding-set=-all{privileges} $SERVE --interface client0")
}

#[test]
fn privileges_that_are_missing_are_named_at_once_with_one_command_for_all() {
    for (privileges, missing) in [
        ("", "lacks CAP_NET_RAW and CAP_NET_ADMIN and CAP_BPF:"),
        (",+net_raw", "lacks CAP_NET_ADMIN and CAP_BPF:"),
        (",+net_raw,+net_admin", "lacks CAP_BPF:"),
        (",+net_admin,+bpf", "lacks CAP_NET_RAW:"),
    ] {
        let Some(text) = said(&with(privileges)) else { return };
        assert!(text.contains(missing), "{privileges}: {text}");
        let command = format!("sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep {PROGRAM}\n");
        assert!(text.ends_with(&command) && text.lines().count() == 1, "{privileges}: {text}");
    }
}

#[test]
fn too_little_memory_to_lock_is_told_for_all_queues() {
    let script = format!("ulimit -l 64; {}", with(",+net_raw,+net_admin,+bpf"));
    let Some(text) = said(&script) else { return };
    assert!(text.contains("32 MiB of locked memory for 2 queues"), "{text}");
    assert!(text.contains("ulimit -l 32768") && text.lines().count() == 1, "{text}");
}

#[test]
fn an_interface_that_is_down_is_brought_up_by_the_command_that_is_told() {
    let Some(text) = said("ip link set client0 down; $SERVE --interface client0") else { return };
    assert!(text.contains("client0 is down") && text.contains("ip link set dev client0 up"), "{text}");
}

#[test]
fn the_mode_in_use_is_said_at_the_start_and_nothing_stays_behind() {
    for mode in ["driver", "generic"] {
        // The second one finds the interface free, though the first was killed.
        let script = format!(
            "start() {{ ready=$XDG_DATA_HOME/ready-$1
                $SERVE --interface client0 --xdp-mode {mode} --ready-file $ready & server=$!
                for _ in $(seq 400); do [ -e $ready ] && break; sleep 0.1; done
                kill -KILL $server; wait $server; }}
            start 1; start 2; ip -d link show dev client0 | grep -c prog/xdp >&2"
        );
        let Some(text) = said(&script) else { return };
        let line = format!("datapath xdp of client0, {mode} mode");
        assert_eq!(text.lines().filter(|said| said.contains(&line)).count(), 2, "{text}");
        assert_eq!(text.lines().last(), Some("0"), "{text}");
    }
}
