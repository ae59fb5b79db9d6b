//! One trial: a server with this many workers, a generator, and what both said.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::{Work, WorkersPlan};
use crate::folder::Folder;
use crate::pair::number;
use crate::process::Running;

/// How long a server may take to listen, and to end.
const SHORT: Duration = Duration::from_secs(15);
/// Seconds of requests that are not counted.
const WARM_UP: f64 = 1.0;
/// The name and the size of the small file.
const SMALL: (&str, usize) = ("small", 630);

/// What was measured in one trial.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Trial {
    /// Requests a second.
    pub rate: f64,
    /// The server's CPU time for each request, in microseconds.
    pub server_us: f64,
    /// The generator's.
    pub client_us: f64,
    /// The largest shares of a core that a thread of the server and one of the generator had.
    pub busiest: [f64; 2],
    /// The largest shares of the time that a thread of the server and one of the generator waited for a core.
    pub waited: [f64; 2],
    /// Threads of the server that did something.
    pub busy_threads: u64,
    /// The median and the 99th percentile of the latency, in microseconds.
    pub latency_us: [f64; 2],
    /// What kept the rate from being higher, as the generator judges it.
    pub limit: String,
    /// Requests that failed.
    pub failed: u64,
}

/// The file that is asked for.
pub(super) fn write_small_file(root: &Path) -> io::Result<()> {
    let content: Vec<u8> = (0..SMALL.1).map(|place| (place % 251) as u8).collect();
    std::fs::write(root.join(SMALL.0), content)
}

/// Runs one trial.
pub(super) fn measure(
    plan: &WorkersPlan,
    folder: &Folder,
    (work, workers): (Work, usize),
    stop: &AtomicBool,
) -> io::Result<Trial> {
    let ready = folder.fresh("ready.json");
    let mut command = Command::new(&plan.program);
    command.arg("serve").arg(folder.path()).args(["--listen", "127.0.0.1:0", "--access-log", "off"]);
    // Packets as on Ethernet, not as large as loopback takes.
    command.args(["--workers", &workers.to_string(), "--cipher", "aes128", "--mtu-ceiling", "1452"]);
    command.arg("--ready-file").arg(&ready);
    // The development certificate is kept in the user's data folder: a measurement leaves nothing there.
    command.env("XDG_DATA_HOME", folder.path().join("data"));
    let mut server = start("the server", &plan.server_cores, &mut command)?;
    server.wait_ready(SHORT, stop, || ready.exists())?;
    let told: Value = serde_json::from_str(std::fs::read_to_string(&ready)?.trim())?;
    let port = number(&told, "port")?;

    let mut command = Command::new(&plan.program);
    let path = match work {
        Work::SmallFile => SMALL.0,
        Work::Exchange => "bytes/8KiB",
    };
    command.args(["load", "--insecure", "--json", "--quiet", &format!("https://127.0.0.1:{port}/{path}")]);
    command.args(["--server-pid", &server.id().to_string(), "--cipher", "aes128"]);
    command.args(["-c", &plan.connections.to_string(), "-m", &plan.streams.to_string()]);
    command.args(["-t", &plan.threads.to_string(), "-D", &plan.seconds.to_string()]);
    command.args(["--warm-up", &WARM_UP.to_string()]);
    if work == Work::Exchange {
        command.args(["--body", "512"]);
    }
    let patience = Duration::from_secs_f64(30.0 + WARM_UP + plan.seconds);
    let client = start("the generator", &plan.client_cores, &mut command)?.finish(patience, stop)?;
    server.ask_to_end();
    server.finish(SHORT, stop)?;
    let report: Value = serde_json::from_str(client.output.trim())?;
    Trial::of(&report)
}

/// Starts a command whose threads stay on `cores`.
fn start(name: &str, cores: &[usize], command: &mut Command) -> io::Result<Running> {
    // A child begins where its parent is.
    let home = cpu::allowed();
    cpu::pin_to(cores)?;
    let child = Running::prepare(command).spawn();
    cpu::pin_to(&home)?;
    Running::adopt(name, child?, &[])
}

impl Trial {
    /// From the generator's report.
    fn of(report: &Value) -> io::Result<Trial> {
        let (server, generator) = (&report["server"], &report["generator"]);
        let both = |name: &str| Ok::<_, io::Error>([number(server, name)?, number(generator, name)?]);
        Ok(Trial {
            rate: number(report, "requests_per_second")?,
            server_us: number(server, "cpu_us_per_request")?,
            client_us: number(generator, "cpu_us_per_request")?,
            busiest: both("busiest_thread")?,
            waited: both("waited_for_core")?,
            busy_threads: number(server, "busy_threads")? as u64,
            latency_us: [number(&report["latency"], "p50_us")?, number(&report["latency"], "p99_us")?],
            limit: report["limit"].as_str().unwrap_or("unknown").to_owned(),
            failed: number(report, "failed")? as u64,
        })
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |shares: [f64; 2]| shares.map(|share| (share * 100.0).round());
        let ([server, client], [server_waited, client_waited]) =
            (percent(self.busiest), percent(self.waited));
        write!(
            f,
            "{:7.0}/s  server {:5.2} µs, busiest {server:3.0} % (waited {server_waited:.0} %)  client {:5.2} µs, \
             busiest {client:3.0} % (waited {client_waited:.0} %)  limit: {}",
            self.rate, self.server_us, self.client_us, self.limit
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_report_is_understood() {
        let side = r#"{"cpu_us_per_request": 2.5, "busiest_thread": 0.9, "waited_for_core": 0.2, "busy_threads": 2}"#;
        let text = format!(
            r#"{{"requests_per_second": 1000.5, "failed": 3, "limit": "cores", "server": {side}, "generator": {side},
                "latency": {{"p50_us": 7, "p99_us": 9}}}}"#
        );
        let trial = Trial::of(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!((trial.rate, trial.failed, trial.busy_threads), (1000.5, 3, 2));
        assert_eq!((trial.busiest, trial.latency_us), ([0.9, 0.9], [7.0, 9.0]));
        // A generator that did not see the server.
        let error = Trial::of(&serde_json::json!({"requests_per_second": 1})).unwrap_err();
        assert!(error.to_string().contains("cpu_us_per_request"), "{error}");
    }
}
