//! What a peer does to harm an end that can use several paths: exact codes, and bounded memory.

use super::hostile::frames;
use super::*;
use crate::TransportError;
use crate::builder::PacketBuilder;
use crate::config::Scheduler;
use crate::connection::lanes::MAX_LANES;
use crate::lane_id::LaneId;
use crate::space::SpaceId;
use base::rng::Rng;
use wire::Side;
use wire::error::Code;
use wire::frame::Frame;
use wire::reader::Reader;
use wire::writer::Writer;

fn config() -> TransportConfig {
    TransportConfig { multipath: Some(Scheduler::LowestRtt), ..TransportConfig::default() }
}

/// Both ends can use several paths and have given connection IDs for them.
fn connected() -> Pair {
    let mut pair = Pair::connected(&TlsOptions::default(), config(), RetryPolicy::Never);
    pair.run(20);
    pair
}

fn hands(pair: &mut Pair, payload: &[u8]) -> Result<(), Code> {
    frames(pair, Side::Server, SpaceId::Application, payload).map_err(|error: TransportError| error.code)
}

/// PATH_NEW_CONNECTION_ID.
fn new_cid(path: u8, sequence: u8, retire_prior_to: u8, cid: u8) -> Vec<u8> {
    let mut frame = vec![0x7e, 0x78, path, sequence, retire_prior_to, 8];
    frame.extend([cid; 8 + 16]);
    frame
}

/// The frames with a path ID, for this path.
fn of_path(path: u8) -> Vec<Vec<u8>> {
    let mut rows: Vec<Vec<u8>> = vec![vec![0x3e, path, 0, 0, 0, 0], vec![0x3f, path, 0, 0, 0, 0, 0, 0, 0]];
    rows.extend([0x75, 0x76, 0x77, 0x79, 0x7c].map(|ty| vec![0x7e, ty, path, 0]));
    rows.push(new_cid(path, 0, 0, 7));
    rows
}

/// Draft §2.1, §4: deleted, an end could follow such frames without having agreed to them, or outside of 1-RTT packets.
#[test]
fn frames_of_several_paths_need_agreement_and_1rtt_packets() {
    let plain = || Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    for frame in of_path(0).into_iter().chain([vec![0x7e, 0x7a, 9], vec![0x7e, 0x7b, 0]]) {
        assert_eq!(hands(&mut plain(), &frame), Err(Code::FRAME_ENCODING_ERROR), "{frame:x?}");
        for space in [SpaceId::Initial, SpaceId::Handshake] {
            let outcome = frames(&mut connected(), Side::Server, space, &frame);
            assert_eq!(outcome.map_err(|error| error.code), Err(Code::PROTOCOL_VIOLATION), "{frame:x?}");
        }
    }
}

/// Draft §4: deleted, a peer could name paths that it may not have, and make us keep something for each.
#[test]
fn path_ids_above_the_limit_close_the_connection() {
    for frame in of_path(MAX_LANES as u8) {
        assert_eq!(hands(&mut connected(), &frame), Err(Code::PROTOCOL_VIOLATION), "{frame:x?}");
    }
}

/// Deleted, a wrong frame could be believed, or close the connection with a code that is not the draft's.
#[test]
fn frames_that_contradict_the_state_close_the_connection() {
    let mut twice = new_cid(1, 5, 0, 7);
    twice.extend(new_cid(2, 5, 0, 7));
    let rows: [(&str, Vec<u8>, Code); 9] = [
        ("acknowledges on an unused path", vec![0x3e, 1, 0, 0, 0, 0], Code::PROTOCOL_VIOLATION),
        ("acknowledges too much", vec![0x3e, 0, 0xbf, 0xff, 0xff, 0xff, 0, 0, 0], Code::PROTOCOL_VIOLATION),
        ("PATHS_BLOCKED above the limit", vec![0x7e, 0x7b, 4], Code::PROTOCOL_VIOLATION),
        ("PATH_CIDS_BLOCKED too far", vec![0x7e, 0x7c, 1, 3], Code::PROTOCOL_VIOLATION),
        ("MAX_PATH_ID below the first", vec![0x7e, 0x7a, 2], Code::PROTOCOL_VIOLATION),
        ("MAX_PATH_ID of 2^32", vec![0x7e, 0x7a, 0xc0, 0, 0, 1, 0, 0, 0, 0], Code::PROTOCOL_VIOLATION),
        ("retires what was not issued", vec![0x7e, 0x79, 1, 9], Code::PROTOCOL_VIOLATION),
        ("one ID for two paths", twice, Code::PROTOCOL_VIOLATION),
        ("the only path", vec![0x7e, 0x75, 0, 0], Code::NO_ERROR),
    ];
    for (name, payload, code) in rows {
        assert_eq!(hands(&mut connected(), &payload), Err(code), "{name}");
    }
    for allowed in [vec![0x7e, 0x7b, 3], vec![0x7e, 0x7c, 1, 2], vec![0x7e, 0x7a, 3], vec![0x7e, 0x79, 1, 0]]
    {
        assert_eq!(hands(&mut connected(), &allowed), Ok(()), "{allowed:x?}");
    }
}

/// Deleted, connection IDs for paths that nothing uses could fill our memory.
#[test]
fn a_flood_of_connection_ids_for_a_path_closes_the_connection() {
    for retires in [0_u8, 1] {
        let mut pair = connected();
        let flood = |sequence: u8| new_cid(1, sequence, sequence * retires, sequence);
        let outcome = (2..60).map(|sequence| hands(&mut pair, &flood(sequence))).find(Result::is_err);
        assert_eq!(outcome, Some(Err(Code::CONNECTION_ID_LIMIT_ERROR)), "retires {retires}");
    }
}

/// Draft §3.3, §4.3: deleted, a status that was overtaken could undo the one that came later.
#[test]
fn a_status_that_is_out_of_date_is_ignored() {
    let mut pair = connected();
    let backup = |pair: &mut Pair| {
        pair.server.connection.as_ref().expect("it is there").paths().first().expect("a path").is_backup
    };
    for (frame, is_backup) in [
        ([0x7e, 0x76, 0, 5], true),
        ([0x7e, 0x77, 0, 5], true),
        ([0x7e, 0x77, 0, 4], true),
        ([0x7e, 0x77, 0, 6], false),
    ] {
        assert_eq!(hands(&mut pair, &frame), Ok(()));
        assert_eq!(backup(&mut pair), is_backup, "{frame:x?}");
    }
}

/// Draft §3.4, §4: frames for a path that is over do nothing, now and when it is forgotten; another ID takes its place.
#[test]
fn frames_for_an_abandoned_path_are_ignored() {
    let mut pair = connected();
    assert_eq!(hands(&mut pair, &[0x7e, 0x75, 1, 0]), Ok(()));
    for _ in 0..2 {
        pair.run(10);
        for frame in of_path(1) {
            assert_eq!(hands(&mut pair, &frame), Ok(()), "{frame:x?}");
        }
        for _ in 0..8 {
            pair.now = pair.now + Duration::from_secs(1);
            pair.run(10);
        }
        let lanes = pair.server.connection.as_ref().and_then(|it| it.components.lanes.as_ref());
        assert_eq!(lanes.expect("lanes").records().len(), MAX_LANES);
    }
    let lanes = pair.server.connection.as_ref().and_then(|it| it.components.lanes.as_ref());
    let ids: Vec<LaneId> = lanes.expect("lanes").records().iter().map(|record| record.id).collect();
    assert_eq!(ids, [0, 2, 3, 4].map(LaneId), "the ID of the path that is over is not used again");
}

/// A state and frame at random: deleted, some order of such frames could panic, or make us keep ever more.
#[test]
fn any_frame_of_several_paths_does_no_harm() {
    for seed in 0..48_u8 {
        let mut rng = Rng::from_seed([seed; 32]);
        let mut pair = connected();
        if seed % 2 == 0 {
            let now = pair.now;
            let client = pair.client.connection.as_mut().expect("it is there");
            client.open_path(now, addresses(3, 2).local).expect("a path");
            pair.run(usize::from(seed % 7));
        }
        for _ in 0..300 {
            let mut payload: Vec<u8> = (0..40).map(|_| rng.below(5) as u8).collect();
            match rng.below(10) {
                0 => payload[0] = 0x3e + rng.below(2) as u8,
                ty => (payload[0], payload[1]) = (0x7e, 0x74 + ty as u8),
            }
            let to = if rng.below(2) == 0 { Side::Client } else { Side::Server };
            if frames(&mut pair, to, SpaceId::Application, &payload).is_ok() {
                let lanes = |end: &End| {
                    let lanes = end.connection.as_ref().and_then(|it| it.components.lanes.as_ref());
                    lanes.map_or(0, |lanes| lanes.records().len())
                };
                assert!(lanes(&pair.client) <= MAX_LANES && lanes(&pair.server) <= MAX_LANES);
            }
            pair.now = pair.now + Duration::from_millis(rng.below(100));
            pair.client.send(pair.now);
            pair.server.send(pair.now);
        }
    }
}

/// Draft §2.1: deleted, packets of several paths could come without anything that tells which.
#[test]
fn a_peer_without_connection_ids_offers_no_paths() {
    let mut pair = connected();
    let client = pair.client.connection.as_mut().expect("it is there");
    let mut told = client.handshake.peer_parameters().expect("told").clone();
    client.handshake.forget_peer_cid();
    told.initial_source_connection_id = Some(wire::cid::ConnectionId::EMPTY);
    told.stateless_reset_token = None;
    let outcome = client.on_peer_parameters(told).map_err(|error| error.code);
    assert_eq!(outcome, Err(Code::PROTOCOL_VIOLATION));
}

/// Draft §2.2: deleted, a client could use a path that the server cannot serve.
#[test]
fn a_server_that_forbids_migration_forbids_paths() {
    let mut pair = connected();
    let now = pair.now;
    let client = pair.client.connection.as_mut().expect("it is there");
    let mut told = client.handshake.peer_parameters().expect("told").clone();
    told.disable_active_migration = true;
    client.on_peer_parameters(told).expect("as before");
    let refused = client.open_path(now, addresses(3, 2).local);
    assert_eq!(refused, Err(crate::OpenPathError::Disabled));
}

/// Draft §4.7. Deleted, a peer that limits this end would not hear of it, or hear of it again and again.
#[test]
fn what_keeps_a_path_from_being_opened_is_told_once() {
    let written = |client: &mut Connection| {
        let lanes = client.components.lanes.as_mut().expect("there are lanes");
        let (mut room, mut frames) = ([0; 1_150], Vec::new());
        let mut packet = PacketBuilder::new(Writer::new(&mut room), &mut frames);
        lanes.write(&mut packet);
        let len = packet.writer.position();
        let mut reader = Reader::new(&room[..len]);
        let mut found = Vec::new();
        while !reader.is_empty() {
            found.push(format!("{:?}", Frame::parse_next(&mut reader).expect("a frame")));
        }
        found
    };
    let mut pair = connected();
    let now = pair.now;
    let client = pair.client.connection.as_mut().expect("it is there");
    let mut ports = 2..;
    let mut open = |client: &mut Connection| {
        let (mut local, port) = (addresses(3, 2).local, ports.next().expect("a port"));
        local.set_port(port);
        client.open_path(now, local).map(|id| id.0)
    };
    assert_eq!([1, 2, 3].map(|_| open(client)), [Ok(1), Ok(2), Ok(3)]);
    written(client);
    for expected in [vec!["PathsBlocked(PathsBlocked { maximum: 3 })"], vec![]] {
        assert_eq!(open(client), Err(crate::OpenPathError::NoConnectionId));
        assert_eq!(written(client), expected);
    }
    // The server permits the path, and has given nothing that leads there.
    let mut pair = connected();
    let client = pair.client.connection.as_mut().expect("it is there");
    let lanes = client.components.lanes.as_mut().expect("there are lanes");
    for id in 1..4 {
        lanes.parked_mut(LaneId(id)).expect("unused").peer_cids = None;
    }
    for expected in [vec!["PathCidsBlocked(PathCidsBlocked { path: 1, next_sequence: 0 })"], vec![]] {
        assert_eq!(open(client), Err(crate::OpenPathError::NoConnectionId));
        assert_eq!(written(client), expected);
    }
}
