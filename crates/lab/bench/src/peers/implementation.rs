//! How each implementation is started, and where its figures are.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::{Buffer, Cell, PeersPlan, Side, Trial};
use crate::folder::Folder;
use crate::process::{Ended, Running};

/// How long a server may take to listen, and to end.
const SHORT: Duration = Duration::from_secs(15);
/// What a client asks for so that the kernel grants what a socket has that asks for nothing: it doubles the number.
const DEFAULT_BUFFER: &str = "106496";

/// Implementation is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Implementation {
    /// This.
    Tercel,
    /// `peers/quinn-peer`.
    Quinn,
    /// `peers/quiche-peer`.
    Quiche,
}

/// What servers need: a certificate, an empty folder, and a place for keys, so that nothing of the user's is touched.
#[derive(Debug)]
pub(super) struct Ground {
    folder: Folder,
}

impl Ground {
    pub(super) fn prepare(folder: Folder) -> io::Result<Ground> {
        let broken = |error: rcgen::Error| io::Error::other(format!("cannot make a certificate: {error}"));
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).map_err(broken)?;
        let ground = Ground { folder };
        std::fs::write(ground.path("cert.pem"), made.cert.pem())?;
        std::fs::write(ground.path("key.pem"), made.signing_key.serialize_pem())?;
        std::fs::create_dir_all(ground.path("empty"))?;
        Ok(ground)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Whether the programs are there without which there is no comparison.
pub(super) fn check(plan: &PeersPlan) -> io::Result<()> {
    if Implementation::Quinn.is_there(plan) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} is not there: tests/setup builds it (run it from the repository), or --quinn-peer says where it is",
        plan.quinn_peer.display()
    )))
}

/// One transfer, and the server's version as its program says it.
pub(super) fn measure(
    cell: Cell,
    plan: &PeersPlan,
    ground: &Ground,
    stop: &AtomicBool,
) -> io::Result<(Trial, String)> {
    let Cell { client, server, .. } = cell;
    let ready = ground.folder.fresh("ready.json");
    let name = format!("the {} server", server.name());
    let mut running = Running::start(&name, plan.cores[0], &mut server.serve(plan, ground, &ready))?;
    running.wait_ready(SHORT, stop, || ready.exists())?;
    let told = json(&std::fs::read_to_string(&ready)?)?;
    let port = told["port"].as_u64().ok_or_else(|| odd(&name, "port"))?;
    let version = version(server, &told);

    let name = format!("the {} client", client.name());
    let patience = Duration::from_secs_f64(30.0 + plan.gigabytes * 20.0);
    let mut command = client.get(plan, cell.buffer, port);
    let received = Running::start(&name, plan.cores[1], &mut command)?.finish(patience, stop)?;
    if server != Implementation::Quiche {
        running.ask_to_end();
    }
    let server = running.finish(SHORT, stop)?;
    Ok((trial(client, &server, &received)?, version))
}

/// What a ready file says of the program.
pub(super) fn version(who: Implementation, told: &Value) -> String {
    match (who, told["with"].as_str()) {
        (Implementation::Tercel, _) => format!("tercel {}", env!("CARGO_PKG_VERSION")),
        (_, Some(version)) => version.to_owned(),
        (_, None) => {
            format!("{}, whose program does not say its version: peers/build makes it anew", who.name())
        }
    }
}

impl Implementation {
    /// All, as the table has them.
    pub const ALL: [Implementation; 3] =
        [Implementation::Tercel, Implementation::Quinn, Implementation::Quiche];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Implementation::Tercel => "tercel",
            Implementation::Quinn => "quinn",
            Implementation::Quiche => "quiche",
        }
    }

    /// Whether its program is there.
    pub(super) fn is_there(self, plan: &PeersPlan) -> bool {
        self == Implementation::Tercel || self.program(plan).is_file()
    }

    fn program(self, plan: &PeersPlan) -> &Path {
        match self {
            Implementation::Tercel => &plan.tercel,
            Implementation::Quinn => &plan.quinn_peer,
            Implementation::Quiche => &plan.quiche_peer,
        }
    }

    /// A server that writes where it listens into `ready`.
    fn serve(self, plan: &PeersPlan, ground: &Ground, ready: &Path) -> Command {
        let mut command = Command::new(self.program(plan));
        let size = plan.payload_size.to_string();
        match self {
            Implementation::Tercel => {
                command.args([
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--access-log",
                    "off",
                    "--cipher",
                    "aes128",
                ]);
                command.args(["--congestion", "cubic", "--packet-size", &size]);
                command.arg("--cert").arg(ground.path("cert.pem")).arg("--key").arg(ground.path("key.pem"));
                command.arg("--state-dir").arg(ground.path("state"));
            }
            Implementation::Quinn => {
                command.args(["perf-serve", "--cipher", "aes128"]);
                command.args(["--congestion", "cubic", "--payload-size", &size]);
            }
            Implementation::Quiche => {
                command.arg("--cert").arg(ground.path("cert.pem")).arg("--key").arg(ground.path("key.pem"));
                command.arg("--root").arg(ground.path("empty")).args(["--payload-size", &size]);
                // It knows no signals.
                command.args(["--connections", "1"]);
            }
        }
        command.arg("--ready-file").arg(ready);
        command
    }

    /// A client that discards what it gets, and prints a line of JSON.
    pub(super) fn get(self, plan: &PeersPlan, buffer: Buffer, port: u64) -> Command {
        let mut command = Command::new(self.program(plan));
        let (bytes, size) = (plan.bytes().to_string(), plan.payload_size.to_string());
        let server = format!("127.0.0.1:{port}");
        match self {
            Implementation::Tercel => {
                command.args(["get", &format!("https://{server}/bytes/{bytes}"), "--insecure"]);
                command.args(["--discard", "--json", "--quiet", "--cipher", "aes128"]);
                command.args(["--congestion", "cubic", "--packet-size", &size]);
            }
            Implementation::Quinn => {
                command.args(["perf-get", "--connect", &server, &bytes, "--protocol", "http3"]);
                command.args(["--cipher", "aes128", "--congestion", "cubic", "--payload-size", &size]);
            }
            Implementation::Quiche => {
                command.args(["get", "--connect", &server, &bytes, "--payload-size", &size]);
            }
        }
        command.args(self.buffer_flags(buffer));
        command
    }

    /// tercel's and quinn's clients ask for a large one by themselves.
    fn buffer_flags(self, buffer: Buffer) -> &'static [&'static str] {
        match (self, buffer) {
            (Implementation::Tercel, Buffer::Default) => &["--receive-buffer", DEFAULT_BUFFER],
            (Implementation::Quinn, Buffer::Default) => &["--socket-buffer", "0"],
            (Implementation::Quiche, Buffer::Large) => &["--socket-buffer", "4194304"],
            (Implementation::Tercel | Implementation::Quinn, Buffer::Large)
            | (Implementation::Quiche, Buffer::Default) => &[],
        }
    }

    /// What its client calls the seconds, and the datagrams that it received.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Implementation::Tercel => ("seconds", "received_datagrams"),
            Implementation::Quinn => ("wall_s", "datagrams_received"),
            Implementation::Quiche => ("wall_s", "received_datagrams"),
        }
    }
}

fn trial(client: Implementation, server: &Ended, received: &Ended) -> io::Result<Trial> {
    let report = json(&received.output)?;
    let number = |name: &str| report[name].as_f64().ok_or_else(|| odd(client.name(), name));
    let (seconds, datagrams) = client.names();
    let (bytes, datagrams) = (number("bytes")?, number(datagrams)?);
    let gigabytes = bytes / 1e9;
    let side = |ended: &Ended| Side { usage: ended.usage, cpu_s_per_gb: ended.usage.total_s() / gigabytes };
    Ok(Trial {
        goodput_gbit_s: gigabytes * 8.0 / number(seconds)?,
        server: side(server),
        client: side(received),
        datagrams: datagrams as u64,
        content_mean: bytes / datagrams.max(1.0),
    })
}

/// The last line, which is where all programs put their figures.
fn json(text: &str) -> io::Result<Value> {
    let line = text.lines().rfind(|line| line.starts_with('{')).unwrap_or("");
    serde_json::from_str(line).map_err(|_| io::Error::other("a program of the comparison printed no figures"))
}

fn odd(who: &str, name: &str) -> io::Error {
    io::Error::other(format!(
        "{who} does not say \"{name}\": is it of another version? tests/setup builds quinn-peer, peers/build quiche-peer"
    ))
}
