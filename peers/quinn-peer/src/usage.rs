//! CPU time and wall-clock time of a stretch of this process's life, as JSON.

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::time::Instant;

/// Where a measurement began.
pub(crate) struct Stretch {
    began: Instant,
    user_us: i64,
    system_us: i64,
}

impl Stretch {
    pub(crate) fn begin() -> Stretch {
        let usage = own();
        Stretch { began: Instant::now(), user_us: user_us(&usage), system_us: system_us(&usage) }
    }

    /// What happened since: `bytes` is the payload that was moved meanwhile.
    pub(crate) fn report(&self, bytes: u64, connection: &quinn::Connection) -> serde_json::Value {
        let usage = own();
        let wall_s = self.began.elapsed().as_secs_f64();
        let user_s = (user_us(&usage) - self.user_us) as f64 / 1e6;
        let system_s = (system_us(&usage) - self.system_us) as f64 / 1e6;
        let gigabytes = bytes as f64 / 1e9;
        let stats = connection.stats();
        serde_json::json!({
            "implementation": "quinn",
            "bytes": bytes,
            "wall_s": wall_s,
            "user_s": user_s,
            "system_s": system_s,
            "gbit_per_s": gigabytes * 8.0 / wall_s,
            "cpu_s_per_gb": (user_s + system_s) / gigabytes,
            "max_udp_payload": stats.path.current_mtu,
            "lost_packets": stats.path.lost_packets,
            "sent_bytes": stats.udp_tx.bytes,
            "datagrams_sent": stats.udp_tx.datagrams,
            "send_calls": stats.udp_tx.ios,
            "datagrams_received": stats.udp_rx.datagrams,
        })
    }
}

/// This process so far; zero if the kernel does not say, which it always does for oneself.
fn own() -> Option<Usage> {
    getrusage(UsageWho::RUSAGE_SELF).ok()
}

fn user_us(usage: &Option<Usage>) -> i64 {
    usage.as_ref().map_or(0, |usage| usage.user_time().num_microseconds())
}

fn system_us(usage: &Option<Usage>) -> i64 {
    usage.as_ref().map_or(0, |usage| usage.system_time().num_microseconds())
}
