//! What a person sees of downloads: a bar for each on a terminal, a line for each elsewhere; and what a machine reads.
//!
//! Bars and lines go to standard error. Standard output is for content, heads and JSON.

use super::words::{bytes_in_words, rate_in_words, seconds_in_words};
use super::{GetArgs, Http, paths, summary};
use client::LocalPlace;
use client::error::shown;
use client::job::Job;
use client::output::Output;
use client::report::{Outcome, Progress, View};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd;

/// One job as it is shown.
struct Row {
    url: String,
    name: String,
    bar: Option<ProgressBar>,
}

/// The console of a run.
pub(super) struct Console {
    rows: Vec<Row>,
    bars: Option<MultiProgress>,
    is_quiet: bool,
    /// Whether content goes where these lines go.
    is_mixed: bool,
    json: Option<Stream>,
    exit_code: u8,
    http: Http,
    destination: Option<LocalPlace>,
    /// How many paths at once were asked for.
    wanted_paths: Option<usize>,
}

/// Where the lines of JSON go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

impl Console {
    pub(super) fn new(args: &GetArgs, jobs: &[Job]) -> Console {
        let output_is_taken = args.head || jobs.iter().any(|job| job.output == Output::Stdout);
        // Content on the same terminal would run through the bars.
        let clash = output_is_taken && std::io::stdout().is_terminal();
        let shows_bars = !args.quiet && !args.head && !clash && std::io::stderr().is_terminal();
        let row = |(job, url): (&Job, &String)| Row {
            url: url.clone(),
            name: match &job.output {
                Output::File(path) | Output::Device(path) => {
                    shown(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy())
                }
                Output::Stdout | Output::Nowhere(_) => shown(&job.target.to_string()),
            },
            bar: None,
        };
        Console {
            rows: jobs.iter().zip(&args.urls).map(row).collect(),
            bars: shows_bars.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10))),
            is_quiet: args.quiet || args.head,
            is_mixed: output_is_taken && is_one_file(&std::io::stdout(), &std::io::stderr()),
            json: args.json.then_some(if output_is_taken { Stream::Error } else { Stream::Output }),
            exit_code: 0,
            http: args.http,
            destination: args.migrate_to.as_ref().map(|planned| planned.to.clone()),
            wanted_paths: args.paths.count(),
        }
    }

    /// The exit code of the first job that failed; 0 if none did.
    pub(super) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Leaves the terminal as it was.
    pub(super) fn finish(&self) {
        if let Some(bars) = &self.bars {
            let _ = bars.clear();
        }
    }

    /// A line on standard error, above the bars if there are any.
    fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// Whether the connection has moved where it was told to, or by itself or by wish of its server.
    fn moved(&self, outcome: &Outcome) -> String {
        match (&self.destination, &outcome.path) {
            (Some(to), Some(path))
                if to.addresses().is_ok_and(|addresses| addresses.contains(&path.local.ip())) =>
            {
                format!(", moved to {}", path.local.ip())
            }
            (Some(_), _) => ", not moved".to_owned(),
            (None, Some(path)) if path.migrations > 0 => {
                format!(", in the end from {} to {}", path.local.ip(), path.peer)
            }
            (None, _) => String::new(),
        }
    }

    fn report(&mut self, row: &Row, outcome: &Outcome) {
        let says_more = !self.is_quiet || outcome.result.is_err() || self.json == Some(Stream::Error);
        if let Some(warning) = paths::warning(self.wanted_paths, outcome) {
            self.say(&format!("tercel get: warning: {warning}"));
        }
        if outcome.ends_within_line && self.is_mixed && says_more {
            self.say("");
        }
        match &outcome.result {
            Ok(_) if self.is_quiet => {}
            Ok(_) => {
                let size = bytes_in_words(outcome.bytes as f64);
                let resumed = match outcome.resumed_from {
                    0 => String::new(),
                    there => format!(" (after {} that were there)", bytes_in_words(there as f64)),
                };
                let rate = outcome.bytes as f64 / outcome.elapsed.as_secs_f64().max(1e-9);
                let time = seconds_in_words(outcome.elapsed.as_secs_f64());
                let moved = self.moved(outcome);
                let how = summary::connection_in_words(outcome.path.as_ref());
                let rate = rate_in_words(rate);
                self.say(&format!("{}: {size}{resumed} in {time}, {rate}{how}{moved}", row.name));
                paths::in_words(outcome.path.as_ref()).iter().for_each(|line| self.say(line));
            }
            Err(error) => {
                // With several URLs it must be said which one.
                let which =
                    if self.rows.len() > 1 { format!("{}: ", shown(&row.url)) } else { String::new() };
                self.say(&format!("tercel get: {which}{error}"));
            }
        }
        if let Some(stream) = self.json {
            let line = format!("{}\n", summary::of(&row.url, outcome, self.http));
            // A reader that is gone does not want it.
            let _ = match stream {
                Stream::Output => std::io::stdout().write_all(line.as_bytes()),
                Stream::Error => std::io::stderr().write_all(line.as_bytes()),
            };
        }
    }
}

impl View for Console {
    fn on_begin(&mut self, job: usize) {
        let (Some(bars), Some(row)) = (&self.bars, self.rows.get_mut(job)) else { return };
        let bar = bars.add(ProgressBar::no_length());
        bar.set_style(style(None));
        bar.set_message(row.name.clone());
        row.bar = Some(bar);
    }

    fn on_progress(&mut self, job: usize, progress: &Progress) {
        let Some(bar) = self.rows.get(job).and_then(|row| row.bar.as_ref()) else { return };
        if bar.length() != progress.size {
            bar.set_style(style(progress.size));
            if let Some(size) = progress.size {
                bar.set_length(size);
            }
        }
        if bar.position() == 0 && progress.resumed_from > 0 {
            // What was there before says nothing about the speed.
            bar.set_position(progress.resumed_from);
            bar.reset_eta();
        }
        bar.set_position(progress.held);
    }

    fn on_end(&mut self, outcome: Outcome) {
        if let Some(error) = outcome.result.as_ref().err()
            && self.exit_code == 0
        {
            self.exit_code = error.exit_code();
        }
        if !outcome.head.is_empty() {
            let _ = writeln!(std::io::stdout(), "{}", outcome.head);
        }
        let Some(row) = self.rows.get_mut(outcome.job) else { return };
        if let Some(bar) = row.bar.take() {
            bar.finish_and_clear();
        }
        let row = Row { url: row.url.clone(), name: row.name.clone(), bar: None };
        self.report(&row, &outcome);
    }
}

/// Whether two descriptors lead to one terminal, file or pipe.
fn is_one_file(one: &impl AsFd, other: &impl AsFd) -> bool {
    let place = |file: &dyn AsFd| rustix::fs::fstat(file).ok().map(|stat| (stat.st_dev, stat.st_ino));
    place(one).is_some_and(|found| place(other) == Some(found))
}

fn style(size: Option<u64>) -> ProgressStyle {
    let template = match size {
        Some(_) => {
            "{msg} [{bar:30}] {percent:>3} %  {decimal_bytes} of {decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left"
        }
        None => "{msg} {spinner} {decimal_bytes}  {decimal_bytes_per_sec}  {elapsed}",
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}
