//! Traces of connections: the flags that serve, get and load share.

use crate::serving::log;
use clap::Args;
use std::path::{Path, PathBuf};
use traces::{Keep, Qlog, Settings, Share, Triggers};

/// The variable that names a folder where the flag does not. Source: draft-ietf-quic-qlog-main-schema, access and generation.
const VARIABLE: &str = "QLOGDIR";

/// Which connections are traced, and where to.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Traces")]
pub(crate) struct QlogArgs {
    /// Write a trace of each connection over QUIC to a file of its own in this folder (qlog, .sqlog).
    ///
    /// Without the flag the environment variable QLOGDIR names the folder, and without that there are no traces. The folder is made if
    /// there is none. Files are readable by their owner alone: they hold addresses, names and paths, but no keys, no tokens and no
    /// content.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    qlog: Option<PathBuf>,
    /// Trace this share of the connections, from 0 to 1: with 0.01, one in a hundred.
    ///
    /// The original destination connection ID decides, so that client and server choose the same ones.
    #[arg(long, default_value = "1", value_name = "SHARE", hide_short_help = true)]
    qlog_share: Share,
    /// Keep traces of these connections only: error, those that end in an error; stall, those with three probe timeouts in a row;
    /// loss=N%, those that have lost more than N % of their packets at the end. Several are separated by commas.
    ///
    /// The last 256 KiB of events of each connection wait in memory, and the file begins with them. Every connection is traced until
    /// then, at its cost; --qlog-share limits that.
    #[arg(long, value_name = "WHEN", hide_short_help = true)]
    qlog_when: Option<Triggers>,
    /// Bytes of a trace at most, such as 64MiB. Later events are not in the file, which says how many.
    #[arg(long, default_value = "64MiB", value_name = "BYTES", value_parser = crate::units::memory, hide_short_help = true)]
    qlog_size: u64,
}

impl QlogArgs {
    /// Opens the folder, if one is named.
    ///
    /// # Errors
    /// It cannot be used.
    pub(crate) fn open(&self) -> Result<Option<Qlog>, String> {
        let variable = std::env::var_os(VARIABLE).filter(|text| !text.is_empty());
        let Some(folder) = self.folder(variable.as_deref().map(Path::new)) else { return Ok(None) };
        let settings = Settings {
            share: self.qlog_share,
            keep: Keep { max_bytes: self.qlog_size, when: self.qlog_when, ..Keep::default() },
            ..Settings::new(folder)
        };
        Qlog::open(settings).map(Some).map_err(|error| error.to_string())
    }

    /// The flag, else the variable.
    fn folder<'a>(&'a self, variable: Option<&'a Path>) -> Option<&'a Path> {
        self.qlog.as_deref().or(variable)
    }
}

/// Waits until all is written, and says what could not be.
pub(crate) fn finish(qlog: &Qlog) {
    let report = qlog.flush();
    let folder = qlog.folder().display();
    if let Some(failure) = &report.failure {
        log::warn(&format!("{} traces in {folder} are not complete: {failure}", report.failed));
    }
    if report.left_out > 0 {
        log::warn(&format!(
            "{} connections were not traced, as {} files were in {folder}; --qlog-share traces fewer",
            report.left_out, report.files
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        qlog: QlogArgs,
    }

    fn parsed(words: &[&str]) -> Result<QlogArgs, clap::Error> {
        Command::try_parse_from(["tercel"].iter().chain(words)).map(|command| command.qlog)
    }

    #[test]
    fn the_flag_goes_before_the_variable() {
        let variable = Some(Path::new("/variable"));
        assert_eq!(parsed(&["--qlog", "/flag"]).unwrap().folder(variable), Some(Path::new("/flag")));
        assert_eq!(parsed(&[]).unwrap().folder(variable), variable);
        assert_eq!(parsed(&[]).unwrap().folder(None), None);
    }

    #[test]
    fn words_that_make_no_sense_are_refused_with_those_that_do() {
        for (words, hint) in [
            (["--qlog-share", "2"], "such as 0.01"),
            (["--qlog-when", "los=2%"], "loss=2%"),
            (["--qlog-size", "big"], "--qlog-size"),
        ] {
            let error = parsed(&words).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }
}
