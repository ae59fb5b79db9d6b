//! One trial: `tercel perf serve` at one end, `tercel perf client` at the other, and what the client said.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bench::course::{CourseWatch, Interval};
use bench::folder::Folder;
use bench::pair::number;
use bench::process::Running;
use bench::site::{End, Site};
use profile::Profile;
use serde::Serialize;
use serde_json::Value;

use super::variant::Variant;
use crate::context::Context;
use crate::profiles;

/// How long a server may take to listen, and to end.
const SHORT: Duration = Duration::from_secs(15);
/// Percentiles that are compared, by their names in the client's JSON.
pub(super) const PERCENTILES: [(&str, &str); 5] =
    [("p50", "p50_us"), ("p90", "p90_us"), ("p99", "p99_us"), ("p99.9", "p99_9_us"), ("p99.99", "p99_99_us")];

/// Where trials run.
pub(super) struct TrialSite<'a> {
    pub(super) program: &'a Path,
    pub(super) site: &'a Site,
    pub(super) stop: &'a AtomicBool,
    pub(super) folder: Folder,
}

/// What a server does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// QUIC.
    Perf,
    /// Bare datagrams.
    Echo,
}

/// A server that runs.
pub(super) struct Server {
    running: Running,
    address: SocketAddr,
    variant: Variant,
    service: Service,
    workers: usize,
}

/// How much is asked of it, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load<'a> {
    /// Connections, each with a thread of its own.
    pub(super) connections: usize,
    /// Requests at a time on each.
    pub(super) outstanding: usize,
    /// The client's cores.
    pub(super) cores: &'a [usize],
    pub(super) seconds: f64,
    pub(super) warm_up: f64,
}

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Trial {
    /// Requests a second.
    pub(super) rate: f64,
    /// Latency at [`PERCENTILES`], in microseconds.
    pub(super) latency_us: [f64; 5],
    /// How many requests there were.
    pub(super) count: u64,
    /// The distribution: percentile and microseconds.
    pub(super) curve: Vec<[f64; 2]>,
    /// CPU time of server and client for each request, in microseconds.
    pub(super) cpu_us: [f64; 2],
    /// Shares of a core of the busiest thread of server and client; none of the echo.
    pub(super) busiest: Option<[f64; 2]>,
    /// Largest shares of the time that a thread of server and client waited for a core.
    pub(super) waited: [f64; 2],
    /// Threads of the server that had work.
    pub(super) busy_threads: u64,
    /// Datagrams for each request, towards the server and back.
    pub(super) datagrams: [f64; 2],
    /// The data path that was in use.
    pub(super) datapath: String,
    /// The largest packet, in bytes of UDP payload.
    pub(super) packet_bytes: u64,
    /// Requests that failed.
    pub(super) failed: u64,
    /// What the server did meanwhile, warm-up included.
    pub(super) course: Vec<Interval>,
}

impl TrialSite<'_> {
    /// Starts a server with a worker on each of `cores`.
    pub(super) fn serve(&self, variant: Variant, service: Service, cores: &[usize]) -> io::Result<Server> {
        self.site.let_trains_through(variant.trains)?;
        let ready = self.folder.fresh("ready.json");
        let ip = self.site.ipv4(End::Server);
        let mut command = Command::new(self.program);
        command.args(["perf", "serve", "--listen", &SocketAddr::new(ip, 0).to_string()]);
        command.args(["--workers", &cores.len().to_string(), "--pin", &list(cores)]);
        command.args(variant.flags(self.site.interface(End::Server))).args(COMMON);
        if service == Service::Echo {
            command.arg("--echo");
        }
        command.arg("--ready-file").arg(&ready);
        // The development certificate is kept in the user's data folder: a measurement leaves nothing there.
        command.env("XDG_DATA_HOME", self.folder.path());
        let child = self.site.spawn(End::Server, Running::prepare(&mut command))?;
        let mut running = Running::adopt("the server", child, cores)?;
        running.wait_ready(SHORT, self.stop, || ready.exists())?;
        let told: Value = serde_json::from_str(std::fs::read_to_string(&ready)?.trim())?;
        let address = SocketAddr::new(ip, number(&told, "port")? as u16);
        Ok(Server { running, address, variant, service, workers: cores.len() })
    }

    fn start(&self, server: &Server, load: Load<'_>) -> io::Result<Running> {
        let mut command = Command::new(self.program);
        command.args(["perf", "client", "--insecure", "--json", &server.address.to_string()]);
        if server.service == Service::Echo {
            command.arg("echo");
        }
        let (connections, outstanding) = (load.connections.to_string(), load.outstanding.to_string());
        command.args(["-c", &connections, "-t", &connections, "-m", &outstanding]);
        command.args(["-D", &load.seconds.to_string(), "--warm-up", &load.warm_up.to_string()]);
        command.args(["--pin", &list(load.cores), "--server-pid", &server.running.id().to_string()]);
        command.args(server.variant.flags(self.site.interface(End::Client))).args(COMMON);
        let child = self.site.spawn(End::Client, Running::prepare(&mut command))?;
        Running::adopt("the client", child, load.cores)
    }

    /// Looks into a server while a client asks it.
    pub(super) fn profile(
        &self,
        server: &Server,
        load: Load<'_>,
        context: &Context<'_>,
    ) -> io::Result<Profile> {
        // It is killed when it goes out of scope.
        let _client = self.start(server, Load { seconds: profiles::work_seconds(context), ..load })?;
        profiles::watch(server.running.id(), server.variant.name, context)
    }

    /// Runs a client to its end.
    pub(super) fn ask(&self, server: &Server, load: Load<'_>) -> io::Result<Trial> {
        let watch = CourseWatch::start(server.running.id(), self.site.interface(End::Server));
        let running = self.start(server, load)?;
        let patience = Duration::from_secs_f64(30.0 + load.seconds + load.warm_up);
        let ended = running.finish(patience, self.stop)?;
        let course = watch.finish();
        let report: Value = serde_json::from_str(ended.output.trim())
            .map_err(|error| io::Error::other(format!("no JSON from tercel perf: {error}")))?;
        let trial = match server.service {
            Service::Perf => Trial::of(&report),
            Service::Echo => Trial::of_echo(&report),
        };
        Ok(Trial { course, ..trial? })
    }

    /// The same for a server of several workers: connections find a worker by their port number, so a run in which all found the
    /// same one is repeated, five times at most.
    pub(super) fn ask_all(&self, server: &Server, load: Load<'_>) -> io::Result<Trial> {
        let mut trial = self.ask(server, load)?;
        for _ in 0..5 {
            if trial.busy_threads as usize >= server.workers.min(load.connections) {
                break;
            }
            trial = self.ask(server, load)?;
        }
        Ok(trial)
    }

    /// Asks a server to end, and waits for that.
    pub(super) fn end(&self, server: Server) -> io::Result<()> {
        server.running.ask_to_end();
        server.running.finish(SHORT, self.stop).map(|_| ())
    }
}

/// What both ends are always told: the published study's cipher would be the machine's choice as well; packets as Ethernet takes.
const COMMON: [&str; 4] = ["--cipher", "aes128", "--packet-size", "1452"];

fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

fn latency(report: &Value) -> io::Result<[f64; 5]> {
    let mut latency = [0.0; 5];
    for (place, (_, name)) in latency.iter_mut().zip(PERCENTILES) {
        *place = number(&report["latency"], name)?;
    }
    Ok(latency)
}

fn curve(report: &Value) -> Vec<[f64; 2]> {
    serde_json::from_value(report["curve"].clone()).unwrap_or_default()
}

impl Trial {
    /// From the client's report.
    fn of(report: &Value) -> io::Result<Trial> {
        let (server, client) = (&report["server"], &report["client"]);
        let both = |name: &str| Ok::<_, io::Error>([number(server, name)?, number(client, name)?]);
        let completed = number(report, "completed")?;
        let each = |name: &str| Ok::<_, io::Error>(number(client, name)? / completed.max(1.0));
        Ok(Trial {
            rate: number(report, "per_second")?,
            latency_us: latency(report)?,
            count: completed as u64,
            curve: curve(report),
            cpu_us: both("cpu_us_per_exchange")?,
            busiest: Some(both("busiest_thread")?),
            waited: both("waited_for_core")?,
            busy_threads: number(server, "busy_threads")? as u64,
            datagrams: [each("sent_datagrams")?, each("received_datagrams")?],
            datapath: report["datapath"].as_str().unwrap_or_default().to_owned(),
            packet_bytes: number(report, "packet_bytes")? as u64,
            failed: number(report, "failed")? as u64,
            course: Vec::new(),
        })
    }

    fn of_echo(report: &Value) -> io::Result<Trial> {
        Ok(Trial {
            rate: number(report, "per_second")?,
            latency_us: latency(report)?,
            count: number(report, "completed")? as u64,
            curve: curve(report),
            cpu_us: [number(report, "server_us")?, number(report, "client_us")?],
            datapath: report["datapath"].as_str().unwrap_or_default().to_owned(),
            failed: number(report, "lost")? as u64,
            ..Trial::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a figure of the server could stand where the client's belongs.
    #[test]
    fn the_clients_report_is_understood() {
        let latency = r#"{"p50_us": 1, "p90_us": 2, "p99_us": 3, "p99_9_us": 4, "p99_99_us": 5}"#;
        let side = |us: u64| {
            format!(
                r#"{{"cpu_us_per_exchange": {us}, "busiest_thread": 0.5, "waited_for_core": 0.1, "busy_threads": 2,
                    "sent_datagrams": 100, "received_datagrams": 600}}"#
            )
        };
        let text = format!(
            r#"{{"per_second": 50.5, "completed": 100, "failed": 1, "packet_bytes": 1452, "datapath": "xdp driver",
                "latency": {latency}, "curve": [[50, 1.0]], "server": {}, "client": {}}}"#,
            side(7),
            side(9)
        );
        let trial = Trial::of(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!((trial.rate, trial.count, trial.failed, trial.busy_threads), (50.5, 100, 1, 2));
        assert_eq!((trial.latency_us, trial.cpu_us), ([1.0, 2.0, 3.0, 4.0, 5.0], [7.0, 9.0]));
        assert_eq!((trial.datagrams, trial.curve), ([1.0, 6.0], vec![[50.0, 1.0]]));
        let error = Trial::of(&serde_json::json!({"per_second": 1})).unwrap_err();
        assert!(error.to_string().contains("completed"), "{error}");
    }
}
