//! What an endpoint counts: why it dropped datagrams of unknown peers, and which replies it sent. Counters only rise.

use recovery::congestion::{ResumeOutcome, ResumeReport};
use wire::Version;

/// Why a datagram was dropped. A datagram of an unknown peer has no stronger effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// No bytes.
    Empty,
    /// Not a QUIC packet.
    Malformed,
    /// From a port whose services answer anything, so that our reply would start a loop or hit a victim.
    SourcePort,
    /// To a connection ID of another server.
    OtherServer,
    /// To an unknown connection ID, and too short for a stateless reset.
    UnknownConnection,
    /// A Handshake, 0-RTT, Retry or Version Negotiation packet to an unknown connection ID.
    Unexpected,
    /// An Initial packet whose destination connection ID has fewer than 8 bytes (RFC 9000 §7.2).
    ShortInitialCid,
    /// An Initial packet, or an unknown version, in a datagram of fewer than 1,200 bytes (RFC 9000 §14.1, §6.1).
    SmallDatagram,
    /// A client wants to connect, and the endpoint does not serve.
    NotServing,
    /// Too many handshakes are under way.
    HalfOpenLimit,
    /// The client's address, or its network, has had its share of handshakes.
    HandshakeShare,
    /// An answer would be due, but there have been too many.
    RateLimit,
    /// A 0-RTT packet of a client whose Initial packet may follow: kept for a moment, and dropped if it does not.
    Held,
}

impl DropReason {
    /// All of them, and what each is called in metrics.
    pub const NAMED: [(DropReason, &'static str); REASONS] = [
        (DropReason::Empty, "empty"),
        (DropReason::Malformed, "malformed"),
        (DropReason::SourcePort, "source_port"),
        (DropReason::OtherServer, "other_server"),
        (DropReason::UnknownConnection, "unknown_connection"),
        (DropReason::Unexpected, "unexpected"),
        (DropReason::ShortInitialCid, "short_initial_cid"),
        (DropReason::SmallDatagram, "small_datagram"),
        (DropReason::NotServing, "not_serving"),
        (DropReason::HalfOpenLimit, "half_open_limit"),
        (DropReason::HandshakeShare, "handshake_share"),
        (DropReason::RateLimit, "rate_limit"),
        (DropReason::Held, "held"),
    ];
}

const REASONS: usize = DropReason::Held as usize + 1;

/// Counts since the endpoint was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Clients handed to the embedder.
    pub incoming: u64,
    /// Of those, clients that had proved their address by a token.
    pub incoming_validated: u64,
    /// Of those, clients that begin with QUIC version 2. The others begin with version 1.
    pub incoming_v2: u64,
    /// Connections whose clients began with version 2 and were moved to version 1 (RFC 9368), once their handshake is complete.
    pub moved_to_v1: u64,
    /// Connections whose clients began with version 1 and were moved to version 2.
    pub moved_to_v2: u64,
    /// Retry packets.
    pub retries: u64,
    /// Version Negotiation packets.
    pub version_negotiations: u64,
    /// Stateless resets.
    pub stateless_resets: u64,
    /// Runs of datagrams to connection IDs that another worker issued.
    pub elsewhere: u64,
    /// Connections refused in one packet: invalid Retry tokens, shutting down, and too many connections.
    pub refusals: u64,
    /// Of those, for too many connections: in all, of the address, or of its network.
    pub refused_connections: u64,
    /// What became of careful resume.
    pub resumes: ResumeCounters,
    dropped: [u64; REASONS],
}

/// Connections that are over, by what became of careful resume (RFC 9959).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResumeCounters {
    /// Left something to remember.
    pub learned: u64,
    /// Knew something of their path.
    pub offered: u64,
    /// Jumped.
    pub jumped: u64,
    /// Were right to.
    pub validated: u64,
    /// Had to retreat.
    pub retreated: u64,
    /// Found a round trip that was not the one remembered.
    pub other_path: u64,
    /// The largest jump, in bytes.
    pub largest_jump: u64,
}

impl ResumeCounters {
    pub(super) fn on_end(&mut self, report: &ResumeReport) {
        self.jumped += u64::from(report.jump > 0);
        self.validated += u64::from(report.outcome == ResumeOutcome::Validated);
        self.retreated += u64::from(report.outcome == ResumeOutcome::Retreated);
        self.other_path += u64::from(report.outcome == ResumeOutcome::OtherPath);
        self.largest_jump = self.largest_jump.max(report.jump);
    }
}

/// Sums the counters of several endpoints.
impl core::ops::AddAssign for EndpointCounters {
    fn add_assign(&mut self, other: EndpointCounters) {
        self.incoming += other.incoming;
        self.incoming_validated += other.incoming_validated;
        self.incoming_v2 += other.incoming_v2;
        self.retries += other.retries;
        self.version_negotiations += other.version_negotiations;
        self.stateless_resets += other.stateless_resets;
        self.elsewhere += other.elsewhere;
        self.refusals += other.refusals;
        self.refused_connections += other.refused_connections;
        self.resumes += other.resumes;
        self.dropped.iter_mut().zip(other.dropped).for_each(|(count, more)| *count += more);
    }
}

impl core::ops::AddAssign for ResumeCounters {
    fn add_assign(&mut self, other: ResumeCounters) {
        self.learned += other.learned;
        self.offered += other.offered;
        self.jumped += other.jumped;
        self.validated += other.validated;
        self.retreated += other.retreated;
        self.other_path += other.other_path;
        self.largest_jump = self.largest_jump.max(other.largest_jump);
    }
}

impl EndpointCounters {
    /// Datagrams dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// The server has chosen the version of a connection that began with `first`.
    pub(super) fn on_version(&mut self, first: Version, chosen: Version) {
        if first != chosen {
            let moved = if chosen == Version::V2 { &mut self.moved_to_v2 } else { &mut self.moved_to_v1 };
            *moved += 1;
        }
    }

    pub(super) fn on_drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }
}
