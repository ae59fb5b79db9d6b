//! Downloads over several paths at once: `tercel get --paths` against `tercel serve --multipath`, on loopback and over two emulated
//! links between two network namespaces. The latter are skipped, with a word about it, where namespaces are not permitted.
//!
//! Every process has a deadline and is killed at the end of its test, however that ends.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]
#![expect(clippy::disallowed_methods, reason = "deadlines, and gaps that are printed")]

use netns::emulator::{Direction, Emulator, LinkOptions};
use netns::{Lab, LabError, LabOptions, Namespace, SecondLink};
use serde_json::Value;
use std::fs;
use std::io::{self, Read as _};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");
/// The machine may be busy; nothing here takes more than ten seconds on an idle one.
const PATIENCE: Duration = Duration::from_secs(90);
/// Bytes of a download.
const LEN: usize = 40_000_000;

/// A process that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
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

/// A server of one file on all addresses of its place.
struct Server {
    _process: Process,
    port: u16,
    content: Vec<u8>,
    _folder: TempDir,
}

impl Server {
    fn start(place: &impl Host, len: usize, flags: &[&str]) -> Server {
        let folder = TempDir::new().unwrap();
        let (root, ready) = (folder.path().join("root"), folder.path().join("ready"));
        fs::create_dir(&root).unwrap();
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let content: Vec<u8> = (0..len)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        fs::write(root.join("file"), &content).unwrap();
        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg(&root).args(["--listen", "0.0.0.0:0", "--access-log", "off"]).args(flags);
        command.arg("--ready-file").arg(&ready).env("XDG_DATA_HOME", folder.path().join("data"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(place.spawn(&mut command).unwrap());
        let began = Instant::now();
        while !ready.exists() {
            assert!(began.elapsed() < PATIENCE, "the server does not come");
            sleep(Duration::from_millis(5));
        }
        let ready: Value = serde_json::from_str(&fs::read_to_string(&ready).unwrap()).unwrap();
        let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
        Server { _process: process, port, content, _folder: folder }
    }

    /// Begins to download the file to standard output.
    fn download(&self, from: &impl Host, host: &str, flags: &[&str]) -> Download<'_> {
        let url = format!("https://{host}:{}/file", self.port);
        let mut command = Command::new(PROGRAM);
        command.args(["get", "-k", "--json", "--http", "3", &url, "-o", "-"]).args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = Process(from.spawn(&mut command).unwrap());
        Download { process, content: &self.content, received: 0, longest_gap: Duration::ZERO }
    }
}

/// A download whose bytes are compared as they come.
struct Download<'a> {
    process: Process,
    content: &'a [u8],
    received: usize,
    /// The longest time between two reads of standard output.
    longest_gap: Duration,
}

impl Download<'_> {
    /// Reads until so much has come, or all.
    fn read_to(&mut self, target: usize) {
        let mut piece = vec![0; 65_536];
        let (began, out) = (Instant::now(), self.process.0.stdout.as_mut().unwrap());
        let mut last = began;
        while self.received < target {
            let len = out.read(&mut piece).unwrap();
            if len == 0 {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{} bytes have come", self.received);
            self.longest_gap = self.longest_gap.max(last.elapsed());
            last = Instant::now();
            let expected = self.content.get(self.received..self.received + len);
            assert!(expected == piece.get(..len), "another byte than was sent, after {}", self.received);
            self.received += len;
        }
    }

    /// Waits for the end. Returns the report, and what else was said.
    fn finish(mut self) -> (Value, String) {
        self.read_to(usize::MAX);
        let mut said = String::new();
        self.process.0.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(self.process.0.wait().unwrap().code(), Some(0), "{said}");
        assert_eq!(self.received, self.content.len(), "{said}");
        let report = said.lines().find(|line| line.starts_with('{')).unwrap();
        (serde_json::from_str(report).unwrap(), said)
    }
}

/// The paths of a report: local address, state and bytes.
fn paths(report: &Value) -> Vec<(String, String, u64)> {
    let of = |path: &Value| {
        let address: std::net::SocketAddr = path["local_address"].as_str().unwrap().parse().unwrap();
        let state = path["state"].as_str().unwrap().to_owned();
        (address.ip().to_string(), state, path["received_bytes"].as_u64().unwrap())
    };
    report["paths"].as_array().unwrap().iter().map(of).collect()
}

/// Deleted, `--paths` could open no path, or lose bytes.
#[test]
fn a_download_uses_a_path_from_each_address() {
    for scheduler in ["lowest-rtt", "round-robin", "redundant"] {
        let server = Server::start(&Machine, 20_000_000, &[&format!("--multipath={scheduler}")]);
        let flags = ["--paths", "127.0.0.1,127.0.0.2,127.0.0.3", "--scheduler", scheduler];
        let (report, said) = server.download(&Machine, "127.0.0.1", &flags).finish();
        assert!(!said.contains("warning"), "{said}");
        let used = paths(&report);
        assert_eq!(used.len(), 3, "{report}");
        for (at, (ip, state, bytes)) in used.iter().enumerate() {
            assert_eq!((ip, state.as_str()), (&format!("127.0.0.{}", at + 1), "open"), "{report}");
            assert!(*bytes > 2_000 || scheduler != "round-robin", "{report}");
        }
        let all: u64 = used.iter().map(|(_, _, bytes)| bytes).sum();
        assert!(all > 20_000_000, "{report}");
    }
}

/// Deleted, a download could hang, or say nothing, where there is only one path.
#[test]
fn one_path_and_a_warning_where_the_server_offers_no_more() {
    let server = Server::start(&Machine, 2_000_000, &[]);
    let (report, said) = server.download(&Machine, "127.0.0.1", &["--paths", "127.0.0.2,127.0.0.3"]).finish();
    assert!(said.contains("warning: the server does not offer several paths"), "{said}");
    assert!(report["paths"].is_null() && report["local_address"].as_str().unwrap().starts_with("127.0.0.2:"));
    // A connection has four paths, of which the server permits three beside the first.
    let server = Server::start(&Machine, 2_000_000, &["--multipath"]);
    let (report, said) = server.download(&Machine, "127.0.0.1", &["--paths", "127.0.0.2"]).finish();
    assert!(!said.contains("warning"), "{said}");
    assert_eq!(paths(&report).len(), 1, "{report}");
}

/// Deleted, a typing error in a name could cost a path without a word.
#[test]
fn places_that_cannot_be_are_named() {
    let server = Server::start(&Machine, 100, &["--multipath"]);
    for (places, host, code, word) in [
        ("127.0.0.1,nowhere9", "127.0.0.1", 2, "nowhere9 is neither an address nor an interface"),
        ("127.0.0.1,192.0.2.99", "127.0.0.1", 2, "192.0.2.99 is no address of this machine"),
        ("127.0.0.1,127.0.0.1", "127.0.0.1", 2, "127.0.0.1 is named twice"),
        ("127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5", "127.0.0.1", 2, "four paths at most"),
        ("127.0.0.1,", "127.0.0.1", 2, "a name is empty"),
        ("::1", "127.0.0.1", 7, "::1 has no IPv4 address"),
    ] {
        let mut command = Command::new(PROGRAM);
        command.args(["get", "-k", "--discard", "--paths", places]);
        let output = command.arg(format!("https://{host}:{}/file", server.port)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(word), "{said}");
    }
}

/// 50 Mbit/s with 10 ms each way, and a queue of 50 ms.
fn link() -> LinkOptions {
    LinkOptions {
        delay: Duration::from_millis(10),
        rate_bits: Some(50_000_000),
        queue_bytes: 312_500,
        ..LinkOptions::default()
    }
}

/// Two links of 50 Mbit/s.
fn lab() -> Option<(Lab, SecondLink)> {
    let options = LabOptions { link: Some(link()), ..LabOptions::default() };
    match Lab::new(&options) {
        Err(LabError::NotAllowed) => {
            requirements::missing(LabError::NotAllowed);
            None
        }
        built => {
            let lab = built.unwrap();
            let second = SecondLink::new(&lab, &link()).unwrap();
            Some((lab, second))
        }
    }
}

fn carried(link: &Emulator) -> u64 {
    link.counters(Direction::ToLeft).sent_bytes
}

/// Deleted, both paths could go over one link, as the routes would have it, or one of them could carry next to nothing.
#[test]
fn a_download_fills_two_links() {
    let Some((lab, second)) = lab() else { return };
    let server = Server::start(lab.server(), LEN, &["--multipath"]);
    let (report, said) =
        server.download(lab.client(), "198.18.0.1", &["--paths", "client0,client1"]).finish();
    assert!(!said.contains("warning"), "{said}");
    let links = [carried(lab.emulator().unwrap()), carried(second.emulator())];
    println!(
        "{:.1} Mbit/s over links that carried {links:?} bytes, paths {:?}",
        report["goodput_bits_per_second"].as_f64().unwrap() / 1e6,
        paths(&report)
    );
    assert!(links.iter().all(|bytes| *bytes > LEN as u64 * 2 / 5), "{links:?}");
    let used = paths(&report);
    let places: Vec<&str> = used.iter().map(|(ip, _, _)| ip.as_str()).collect();
    assert_eq!(places, ["198.18.0.2", "198.18.1.2"]);
    for ((_, _, bytes), carried) in used.iter().zip(links) {
        assert!(*bytes <= carried && *bytes > carried * 9 / 10, "{used:?}, {links:?}");
    }
}

/// Deleted, the death of one link could end the download, or what was in flight there could wait for the idle timeout.
#[test]
fn a_download_survives_the_death_of_a_link() {
    let Some((lab, second)) = lab() else { return };
    let server = Server::start(lab.server(), LEN, &["--multipath"]);
    for dies in [1, 0] {
        let mut download = server.download(lab.client(), "198.18.0.1", &["--paths", "client0,client1"]);
        download.read_to(LEN / 4);
        let before = core::mem::take(&mut download.longest_gap);
        let dead = [lab.emulator().unwrap(), second.emulator()][dies];
        for direction in [Direction::ToLeft, Direction::ToRight] {
            dead.set(direction, &LinkOptions { loss: 1.0, ..link() }).unwrap();
        }
        download.read_to(LEN);
        let after = download.longest_gap;
        let (report, _) = download.finish();
        let timeouts: Vec<f64> = report["paths"]
            .as_array()
            .unwrap()
            .iter()
            .map(|path| path["probe_timeout_ms"].as_f64().unwrap())
            .collect();
        println!("link {dies} dies: longest gap {before:?} before, {after:?} after, PTO {timeouts:.0?} ms");
        let states: Vec<(String, String)> =
            paths(&report).into_iter().map(|(ip, state, _)| (ip, state)).collect();
        let lost = ["198.18.0.2", "198.18.1.2"][dies];
        assert!(states.contains(&(lost.to_owned(), "closed".to_owned())), "{report}");
        assert!(after < Duration::from_secs(10), "{after:?}");
        for direction in [Direction::ToLeft, Direction::ToRight] {
            dead.set(direction, &link()).unwrap();
        }
    }
}

/// Deleted, a path would be given up only after five timeouts when the system takes its address away: longer than the rest of the
/// download takes.
#[test]
fn a_path_ends_when_its_address_is_gone() {
    let Some((lab, second)) = lab() else { return };
    let server = Server::start(lab.server(), LEN / 4, &["--multipath"]);
    let mut download = server.download(lab.client(), "198.18.0.1", &["--paths", "client0,client1"]);
    download.read_to(LEN / 8);
    lab.client().run(|| {
        let link = netlink::link_by_name(second.client_interface()).unwrap();
        netlink::delete_address(link.index, std::net::Ipv4Addr::new(198, 18, 1, 2).into(), 16).unwrap();
    });
    let (report, _) = download.finish();
    let states: Vec<(String, String)> =
        paths(&report).into_iter().map(|(ip, state, _)| (ip, state)).collect();
    let expected = [("198.18.0.2", "open"), ("198.18.1.2", "closed")];
    assert_eq!(states, expected.map(|(ip, state)| (ip.to_owned(), state.to_owned())), "{report}");
}
