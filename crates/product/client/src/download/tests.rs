//! Downloads against servers that know ranges, or do not, or change their minds.

use super::*;
use crate::output::Output;
use crate::part::Resume;
use crate::tally::Check;
use base::pattern;
use proptest::prelude::*;

/// A server with one generated file, and its habits.
struct Server {
    size: u64,
    etag: Option<&'static str>,
    knows_ranges: bool,
    /// Parts are cut to this many bytes.
    longest_part: u64,
    /// This many requests are redirected first.
    redirects: u32,
    asked: Vec<Ask>,
}

impl Server {
    fn new(size: u64) -> Server {
        Server {
            size,
            etag: Some("\"a\""),
            knows_ranges: true,
            longest_part: u64::MAX,
            redirects: 0,
            asked: Vec::new(),
        }
    }

    /// The answer to `ask`: its head, and the range of the file that its content is.
    fn answer(&mut self, ask: &Ask) -> (Answer, Range<u64>) {
        self.asked.push(ask.clone());
        let mut answer = Answer::default();
        let mut field = |name: &str, value: &str| answer.on_field(name.as_bytes(), value.as_bytes()).unwrap();
        if self.redirects > 0 {
            self.redirects -= 1;
            field(":status", "302");
            field("location", "/elsewhere");
            return (answer, 0..0);
        }
        if let Some(etag) = self.etag {
            field("etag", etag);
        }
        let matches = ask.if_range.is_none() || ask.if_range.as_deref() == self.etag;
        match &ask.range {
            Some(range) if self.knows_ranges && matches => {
                if range.start >= self.size {
                    field(":status", "416");
                    field("content-range", &format!("bytes */{}", self.size));
                    return (answer, 0..0);
                }
                let end = range.end.min(self.size).min(range.start.saturating_add(self.longest_part));
                field(":status", "206");
                field("content-range", &format!("bytes {}-{}/{}", range.start, end - 1, self.size));
                (answer, range.start..end)
            }
            _ => {
                field(":status", "200");
                field("content-length", &self.size.to_string());
                (answer, 0..self.size)
            }
        }
    }

    /// Answers everything that `download` asks, at most `at_once` at a time, in turns of `packet` bytes.
    fn serve(&mut self, download: &mut Download, at_once: usize, packet: u64) {
        let mut open: Vec<(Exchange, Range<u64>)> = Vec::new();
        for _ in 0..1_000_000 {
            while open.len() < at_once
                && let Some(ask) = download.next_ask()
            {
                let mut exchange = Exchange::new(&ask);
                let (answer, content) = self.answer(&ask);
                download.on_answer(&mut exchange, &answer);
                open.push((exchange, content));
            }
            if open.is_empty() {
                return;
            }
            for (exchange, content) in &mut open {
                let end = content.end.min(content.start + packet);
                let length = (end - content.start) as usize;
                download.on_body(exchange, &pattern::at(content.start)[..length]);
                content.start = end;
                if content.is_empty() {
                    download.on_end(exchange);
                }
            }
            open.retain(|(exchange, content)| download.is_current(exchange) && !content.is_empty());
        }
        panic!("it never ends");
    }
}

fn job(wanted: Wanted) -> Job {
    let from = if let Wanted::Range(range, _) = &wanted { range.start } else { 0 };
    Job {
        target: Target::parse("https://example.org/file").unwrap(),
        output: Output::Nowhere(Check::Pattern(from)),
        wanted,
    }
}

fn whole() -> Job {
    job(Wanted::Whole(Resume::Allowed))
}

proptest! {
    /// Whatever a server makes of ranges, the file arrives once and whole, and no two requests overlap.
    #[test]
    fn the_file_arrives_whole(
        size in prop_oneof![Just(0u64), 1u64..3_000_000, Just(1 << 20), Just(20_000_000)],
        streams in 1usize..6,
        knows_ranges in any::<bool>(),
        has_etag in any::<bool>(),
        redirects in 0u32..3,
        longest_part in prop_oneof![Just(u64::MAX), 300_000u64..2_000_000],
    ) {
        let etag = has_etag.then_some("\"a\"");
        let mut server = Server { knows_ranges, etag, redirects, longest_part, ..Server::new(size) };
        let mut download = Download::open(0, &whole(), streams).unwrap();
        server.serve(&mut download, streams, 50_000);
        prop_assert_eq!(download.standing(), DownloadState::Complete, "{:?}", download);
        prop_assert_eq!(download.held(), size);
        prop_assert_eq!(download.transferred(), size);
        prop_assert!(download.finish().is_ok());
    }

    #[test]
    fn ranges_are_what_was_wanted(
        start in 0u64..99_000, length in 1u64..1_000, to_the_end in any::<bool>(),
        longest_part in prop_oneof![Just(u64::MAX), 10u64..2_000],
    ) {
        let end = if to_the_end { u64::MAX } else { start + length };
        let mut server = Server { longest_part, ..Server::new(100_000) };
        let mut download = Download::open(0, &job(Wanted::Range(start..end, Resume::Never)), 4).unwrap();
        server.serve(&mut download, 4, 50_000);
        prop_assert_eq!(download.standing(), DownloadState::Complete, "{:?}", download);
        prop_assert_eq!(download.transferred(), end.min(100_000) - start);
        prop_assert!(download.finish().is_ok());
    }
}

#[test]
fn parts_are_fetched_in_parallel_and_only_with_a_validator() {
    let mut server = Server::new(20_000_000);
    let mut download = Download::open(0, &whole(), 4).unwrap();
    let first = download.next_ask().unwrap();
    assert_eq!((first.range.clone(), download.next_ask()), (Some(FIRST), None));
    let mut exchange = Exchange::new(&first);
    let (answer, _) = server.answer(&first);
    download.on_answer(&mut exchange, &answer);
    assert!((0..3).all(|_| download.next_ask().is_some()), "the others need not wait for the first to end");
    let mut server = Server { etag: None, ..Server::new(20_000_000) };
    let mut download = Download::open(0, &whole(), 4).unwrap();
    server.serve(&mut download, 4, 50_000);
    let ranges: Vec<_> = server.asked.into_iter().map(|ask| ask.range).collect();
    assert_eq!(ranges, [Some(FIRST), None]);
}

#[test]
fn a_file_that_changed_begins_again_and_another_range_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let output = Output::File(folder.path().join("file"));
    let keep = Job { output: output.clone(), ..whole() };
    let attempt = |server: &mut Server, most: u64| {
        let mut download = Download::open(0, &keep, 1).unwrap();
        let ask = download.next_ask().unwrap();
        let mut exchange = Exchange::new(&ask);
        let (answer, content) = server.answer(&ask);
        download.on_answer(&mut exchange, &answer);
        let end = content.end.min(content.start + most);
        download.on_body(&mut exchange, &pattern::at(content.start)[..(end - content.start) as usize]);
        download.on_cut(&mut exchange);
        download.fail(GetError::Interrupted(None));
        let from = download.resumed_from();
        (ask, from, download.finish().unwrap_err())
    };
    let mut server = Server::new(60_000);
    let (ask, from, error) = attempt(&mut server, 10_000);
    assert!(ask.range.is_none() && from == 0 && matches!(error, GetError::Interrupted(Some(_))), "{error}");
    let (ask, from, _) = attempt(&mut server, 10_000);
    assert_eq!((ask.range, ask.if_range.as_deref(), from), (Some(10_000..60_000), Some("\"a\""), 10_000));
    server.etag = Some("\"b\"");
    let mut download = Download::open(0, &keep, 1).unwrap();
    server.serve(&mut download, 1, 50_000);
    assert_eq!((download.resumed_from(), download.transferred()), (0, 60_000), "all of the new version");
    assert!(download.finish().unwrap().is_some());
    let file = std::fs::read(folder.path().join("file")).unwrap();
    assert_eq!(pattern::first_difference(0, &file), None);

    let mut server = Server { knows_ranges: false, ..Server::new(60_000) };
    let mut download = Download::open(0, &job(Wanted::Range(5..9, Resume::Never)), 1).unwrap();
    server.serve(&mut download, 1, 50_000);
    assert_eq!(download.finish().unwrap_err().exit_code(), 33);
}

#[test]
fn failures_leave_nothing_behind_that_is_of_no_use() {
    let folder = tempfile::tempdir().unwrap();
    let output = Output::File(folder.path().join("file"));
    let mut download = Download::open(0, &Job { output, ..whole() }, 4).unwrap();
    let ask = download.next_ask().unwrap();
    let mut answer = Answer::default();
    answer.on_field(b":status", b"404").unwrap();
    download.on_answer(&mut Exchange::new(&ask), &answer);
    assert_eq!(download.standing(), DownloadState::Failed);
    assert_eq!(download.finish().unwrap_err().exit_code(), 22);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let mut server = Server { redirects: 11, ..Server::new(5) };
    let mut download = Download::open(0, &whole(), 1).unwrap();
    server.serve(&mut download, 1, 50_000);
    assert_eq!(download.finish().unwrap_err().exit_code(), 47);
}

#[test]
fn what_a_server_did_not_look_at_is_asked_again() {
    let mut server = Server::new(20_000_000);
    let mut download = Download::open(0, &whole(), 2).unwrap();
    let first = download.next_ask().unwrap();
    download.take_back(&Exchange::new(&first));
    assert_eq!(download.next_ask().unwrap().range, Some(FIRST));
    assert!(download.retry());
    server.serve(&mut download, 2, 50_000);
    assert_eq!(download.standing(), DownloadState::Complete);
    assert!((0..MAX_RETRIES).any(|_| !download.retry()), "not for ever");
}

#[test]
fn heads_alone() {
    let mut download = Download::open(0, &job(Wanted::Head), 4).unwrap();
    let ask = download.next_ask().unwrap();
    assert_eq!((ask.method, ask.range.clone()), (Method::Head, None));
    let mut exchange = Exchange::new(&ask);
    let (answer, _) = Server::new(5).answer(&ask);
    download.on_answer(&mut exchange, &answer);
    assert_eq!(download.standing(), DownloadState::Running);
    download.on_end(&mut exchange);
    assert_eq!(download.standing(), DownloadState::Complete);
    assert!(download.finish().unwrap().is_none());
}
