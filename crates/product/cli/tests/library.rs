//! `tercel bench library`: a comparison that real programs fill.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

fn measure(arguments: &[&str], quinn: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tercel"));
    command.args(["bench", "library", "--trials", "1", "--json"]).args(arguments);
    // Tests need no quinn-axum-peer: peers/build makes it for measurements.
    command.args(["--quinn-axum-peer", "/no/such/program", "--quinn-peer"]).arg(quinn);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["problem"].is_null(), "{result}");
    result
}

/// The subjects of a result, each of which has one trial that measured something.
fn subjects(result: &Value) -> Vec<String> {
    let rows = result["rows"].as_array().unwrap();
    for row in rows {
        let trials = row["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 1, "the first round does not count: {row}");
        for figure in ["rate", "server_cpu", "client_cpu"] {
            assert!(trials[0][figure].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    rows.iter().map(|row| row["subject"].as_str().unwrap().to_owned()).collect()
}

/// Without these two a program of the comparison could refuse its flags, serve something else or lose bytes. A measurement would
/// be the first to show it.
#[test]
fn axum_and_the_native_handler_answer_the_same_generator() {
    let axum = Path::new(env!("CARGO_BIN_EXE_tercel")).with_file_name("examples/axum_hello");
    if !axum.is_file() {
        return requirements::missing(
            "axum_hello is not built: cargo build --package tercel-bench --examples",
        );
    }
    let small = ["--only", "hello", "--seconds", "0.2", "-c", "4", "-m", "4"];
    let result = measure(&small, Path::new("/no/such/program"));
    assert_eq!(subjects(&result), ["native", "axum"]);
    let notes = result["notes"].to_string();
    assert!(notes.contains("quinn + h3 + axum is left out") && notes.contains("peers/build"), "{notes}");
    let finding = &result["findings"][0];
    assert_eq!(
        (&finding["over"], &finding["under"], &finding["verdict"]),
        (&"axum".into(), &"native".into(), &"open".into())
    );
}

#[test]
fn a_stream_moves_every_byte_with_each_driver() {
    let quinn = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/peers/release/quinn-peer");
    if !quinn.is_file() {
        requirements::missing("quinn-peer is not built: tests/setup does that");
    }
    let mut expected = vec!["sans-io", "thread", "current"];
    expected.extend(quinn.is_file().then_some("quinn"));
    let result = measure(&["--only", "stream", "--gb", "0.01"], &quinn);
    assert_eq!(subjects(&result), expected);
}
