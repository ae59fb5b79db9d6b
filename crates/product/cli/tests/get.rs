//! `tercel get` against `tercel serve`, both as users run them: the built program, real files, UDP on the loopback interface.
//!
//! Every process has a deadline and is killed at the end of its test, however that ends.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

use base::pattern;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");
/// The machine may be busy; nothing here takes a second on an idle one.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(10);

/// A process that does not outlive its test.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Process {
        Process(command.spawn().expect("the program starts"))
    }

    /// Its end, and what it wrote to pipes.
    fn wait(mut self) -> Output {
        let child = &mut self.0;
        // Read to the end on threads of their own: a pipe that is full would stop the process.
        let read = |stream: Option<Box<dyn std::io::Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                stream.map(|mut stream| stream.read_to_end(&mut bytes));
                bytes
            })
        };
        let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
        let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
        let mut waited = Duration::ZERO;
        let status = loop {
            if let Some(status) = child.try_wait().expect("a status") {
                break status;
            }
            assert!(waited < PATIENCE, "the program hangs");
            sleep(STEP);
            waited += STEP;
        };
        Output { status, stdout: stdout.join().expect("stdout"), stderr: stderr.join().expect("stderr") }
    }

    fn signal(&self, name: &str) {
        let done = Command::new("kill").args([name, &self.0.id().to_string()]).status();
        assert!(done.expect("kill runs").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of a folder, and a folder for what is downloaded.
struct Bench {
    _server: Process,
    port: u16,
    certificate: PathBuf,
    root: TempDir,
    place: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(&[])
    }

    /// A server with these flags.
    fn with(flags: &[&str]) -> Bench {
        let (root, place) = (TempDir::new().expect("root"), TempDir::new().expect("place"));
        let ready = place.path().join("ready");
        let mut command = Command::new(PROGRAM);
        command
            .arg("serve")
            .arg(root.path())
            .args(["--listen", "127.0.0.1:0", "--access-log", "off"])
            .args(flags);
        // Packets as on Ethernet: loopback's would make too few of them to count, and for keys to be updated.
        command.args(["--mtu-ceiling", "1452"]);
        // The development certificate is kept in the user's data folder: a test has its own.
        command.arg("--ready-file").arg(&ready).env("XDG_DATA_HOME", place.path().join("data"));
        let server = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let mut waited = Duration::ZERO;
        while !ready.exists() {
            assert!(waited < PATIENCE, "the server does not start");
            sleep(STEP);
            waited += STEP;
        }
        let text = fs::read_to_string(&ready).expect("ready file");
        let ready: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let port = ready["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        let certificate = ready["certificate"].as_str().expect("a path").into();
        Bench { _server: server, port, certificate, root, place }
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}/{path}", self.port)
    }

    fn file(&self, name: &str, content: &[u8]) {
        fs::write(self.root.path().join(name), content).expect("a file to serve");
    }

    fn downloaded(&self, name: &str) -> Vec<u8> {
        fs::read(self.place.path().join(name)).expect("a downloaded file")
    }

    /// `tercel get` in the folder for downloads, trusting the server.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = get(self.place.path(), arguments);
        command.arg("--cacert").arg(&self.certificate);
        command
    }

    fn get(&self, arguments: &[&str]) -> Output {
        Process::start(&mut self.command(arguments)).wait()
    }

    /// As `get`, and it must succeed.
    fn fetch(&self, arguments: &[&str]) -> Output {
        let output = self.get(arguments);
        assert!(output.status.success(), "{}", said(&output));
        output
    }

    /// How much of `name` is there.
    fn part_length(&self, name: &str) -> u64 {
        fs::metadata(self.place.path().join(format!("{name}.part"))).map_or(0, |found| found.len())
    }
}

fn get(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("get").args(arguments).current_dir(place);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn content(length: usize) -> Vec<u8> {
    pattern::at(0).iter().cycle().take(length).copied().collect()
}

#[test]
fn files_of_all_sizes_arrive_whole_and_in_parallel() {
    let bench = Bench::new();
    let large = content(7_654_321);
    for (name, length) in [("none", 0), ("one", 1), ("packet", 1_400), ("large", large.len())] {
        bench.file(name, &large[..length]);
    }
    let urls: Vec<String> = ["none", "one", "packet", "large"].iter().map(|name| bench.url(name)).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    bench.fetch(&[&urls[..], &["--parallel", "3"]].concat());
    for (name, length) in [("none", 0), ("one", 1), ("packet", 1_400), ("large", large.len())] {
        assert!(bench.downloaded(name) == large[..length], "{name}");
    }
    fs::create_dir(bench.place.path().join("again")).expect("a folder");
    bench.fetch(&[&urls[..], &["-o", "again/"]].concat());
    assert!(bench.downloaded("again/large") == large && bench.downloaded("again/none").is_empty());
    let left = fs::read_dir(bench.place.path().join("again")).expect("the folder").count();
    assert_eq!(left, 4, "nothing but the files is left");
}

#[test]
fn generated_bodies_are_verified_and_measured() {
    let bench = Bench::new();
    let url = bench.url("bytes/50MB");
    for arguments in [
        ["--verify-pattern", "--parallel", "4"].as_slice(),
        &["--verify-pattern", "--cipher", "chacha20", "--quic-version", "2"],
        &["--verify-pattern", "--key-update-after", "1000", "--cipher", "aes256"],
        &["--verify-pattern", "--datapath", "plain"],
    ] {
        let output = bench.fetch(&[&[&url, "--json"], arguments].concat());
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
        assert_eq!((line["bytes"].as_u64(), line["exit_code"].as_u64()), (Some(50_000_000), Some(0)));
        assert!(line["received_datagrams"].as_u64() > Some(30_000), "{line}");
        let version = if arguments.contains(&"2") { 2 } else { 1 };
        assert_eq!(line["quic_version"].as_u64(), Some(version));
    }
    bench.file("wrong", &[&content(100_000)[..], b"?"].concat());
    let output = bench.get(&[&bench.url("wrong"), "--verify-pattern"]);
    assert_eq!(code(&output), Some(90), "{}", said(&output));
    assert!(said(&output).contains("byte 100000 "), "{}", said(&output));
}

/// RFC 9368 §2.3: the client begins with version 1, and with version 2 once it has tickets of that one.
#[test]
fn a_server_moves_downloads_to_the_version_that_it_prefers() {
    let bench = Bench::with(&["--prefer-quic-version", "2"]);
    let output = bench.fetch(&[&bench.url("bytes/1MB"), "--json", "--verify-pattern"]);
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((line["quic_version"].as_u64(), line["bytes"].as_u64()), (Some(2), Some(1_000_000)), "{line}");
    let urls = [bench.url("bytes/1KB"), bench.url("bytes/2KB")];
    let flags = ["--json", "--discard", "--new-connections", "--early-data"];
    let output = bench.fetch(&[&flags[..], &[&urls[0], &urls[1]]].concat());
    let told = String::from_utf8(output.stdout).expect("text");
    let lines = told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let versions: Vec<Option<u64>> = lines.map(|line| line["quic_version"].as_u64()).collect();
    assert!(versions.len() >= 2 && versions.iter().all(|version| *version == Some(2)), "{told}");
}

#[test]
fn a_download_that_was_killed_or_interrupted_is_continued() {
    let bench = Bench::new();
    let url = bench.url("bytes/2GB");
    // As slow as it goes, so that there is time to kill it.
    let arguments = [&url as &str, "-o", "file", "--datapath", "plain"];
    for (signal, expected) in [("-KILL", None), ("-INT", Some(130))] {
        let before = bench.part_length("file");
        let process = Process::start(&mut bench.command(&arguments));
        let mut waited = Duration::ZERO;
        // A kill loses what was received since the last checkpoint, so wait for one to be there.
        let state = bench.place.path().join("file.part.state");
        let holds_some = || fs::read_to_string(&state).is_ok_and(|text| !text.contains("\"received\":[]"));
        while bench.part_length("file") <= before || !holds_some() {
            assert!(waited < PATIENCE, "nothing is received");
            sleep(STEP);
            waited += STEP;
        }
        process.signal(signal);
        let output = process.wait();
        assert_eq!(code(&output), expected, "{}", said(&output));
        if expected.is_some() {
            assert!(said(&output).contains("run the same command again"), "{}", said(&output));
        }
    }
    let there = bench.part_length("file");
    let output = bench.fetch(&[&url, "-o", "file", "--json"]);
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(
        line["resumed_from"].as_u64() > Some(0) && line["resumed_from"].as_u64() <= Some(there),
        "{line}"
    );
    assert_eq!(
        line["bytes"].as_u64().zip(line["resumed_from"].as_u64()).map(|(a, b)| a + b),
        Some(2_000_000_000)
    );
    let mut file = fs::File::open(bench.place.path().join("file")).expect("the file");
    assert_eq!(first_difference(&mut file), None);
}

/// Where a file differs from the generated pattern.
fn first_difference(file: &mut impl std::io::Read) -> Option<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    loop {
        let length = file.read(&mut buffer).expect("the file can be read");
        if length == 0 {
            return None;
        }
        if let Some(place) = pattern::first_difference(offset, &buffer[..length]) {
            return Some(place);
        }
        offset += length as u64;
    }
}

#[test]
fn ranges_heads_and_the_standard_output() {
    let bench = Bench::new();
    let bytes = content(300_000);
    bench.file("file", &bytes);
    let url = bench.url("file");
    assert!(bench.fetch(&[&url, "-o", "-"]).stdout == bytes);
    assert!(
        bench.fetch(&[&url, "-o", "-", "--range", "1000-200999", "--quiet"]).stdout == bytes[1_000..201_000]
    );
    bench.fetch(&[&url, "-o", "end", "--range", "299990-", "--parallel", "2"]);
    assert_eq!(bench.downloaded("end"), &bytes[299_990..]);
    let beyond = bench.get(&[&url, "-o", "beyond", "--range", "300000-"]);
    assert_eq!(code(&beyond), Some(22), "{}", said(&beyond));
    let head = bench.fetch(&["-I", &url]);
    let text = String::from_utf8_lossy(&head.stdout);
    assert!(text.starts_with("HTTP/3 200\n") && text.contains("\ncontent-length: 300000\n"), "{text}");
    bench.fetch(&[&url, "-o", "/dev/null"]);
    let full = bench.get(&[&url, "-o", "/dev/full"]);
    assert_eq!(code(&full), Some(23), "{}", said(&full));
    assert!(said(&full).contains("the disk is full"), "{}", said(&full));
}

#[test]
fn what_goes_wrong_is_said_in_one_line_with_its_own_exit_code() {
    let bench = Bench::new();
    bench.file("file", b"content");
    let url = bench.url("file");
    let missing = bench.url("nothing-here");
    let not_pem = bench.root.path().join("file");
    let not_pem = not_pem.to_str().expect("a path");
    let elsewhere = format!("https://localhost:{}/", free_port());
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mute = format!("https://127.0.0.1:{}/", silent.local_addr().expect("an address").port());
    let ip = format!("https://127.0.0.2:{}/file", bench.port);
    let to_ip = format!("127.0.0.2:{}:127.0.0.1", bench.port);
    let table: &[(&[&str], i32, &str)] = &[
        (&[&missing, "-o", "x", "--cacert", "CA"], 22, "status 404"),
        (&[&elsewhere, "-o", "x"], 7, "nothing listens on UDP"),
        (&[&mute, "-o", "x", "--connect-timeout", "1"], 28, "no answer for 1 s"),
        (&[&url, "-o", "x"], 60, "not from a trusted authority"),
        (&[&ip, "-o", "x", "--cacert", "CA", "--resolve", &to_ip], 60, "for another name"),
        (&[&url, "-o", "x", "--cacert", not_pem], 77, "no certificate found"),
        (&[&url, "-o", "x", "--cacert", "absent.pem"], 77, "absent.pem"),
        (&["example.org/x"], 3, "write https://example.org/x"),
        (&["https://nowhere.invalid/x"], 6, "cannot resolve nowhere.invalid"),
        (&[&url, "-o", "absent/x"], 23, "its folder does not exist"),
        (&[&url, "--range", "9-1"], 2, "is no range"),
        (&[&url, "--parallel", "0"], 2, "--parallel"),
    ];
    for (arguments, expected, text) in table {
        let mut command = get(bench.place.path(), &[]);
        for argument in *arguments {
            if *argument == "CA" {
                command.arg(&bench.certificate)
            } else {
                command.arg(argument)
            };
        }
        let output = Process::start(&mut command).wait();
        assert_eq!(code(&output), Some(*expected), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(text), "{arguments:?}: {}", said(&output));
    }
    let left: Vec<_> = fs::read_dir(bench.place.path()).expect("the folder").flatten().collect();
    let left: Vec<_> = left
        .iter()
        .map(|entry| entry.file_name())
        .filter(|name| name.as_encoded_bytes()[0] == b'x')
        .collect();
    assert!(left.is_empty(), "failures leave nothing behind: {left:?}");
    let both = bench.get(&[&missing, &url, "-o", "."]);
    assert_eq!(code(&both), Some(22), "the first failure's code, {}", said(&both));
    assert_eq!(bench.downloaded("file"), b"content", "one failure does not stop the others");
}

/// A UDP port that is closed.
/// Deleted, `tercel get URL -o - | less` could end in the middle, since the server hears nothing for as long as a user reads a page.
#[test]
fn a_reader_that_pauses_holds_up_its_download_and_ends_it_never() {
    let bench = Bench::with(&["--idle-timeout", "1"]);
    let size = 30_000_000;
    let url = bench.url(&format!("bytes/{size}"));
    let start = |http| {
        let flags = ["--http", http, "--timeout", "1", "--quiet", "-o", "-"];
        Process::start(bench.command(&[&url]).args(flags))
    };
    let (paused, interrupted) = (["3", "2", "1"].map(start), start("3"));
    sleep(Duration::from_secs(4));
    interrupted.signal("-INT");
    let mut waited = Duration::ZERO;
    let mut interrupted = interrupted;
    while interrupted.0.try_wait().expect("a status").is_none() {
        assert!(waited < PATIENCE, "Ctrl-C is not heard while the reader pauses");
        sleep(STEP);
        waited += STEP;
    }
    assert_eq!(code(&interrupted.wait()), Some(130));
    for process in paused {
        let output = process.wait();
        assert!(output.status.success(), "{}", said(&output));
        assert!(output.stdout == content(size), "{} bytes", output.stdout.len());
    }
}

fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("an address").port()
}

#[test]
fn a_server_that_dies_is_noticed_and_nothing_is_lost() {
    let bench = Bench::new();
    let url = bench.url("bytes/100GB");
    let process = Process::start(&mut bench.command(&[&url, "-o", "file", "--timeout", "1", "--no-resume"]));
    let mut waited = Duration::ZERO;
    while bench.part_length("file") == 0 {
        assert!(waited < PATIENCE, "nothing is received");
        sleep(STEP);
        waited += STEP;
    }
    bench._server.signal("-KILL");
    let output = process.wait();
    assert_eq!(code(&output), Some(28), "{}", said(&output));
    assert!(said(&output).contains("nothing arrived for 1 s"), "{}", said(&output));
    let mut part = fs::File::open(bench.place.path().join("file.part")).expect("what was received");
    assert_eq!(first_difference(&mut part), None);
}

#[test]
fn captures_and_key_logs_are_written() {
    let bench = Bench::new();
    let (capture, keys) = (bench.place.path().join("c.pcap"), bench.place.path().join("keys"));
    let url = bench.url("bytes/100kB");
    let mut command = bench.command(&[&url, "--discard"]);
    command.arg("--pcap").arg(&capture).env("SSLKEYLOGFILE", &keys);
    let output = Process::start(&mut command).wait();
    assert!(output.status.success(), "{}", said(&output));
    let bytes = fs::read(capture).expect("a capture");
    assert!(bytes.starts_with(&0x0a0d_0d0a_u32.to_le_bytes()) && bytes.len() > 100_000, "{}", bytes.len());
    let text = fs::read_to_string(keys).expect("a key log");
    assert!(text.contains("SERVER_TRAFFIC_SECRET_0 "), "{text}");
}

/// Deleted, a capture could be unreadable without further files, or its secrets readable for everybody.
#[test]
fn a_capture_opens_without_a_key_log_and_is_its_owners() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    let capture = bench.place.path().join("c.pcapng");
    // One that everybody could read is there already.
    fs::write(&capture, vec![0; 1 << 20]).expect("a file");
    fs::set_permissions(&capture, fs::Permissions::from_mode(0o644)).expect("its mode");
    let url = bench.url("bytes/100kB");
    let mut command = bench.command(&[&url, "--discard", "--quiet"]);
    let output = Process::start(command.arg("--pcap").arg(&capture).env_remove("SSLKEYLOGFILE")).wait();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::metadata(&capture).expect("a capture").permissions().mode() & 0o777, 0o600);
    let port = url.split([':', '/']).nth(4).expect("a port");
    let read = |filter: &str| {
        let mut tshark = Command::new("tshark");
        tshark.args(["-n", "-d", &format!("udp.port=={port},quic"), "-Y", filter, "-r"]).arg(&capture);
        tshark
            .stderr(Stdio::null())
            .output()
            .ok()
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(asked) = read("http3.frame_type == 1") else {
        return requirements::missing("tshark is not installed");
    };
    assert!(!asked.is_empty(), "no head is readable");
    assert!(
        read("quic.stream.stream_id == 0").is_some_and(|lines| lines.lines().count() > 2),
        "content is readable"
    );
    assert_eq!(read("quic.decryption_failed").as_deref(), Some(""), "every packet is");
}

/// Deleted, a version of HTTP could lose what the others have: ranges, heads, exit codes, JSON.
#[test]
fn each_version_of_http_downloads_the_same() {
    let bench = Bench::new();
    let large = content(3_654_321);
    bench.file("large", &large);
    bench.file("none", b"");
    let (url, none, missing) = (bench.url("large"), bench.url("none"), bench.url("missing"));
    let (generated, closed) = (bench.url("bytes/5MB"), format!("https://localhost:{}/", free_port()));
    for (version, spoken, name) in
        [("1", "1.1", "HTTP/1.1 200"), ("2", "2.0", "HTTP/2 200"), ("auto", "3.0", "HTTP/3 200")]
    {
        let folder = format!("http{version}/");
        fs::create_dir(bench.place.path().join(&folder)).expect("a folder");
        bench.fetch(&[&url, &none, "-o", &folder, "--http", version, "--parallel", "3"]);
        assert!(bench.downloaded(&format!("{folder}large")) == large, "{version}");
        assert!(bench.downloaded(&format!("{folder}none")).is_empty(), "{version}");
        let output = bench.fetch(&[&generated, "--verify-pattern", "--json", "--http", version]);
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
        assert_eq!((&line["bytes"], &line["http_version"]), (&5_000_000.into(), &spoken.into()), "{line}");
        let counts = line["received_datagrams"].as_u64();
        assert_eq!(counts > Some(0), version == "auto", "what is sent over TCP is not counted: {line}");
        assert!(line["seconds"].as_f64() > Some(0.0), "{line}");
        let range = bench.fetch(&[&url, "--range", "1000-1999", "-o", "-", "--http", version]);
        assert!(range.stdout == large[1_000..2_000], "{version}");
        let head = bench.fetch(&[&url, "-I", "--http", version]);
        let head = String::from_utf8_lossy(&head.stdout).into_owned();
        assert!(head.starts_with(name) && head.contains("content-length: 3654321"), "{head}");
        for (arguments, expected) in [(&missing, 22), (&closed, 7)] {
            let output = bench.get(&[arguments, "-o", "x", "--http", version]);
            assert_eq!(code(&output), Some(expected), "{version}: {}", said(&output));
        }
        let untrusting =
            get(bench.place.path(), &[&url, "-o", "x", "--http", version]).output().expect("it runs");
        assert_eq!(code(&untrusting), Some(60), "{version}: {}", said(&untrusting));
    }
    let capture = bench.get(&[&url, "--pcap", "x", "--http", "2"]);
    assert_eq!(code(&capture), Some(2), "{}", said(&capture));
}

/// Deleted, a download over TCP that was interrupted could begin anew.
#[test]
fn a_download_over_http2_that_was_interrupted_is_continued() {
    let bench = Bench::new();
    let url = bench.url("bytes/100GB");
    let mut resumed = Vec::new();
    for _ in 0..2 {
        let before = bench.part_length("file");
        let process = Process::start(&mut bench.command(&[&url, "-o", "file", "--http", "2", "--json"]));
        let mut waited = Duration::ZERO;
        while bench.part_length("file") == before {
            assert!(waited < PATIENCE, "nothing is received");
            sleep(STEP);
            waited += STEP;
        }
        process.signal("-INT");
        let output = process.wait();
        assert_eq!(code(&output), Some(130), "{}", said(&output));
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
        resumed.push(line["resumed_from"].as_u64());
    }
    assert!(resumed[0] == Some(0) && resumed[1] > Some(0), "{resumed:?}");
    let mut part = fs::File::open(bench.place.path().join("file.part")).expect("what was received");
    assert_eq!(first_difference(&mut part), None);
}
