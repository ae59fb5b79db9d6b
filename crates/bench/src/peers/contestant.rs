//! How each implementation is started, and where its figures are.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use super::{Plan, Side, Trial};
use crate::folder::Folder;
use crate::process::{Ended, Running};

/// How long a server may take to listen, and to end.
const SHORT: Duration = Duration::from_secs(15);

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contestant {
    Tercel,
    Quinn,
}

/// Whether all programs are there.
pub(super) fn check(plan: &Plan) -> io::Result<()> {
    if plan.quinn_peer.is_file() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} is not there: tests/setup builds it (run it from the repository), or --quinn-peer says where it is",
        plan.quinn_peer.display()
    )))
}

impl Contestant {
    pub(super) const ALL: [Contestant; 2] = [Contestant::Tercel, Contestant::Quinn];

    pub(super) fn name(self) -> &'static str {
        match self {
            Contestant::Tercel => "tercel",
            Contestant::Quinn => "quinn",
        }
    }

    /// One transfer: the trial, and the settings it ran with.
    pub(super) fn measure(
        self,
        plan: &Plan,
        folder: &Folder,
        stop: &AtomicBool,
    ) -> io::Result<(Trial, String)> {
        let ready = folder.fresh("ready.json");
        let summary = folder.fresh("summary.json");
        let name = format!("the {} server", self.name());
        let mut server = Running::start(&name, plan.cores[0], &mut self.server(plan, &ready, &summary))?;
        server.wait_ready(SHORT, stop, || ready.exists())?;
        let told = json(&std::fs::read_to_string(&ready)?)?;
        let port = told["port"].as_u64().ok_or_else(|| odd(&name, "port"))?;

        let name = format!("the {} client", self.name());
        let patience = Duration::from_secs_f64(30.0 + plan.gigabytes * 20.0);
        let client =
            Running::start(&name, plan.cores[1], &mut self.client(plan, port))?.finish(patience, stop)?;
        if self == Contestant::Tercel {
            server.ask_to_end();
        }
        let server = server.finish(SHORT, stop)?;
        let report = match self {
            Contestant::Tercel => json(&std::fs::read_to_string(&summary)?)?,
            Contestant::Quinn => json(&server.output)?,
        };
        let received = json(&client.output)?;
        Ok((self.trial((&server, &report), (&client, &received))?, self.settings(&report)))
    }

    fn server(self, plan: &Plan, ready: &Path, summary: &Path) -> Command {
        let mut command = Command::new(self.program(plan));
        match self {
            Contestant::Tercel => {
                command.args([
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--access-log",
                    "off",
                    "--cipher",
                    "aes128",
                ]);
                command.args(["--congestion", "cubic", "--packet-size", &plan.payload_size.to_string()]);
                command.arg("--summary-file").arg(summary);
            }
            Contestant::Quinn => {
                command.args(["perf-serve", "--connections", "1", "--cipher", "aes128"]);
                command.args(["--congestion", "cubic", "--payload-size", &plan.payload_size.to_string()]);
            }
        }
        command.arg("--ready-file").arg(ready);
        command
    }

    fn client(self, plan: &Plan, port: u64) -> Command {
        let mut command = Command::new(self.program(plan));
        let (bytes, size) = (plan.bytes().to_string(), plan.payload_size.to_string());
        match self {
            Contestant::Tercel => {
                command.args(["get", &format!("https://127.0.0.1:{port}/bytes/{bytes}"), "--insecure"]);
                command.args(["--discard", "--json", "--quiet", "--cipher", "aes128"]);
                command.args(["--congestion", "cubic", "--packet-size", &size]);
            }
            Contestant::Quinn => {
                command.args(["perf-get", "--connect", &format!("127.0.0.1:{port}"), &bytes]);
                command.args(["--cipher", "aes128", "--congestion", "cubic", "--payload-size", &size]);
            }
        }
        command
    }

    fn program(self, plan: &Plan) -> &Path {
        match self {
            Contestant::Tercel => &plan.tercel,
            Contestant::Quinn => &plan.quinn_peer,
        }
    }

    fn trial(
        self,
        (server, report): (&Ended, &Value),
        (client, received): (&Ended, &Value),
    ) -> io::Result<Trial> {
        let sent = self.sent_datagrams();
        let number = |from: &Value, name: &str| from[name].as_f64().ok_or_else(|| odd(self.name(), name));
        let bytes = number(received, "bytes")?;
        let gigabytes = bytes / 1e9;
        let datagrams = number(report, sent)?;
        let per_call = datagrams / number(report, "send_calls")?.max(1.0);
        let taken = received["receive_calls"].as_f64().filter(|calls| *calls > 0.0);
        let taken_per_call =
            taken.zip(received["received_datagrams"].as_f64()).map(|(calls, all)| all / calls);
        let side = |ended: &Ended, datagrams_per_call| Side {
            usage: ended.usage,
            cpu_s_per_gb: ended.usage.total_s() / gigabytes,
            datagrams_per_call,
        };
        Ok(Trial {
            goodput_gbit_s: gigabytes * 8.0 / number(received, self.seconds())?,
            server: side(server, Some(per_call)),
            client: side(client, taken_per_call),
            datagrams: datagrams as u64,
            payload_mean: number(report, "sent_bytes")? / datagrams.max(1.0),
        })
    }

    fn sent_datagrams(self) -> &'static str {
        match self {
            Contestant::Tercel => "sent_datagrams",
            Contestant::Quinn => "datagrams_sent",
        }
    }

    fn seconds(self) -> &'static str {
        match self {
            Contestant::Tercel => "seconds",
            Contestant::Quinn => "wall_s",
        }
    }

    fn settings(self, report: &Value) -> String {
        match self {
            Contestant::Tercel => {
                let on = |name: &str| if report[name] == true { "on" } else { "off" };
                format!(
                    "HTTP/3, datapath {}, GSO {}, GRO {}",
                    report["datapath"].as_str().unwrap_or("unknown"),
                    on("segments_offloaded"),
                    on("coalesces"),
                )
            }
            Contestant::Quinn => format!(
                "raw QUIC, tokio on one thread, GSO and GRO on, path MTU {}",
                report["max_udp_payload"].as_u64().unwrap_or(0)
            ),
        }
    }
}

/// The last line, which is where both programs put their figures.
fn json(text: &str) -> io::Result<Value> {
    let line = text.lines().rfind(|line| line.starts_with('{')).unwrap_or("");
    serde_json::from_str(line).map_err(|_| io::Error::other("a program of the comparison printed no figures"))
}

fn odd(who: &str, name: &str) -> io::Error {
    io::Error::other(format!(
        "{who} does not say \"{name}\": is it of another version? tests/setup builds quinn-peer"
    ))
}
