//! Each frame in each kind of packet at each end: the code that it closes the connection with. RFC 9000 §12.4 table 3, §12.5, and
//! the documents of the extensions.

use super::*;
use crate::TransportError;
use crate::config::Scheduler;
use crate::connection::arrival::Arrival;
use crate::connection::frames::{ZERO_RTT, dispatch, permission};
use crate::space::SpaceId;
use wire::Side;
use wire::error::Code;
use wire::frame;
use wire::reader::Reader;

/// A kind of packet. Initial and Handshake packets arrive in the handshake, the others once it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Initial,
    Handshake,
    ZeroRtt,
    OneRtt,
}

/// What is expected of a frame: at a server in Initial, Handshake, 0-RTT and 1-RTT packets; at a client the same without 0-RTT packets,
/// which it drops. `PV` is PROTOCOL_VIOLATION, and so on (see [`short`]).
struct Row {
    name: &'static str,
    frame: &'static [u8],
    server: [&'static str; 4],
    client: [&'static str; 3],
    /// At a server in 1-RTT packets where the extension was not agreed to; `None` for frames of RFC 9000.
    unasked: Option<&'static str>,
}

const fn row(
    name: &'static str,
    frame: &'static [u8],
    server: [&'static str; 4],
    client: [&'static str; 3],
    unasked: Option<&'static str>,
) -> Row {
    Row { name, frame, server, client, unasked }
}

/// NEW_CONNECTION_ID with a number that is far ahead, and the same for a path.
const NEW_CID: [u8; 28] = new_cid([0x18, 7, 7, 8]);
const PATH_NEW_CID: [u8; 30] = new_cid([0x7e, 0x78, 1, 7, 7, 8]);
/// The same that retires itself, and of a path above the limit.
const SELF_RETIRING_CID: [u8; 28] = new_cid([0x18, 7, 8, 8]);
const FAR_PATH_CID: [u8; 30] = new_cid([0x7e, 0x78, 0x3f, 7, 7, 8]);

const fn new_cid<const HEAD: usize, const LEN: usize>(head: [u8; HEAD]) -> [u8; LEN] {
    let mut frame = [9; LEN];
    let mut place = 0;
    while place < HEAD {
        frame[place] = head[place];
        place += 1;
    }
    frame
}

const MATRIX: &[Row] = &[
    // A client that has just heard of the server has sent no Handshake packet that could be acknowledged.
    row("PADDING", &[0x00], ["ok", "ok", "ok", "ok"], ["ok", "ok", "ok"], None),
    row("PING", &[0x01], ["ok", "ok", "ok", "ok"], ["ok", "ok", "ok"], None),
    row("ACK", &[0x02, 0, 0, 0, 0], ["ok", "ok", "PV", "ok"], ["ok", "PV", "ok"], None),
    row("ACK_ECN", &[0x03, 0, 0, 0, 0, 0, 0, 0], ["ok", "ok", "PV", "ok"], ["ok", "PV", "ok"], None),
    row(
        "ACK of none",
        &[0x02, 0x80, 0xff, 0xff, 0, 0, 0, 0],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        None,
    ),
    row("RESET_STREAM", &[0x04, 0, 1, 0], ["PV", "PV", "ok", "ok"], ["PV", "PV", "SS"], None),
    row("STOP_SENDING", &[0x05, 0, 1], ["PV", "PV", "ok", "ok"], ["PV", "PV", "SS"], None),
    row("CRYPTO", &[0x06, 0, 0], ["ok", "ok", "PV", "ok"], ["ok", "ok", "ok"], None),
    row("NEW_TOKEN", &[0x07, 1, 5], ["PV", "PV", "PV", "PV"], ["PV", "PV", "ok"], None),
    row("STREAM", &[0x0a, 0, 1, 5], ["PV", "PV", "ok", "ok"], ["PV", "PV", "SS"], None),
    row(
        "STREAM above the limit",
        &[0x0a, 0xbf, 0, 0, 0, 1, 5],
        ["PV", "PV", "SL", "SL"],
        ["PV", "PV", "SS"],
        None,
    ),
    row(
        "STREAM beyond the window",
        &[0x0e, 0, 0xbf, 0, 0, 0, 1, 5],
        ["PV", "PV", "FC", "FC"],
        ["PV", "PV", "SS"],
        None,
    ),
    row("MAX_DATA", &[0x10, 9], ["PV", "PV", "ok", "ok"], ["PV", "PV", "ok"], None),
    row("MAX_STREAM_DATA", &[0x11, 0, 9], ["PV", "PV", "ok", "ok"], ["PV", "PV", "SS"], None),
    row("MAX_STREAMS", &[0x12, 9], ["PV", "PV", "ok", "ok"], ["PV", "PV", "ok"], None),
    row(
        "MAX_STREAMS above 2^60",
        &[0x13, 0xd0, 0, 0, 0, 0, 0, 0, 1],
        ["PV", "PV", "FE", "FE"],
        ["PV", "PV", "FE"],
        None,
    ),
    row("DATA_BLOCKED", &[0x14, 9], ["PV", "PV", "ok", "ok"], ["PV", "PV", "ok"], None),
    row("STREAM_DATA_BLOCKED", &[0x15, 0, 9], ["PV", "PV", "ok", "ok"], ["PV", "PV", "SS"], None),
    row("STREAMS_BLOCKED", &[0x16, 9], ["PV", "PV", "ok", "ok"], ["PV", "PV", "ok"], None),
    row("NEW_CONNECTION_ID", &NEW_CID, ["PV", "PV", "ok", "ok"], ["PV", "PV", "ok"], None),
    row("RETIRE_CONNECTION_ID", &[0x19, 1], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], None),
    row("RETIRE_CONNECTION_ID of none", &[0x19, 60], ["PV", "PV", "PV", "PV"], ["PV", "PV", "PV"], None),
    row(
        "PATH_CHALLENGE",
        &[0x1a, 1, 2, 3, 4, 5, 6, 7, 8],
        ["PV", "PV", "ok", "ok"],
        ["PV", "PV", "ok"],
        None,
    ),
    row("PATH_RESPONSE", &[0x1b, 1, 2, 3, 4, 5, 6, 7, 8], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], None),
    row("CONNECTION_CLOSE", &[0x1c, 0, 0, 0], ["ok", "ok", "ok", "ok"], ["ok", "ok", "ok"], None),
    row(
        "CONNECTION_CLOSE of the application",
        &[0x1d, 0, 0],
        ["PV", "PV", "ok", "ok"],
        ["PV", "PV", "ok"],
        None,
    ),
    row("HANDSHAKE_DONE", &[0x1e], ["PV", "PV", "PV", "PV"], ["PV", "PV", "ok"], None),
    row("IMMEDIATE_ACK", &[0x1f], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], Some("FE")),
    row("RESET_STREAM_AT", &[0x24, 0, 1, 2, 1], ["PV", "PV", "ok", "ok"], ["PV", "PV", "SS"], None),
    row("DATAGRAM", &[0x30, 5], ["PV", "PV", "ok", "ok"], ["PV", "PV", "ok"], Some("PV")),
    row("DATAGRAM with a length", &[0x31, 1, 5], ["PV", "PV", "ok", "ok"], ["PV", "PV", "ok"], Some("PV")),
    row("PATH_ACK", &[0x3e, 0, 0, 0, 0, 0], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], Some("FE")),
    row(
        "PATH_ACK_ECN",
        &[0x3f, 0, 0, 0, 0, 0, 0, 0, 0],
        ["PV", "PV", "PV", "ok"],
        ["PV", "PV", "ok"],
        Some("FE"),
    ),
    row(
        "ACK_FREQUENCY",
        &[0x40, 0xaf, 0, 1, 0x80, 0, 0x61, 0xa8, 1],
        ["PV", "PV", "PV", "ok"],
        ["PV", "PV", "ok"],
        Some("FE"),
    ),
    row("PATH_ABANDON", &[0x7e, 0x75, 1, 0], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], Some("FE")),
    row("PATH_STATUS_BACKUP", &[0x7e, 0x76, 0, 1], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], Some("FE")),
    row(
        "PATH_STATUS_AVAILABLE",
        &[0x7e, 0x77, 0, 1],
        ["PV", "PV", "PV", "ok"],
        ["PV", "PV", "ok"],
        Some("FE"),
    ),
    row("PATH_NEW_CONNECTION_ID", &PATH_NEW_CID, ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], Some("FE")),
    row(
        "PATH_RETIRE_CONNECTION_ID",
        &[0x7e, 0x79, 1, 0],
        ["PV", "PV", "PV", "ok"],
        ["PV", "PV", "ok"],
        Some("FE"),
    ),
    row("MAX_PATH_ID", &[0x7e, 0x7a, 3], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], Some("FE")),
    row("PATHS_BLOCKED", &[0x7e, 0x7b, 3], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], Some("FE")),
    row("PATH_CIDS_BLOCKED", &[0x7e, 0x7c, 1, 2], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], Some("FE")),
    row("TIMESTAMP", &[0x42, 0xf5, 9], ["PV", "PV", "PV", "ok"], ["PV", "PV", "ok"], Some("FE")),
    // What the frame says is wrong, beside where it stands.
    row("NEW_TOKEN without a token", &[0x07, 0], ["PV", "PV", "PV", "PV"], ["PV", "PV", "FE"], None),
    row(
        "CRYPTO beyond what is kept",
        &[0x06, 0x9f, 0, 0, 0, 1, 5],
        ["CB", "CB", "PV", "CB"],
        ["CB", "CB", "CB"],
        None,
    ),
    row(
        "NEW_CONNECTION_ID that retires itself",
        &SELF_RETIRING_CID,
        ["PV", "PV", "FE", "FE"],
        ["PV", "PV", "FE"],
        None,
    ),
    row(
        "RESET_STREAM beyond the window",
        &[0x04, 0, 1, 0xbf, 0, 0, 0],
        ["PV", "PV", "FC", "FC"],
        ["PV", "PV", "SS"],
        None,
    ),
    row(
        "RESET_STREAM_AT above its end",
        &[0x24, 0, 1, 2, 3],
        ["PV", "PV", "FE", "FE"],
        ["PV", "PV", "FE"],
        None,
    ),
    row("DATAGRAM above the limit", &[0x30; 1_300], ["PV", "PV", "PV", "PV"], ["PV", "PV", "PV"], Some("PV")),
    row(
        "ACK_FREQUENCY below the limit",
        &[0x40, 0xaf, 0, 1, 1, 1],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "PATH_ACK of none",
        &[0x3e, 0, 0x80, 0xff, 0xff, 0, 0, 0, 0],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "PATH_ACK above the limit",
        &[0x3e, 0x3f, 0, 0, 0, 0],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "PATH_ABANDON of the only path",
        &[0x7e, 0x75, 0, 0],
        ["PV", "PV", "PV", "NE"],
        ["PV", "PV", "NE"],
        Some("FE"),
    ),
    row(
        "PATH_ABANDON above the limit",
        &[0x7e, 0x75, 0x3f, 0],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "PATH_STATUS_BACKUP above the limit",
        &[0x7e, 0x76, 0x3f, 1],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "PATH_STATUS_AVAILABLE above the limit",
        &[0x7e, 0x77, 0x3f, 1],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "PATH_NEW_CONNECTION_ID above the limit",
        &FAR_PATH_CID,
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "PATH_RETIRE_CONNECTION_ID of none",
        &[0x7e, 0x79, 1, 0x3f],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "MAX_PATH_ID above 2^32 - 1",
        &[0x7e, 0x7a, 0xc0, 0, 0, 1, 0, 0, 0, 0],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "MAX_PATH_ID below the handshake's",
        &[0x7e, 0x7a, 0],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "PATHS_BLOCKED above the limit",
        &[0x7e, 0x7b, 0x3f],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row(
        "PATH_CIDS_BLOCKED far ahead",
        &[0x7e, 0x7c, 1, 0x3f],
        ["PV", "PV", "PV", "PV"],
        ["PV", "PV", "PV"],
        Some("FE"),
    ),
    row("TIMESTAMP cut off", &[0x42, 0xf5], ["PV", "PV", "PV", "FE"], ["PV", "PV", "FE"], Some("FE")),
    row("an unknown type", &[0x32], ["FE", "FE", "FE", "FE"], ["FE", "FE", "FE"], None),
    row("a type that is not minimal", &[0x40, 0x01], ["PV", "PV", "PV", "PV"], ["PV", "PV", "PV"], None),
];

/// A code as the table has it.
fn short(outcome: Result<(), TransportError>) -> String {
    let Err(error) = outcome else { return "ok".to_owned() };
    match error.code {
        Code::PROTOCOL_VIOLATION => "PV".to_owned(),
        Code::FRAME_ENCODING_ERROR => "FE".to_owned(),
        Code::STREAM_STATE_ERROR => "SS".to_owned(),
        Code::STREAM_LIMIT_ERROR => "SL".to_owned(),
        Code::FLOW_CONTROL_ERROR => "FC".to_owned(),
        Code::CONNECTION_ID_LIMIT_ERROR => "CL".to_owned(),
        Code::CRYPTO_BUFFER_EXCEEDED => "CB".to_owned(),
        Code::NO_ERROR => "NE".to_owned(),
        other => format!("{other:?}"),
    }
}

fn all() -> TransportConfig {
    TransportConfig {
        multipath: Some(Scheduler::LowestRtt),
        max_datagram_frame_size: 1_200,
        timestamps: crate::config::Switch::On,
        ..TransportConfig::default()
    }
}

fn none() -> TransportConfig {
    TransportConfig { ack_frequency: crate::config::Switch::Off, ..TransportConfig::default() }
}

/// What a frame leads to in a packet of this kind that has arrived at this end.
fn arrives(config: TransportConfig, at: Side, kind: Kind, payload: &[u8]) -> String {
    let mut pair = Pair::new(&TlsOptions::default(), config, RetryPolicy::Never);
    let steps = if matches!(kind, Kind::Initial | Kind::Handshake) { 1 } else { 30 };
    pair.run(steps);
    let now = pair.now;
    let end = if at == Side::Server { &mut pair.server } else { &mut pair.client };
    let connection = end.connection.as_mut().expect("it has begun");
    let space = match kind {
        Kind::Initial => SpaceId::Initial,
        Kind::Handshake => SpaceId::Handshake,
        Kind::ZeroRtt | Kind::OneRtt => SpaceId::Application,
    };
    let mut arrival = Arrival {
        now,
        arrived: now,
        space,
        packet: if kind == Kind::ZeroRtt { ZERO_RTT } else { permission(space) },
        path: connection.paths.active_id(),
        pn: 1,
        dcid: connection.components.local_cids.first(),
        rtt: Duration::from_millis(1),
        sink: &mut end.sink,
        eliciting: recovery::ack::Eliciting::No,
        non_probing: false,
    };
    short(dispatch(connection, &mut arrival, payload))
}

/// CVE-2023-46239, CVE-2023-42805 and others: deleted, a frame could be believed where it must not stand, or close the connection with
/// a code that is not the document's.
#[test]
fn each_frame_in_each_packet_at_each_end_has_its_code() {
    use Kind::{Handshake, Initial, OneRtt, ZeroRtt};
    let mut wrong = Vec::new();
    for row in MATRIX {
        let server =
            [Initial, Handshake, ZeroRtt, OneRtt].map(|kind| arrives(all(), Side::Server, kind, row.frame));
        let client = [Initial, Handshake, OneRtt].map(|kind| arrives(all(), Side::Client, kind, row.frame));
        let unasked = row.unasked.map(|_| arrives(none(), Side::Server, OneRtt, row.frame));
        if server != row.server || client != row.client || unasked.as_deref() != row.unasked {
            wrong.push(format!("{}: {server:?}, {client:?}, {unasked:?}", row.name));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Deleted, a frame that is added could be missing above.
#[test]
fn the_matrix_has_every_frame() {
    let type_of = |row: &Row| frame::read_type(&mut Reader::new(row.frame)).unwrap_or(u64::MAX);
    let known: Vec<u64> = MATRIX.iter().map(type_of).collect();
    // Types that differ by a bit which changes nothing of where the frame may stand.
    let variants = [0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0f, 0x17];
    for ty in (0..0x8000).filter(|ty| frame::ty::name(*ty) != "unknown" && !variants.contains(ty)) {
        assert!(known.contains(&ty), "{} ({ty:#x}) is missing", frame::ty::name(ty));
    }
}
