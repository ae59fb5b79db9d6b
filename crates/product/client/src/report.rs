//! What a client reports: progress and outcome of downloads.

use crate::error::GetError;
use crate::job::Job;
use crate::usage::Usage;
use base::time::Duration;
use crypto::Suite;
use std::path::PathBuf;
use transport::{Connection, MtuReport};

/// What a connection was like when a download ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathReport {
    /// The QUIC version, as its field on the wire.
    pub version: u32,
    /// The cipher suite, once the handshake has chosen one.
    pub suite: Option<Suite>,
    /// The largest UDP payload that was sent, in bytes.
    pub packet_size: u16,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// Packets of ours that were lost.
    pub lost_packets: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Key updates, of either side.
    pub key_updates: u64,
    /// What the search for the largest packet has found.
    pub mtu: MtuReport,
    /// The least round-trip time of late.
    pub min_rtt: Duration,
}

impl PathReport {
    pub(crate) fn of(connection: &Connection) -> PathReport {
        let counters = connection.counters();
        PathReport {
            version: connection.version().0,
            suite: connection.suite(),
            packet_size: connection.packet_size(),
            rtt: connection.rtt(),
            lost_packets: counters.lost_packets,
            received_packets: counters.received_packets,
            sent_packets: counters.sent_packets,
            key_updates: counters.key_updates,
            mtu: connection.mtu_report(),
            min_rtt: connection.min_rtt(),
        }
    }
}

/// How far a download is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes of the output that are there, those of earlier attempts included.
    pub held: u64,
    /// Those of earlier attempts.
    pub resumed_from: u64,
    /// How many there will be, if that is known.
    pub size: Option<u64>,
}

/// How a download ended.
#[derive(Debug)]
pub struct Outcome {
    /// Which job it was.
    pub job: usize,
    /// Where it came from in the end, after redirects.
    pub url: String,
    /// The status of the last answer; 0 when there was none.
    pub status: u16,
    /// The name of the file, if it went to one.
    pub result: Result<Option<PathBuf>, GetError>,
    /// Bytes of content that arrived.
    pub bytes: u64,
    /// Bytes that an earlier attempt had left.
    pub resumed_from: u64,
    /// From the beginning to the end, connecting included.
    pub elapsed: Duration,
    /// From the beginning to the first answer's head.
    pub first_answer: Option<Duration>,
    /// What the process used meanwhile, for whatever purpose.
    pub usage: Usage,
    /// The connection it ended on; `None` if there was none.
    pub path: Option<PathReport>,
    /// The version of HTTP of the last answer, where the client chose it; then datagrams and system calls were not counted.
    pub version: Option<http::Version>,
    /// The heads of the answers, when only heads were wanted.
    pub head: String,
    /// Whether content went to standard output or a device, and its last byte was no line's end.
    pub ends_within_line: bool,
}

impl Outcome {
    /// A job that could not begin.
    pub(crate) fn not_begun(number: usize, job: &Job, error: GetError) -> Outcome {
        Outcome {
            job: number,
            url: job.target.to_string(),
            status: 0,
            result: Err(error),
            bytes: 0,
            resumed_from: 0,
            elapsed: Duration::ZERO,
            first_answer: None,
            usage: Usage::default(),
            path: None,
            version: None,
            head: String::new(),
            ends_within_line: false,
        }
    }
}

/// Receives the progress of downloads.
pub trait View {
    /// A job has begun.
    fn on_begin(&mut self, job: usize);
    /// A job is so far. Called some ten times a second.
    fn on_progress(&mut self, job: usize, progress: &Progress);
    /// A job is over.
    fn on_end(&mut self, outcome: Outcome);
}
