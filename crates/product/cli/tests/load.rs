//! `tercel load` as a command: what it prints, what it writes, and how it exits. The server here is a few lines of HTTP/1.1.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Requests that are not answered.
static HANGING: AtomicUsize = AtomicUsize::new(0);

/// A server that answers every path with ten bytes, /missing with 404, and /never not at all. It ends with the test's process.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(&stream));
        }
    });
    address
}

fn answer(mut stream: &TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(first)) = lines.next() {
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let status = match first.split(' ').nth(1) {
            Some("/missing") => "404 Not Found",
            Some("/never") => {
                HANGING.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_secs(60));
                return;
            }
            _ => "200 OK",
        };
        let text = format!("HTTP/1.1 {status}\r\ncontent-length: 10\r\n\r\n0123456789");
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tercel"));
    command.arg("load").args(["--http", "1"]).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn load(arguments: &[&str]) -> Output {
    start(arguments).wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn expectations_set_the_exit_code() {
    let url = format!("http://{}/", serve());
    let met = load(&["-n", "200", "-c", "2", "--expect", "errors=0", "--expect", "p50<10s", &url]);
    assert!(met.status.code() == Some(0) && stdout(&met).matches("\nmet ").count() == 2, "{met:?}");
    let unmet = load(&["-n", "200", "--expect", "p50<1us", "--expect", "rate>1", &url]);
    assert!(unmet.status.code() == Some(4) && stdout(&unmet).contains("NOT MET  p50<1us"), "{unmet:?}");
    let missing = format!("{url}missing");
    let failed = load(&["-n", "20", &url, &missing]);
    assert!(failed.status.code() == Some(1) && stdout(&failed).contains("bad status 10"), "{failed:?}");
    let forgiven = load(&["-n", "20", "--expect", "errors<=50%", "--json", &url, &missing]);
    let expectation = &json(&forgiven)["expectations"][0];
    assert!(forgiven.status.code() == Some(0) && expectation["measured"] == 0.5, "{forgiven:?}");
}

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    let url = format!("http://{}/", serve());
    let table = [
        (vec!["--expect", "p98<5ms", url.as_str()], "handshake_p50<3ms"),
        (vec!["-m", "2", url.as_str()], "-c"),
        (vec!["-c", "2", "-t", "3", url.as_str()], "more threads than connections"),
        (vec!["--urls", "/nonexistent"], "/nonexistent"),
        (vec![], "URL"),
    ];
    for (arguments, words) in table {
        let output = load(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
    let plain = Command::new(env!("CARGO_BIN_EXE_tercel")).args(["load", &url]).output().unwrap();
    let said = String::from_utf8_lossy(&plain.stderr).into_owned();
    assert!(plain.status.code() == Some(2) && said.contains("--http 1"), "{said}");
}

#[test]
fn trials_and_their_series() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, urls) = (folder.path().join("series.csv"), folder.path().join("urls"));
    let address = serve();
    std::fs::write(&urls, format!("# two\nhttp://{address}/a\nhttp://{address}/b\n")).unwrap();
    let (csv_flag, urls_flag) = (csv.to_str().unwrap(), urls.to_str().unwrap());
    let output =
        load(&["-n", "300", "-c", "3", "--trials", "3", "--json", "--csv", csv_flag, "--urls", urls_flag]);
    let found = json(&output);
    assert!(output.status.success(), "{output:?}");
    let rates = found["summary"]["requests_per_second"]["values"].as_array().unwrap();
    assert!(rates.len() == 3 && found["summary"]["requests_per_second"]["sd"].is_number());
    let trials = found["trials"].as_array().unwrap();
    assert!(
        trials.iter().all(|trial| trial["requests"] == 300 && trial["protocol"] == "HTTP/1.1"),
        "{found}"
    );
    let text = std::fs::read_to_string(&csv).unwrap();
    let sums: u64 =
        text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse::<u64>().unwrap()).sum();
    assert!(text.starts_with("trial,from_s,") && sums == 900, "{text}");
    let table = load(&["-n", "50", "--trials", "2", "-q", &format!("http://{address}/")]);
    assert!(stdout(&table).contains("\nmean ") && stdout(&table).contains("\nsd "), "{table:?}");
}

/// Waits until this many requests hang. A child that ends before, or makes none in half a minute, fails the test.
fn await_hanging(child: &mut Child, wanted: usize) {
    let (mut looks, mut said) = (0, String::new());
    while HANGING.load(Ordering::Relaxed) < wanted {
        let ended = child.try_wait().unwrap();
        let goes_on = ended.is_none() && looks < 3_000;
        if !goes_on {
            let _ = child.kill();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        }
        assert!(goes_on, "fewer than {wanted} requests hang; the child: {ended:?}, {said}");
        looks += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Deleted, an hour of waiting could end with nothing.
#[test]
fn an_interrupt_prints_what_was_measured() {
    let address = serve();
    let urls = [format!("http://{address}/"), format!("http://{address}/never")];
    // Both connections hang sooner or later, for longer than the test may take.
    let mut child = start(&["-D", "60", "-c", "2", "--timeout", "50", "--json", &urls[0], &urls[1]]);
    await_hanging(&mut child, 2);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let found = json(&output);
    assert!(found["interrupted"] == true && found["seconds"].as_f64().unwrap() < 30.0, "{found}");
    assert!(
        found["requests"].as_u64().unwrap() >= 1 && found["unfinished"].as_u64().unwrap() >= 1,
        "{found}"
    );
}
