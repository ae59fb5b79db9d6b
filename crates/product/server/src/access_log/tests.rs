//! Lines as log tools read them, and what happens when the disk does not keep up.

use super::*;
use crate::request::Head;
use std::sync::{Condvar, Mutex};

const NOW: Instant = Instant::from_nanos(1);

fn entry(head: &Head) -> Entry<'_> {
    Entry {
        peer: IpAddr::from([192, 0, 2, 7]),
        unix_s: 1_795_235_480,
        line: head.line(),
        protocol: Protocol::Http3,
        status: 200,
        bytes: 1_234,
        duration: Duration::from_micros(1_000_153),
    }
}

fn line(head: &Head) -> String {
    let mut line = Vec::new();
    line::write(&mut line, &Format::Combined, &entry(head), &Timestamp::of(1_795_235_480));
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

/// Deleted, a client could end a string, or a program find no object in a line.
#[test]
fn a_line_of_json_has_the_chosen_fields_and_no_more_than_ascii() {
    let mut head = Head::of("GET", "/a\"\\\n\u{e9}");
    head.on_field(b":authority", b"a.org");
    head.on_field(b"user-agent", &[b'x'; 3_000]);
    let line_of = |fields: Vec<Field>| {
        let mut line = Vec::new();
        line::write(&mut line, &Format::Json(fields), &entry(&head), &Timestamp::of(1_795_235_480));
        String::from_utf8(line).unwrap()
    };
    let right = "{\"time\":\"2026-11-21T04:31:20Z\",\"client\":\"192.0.2.7\",\"method\":\"GET\",\"host\":\"a.org\",\
                 \"target\":\"/a\\\"\\\\\\u000a\\u00c3\\u00a9\",\"protocol\":\"HTTP/3\",\"status\":200,\"bytes\":1234,\
                 \"duration\":1.000153,\"referer\":null,\"user_agent\":\"";
    let line = line_of(Field::all());
    assert!(
        line.starts_with(right) && line.ends_with("x...\"}\n") && line.matches('\n').count() == 1,
        "{line}"
    );
    assert!(line.len() < 2_048 + 400);
    assert_eq!(line_of(vec![Field::Status, Field::Host]), "{\"status\":200,\"host\":\"a.org\"}\n");
    assert_eq!(line_of(Vec::new()), "{}\n");
    let mut note = Vec::new();
    line::write_lost(&mut note, &Format::Json(Vec::new()), 7);
    assert_eq!(note, b"{\"lost_lines\":7}\n");
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
    log.reopener().reopen();
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

/// A disk with room for this many bytes, which is freed later.
#[derive(Clone, Default)]
struct Full(Arc<Mutex<(Vec<u8>, usize)>>);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (written, room) = &mut *self.0.lock().unwrap();
        let count = bytes.len().min(*room);
        *room -= count;
        written.extend_from_slice(&bytes[..count]);
        if count == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(count) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fails without it: lines that do not fit on the disk are lost without a word, and a part of a line spoils the next.
#[test]
fn lines_lost_on_a_full_disk_are_counted_and_noted() {
    let disk = Full::default();
    disk.0.lock().unwrap().1 = 100_000;
    let warnings = Warnings::default();
    let shared = Arc::new(Shared { warnings: warnings.clone(), ..Shared::default() });
    let log = AccessLog::start_on(Box::new(disk.clone()), Target::Stdout, shared).unwrap();
    let mut recorder = log.recorder();
    let head = Head::of("GET", "/");
    (0..5_000).for_each(|_| recorder.record(&entry(&head), NOW));
    recorder.flush();
    while log.shared.waiting.load(Ordering::Relaxed) > 0 {
        std::thread::yield_now();
    }
    disk.0.lock().unwrap().1 = usize::MAX;
    recorder.record(&entry(&head), NOW);
    drop(recorder);
    let lost = log.lost();
    drop(log);
    let text = String::from_utf8(disk.0.lock().unwrap().0.clone()).unwrap();
    let right = line(&head);
    let whole = text.lines().filter(|line| *line == right.trim_end()).count() as u64;
    assert_eq!((whole + lost, warnings.untold(Warning::LogLinesLost)), (5_001, lost));
    let others: Vec<_> = text.lines().filter(|line| *line != right.trim_end()).collect();
    assert!(
        matches!(others[..], [torn, note] if right.starts_with(torn) && note.starts_with("# ")),
        "{others:?}"
    );
}

/// Fails without it: the end of the server waits for seconds, and what is lost is not told.
#[test]
fn a_pipe_that_nobody_reads_delays_the_end_by_a_moment_and_the_loss_is_noted() {
    let warnings = Warnings::default();
    let shared = Arc::new(Shared { warnings: warnings.clone(), ..Shared::default() });
    let log = AccessLog::start_on(Box::new(Stuck::default()), Target::Stdout, shared).unwrap();
    let mut recorder = log.recorder();
    let head = Head::of("GET", "/");
    (0..100_000).for_each(|_| recorder.record(&entry(&head), NOW));
    drop(recorder);
    let began = crate::warnings::uptime();
    drop(log);
    // Two seconds before. The machine may be busy.
    assert!(crate::warnings::uptime() - began < std::time::Duration::from_millis(1_900));
    assert_eq!(warnings.untold(Warning::LogLinesLost), 100_000);
}

/// Fails without it: a rotated file gets lines until the next request comes.
#[test]
fn the_file_is_opened_anew_without_a_request_and_a_failure_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log/access.log");
    std::fs::create_dir(folder.path().join("log")).unwrap();
    let warnings = Warnings::default();
    let log = AccessLog::start_with(Target::File(path.clone()), Style::default(), warnings.clone()).unwrap();
    std::fs::rename(&path, folder.path().join("old")).unwrap();
    let reopener = log.reopener();
    reopener.reopen();
    while !path.exists() {
        std::thread::yield_now();
    }
    std::fs::rename(folder.path().join("log"), folder.path().join("gone")).unwrap();
    reopener.reopen();
    while warnings.untold(Warning::LogNotReopened) == 0 {
        std::thread::yield_now();
    }
}
