//! How each subject is started, and where its figures are.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use super::child::{Role, Way};
use super::{Part, Settings, Subject, Trial};
use crate::folder::Folder;
use crate::pair::number;
use crate::process::{Ended, Running};

/// How long a server may take to listen, and to end.
const SHORT: Duration = Duration::from_secs(15);
/// Seconds of requests that are not counted.
const WARM_UP: f64 = 0.5;
/// The path of the greeting, and what the applications and the file say.
const PATH: &str = "hello";
const GREETING: &str = "Hello over HTTP/1.1, 2 and 3\n";

/// What servers need: a certificate, a folder with the greeting, and how this program is started again.
pub(super) struct Ground<'a> {
    folder: Folder,
    launch: &'a dyn Fn(&str) -> io::Result<Command>,
}

impl<'a> Ground<'a> {
    pub(super) fn prepare(launch: &'a dyn Fn(&str) -> io::Result<Command>) -> io::Result<Ground<'a>> {
        let broken = |error: rcgen::Error| io::Error::other(format!("cannot make a certificate: {error}"));
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).map_err(broken)?;
        let folder = Folder::make()?;
        std::fs::write(folder.path().join("cert.pem"), made.cert.pem())?;
        std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem())?;
        std::fs::create_dir(folder.path().join("root"))?;
        std::fs::write(folder.path().join("root").join(PATH), GREETING)?;
        Ok(Ground { folder, launch })
    }

    /// Certificate and key, as all programs take them.
    fn identify<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let path = |name: &str| self.folder.path().join(name);
        command.arg("--cert").arg(path("cert.pem")).arg("--key").arg(path("key.pem"))
    }

    fn role(&self, role: &Role) -> io::Result<Command> {
        (self.launch)(&serde_json::to_string(role)?)
    }
}

/// One trial.
pub(super) fn measure(
    subject: Subject,
    plan: &Settings,
    ground: &Ground<'_>,
    stop: &AtomicBool,
) -> io::Result<Trial> {
    let server = format!("the server of {}", subject.name());
    let ready = ground.folder.fresh("ready.json");
    let mut running = Running::start(&server, plan.cores[0], &mut subject.serve(plan, ground, &ready)?)?;
    let port = if subject.tells_by_file() {
        running.wait_ready(SHORT, stop, || ready.exists())?;
        number(&json(&std::fs::read_to_string(&ready)?)?, "port")? as u16
    } else {
        port_of(&running.first_line(SHORT, stop)?)?
    };
    let mut command = match subject.part() {
        Part::Hello => generator(plan, port, running.id()),
        Part::Stream => subject.receive(plan, ground, port)?,
    };
    let patience = Duration::from_secs_f64(30.0 + WARM_UP + plan.seconds + plan.gigabytes * 20.0);
    let client = format!("the client of {}", subject.name());
    let client = Running::start(&client, plan.cores[1], &mut command)?.finish(patience, stop)?;
    if !matches!(subject, Subject::Thread | Subject::Current) {
        running.ask_to_end();
    }
    let server = running.finish(SHORT, stop)?;
    match subject.part() {
        Part::Hello => of_requests(&json(&client.output)?),
        Part::Stream => of_stream(subject, plan, &server, &client),
    }
}

fn generator(plan: &Settings, port: u16, server: u32) -> Command {
    let mut command = Command::new(&plan.tercel);
    command.args(["load", "--insecure", "--json", "--quiet", "--http", "3", "--cipher", "aes128"]);
    command.arg(format!("https://127.0.0.1:{port}/{PATH}")).args(["--server-pid", &server.to_string()]);
    command.args(["-c", &plan.connections.to_string(), "-m", &plan.streams.to_string(), "-t", "1"]);
    command.args(["-D", &plan.seconds.to_string(), "--warm-up", &WARM_UP.to_string()]);
    command
}

impl Subject {
    /// Whether its program is there.
    pub(super) fn is_there(self, plan: &Settings) -> bool {
        match self {
            Subject::Axum => plan.axum_hello.is_file(),
            Subject::QuinnAxum => plan.quinn_axum_peer.is_file(),
            Subject::Quinn => plan.quinn_peer.is_file(),
            Subject::Native | Subject::SansIo | Subject::Thread | Subject::Current => true,
        }
    }

    /// What makes its program.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Subject::Axum => {
                "cargo build --profile dist --package tercel-bench --example axum_hello makes it for target/dist/tercel"
            }
            Subject::Quinn => "tests/setup builds quinn-peer, or --quinn-peer says where it is",
            _ => "peers/build builds quinn-axum-peer, or --quinn-axum-peer says where it is",
        }
    }

    /// Whether its server writes its port into a file, instead of its first line.
    fn tells_by_file(self) -> bool {
        matches!(self, Subject::Native | Subject::SansIo | Subject::Quinn)
    }

    fn serve(self, plan: &Settings, ground: &Ground<'_>, ready: &Path) -> io::Result<Command> {
        let payload = plan.payload_size.to_string();
        let mut command = match self {
            Subject::Thread | Subject::Current => {
                return ground.role(&Role::StreamServer { way: self.way(), payload: plan.payload_size });
            }
            Subject::Native | Subject::SansIo => Command::new(&plan.tercel),
            Subject::Axum => Command::new(&plan.axum_hello),
            Subject::QuinnAxum => Command::new(&plan.quinn_axum_peer),
            Subject::Quinn => Command::new(&plan.quinn_peer),
        };
        match self {
            Subject::Native => {
                command.arg("serve").arg(ground.folder.path().join("root"));
                command.args(["--listen", "127.0.0.1:0", "--access-log", "off", "--mtu-ceiling", &payload]);
                command.arg("--state-dir").arg(ground.folder.path().join("state"));
            }
            Subject::SansIo => {
                command.args(["perf", "serve", "--listen", "127.0.0.1:0", "--mtu-ceiling", &payload]);
            }
            Subject::Quinn => {
                command.args(["perf-serve", "--cipher", "aes128", "--payload-size", &payload]);
            }
            Subject::QuinnAxum | Subject::Axum | Subject::Thread | Subject::Current => {}
        }
        ground.identify(&mut command);
        if self.tells_by_file() {
            command.arg("--ready-file").arg(ready);
        }
        Ok(command)
    }

    /// The client of a stream.
    fn receive(self, plan: &Settings, ground: &Ground<'_>, port: u16) -> io::Result<Command> {
        let (bytes, payload) = (plan.bytes().to_string(), plan.payload_size.to_string());
        let server = format!("127.0.0.1:{port}");
        if self == Subject::SansIo {
            let mut command = Command::new(&plan.tercel);
            command.args(["perf", "client", "--insecure", &server, "download", "--size", &bytes, "-n", "1"]);
            command.args(["--warm-up", "0", "--json", "--cipher", "aes128", "--mtu-ceiling", &payload]);
            return Ok(command);
        }
        if self == Subject::Quinn {
            let mut command = Command::new(&plan.quinn_peer);
            command.args(["perf-get", "--connect", &server, &bytes]);
            command.args(["--cipher", "aes128", "--payload-size", &payload]);
            return Ok(command);
        }
        let (way, payload, bytes) = (self.way(), plan.payload_size, plan.bytes());
        ground.role(&Role::StreamClient { way, payload, port, bytes })
    }

    fn way(self) -> Way {
        if self == Subject::Current { Way::Task } else { Way::Thread }
    }
}

/// The port in a line such as `listening on 127.0.0.1:4433 with …`.
fn port_of(line: &str) -> io::Result<u16> {
    let address = line.strip_prefix("listening on ").and_then(|rest| rest.split(' ').next());
    let port = address.and_then(|address| address.rsplit_once(':')).and_then(|(_, port)| port.parse().ok());
    port.ok_or_else(|| io::Error::other(format!("a server says no port: {line}")))
}

fn of_requests(report: &Value) -> io::Result<Trial> {
    let failed = number(report, "failed")?;
    if failed > 0.0 {
        return Err(io::Error::other(format!("{failed} requests failed")));
    }
    let rate = number(report, "requests_per_second")?;
    let server_cpu = number(&report["server"], "cpu_us_per_request")?;
    let client_cpu = number(&report["generator"], "cpu_us_per_request")?;
    Ok(Trial { rate, server_cpu, client_cpu, server_busy: server_cpu * rate / 1e6 })
}

fn of_stream(subject: Subject, plan: &Settings, server: &Ended, client: &Ended) -> io::Result<Trial> {
    let report = json(&client.output)?;
    let (bytes, seconds) = match subject {
        Subject::SansIo => (number(&report, "received_bytes")?, number(&report["latency"], "max_us")? / 1e6),
        _ => (number(&report, "bytes")?, number(&report, "wall_s")?),
    };
    if bytes as u64 != plan.bytes() {
        return Err(io::Error::other(format!(
            "{}: {bytes} of {} bytes arrived",
            subject.name(),
            plan.bytes()
        )));
    }
    let gigabytes = bytes / 1e9;
    Ok(Trial {
        rate: gigabytes * 8.0 / seconds,
        server_cpu: server.usage.total_s() / gigabytes,
        client_cpu: client.usage.total_s() / gigabytes,
        server_busy: server.usage.total_s() / seconds,
    })
}

/// The last line, which is where all programs put their figures.
fn json(text: &str) -> io::Result<Value> {
    let line = text.lines().rfind(|line| line.starts_with('{')).unwrap_or("");
    serde_json::from_str(line).map_err(|_| io::Error::other("a program of the comparison printed no figures"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_in_what_servers_print() {
        assert_eq!(port_of("listening on 127.0.0.1:4433 with quinn 0.11.9").unwrap(), 4_433);
        assert_eq!(port_of("listening on [::1]:65535").unwrap(), 65_535);
        assert!(port_of("cannot listen").is_err());
    }

    /// Deleted, a rate of requests that failed could be compared.
    #[test]
    fn failed_requests_are_no_trial() {
        let side = serde_json::json!({"cpu_us_per_request": 4.0});
        let report = |failed: u32| serde_json::json!({"requests_per_second": 200_000.0, "failed": failed, "server": side, "generator": side});
        let trial = of_requests(&report(0)).unwrap();
        assert!((trial.server_busy - 0.8).abs() < 1e-9 && trial.rate > 199_999.0);
        assert!(of_requests(&report(1)).unwrap_err().to_string().contains("failed"));
    }
}
