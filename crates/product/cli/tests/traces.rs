//! `--qlog` of serve and get, and QLOGDIR, as users run them.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

mod process;

use process::{PATIENCE, Process, STEP};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");

/// A server of generated bodies.
struct Server {
    process: Process,
    ready: Value,
    place: TempDir,
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        let place = TempDir::new().expect("a folder");
        let ready = place.path().join("ready");
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", "127.0.0.1:0", "--access-log", "off", "--http", "3"]);
        command.args(arguments).arg("--ready-file").arg(&ready).env_remove("QLOGDIR");
        command.env("XDG_DATA_HOME", place.path().join("data")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Process::start(&mut command);
        let mut waited = Duration::ZERO;
        while !ready.exists() {
            assert!(
                process.0.try_wait().expect("a status").is_none() && waited < PATIENCE,
                "it does not start"
            );
            sleep(STEP);
            waited += STEP;
        }
        let text = fs::read_to_string(ready).expect("a file");
        Server { process, ready: serde_json::from_str(&text).expect("JSON"), place }
    }

    fn get(&self, body: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["get", "--quiet", "--discard", "--cacert"]);
        command.arg(self.ready["certificate"].as_str().expect("a path"));
        command.arg(format!("https://localhost:{}/bytes/{body}", self.ready["port"]));
        command.env_remove("QLOGDIR").stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Stops it as a user would.
    fn stop(mut self) -> TempDir {
        let id = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
        assert_eq!(self.process.wait(), Some(0));
        self.place
    }
}

/// The traces in a folder by role, checked against the schema.
fn traces(folder: &Path) -> Vec<(String, Vec<Value>)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let read = entries.map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let records = qlog::check::records(&fs::read(&path).expect("a file"));
        (name.rsplit('_').next().unwrap_or_default().to_owned(), records.expect("a valid trace"))
    });
    read.collect()
}

fn count(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["name"] == name).count()
}

#[test]
fn both_ends_of_a_download_write_valid_traces_that_end_with_the_close() {
    let place = TempDir::new().expect("a folder");
    let (serves, gets) = (place.path().join("serve"), place.path().join("get"));
    let server = Server::start(&["--qlog", serves.to_str().expect("UTF-8")]);
    let mut process = Process::start(server.get("300kB").env("QLOGDIR", &gets));
    assert_eq!(process.wait(), Some(0));
    drop(server.stop());
    let found: Vec<(String, Vec<Value>)> = [serves, gets].iter().flat_map(|folder| traces(folder)).collect();
    assert_eq!(found.iter().map(|(role, _)| role.as_str()).collect::<Vec<_>>(), ["server", "client"]);
    for (role, events) in &found {
        for name in ["quic:packet_sent", "quic:packet_received", "quic:connection_closed"] {
            assert!(count(events, name) > 0, "{role}: {name}");
        }
    }
    let id = |index: usize| &found[index].1[0]["trace"]["common_fields"]["group_id"];
    assert_eq!(id(0), id(1));
    exchanged(&found[0].1, ["frame_parsed", "frame_created"]);
    exchanged(&found[1].1, ["frame_created", "frame_parsed"]);
}

/// The events of HTTP/3 on a download, in their order among those of the transport.
fn exchanged(events: &[Value], [asked, answered]: [&str; 2]) {
    let at = |name: &str, is: &dyn Fn(&Value) -> bool| {
        let found = events.iter().position(|event| event["name"] == name && is(&event["data"]));
        found.expect(name)
    };
    let field = |data: &Value, name: &str| {
        let fields = data["frame"]["headers"].as_array();
        let found = fields.into_iter().flatten().find(|field| field["name"] == name);
        found.and_then(|field| field["value"].as_str()).map(str::to_owned)
    };
    let [asked, answered] = [asked, answered].map(|name| format!("http3:{name}"));
    let on_request = |data: &Value| data["stream_id"] == 0;
    let steps = [
        at("quic:connection_started", &|_| true),
        at("http3:stream_type_set", &|data| on_request(data) && data["stream_type"] == "request"),
        at(&asked, &|data| on_request(data) && field(data, ":path").as_deref() == Some("/bytes/300kB")),
        at(&answered, &|data| on_request(data) && field(data, ":status").as_deref() == Some("200")),
        at(&answered, &|data| on_request(data) && data["frame"]["raw"]["payload_length"] == 300_000),
        at("quic:connection_closed", &|_| true),
    ];
    assert!(steps.is_sorted(), "{steps:?}");
    assert_eq!(count(events, "http3:parameters_set"), 2);
    assert_eq!(count(events, "http3:stream_type_set"), 7, "three of either end and the request");
    // Nothing is dated before what stands above it, but for packets, which are dated by their departure.
    let plain = events.iter().skip(1).filter(|event| event["name"] != "quic:packet_sent");
    let times: Vec<f64> = plain.filter_map(|event| event["time"].as_f64()).collect();
    assert!(times.is_sorted());
}

/// Deleted, Ctrl-C could take away what explains why it was needed.
#[test]
fn ctrl_c_loses_nothing() {
    let place = TempDir::new().expect("a folder");
    let gets = place.path().join("get");
    let server = Server::start(&[]);
    let mut process = Process::start(server.get("100GB").arg("--qlog").arg(&gets));
    let mut waited = Duration::ZERO;
    while !gets.exists() || fs::read_dir(&gets).expect("a folder").count() == 0 {
        assert!(waited < PATIENCE, "no trace is begun");
        sleep(STEP);
        waited += STEP;
    }
    let id = process.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
    process.wait();
    drop(server.stop());
    let found = traces(&gets);
    let (_, events) = &found[0];
    let is_full = events.last().is_some_and(|event| event["name"] == "loglevel:warning");
    assert!(count(events, "quic:connection_closed") == 1 || is_full, "the last events are there");
}

#[test]
fn a_share_of_none_and_connections_without_errors_write_nothing() {
    let place = TempDir::new().expect("a folder");
    let server = Server::start(&[]);
    for (name, flag, value) in [("share", "--qlog-share", "0"), ("when", "--qlog-when", "error,stall")] {
        let folder = place.path().join(name);
        let mut process = Process::start(server.get("10kB").arg("--qlog").arg(&folder).args([flag, value]));
        assert_eq!(process.wait(), Some(0));
        assert_eq!(traces(&folder).len(), 0, "{name}");
    }
    drop(server.stop());
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_before_anything_begins() {
    let place = TempDir::new().expect("a folder");
    let file = place.path().join("file");
    fs::write(&file, "").expect("writes");
    for command in [&["get", "https://localhost:1/"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let output =
            Command::new(PROGRAM).args(command).arg("--qlog").arg(&file).env_remove("QLOGDIR").output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("name a folder that you may write to"), "{said}");
    }
}

/// `tercel qlog` says of a trace what the client has said of its connection.
#[test]
fn a_summary_agrees_with_the_report_of_the_download() {
    let place = TempDir::new().expect("a folder");
    let gets = place.path().join("get");
    let server = Server::start(&[]);
    let got = server.get("3MB").arg("--json").arg("--qlog").arg(&gets).stdout(Stdio::piped()).output();
    let report: Value = serde_json::from_slice(&got.expect("it runs").stdout).expect("a line of JSON");
    drop(server.stop());
    let file = fs::read_dir(&gets).expect("a folder").next().expect("a trace").expect("an entry").path();
    let page = place.path().join("page.html");
    let qlog = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("qlog").args(arguments).arg(&file).output().expect("it runs")
    };
    let told = qlog(&["--json", "--page", page.to_str().expect("UTF-8")]);
    let line: Value = serde_json::from_slice(&told.stdout).expect("a line of JSON");
    assert_eq!(
        (line["vantage"].as_str(), line["alpn"].as_str(), line["version"].as_str()),
        (Some("client"), Some("h3"), Some("1"))
    );
    assert_eq!(line["lost"], report["lost_packets"], "{line} {report}");
    assert!(line["stream_bytes"][1].as_u64() >= Some(3_000_000), "{line}");
    assert_eq!(line["addresses"][0], report["local_address"]);
    assert!(line["end"].as_str().is_some_and(|end| end.starts_with("local close code 256")), "{line}");
    let request = &line["requests"][0];
    let told = ["method", "path"].map(|name| request[name].as_str().unwrap_or_default());
    assert_eq!((told, request["status"].as_u64()), (["GET", "/bytes/3MB"], Some(200)));
    assert!(request["duration_ms"].as_f64() > Some(0.0), "{request}");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("Requests") && page.contains("/bytes/3MB"));
    assert!(page.contains("<svg") && page.contains("Congestion control"));
    let words = String::from_utf8(qlog(&[]).stdout).expect("text");
    assert!(words.contains("QUIC version 1, application protocol h3."), "{words}");
    assert!(words.contains("GET") && words.contains("/bytes/3MB"), "{words}");
}

/// Deleted, no public viewer could open a trace: they read qlog 0.3 at most.
#[test]
fn both_ends_of_a_connection_are_one_document_of_the_version_that_viewers_read() {
    let place = TempDir::new().expect("a folder");
    let folder = place.path().join("traces");
    let server = Server::start(&["--qlog", folder.to_str().expect("UTF-8")]);
    let mut process = Process::start(server.get("300kB").arg("--qlog").arg(&folder));
    assert_eq!(process.wait(), Some(0));
    drop(server.stop());
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let convert = |name: &str| {
        let path = place.path().join(name);
        let output = Command::new(PROGRAM).args(["qlog", "--document"]).arg(&path).args(&files).output();
        (path, output.expect("it runs"))
    };
    let (path, output) = convert("connection.qlog");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read(path).expect("a document");
    // qvis looks for both in the first 1,024 bytes.
    assert!(text.starts_with(br#"{"qlog_version":"0.3","qlog_format":"JSON","#));
    let document = qlog::check::document(&text).expect("a valid document");
    let traces = document["traces"].as_array().expect("traces");
    assert_eq!(traces.len(), 2);
    for (trace, file) in traces.iter().zip(&files) {
        let written = qlog::check::records(&fs::read(file).expect("a file")).expect("a valid trace");
        assert_eq!(trace["common_fields"]["ODCID"], written[0]["trace"]["common_fields"]["group_id"]);
        let events = trace["events"].as_array().expect("events");
        assert_eq!(events.len() + 1, written.len(), "an event for each, and none for the header");
        for (name, older) in [
            ("quic:packet_sent", "transport:packet_sent"),
            ("quic:recovery_metrics_updated", "recovery:metrics_updated"),
            ("quic:parameters_set", "transport:parameters_set"),
            ("quic:key_updated", "security:key_updated"),
            ("http3:frame_created", "http:frame_created"),
        ] {
            assert!(count(&written, name) > 0, "{name}");
            assert_eq!(count(events, older), count(&written, name), "{name}");
        }
    }
    let (path, output) = convert("connection.sqlog");
    assert!(!output.status.success() && !path.exists());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("give it a name that ends in .qlog"), "{said}");
}
