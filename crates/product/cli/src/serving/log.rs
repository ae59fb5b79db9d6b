//! What a server says on standard error: lines with a level, and how the access log is written.
//!
//! A line goes out whole, by one write. Under systemd, whose journal keeps the level of a line, each line begins with `<N>`: sd-daemon(3). Kinds
//! of warnings that can be frequent are limited in rate and tell how many events a line stands for (server/src/warnings.rs); they come through
//! [`WarningLines`].

use clap::{Args, ValueEnum};
use server::access_log::{Field, Format, Share, Style};
use std::io::{self, Write, stderr};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// How much a line matters. The number is that of syslog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[repr(u8)]
pub(crate) enum Level {
    /// What ends the server, or keeps it from starting.
    Error = 3,
    /// What an operator should look at, too.
    Warning = 4,
    /// What the server does, too.
    Info = 6,
}

/// The look of lines of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LineFormat {
    /// The combined format that log tools know.
    Combined,
    /// An object of JSON for each request.
    Json,
}

/// Flags about logs.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// What a line of the access log looks like.
    #[arg(
        long,
        value_enum,
        default_value = "combined",
        value_name = "FORMAT",
        help_heading = "Logs",
        hide_short_help = true
    )]
    access_log_format: LineFormat,
    /// The fields of a line in JSON, in their order. Default: all of them.
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = Field::NAMED.map(|(_, name)| name),
        value_name = "FIELDS",
        help_heading = "Logs",
        hide_short_help = true
    )]
    access_log_fields: Vec<String>,
    /// The share of requests that are logged, such as 0.1. Those that are answered with a status from 400 on are logged in any case.
    #[arg(long, default_value = "1", value_parser = share, value_name = "SHARE", help_heading = "Logs", hide_short_help = true)]
    access_log_sample: Share,
    /// What is told on standard error.
    #[arg(
        long,
        value_enum,
        default_value = "info",
        value_name = "LEVEL",
        help_heading = "Logs",
        hide_short_help = true
    )]
    log_level: Level,
}

fn share(text: &str) -> Result<Share, String> {
    let share = text.parse().ok().and_then(Share::new);
    share.ok_or_else(|| "give a share above 0 and up to 1, such as 0.1".to_owned())
}

impl LogArgs {
    /// # Errors
    /// One line: flags that do not go together.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.access_log_format == LineFormat::Combined && !self.access_log_fields.is_empty() {
            return Err("--access-log-fields goes with --access-log-format json".to_owned());
        }
        Ok(())
    }

    /// How requests are logged.
    pub(crate) fn style(&self) -> Style {
        let named =
            |text: &String| Field::NAMED.iter().find(|(_, name)| name == text).map(|(field, _)| *field);
        let fields: Vec<Field> = self.access_log_fields.iter().filter_map(named).collect();
        let format = match self.access_log_format {
            LineFormat::Combined => Format::Combined,
            LineFormat::Json if fields.is_empty() => Format::Json(Field::all()),
            LineFormat::Json => Format::Json(fields),
        };
        Style { format, share: self.access_log_sample }
    }

    /// From now on lines below the level are not told.
    pub(crate) fn begin(&self) {
        LEVEL.store(self.log_level as u8, Ordering::Relaxed);
    }
}

/// Lines up to this level are told.
static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Says `text`, one line or several, without regard to errors: standard error may have gone, and the server goes on.
pub(crate) fn say(level: Level, text: &str) {
    if level as u8 <= LEVEL.load(Ordering::Relaxed) {
        let _ = stderr().write_all(&lines(level, text, goes_to_journal()));
    }
}

/// Warns.
pub(crate) fn warn(text: &str) {
    say(Level::Warning, &format!("tercel: warning: {text}"));
}

/// Says what was noted elsewhere, which begins as a warning if it is one.
pub(crate) fn note(text: &str) {
    let is_warning = text.starts_with("tercel: warning: ");
    say(if is_warning { Level::Warning } else { Level::Info }, text);
}

/// The lines of `text`, each with its level if the `Journal` reads them.
fn lines(level: Level, text: &str, to: Reader) -> Vec<u8> {
    let mut lines = Vec::with_capacity(text.len() + 16);
    for line in text.trim_end().lines() {
        if to == Reader::Journal {
            lines.extend_from_slice(format!("<{}>", level as u8).as_bytes());
        }
        lines.extend_from_slice(line.as_bytes());
        lines.push(b'\n');
    }
    lines
}

/// What reads standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Journal,
    Other,
}

/// Whether standard error is what systemd has connected to its journal. Source: systemd.exec(5), JOURNAL_STREAM.
fn goes_to_journal() -> Reader {
    static FOUND: OnceLock<Reader> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let told = std::env::var("JOURNAL_STREAM").ok();
        match (told, rustix::fs::fstat(stderr().as_fd())) {
            (Some(told), Ok(found)) => reader(&told, found.st_dev, found.st_ino),
            _ => Reader::Other,
        }
    })
}

fn reader(told: &str, device: u64, inode: u64) -> Reader {
    if told == format!("{device}:{inode}") { Reader::Journal } else { Reader::Other }
}

/// Where the server's warnings go, which are written piece by piece.
#[derive(Debug, Default)]
pub(crate) struct WarningLines(Vec<u8>);

/// No line of ours is longer, in bytes.
const LONGEST: usize = 4_096;

impl Write for WarningLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        if self.0.ends_with(b"\n") || self.0.len() > LONGEST {
            say(Level::Warning, &String::from_utf8_lossy(&std::mem::take(&mut self.0)));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        log: LogArgs,
    }

    fn parsed(words: &[&str]) -> Result<LogArgs, clap::Error> {
        Command::try_parse_from(["tercel"].iter().chain(words)).map(|command| command.log)
    }

    /// Deleted, journalctl -p warning could show nothing of a server in trouble.
    #[test]
    fn each_line_has_its_level_for_the_journal_and_for_no_one_else() {
        assert_eq!(lines(Level::Warning, "one\ntwo\n", Reader::Journal), b"<4>one\n<4>two\n");
        assert_eq!(lines(Level::Info, "one", Reader::Other), b"one\n");
        assert_eq!((reader("9:81", 9, 81), reader("9:81", 9, 82)), (Reader::Journal, Reader::Other));
        assert!(Level::Error < Level::Warning && Level::Warning < Level::Info);
    }

    #[test]
    fn fields_are_for_json_and_named() {
        let style = |words: &[&str]| parsed(words).unwrap().style();
        assert_eq!(style(&[]), Style::default());
        assert_eq!(style(&["--access-log-format", "json"]).format, Format::Json(Field::all()));
        let some = style(&["--access-log-format=json", "--access-log-fields", "status,client"]);
        assert_eq!(some.format, Format::Json(vec![Field::Status, Field::Client]));
        let alone = parsed(&["--access-log-fields", "status"]).unwrap().check().unwrap_err();
        assert!(alone.contains("goes with --access-log-format json"), "{alone}");
        assert!(parsed(&["--access-log-fields", "size"]).unwrap_err().to_string().contains("user_agent"));
        for share in ["0", "1.5", "x", "-0.1"] {
            assert!(parsed(&[&format!("--access-log-sample={share}")]).is_err(), "{share}");
        }
    }
}
