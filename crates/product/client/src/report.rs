//! What a client reports: progress and outcome of downloads.

use crate::error::GetError;
use crate::job::Job;
use crate::usage::Usage;
use base::time::Duration;
use crypto::Suite;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use transport::{Connection, EarlyStatus, MtuReport, PathInfo};

/// What a QUIC connection was like when a response on it ended. All counts begin with the connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathReport {
    /// The server's address at the end.
    pub peer: SocketAddr,
    /// The local address at the end.
    pub local: SocketAddr,
    /// How often the path in use has changed. Source: RFC 9000 §9.
    pub migrations: u64,
    /// The version of QUIC, as its field on the wire. Source: RFC 9000 §15, RFC 9369 §3.1.
    pub version: u32,
    /// The cipher suite, once the handshake has chosen one.
    #[doc(hidden)]
    pub suite: Option<Suite>,
    /// The handshake has used a ticket of an earlier connection, and no certificate. Source: RFC 8446 §2.2.
    pub is_resumed: bool,
    /// What became of early data. Source: RFC 9001 §4.6.
    pub early_data: EarlyStatus,
    /// The largest UDP payload that is sent, in bytes.
    pub packet_size: u16,
    /// The smoothed round-trip time. Source: RFC 9002 §5.3.
    pub rtt: std::time::Duration,
    /// The least round-trip time of late; zero before the first sample.
    pub min_rtt: std::time::Duration,
    /// Bytes that this side may have under way: its congestion window. Source: RFC 9002 §7.
    pub congestion_window: u64,
    /// Packets of this side that were declared lost. Source: RFC 9002 §6.1.
    pub lost_packets: u64,
    /// Packets that were authentic and new.
    pub received_packets: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Key updates, of either side. Source: RFC 9001 §6.
    pub key_updates: u64,
    /// What the search for the largest packet has found.
    #[doc(hidden)]
    pub mtu: MtuReport,
    /// The paths that the connection uses at once, then those that are over, if both ends can use several
    /// ([`Builder::paths`](crate::Builder::paths)). Source: draft-ietf-quic-multipath.
    pub paths: Option<Arc<[UsedPath]>>,
}

/// How far one of several paths has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathState {
    /// The server has not answered there yet.
    Validating,
    /// It carries data.
    Open,
    /// It carries data only when no other path can.
    Backup,
    /// It is over, with the error code of the end that gave it up. Source: draft-ietf-quic-multipath §3.4.
    Closed(u64),
}

/// One of several paths that a connection uses at once, or has used. All counts begin with the path.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UsedPath {
    /// The path ID. Source: draft-ietf-quic-multipath §2.
    pub id: u32,
    /// The local address.
    pub local: SocketAddr,
    /// The server's address.
    pub peer: SocketAddr,
    /// How far it has come.
    pub state: PathState,
    /// The smoothed round-trip time.
    pub rtt: std::time::Duration,
    /// The probe timeout. Source: RFC 9002 §6.2.1.
    pub probe_timeout: std::time::Duration,
    /// Bytes of UDP payload that arrived.
    pub received_bytes: u64,
    /// Bytes of UDP payload that were sent.
    pub sent_bytes: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Packets of this side that were declared lost.
    pub lost_packets: u64,
}

impl UsedPath {
    fn of(info: &PathInfo) -> UsedPath {
        UsedPath {
            id: info.id.0,
            local: info.addresses.local,
            peer: info.addresses.peer,
            state: match info.ended {
                Some(code) => PathState::Closed(code.0),
                None if !info.is_validated => PathState::Validating,
                None if info.is_backup => PathState::Backup,
                None => PathState::Open,
            },
            rtt: info.rtt.into(),
            probe_timeout: info.probe_timeout.into(),
            received_bytes: info.counters.received_bytes,
            sent_bytes: info.counters.sent_bytes,
            sent_packets: info.counters.sent_packets,
            lost_packets: info.counters.lost_packets,
        }
    }
}

impl PathReport {
    pub(crate) fn of(connection: &Connection) -> PathReport {
        let counters = connection.counters();
        PathReport {
            peer: connection.addresses().peer,
            local: connection.addresses().local,
            migrations: counters.migrations,
            version: connection.version().0,
            suite: connection.suite(),
            is_resumed: connection.is_resumed(),
            early_data: connection.early_status(),
            packet_size: connection.packet_size(),
            rtt: connection.rtt().into(),
            congestion_window: connection.congestion_window(),
            lost_packets: counters.lost_packets,
            received_packets: counters.received_packets,
            sent_packets: counters.sent_packets,
            key_updates: counters.key_updates,
            mtu: connection.mtu_report(),
            min_rtt: connection.min_rtt().into(),
            paths: connection.has_multipath().then(|| {
                let (open, past) = (connection.paths(), connection.past_paths());
                open.iter().chain(past).map(UsedPath::of).collect()
            }),
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
    /// The version of HTTP of the last answer.
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
