//! Downloads whose connection moves: `tercel get` against `tercel serve`, on loopback and between two network namespaces that two
//! links join. The second is skipped, with a word about it, where namespaces are not permitted.
//!
//! Every process has a deadline and is killed at the end of its test, however that ends.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use netns::{Lab, LabError, LabOptions, Namespace};
use serde_json::Value;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");
/// The machine may be busy; nothing here takes more than a few seconds on an idle one.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(5);
/// Bytes of a download: enough for a move while it is under way.
const LEN: u64 = 200_000_000;

/// A process that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(what: &str, mut is_done: impl FnMut() -> bool) {
    let mut waited = Duration::ZERO;
    while !is_done() {
        assert!(waited < PATIENCE, "{what} does not come");
        sleep(STEP);
        waited += STEP;
    }
}

/// Where processes run.
trait Host {
    fn spawn(&self, command: &mut Command) -> io::Result<Child>;
}

struct Machine;

impl Host for Machine {
    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        command.spawn()
    }
}

impl Host for Namespace {
    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        Namespace::spawn(self, command)
    }
}

/// A server on all addresses of its place.
struct Server {
    _process: Process,
    port: u16,
    place: TempDir,
}

impl Server {
    fn start(place: &impl Host, flags: &[&str]) -> Server {
        let folder = TempDir::new().unwrap();
        let ready = folder.path().join("ready");
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", "0.0.0.0:0", "--access-log", "off"]).args(flags);
        command.arg("--ready-file").arg(&ready).env("XDG_DATA_HOME", folder.path().join("data"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(place.spawn(&mut command).unwrap());
        until("the server", || ready.exists());
        let ready: Value = serde_json::from_str(&fs::read_to_string(&ready).unwrap()).unwrap();
        let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
        Server { _process: process, port, place: folder }
    }

    /// Begins a download; `during` is called once some of it has arrived. Returns the report.
    fn download(&self, from: &impl Host, host: Ipv4Addr, flags: &[&str], during: impl FnOnce()) -> Value {
        let (url, file) = (format!("https://{host}:{}/bytes/{LEN}", self.port), self.file());
        let mut command = Command::new(PROGRAM);
        command.args(["get", "-k", "--json", "--http", "3", &url, "-o"]).arg(&file).args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process(from.spawn(&mut command).unwrap());
        let part = PathBuf::from(format!("{}.part", file.display()));
        let length = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        until("the download", || length(&part) > LEN / 50 || process.0.try_wait().unwrap().is_some());
        during();
        until("the end", || process.0.try_wait().unwrap().is_some());
        let (mut out, mut err) = (String::new(), String::new());
        io::Read::read_to_string(process.0.stdout.as_mut().unwrap(), &mut out).unwrap();
        io::Read::read_to_string(process.0.stderr.as_mut().unwrap(), &mut err).unwrap();
        assert_eq!(process.0.try_wait().unwrap().unwrap().code(), Some(0), "{err}");
        let report: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["bytes"].as_u64(), Some(LEN), "{err}");
        assert_eq!(length(&file), LEN);
        report
    }

    fn file(&self) -> PathBuf {
        self.place.path().join("downloaded")
    }
}

/// Where the client was in the end.
fn local(report: &Value) -> IpAddr {
    let address: std::net::SocketAddr = report["local_address"].as_str().unwrap().parse().unwrap();
    address.ip()
}

/// Deleted, `--migrate-to` could do nothing, or lose bytes.
#[test]
fn a_download_moves_to_another_address_and_completes() {
    let server = Server::start(&Machine, &[]);
    let report = server.download(&Machine, Ipv4Addr::LOCALHOST, &["--migrate-to", "127.0.0.2@0"], || ());
    assert_eq!(report["migrations"].as_u64(), Some(1), "{report}");
    assert_eq!(local(&report), IpAddr::from([127, 0, 0, 2]));
    // Nowhere is told before a byte is asked for, or at the time.
    for (place, word) in [("192.0.2.99@0", "no address of this machine"), ("nowhere@x", "SECONDS")] {
        let output = Command::new(PROGRAM)
            .args(["get", "-k", "--discard", "--migrate-to", place])
            .arg(format!("https://127.0.0.1:{}/bytes/{}", server.port, 100 * LEN))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(word), "{text}");
    }
}

/// RFC 9000 §9.6. Deleted, `--preferred-address` could do nothing, or take an address that leads nowhere.
#[test]
fn a_download_goes_on_at_the_servers_preferred_address() {
    let server = Server::start(&Machine, &["--preferred-address", "127.0.0.3"]);
    let report = server.download(&Machine, Ipv4Addr::LOCALHOST, &[], || ());
    let peer: std::net::SocketAddr = report["peer_address"].as_str().unwrap().parse().unwrap();
    assert_eq!((peer.ip(), peer.port()), (IpAddr::from([127, 0, 0, 3]), server.port));
    let mut refused = Command::new(PROGRAM);
    refused.args(["serve", "--listen", "127.0.0.1:0", "--preferred-address", "127.0.0.3"]);
    refused.env("XDG_DATA_HOME", server.place.path().join("data")).stdin(Stdio::null());
    let output = refused.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("preferred address 127.0.0.3"), "{text}");
}

/// A second link between the sides of a lab, over which each also reaches the addresses of the first: 198.18.1.1 and 198.18.1.2.
fn add_link(lab: &Lab) -> io::Result<()> {
    let [server1, client1] = ["server1", "client1"];
    lab.client().run(|| {
        netlink::create_veth(&netlink::VethOptions {
            names: [client1, server1],
            queues: 1,
            mtu: 1_500,
            macs: None,
        })?;
        netlink::move_to_namespace(netlink::link_by_name(server1)?.index, lab.server())
    })?;
    for (side, name, number, prefix) in [(lab.server(), server1, 1, 24), (lab.client(), client1, 2, 16)] {
        side.run(|| {
            let index = netlink::link_by_name(name)?.index;
            netlink::set_up(index)?;
            netlink::add_address(index, Ipv4Addr::new(198, 18, 1, number).into(), prefix)
        })?;
    }
    until("the second link", || {
        let runs = |name: &'static str| move || netlink::link_by_name(name).is_ok_and(|link| link.is_running);
        lab.client().run(runs(client1)) && lab.server().run(runs(server1))
    });
    Ok(())
}

fn lab() -> Option<Lab> {
    match Lab::new(&LabOptions::default()) {
        Err(LabError::NotAllowed) => {
            requirements::missing(LabError::NotAllowed);
            None
        }
        built => Some(built.unwrap()),
    }
}

/// Deleted, a download would end when the address is gone that it began from, though another link still reaches the server.
#[test]
fn a_download_goes_on_over_another_link_when_its_address_is_gone() {
    let Some(lab) = lab() else { return };
    add_link(&lab).unwrap();
    let server = Server::start(lab.server(), &[]);
    let report = server.download(lab.client(), lab.server().ipv4(), &[], || {
        lab.client().run(|| {
            let link = netlink::link_by_name(lab.client().interface()).unwrap();
            netlink::delete_address(link.index, lab.client().ipv4().into(), 24).unwrap();
        });
    });
    assert_eq!(report["migrations"].as_u64(), Some(1), "{report}");
    assert_eq!(local(&report), IpAddr::from([198, 18, 1, 2]));
    assert!(report["seconds"].as_f64().unwrap() < 30.0, "{report}");
}

/// Deleted, `--migrate-to INTERFACE` could send from an address of the interface out of another one.
#[test]
fn a_download_moves_to_another_interface_and_the_first_may_then_go() {
    let Some(lab) = lab() else { return };
    add_link(&lab).unwrap();
    let server = Server::start(lab.server(), &[]);
    let received = || lab.client().run(|| received_bytes("client1"));
    let before = received();
    let report = server.download(lab.client(), lab.server().ipv4(), &["--migrate-to", "client1@0"], || ());
    assert_eq!(report["migrations"].as_u64(), Some(1), "{report}");
    assert_eq!(local(&report), IpAddr::from([198, 18, 1, 2]));
    assert!(received() - before > LEN / 4, "the download came over the first link");
}

/// What an interface of this thread's namespace has received.
fn received_bytes(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
