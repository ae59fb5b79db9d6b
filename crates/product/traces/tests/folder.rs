//! Traces on a disk: names, modes, bounds, and folders that cannot be used.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

use base::time::Instant;
use qlog::{AlpnInformation, Beginning, Ended, MtuUpdated, Trace};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;
use traces::{Keep, Qlog, Settings, Share};
use wire::Side;

const AT: Instant = Instant::from_nanos(1 << 40);

fn begin(qlog: &Qlog, side: Side, original_dcid: &[u8]) -> Option<Trace> {
    qlog.tracer().begin(&Beginning { now: AT, side, original_dcid, wall_clock_ms: None })
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a name")
        .map(|entry| entry.expect("a name").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_for_each_connection_and_end_that_others_cannot_read() {
    let place = TempDir::new().unwrap();
    let folder = place.path().join("a/b");
    let qlog = Qlog::open(Settings::new(&folder)).unwrap();
    for side in [Side::Client, Side::Server, Side::Server] {
        let mut trace = begin(&qlog, side, &[0, 1, 0xfe, 0xff, 5, 6, 7, 8]).unwrap();
        (0..1_000).for_each(|_| trace.record(AT, &MtuUpdated { old: 1_200, new: 1_400 }));
    }
    let report = qlog.flush();
    assert_eq!((report.files, report.failed, report.refused), (3, 0, 0));
    let expected =
        ["0001feff05060708_client.sqlog", "0001feff05060708_server.sqlog", "0001feff05060708_server_2.sqlog"];
    assert_eq!(names(&folder), expected, "the same ID twice gives two files");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let mut bytes = 0;
    for name in expected {
        let path = folder.join(name);
        assert_eq!(mode(&path), 0o600);
        let file = fs::read(path).unwrap();
        assert_eq!(qlog::check::records(&file).unwrap().len(), 1_001);
        bytes += file.len() as u64;
    }
    assert_eq!(report.bytes, bytes);
}

/// More connections than files may be open at a time.
#[test]
fn hundreds_of_connections_at_once_are_whole() {
    let place = TempDir::new().unwrap();
    let qlog = Qlog::open(Settings::new(place.path())).unwrap();
    let mut traces: Vec<Trace> =
        (0..300_u64).map(|id| begin(&qlog, Side::Server, &id.to_be_bytes()).unwrap()).collect();
    for _ in 0..200 {
        traces.iter_mut().for_each(|trace| trace.record(AT, &MtuUpdated { old: 1_200, new: 1_400 }));
    }
    drop(traces);
    // The last clone waits for the writer: no flush is needed.
    drop(qlog);
    for name in names(place.path()) {
        let records = qlog::check::records(&fs::read(place.path().join(name)).unwrap()).unwrap();
        assert_eq!(records.len(), 201);
    }
    assert_eq!(names(place.path()).len(), 300);
}

#[test]
fn a_share_of_none_makes_no_file_and_files_have_a_limit() {
    let place = TempDir::new().unwrap();
    let none = Settings { share: Share::from_millionths(0), ..Settings::new(place.path()) };
    assert!(begin(&Qlog::open(none).unwrap(), Side::Client, &[1; 8]).is_none());
    let two = Qlog::open(Settings { max_files: 2, ..Settings::new(place.path()) }).unwrap();
    let begun = (0..5_u64).filter(|id| begin(&two, Side::Client, &id.to_be_bytes()).is_some()).count();
    assert_eq!((begun, two.flush().left_out), (2, 3));
}

/// Connections that nothing triggers are no files and use up no limit.
#[test]
fn untriggered_connections_leave_no_file() {
    let place = TempDir::new().unwrap();
    let keep = Keep { when: Some("error".parse().unwrap()), ..Keep::default() };
    let qlog = Qlog::open(Settings { keep, max_files: 1, ..Settings::new(place.path()) }).unwrap();
    for id in 0..10_u64 {
        begin(&qlog, Side::Client, &id.to_be_bytes()).unwrap().record(AT, &AlpnInformation { chosen: b"h3" });
    }
    assert_eq!((qlog.flush().files, names(place.path()).len()), (0, 0));
    let error = Ended { is_error: true, sent_packets: 1, lost_packets: 0 };
    (10..15_u64).for_each(|id| begin(&qlog, Side::Client, &id.to_be_bytes()).unwrap().on_ended(AT, error));
    let report = qlog.flush();
    assert_eq!((report.files, report.left_out, names(place.path()).len()), (0, 0, 0), "no event, no file");
    for id in 20..25_u64 {
        let mut trace = begin(&qlog, Side::Client, &id.to_be_bytes()).unwrap();
        trace.record(AT, &AlpnInformation { chosen: b"h3" });
        trace.on_ended(AT, error);
    }
    let report = qlog.flush();
    assert_eq!((report.files, report.left_out, names(place.path()).len()), (1, 4, 1));
}

#[test]
fn a_folder_that_cannot_be_used_is_named_with_the_reason() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    for folder in [file.join("below"), file, "/proc/qlog".into()] {
        let error = Qlog::open(Settings::new(&folder)).unwrap_err().to_string();
        assert!(error.contains(&folder.display().to_string()), "{error}");
        assert!(error.contains("name a folder that you may write to"), "{error}");
    }
}

/// Deleted, a disk that fills up could end a server, or go unnoticed.
#[test]
fn a_file_that_cannot_be_written_is_told_of_and_nothing_else_suffers() {
    let place = TempDir::new().unwrap();
    let folder = place.path().join("gone");
    let qlog = Qlog::open(Settings::new(&folder)).unwrap();
    fs::remove_dir(&folder).unwrap();
    let mut trace = begin(&qlog, Side::Client, &[1; 8]).unwrap();
    (0..2_000).for_each(|_| trace.record(AT, &MtuUpdated { old: 1_200, new: 1_400 }));
    drop(trace);
    let report = qlog.flush();
    assert_eq!((report.files, report.failed), (0, 1));
    assert!(report.failure.unwrap().starts_with("0101010101010101_client.sqlog: "));
}

/// A writer that is too slow costs events, which the file counts, and never time of a worker.
#[test]
fn a_queue_without_room_costs_events() {
    let place = TempDir::new().unwrap();
    let qlog = Qlog::open(Settings { queue_bytes: 100, ..Settings::new(place.path()) }).unwrap();
    let mut trace = begin(&qlog, Side::Client, &[1; 8]).unwrap();
    (0..2_000).for_each(|_| trace.record(AT, &MtuUpdated { old: 1_200, new: 1_400 }));
    drop(trace);
    assert!(qlog.flush().refused > 0);
    let file = fs::read(place.path().join("0101010101010101_client.sqlog")).unwrap();
    let records = qlog::check::records(&file).unwrap();
    assert_eq!(records.len(), 2, "the header and the warning");
    assert_eq!(records[1]["data"]["code"], 2_000);
}
