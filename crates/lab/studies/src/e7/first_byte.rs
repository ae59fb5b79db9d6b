//! In which round trip the first byte of an answer comes, on a link that delays datagrams.

use std::io;
use std::time::Duration;

use bench::process::is_interruption;
use bench::site::Site;
use report::model::{Cell, Row, Table};
use serde::Serialize;

use super::row::{self, Kind};
use super::trial;
use crate::contestants::{Contestant, InstalledServers, TestSite};
use crate::context::Context;

/// The round trip of the link, in milliseconds.
pub(super) const ROUND_TRIP_MS: u16 = 20;

/// A server, a kind of handshake, and the median time to the first byte of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct FirstByte {
    pub(super) who: Contestant,
    pub(super) kind: Kind,
    /// From the first packet of the connection to the head of the answer, in milliseconds.
    pub(super) ms: f64,
}

impl FirstByte {
    /// The same in round trips of the link.
    pub(super) fn round_trips(&self) -> f64 {
        self.ms / f64::from(ROUND_TRIP_MS)
    }
}

/// All of them, and what went wrong.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct FirstBytes {
    pub(super) found: Vec<FirstByte>,
    pub(super) problems: Vec<String>,
}

impl FirstBytes {
    /// Measures every kind of every server, one connection after the other.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] when all shall end; anything else is a problem of the table.
    pub(super) fn measure(&mut self, field: &InstalledServers, context: &mut Context<'_>) -> io::Result<()> {
        let each_way = Duration::from_millis(u64::from(ROUND_TRIP_MS) / 2);
        let ground = match Site::delayed(each_way) {
            Ok(site) => TestSite::on(site, None)?,
            Err(error) => {
                self.problems.push(format!("There is no link with a delay: {error}."));
                return Ok(());
            }
        };
        let count = context.scaled(40, 10);
        for server in &field.installed {
            for &kind in row::kinds(server.who) {
                if context.is_stopped() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let name = format!("{}, {}", server.who.name(), kind.name());
                match trial::first_byte_ms((server, kind), &ground, count, context) {
                    Ok(ms) => {
                        let found = FirstByte { who: server.who, kind, ms };
                        context.tell(&format!(
                            "{name:42} first byte after {ms:.1} ms, {:.2} round trips",
                            found.round_trips()
                        ));
                        self.found.push(found);
                    }
                    Err(error) if is_interruption(&error, context.stop) => {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    Err(error) => self.problems.push(format!("{name} on the link: {error}")),
                }
            }
        }
        Ok(())
    }

    /// A row for each.
    pub(super) fn table(&self) -> Table {
        let row = |first: &FirstByte| Row {
            name: format!("{}, {}", first.who.name(), first.kind.name()),
            is_published: false,
            cells: vec![Cell::Number(first.ms, 1), Cell::Number(first.round_trips(), 2)],
        };
        Table {
            title: format!("First byte of the answer on a link of {ROUND_TRIP_MS} ms"),
            corner: "server, handshake".to_owned(),
            columns: ["median, ms", "round trips"].map(str::to_owned).to_vec(),
            rows: self.found.iter().map(row).collect(),
        }
    }
}
