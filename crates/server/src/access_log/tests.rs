//! Lines as log tools read them, and what happens when the disk does not keep up.

use super::*;
use std::sync::{Condvar, Mutex};

const NOW: Instant = Instant::from_nanos(1);

fn entry(head: &Head) -> Entry<'_> {
    Entry {
        peer: IpAddr::from([192, 0, 2, 7]),
        unix_s: 1_795_235_480,
        head,
        protocol: Protocol::Http3,
        status: 200,
        bytes: 1_234,
        duration: Duration::from_micros(1_000_153),
    }
}

fn line(head: &Head) -> String {
    let mut line = Vec::new();
    write_line(&mut line, &entry(head), &timestamp(1_795_235_480));
    String::from_utf8(line).unwrap()
}

#[test]
fn a_line_has_the_combined_format() {
    let mut head = Head::of("GET", "/index.html?a=b");
    head.on_field(b"user-agent", b"test \"agent\"");
    let right = "192.0.2.7 - - [21/Nov/2026:04:31:20 +0000] \"GET /index.html?a=b HTTP/3\" 200 1234 \"-\" \
                 \"test \\\"agent\\\"\" 1.000153\n";
    assert_eq!(line(&head), right);
}

/// No request can write a line of its own, colour a terminal, or fill the disk with one line.
#[test]
fn what_a_client_sent_is_escaped_and_cut() {
    let mut head = Head::of("GET\n", "/\r\n127.0.0.1 - - \"\\");
    head.on_field(b"referer", b"\x1b[31m\x00\x7f\x9b\xc3\xa9");
    head.on_field(b"user-agent", &[b'\n'; 60_000]);
    let line = line(&head);
    assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\n'));
    assert_eq!(line.matches('\n').count(), 1);
    assert!(line.contains("GET\\x0a /\\x0d\\x0a127.0.0.1 - - \\\"\\\\ HTTP/3"), "{line}");
    assert!(line.contains("\"\\x1b[31m\\x00\\x7f\\x9b\\xc3\\xa9\""), "{line}");
    assert!(line.len() < 4 * MAX_TEXT + 300);
}

#[test]
fn lines_reach_the_file_and_rotation_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, "earlier\n").unwrap();
    let lines = |path: &std::path::Path| std::fs::read_to_string(path).unwrap().lines().count();
    let log = AccessLog::start(Target::parse(path.to_str().unwrap())).unwrap();
    let mut recorder = log.recorder();
    let head = Head::of("GET", "/");
    recorder.record(&entry(&head), NOW);
    assert_eq!(recorder.next_timeout(), Some(NOW + LINGER));
    recorder.on_timeout(NOW);
    assert_eq!(recorder.batch.lines, 1, "not due yet");
    recorder.on_timeout(NOW + LINGER);
    assert_eq!(recorder.next_timeout(), None);
    while lines(&path) < 2 {
        std::thread::yield_now();
    }
    std::fs::rename(&path, folder.path().join("old.log")).unwrap();
    log.reopen();
    (0..1_000).for_each(|_| recorder.record(&entry(&head), NOW));
    drop(recorder);
    drop(log);
    assert_eq!((lines(&path), lines(&folder.path().join("old.log"))), (1_000, 2));
}

#[test]
fn off_costs_nothing_and_a_bad_path_is_told() {
    let log = AccessLog::start(Target::parse("off")).unwrap();
    let mut recorder = log.recorder();
    recorder.record(&entry(&Head::of("GET", "/")), NOW);
    assert!(!recorder.is_on() && recorder.batch.text.is_empty());
    assert_eq!(Target::parse("-"), Target::Stdout);
    assert!(AccessLog::start(Target::parse("/absent/folder/log")).is_err());
}

/// A disk that stands still.
#[derive(Clone, Default)]
struct Stuck(Arc<(Mutex<Option<Vec<u8>>>, Condvar)>);

impl Stuck {
    fn release(&self) {
        *self.0.0.lock().unwrap() = Some(Vec::new());
        self.0.1.notify_all();
    }
}

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.1.wait_while(self.0.0.lock().unwrap(), |written| written.is_none()).unwrap();
        written.as_mut().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The worker goes on, memory stays bounded, and the log says afterwards how much is missing.
#[test]
fn a_stuck_disk_loses_lines_not_time() {
    let disk = Stuck::default();
    let log = AccessLog::start_on(Box::new(disk.clone()), Target::Stdout, Arc::default()).unwrap();
    let mut recorder = log.recorder();
    let head = Head::of("GET", "/");
    let total = 60_000;
    (0..total).for_each(|_| recorder.record(&entry(&head), NOW));
    let lost = log.lost();
    assert!(lost > 0 && lost < total, "{lost}");
    disk.release();
    drop(recorder);
    drop(log);
    let written = disk.0.0.lock().unwrap().take().unwrap();
    let text = String::from_utf8(written).unwrap();
    let notes: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert!(notes[0].ends_with("lines lost: the log could not be written fast enough"), "{notes:?}");
    let told: u64 = notes.iter().map(|note| note.split(' ').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(text.lines().count() as u64 - notes.len() as u64 + told, total);
}
