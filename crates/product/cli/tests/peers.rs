//! `tercel bench peers`: a table that real programs fill.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// Without this test a program of the comparison could refuse its flags, or fill another cell. A measurement would be the first
/// to show it.
#[test]
fn every_pair_moves_every_byte_with_both_buffers() {
    let quinn = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/peers/release/quinn-peer");
    if !quinn.is_file() {
        return requirements::missing("quinn-peer is not built: tests/setup does that");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_tercel"));
    command.args(["bench", "peers", "--gb", "0.005", "--trials", "1", "--json", "--quinn-peer"]).arg(quinn);
    // Tests need no quiche, which takes BoringSSL to build.
    let output = command.args(["--quiche-peer", "/no/such/program"]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        result["problem"].is_null() && result["notes"].to_string().contains("quiche is left out"),
        "{result}"
    );
    let rows = result["rows"].as_array().unwrap();
    let cell = |row: &serde_json::Value| ["client", "buffer", "server"].map(|name| row[name].to_string());
    assert_eq!(rows.iter().map(cell).collect::<BTreeSet<_>>().len(), 8, "{result}");
    for row in rows {
        let trial = &row["trials"][0];
        // Each datagram takes 1,472 bytes at most, so these are as many as the content needs, in full datagrams but for a few.
        let datagrams = trial["datagrams"].as_u64().unwrap();
        assert!((3_397..4_000).contains(&datagrams), "{row}");
        assert!(trial["goodput_gbit_s"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["trials"][1].is_null(), "the first round does not count: {row}");
    }
    assert_eq!(result["roofline"].as_array().unwrap().len(), 1);
}
