use super::generator::{CID_WORKER_OFFSET, CidGenerator, CidLayout, LOCAL_CID_LEN, cid_generations};
use super::local::{CidChange, LocalCids, MAX_EXCHANGES, MAX_ISSUED, Registration};
use super::peer::{Beside, MAX_ACTIVE, MAX_RETIREMENTS, PeerCids};
use crate::builder::PacketBuilder;
use crate::sent::SentFrame;
use base::rng::Rng;
use crypto::StatelessResetKey;
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::Arc;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame::{Frame, NewConnectionId};
use wire::reader::Reader;
use wire::writer::Writer;

fn generator(seed: u64) -> CidGenerator {
    let layout = CidLayout { worker: 7, workers: 8, ..CidLayout::PLAIN };
    CidGenerator::new(layout, Rng::from_u64(seed), Arc::new(StatelessResetKey::new([9; 32])))
}

/// Lets a component write into a packet with this much room; returns the frames written and those remembered.
fn packet<T>(room: usize, component: &mut T, write: fn(&mut T, &mut PacketBuilder<'_>)) -> Vec<SentFrame> {
    let mut buffer = vec![0; room];
    let mut frames = Vec::new();
    let mut builder = PacketBuilder::new(Writer::new(&mut buffer), &mut frames);
    write(component, &mut builder);
    assert!(!builder.writer.overflowed());
    frames
}

fn written_cids(cids: &mut LocalCids) -> Vec<NewConnectionId> {
    let mut buffer = [0; 1_000];
    let mut frames = Vec::new();
    let mut builder = PacketBuilder::new(Writer::new(&mut buffer), &mut frames);
    cids.write(&mut builder);
    let len = builder.writer.position();
    let mut reader = Reader::new(&buffer[..len]);
    let mut found = Vec::new();
    while !reader.is_empty() {
        let Ok(Frame::NewConnectionId(frame)) = Frame::parse_next(&mut reader) else {
            panic!("another frame")
        };
        found.push(frame);
    }
    found
}

fn sequence(frame: &SentFrame) -> u64 {
    match frame {
        SentFrame::NewConnectionId { sequence, .. } | SentFrame::RetireConnectionId { sequence, .. } => {
            *sequence
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ids_carry_the_worker_and_differ() {
    let mut generator = generator(1);
    let ids: HashSet<_> = (0..1_000).map(|_| generator.next_cid()).collect();
    assert_eq!(ids.len(), 1_000);
    assert!(ids.iter().all(|id| id.len() == LOCAL_CID_LEN && id.as_slice()[CID_WORKER_OFFSET] == 7));
    let (one, other) = (generator.fork().next_cid(), generator.fork().next_cid());
    assert!(one != other && !ids.contains(&one), "connections must not be linkable by their IDs");
}

#[test]
fn the_layout_is_the_one_that_balancers_and_steering_programs_read() {
    let key = || Arc::new(StatelessResetKey::new([9; 32]));
    let layout = CidLayout { worker: 2, workers: 3, generation: 0, server: Some((5, [0xab, 0xcd])) };
    let mut generator = CidGenerator::new(layout, Rng::from_u64(1), key());
    for _ in 0..100 {
        let cid: [u8; 8] = generator.next_cid().as_slice().try_into().unwrap();
        assert_eq!(cid[..4], [5 << 5 | 7, 0xab, 0xcd, 2], "rotation and length, server, worker");
        assert!(layout.elsewhere(cid).is_none() && layout.names_this_server(cid));
    }
    let named = |byte| layout.worker_of([0, 0, 0, byte, 0, 0, 0, 0]);
    assert_eq!([0, 1, 2, 3, 4, 255].map(named), [0, 1, 2, 0, 1, 0]);
    assert_eq!(layout.elsewhere([0, 0, 0, 4, 0, 0, 0, 0]), Some(1));
    assert!(!layout.names_this_server([0, 0xab, 0xce, 2, 0, 0, 0, 0]));
    // Without a server ID balancers are told to leave it alone, and what would be the ID is random.
    let mut plain = CidGenerator::new(CidLayout::PLAIN, Rng::from_u64(1), key());
    let cids: Vec<ConnectionId> = (0..100).map(|_| plain.next_cid()).collect();
    assert!(cids.iter().all(|cid| cid.as_slice()[0] == 0b1110_0111));
    let servers: HashSet<_> = cids.iter().map(|cid| cid.as_slice()[1..3].to_vec()).collect();
    assert!(servers.len() > 90, "{}", servers.len());
    assert_eq!(CidLayout { workers: 0, ..CidLayout::PLAIN }.worker_of([9; 8]), 0, "no workers are one");
}

/// Deleted, the process that takes another one's place could name its worker wrongly, or not know whose connection it is.
#[test]
fn ids_of_every_generation_name_the_same_worker() {
    for workers in [1, 2, 3, 128, 129, 255] {
        let most = cid_generations(workers);
        assert_eq!(most, 256 / u16::from(workers));
        for generation in [0, most / 2, most - 1].map(|generation| generation as u8) {
            for worker in [0, workers / 2, workers - 1] {
                let layout = CidLayout { worker, workers, generation, server: None };
                let key = Arc::new(StatelessResetKey::new([9; 32]));
                let cid = CidGenerator::new(layout, Rng::from_u64(1), key).next_cid();
                let cid: [u8; 8] = cid.as_slice().try_into().unwrap();
                assert_eq!((layout.worker_of(cid), layout.generation_of(cid)), (worker, generation));
                assert_eq!(layout.elsewhere(cid), None);
            }
        }
    }
    assert_eq!(cid_generations(0), 256);
}

#[test]
fn a_taken_id_is_exchanged_before_the_peer_hears_of_it() {
    let mut cids = LocalCids::new(generator(11));
    cids.take_changes(|_| Registration::Done);
    cids.on_peer_limit(3);
    cids.issue();
    let (mut refused, mut kept) = (Vec::new(), Vec::new());
    cids.take_changes(|change| {
        let CidChange::Added(cid) = change else { panic!("{change:?}") };
        if refused.len() < 3 {
            refused.push(cid);
            return Registration::Taken;
        }
        kept.push(cid);
        Registration::Done
    });
    let announced: Vec<ConnectionId> = written_cids(&mut cids).iter().map(|frame| frame.cid).collect();
    assert_eq!((announced.len(), &announced), (2, &kept));
    assert!(refused.iter().all(|cid| !cids.contains(cid) && !announced.contains(cid)));
    // A table that refuses everything ends the search, and what the peer knows stays as it is.
    cids.on_retire(0, &announced[0]).unwrap();
    let mut asked = 0;
    cids.take_changes(|change| match change {
        CidChange::Removed(_) => Registration::Done,
        CidChange::Added(_) => {
            asked += 1;
            Registration::Taken
        }
    });
    assert_eq!(asked, 1 + MAX_EXCHANGES);
    assert!(announced.iter().all(|cid| cids.contains(cid)));
}

#[test]
fn issues_what_the_peer_keeps_and_at_most_four() {
    for (limit, expected) in [(2, 2), (3, 3), (4, 4), (1_000, MAX_ISSUED), (u64::MAX, MAX_ISSUED)] {
        let mut cids = LocalCids::new(generator(2));
        cids.on_peer_limit(limit);
        cids.issue();
        let frames = written_cids(&mut cids);
        assert_eq!(frames.len() + 1, expected);
        assert!(frames.iter().all(|frame| frame.reset_token == generator(0).reset_token(&frame.cid)));
        assert!(frames.iter().all(|frame| frame.retire_prior_to == 0 && cids.contains(&frame.cid)));
        assert!(!cids.wants());
    }
}

#[test]
fn announcements_come_again_until_acknowledged() {
    let mut cids = LocalCids::new(generator(3));
    cids.on_peer_limit(4);
    cids.issue();
    assert_eq!(packet(40, &mut cids, LocalCids::write).len(), 1, "as much as there is room for");
    let rest = packet(1_000, &mut cids, LocalCids::write);
    assert_eq!(rest.iter().map(sequence).collect::<Vec<_>>(), [2, 3]);
    cids.on_lost(&rest[0]);
    cids.on_acked(&rest[1]);
    cids.on_lost(&rest[1]);
    assert_eq!(packet(1_000, &mut cids, LocalCids::write), [rest[0]]);
    cids.on_lost(&rest[0]);
    cids.on_acked(&rest[0]);
    assert!(!cids.wants(), "declared lost too early");
    cids.on_retire(2, &cids.first()).unwrap();
    packet(1_000, &mut cids, LocalCids::write);
    cids.on_lost(&rest[0]);
    assert!(!cids.wants(), "what is retired is not announced again");
}

#[test]
fn a_retired_id_is_replaced_and_the_table_hears_of_both() {
    let mut cids = LocalCids::new(generator(4));
    cids.on_peer_limit(4);
    cids.issue();
    let frames = written_cids(&mut cids);
    let mut table = HashSet::new();
    let mut apply = |change| match change {
        CidChange::Added(cid) => assert!(table.insert(cid)),
        CidChange::Removed(cid) => assert!(table.remove(&cid)),
    };
    let mut apply = |change| {
        apply(change);
        Registration::Done
    };
    cids.take_changes(&mut apply);
    let first = cids.first();
    cids.on_retire(0, &frames[0].cid).unwrap();
    cids.on_retire(0, &frames[0].cid).unwrap();
    assert!(!cids.contains(&first));
    assert_eq!(cids.first(), first, "long headers that are still sent do not change");
    cids.take_changes(&mut apply);
    assert!(!cids.has_changes());
    assert_eq!(table.len(), 4);
    assert!(table.iter().all(|cid| cids.contains(cid)));
}

#[test]
fn retirement_of_what_was_never_issued_or_is_in_use_closes() {
    let mut cids = LocalCids::new(generator(5));
    cids.on_peer_limit(4);
    cids.issue();
    let first = cids.first();
    // Issued here, but not yet sent: an honest peer cannot know it.
    for unknown in [1, 4, u64::MAX >> 2] {
        assert_eq!(cids.on_retire(unknown, &first).unwrap_err().code, Code::PROTOCOL_VIOLATION);
    }
    assert_eq!(cids.on_retire(0, &first).unwrap_err().code, Code::PROTOCOL_VIOLATION);
}

proptest! {
    /// Whatever the peer does, the set stays within its limits and the endpoint's table follows it exactly.
    #[test]
    fn local_ids_stay_bounded(actions in prop::collection::vec((0..5_u8, 0..64_u64), 1..400)) {
        let mut cids = LocalCids::new(generator(6));
        cids.on_peer_limit(4);
        cids.issue();
        let mut table = HashSet::new();
        let mut sent: Vec<SentFrame> = Vec::new();
        for (action, number) in actions {
            match action {
                0 => sent.extend(packet(1_000, &mut cids, LocalCids::write)),
                1 => if let Some(frame) = sent.get(number as usize % sent.len().max(1)) { cids.on_lost(frame) },
                2 => if let Some(frame) = sent.get(number as usize % sent.len().max(1)) { cids.on_acked(frame) },
                3 => { let _ = cids.on_retire(number, &ConnectionId::EMPTY); },
                _ => {
                    let mut changes = 0;
                    cids.take_changes(|change| {
                        changes += 1;
                        match change {
                            CidChange::Added(cid) => assert!(table.insert(cid)),
                            CidChange::Removed(cid) => assert!(table.remove(&cid)),
                        }
                        assert!(table.len() <= MAX_ISSUED);
                        Registration::Done
                    });
                    prop_assert!(changes <= 12);
                    prop_assert!(table.iter().all(|cid| cids.contains(cid)));
                }
            }
        }
    }
}

fn cid(sequence: u64) -> ConnectionId {
    let mut bytes = [0xc0; 8];
    bytes[..7].copy_from_slice(&sequence.to_be_bytes()[1..]);
    ConnectionId::new(&bytes).unwrap()
}

fn new_cid(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
    NewConnectionId { sequence, retire_prior_to, cid: cid(sequence), reset_token: [sequence as u8; 16] }
}

fn peer(upto: u64) -> PeerCids {
    let mut cids = PeerCids::new(cid(0));
    (1..=upto).for_each(|sequence| cids.on_new_connection_id(&new_cid(sequence, 0)).unwrap());
    cids
}

fn code(outcome: Result<(), crate::error::TransportError>) -> Code {
    outcome.expect_err("must be refused").code
}

#[test]
fn copies_are_harmless_and_contradictions_are_not() {
    let mut cids = peer(2);
    cids.on_new_connection_id(&new_cid(2, 0)).unwrap();
    assert_eq!(cids.held(), (3, 0));
    let frame = new_cid(2, 0);
    for wrong in [
        NewConnectionId { reset_token: [77; 16], ..frame },
        NewConnectionId { sequence: 3, ..frame },
        NewConnectionId { cid: cid(9), ..frame },
    ] {
        assert_eq!(code(peer(2).on_new_connection_id(&wrong)), Code::PROTOCOL_VIOLATION, "{wrong:?}");
    }
    assert_eq!(
        code(PeerCids::new(ConnectionId::EMPTY).on_new_connection_id(&frame)),
        Code::PROTOCOL_VIOLATION,
        "a peer without connection IDs"
    );
}

#[test]
fn more_than_the_limit_closes() {
    let mut cids = peer(3);
    assert_eq!(code(cids.on_new_connection_id(&new_cid(4, 0))), Code::CONNECTION_ID_LIMIT_ERROR);
    let mut cids = peer(3);
    cids.on_new_connection_id(&new_cid(4, 1)).unwrap();
    assert_eq!(cids.active(), cid(1), "the oldest spare one follows a retired one");
    assert_eq!(
        packet(100, &mut cids, PeerCids::write),
        [SentFrame::RetireConnectionId { lane: crate::lane_id::LaneId::FIRST, sequence: 0 }]
    );
}

/// CVE-2024-22189 and its kin: rising Retire Prior To with no acknowledgement.
/// Dropped, Retire Prior To 2 would leave it in use at the peer, which waits for its retirement.
#[test]
fn the_id_of_the_preferred_address_is_kept_and_retired() {
    let mut cids = PeerCids::new(cid(0));
    cids.on_preferred_address(cid(1), [1; 16]);
    assert_eq!(cids.held(), (2, 0));
    assert!(cids.on_new_connection_id(&new_cid(2, 2)).is_ok());
    assert_eq!((cids.held(), cids.active()), ((1, 2), cid(2)), "0 and 1 are retired");
    // It counts towards the limit, and its number is taken.
    let mut cids = PeerCids::new(cid(0));
    cids.on_preferred_address(cid(1), [1; 16]);
    assert_eq!(
        code(cids.on_new_connection_id(&NewConnectionId { cid: cid(9), ..new_cid(1, 0) })),
        Code::PROTOCOL_VIOLATION
    );
    (2..4).for_each(|sequence| assert!(cids.on_new_connection_id(&new_cid(sequence, 0)).is_ok()));
    assert_eq!(code(cids.on_new_connection_id(&new_cid(4, 0))), Code::CONNECTION_ID_LIMIT_ERROR);
}

#[test]
fn a_flood_of_retirements_closes() {
    let mut cids = peer(0);
    let outcome =
        (1..1_000).find_map(|n| cids.on_new_connection_id(&new_cid(n, n)).err().map(|error| (n, error)));
    let (n, error) = outcome.expect("a limit");
    assert_eq!(error.code, Code::CONNECTION_ID_LIMIT_ERROR);
    assert_eq!(n, MAX_RETIREMENTS as u64 + 1);
    assert!(cids.held().1 <= MAX_RETIREMENTS);
}

/// RUSTSEC-2026-0339: the same by sequence numbers that are retired before they arrive.
#[test]
fn a_flood_of_numbers_retired_already_closes() {
    let mut cids = peer(0);
    cids.on_new_connection_id(&new_cid(1_000, 1_000)).unwrap();
    let outcome = (1..1_000).find_map(|n| cids.on_new_connection_id(&new_cid(n, 0)).err());
    assert_eq!(outcome.expect("a limit").code, Code::CONNECTION_ID_LIMIT_ERROR);
    // One number again and again is one retirement.
    let mut cids = peer(0);
    cids.on_new_connection_id(&new_cid(5, 5)).unwrap();
    (0..1_000).for_each(|_| cids.on_new_connection_id(&new_cid(3, 0)).unwrap());
    assert_eq!(cids.held(), (1, 2));
}

#[test]
fn an_honest_peer_may_replace_its_ids_for_ever() {
    let mut cids = peer(3);
    for n in 4..10_000 {
        cids.on_new_connection_id(&new_cid(n, n - 3)).unwrap();
        for frame in packet(1_000, &mut cids, PeerCids::write) {
            if n % 7 == 0 {
                cids.on_lost(&frame);
            } else {
                cids.on_acked(&frame);
            }
        }
        assert_eq!(cids.active(), cid(n - 3));
        assert_eq!(cids.held().0, MAX_ACTIVE);
    }
}

#[test]
fn sequence_numbers_with_gaps_close() {
    let mut cids = peer(0);
    let mut outcome = Ok(());
    for n in 1..40 {
        // Every second number, each used and retired by a migration.
        outcome = cids.on_new_connection_id(&new_cid(2 * n, 0));
        if outcome.is_err() {
            break;
        }
        assert!(cids.switch());
        let frames = packet(100, &mut cids, PeerCids::write);
        frames.iter().for_each(|frame| cids.on_acked(frame));
    }
    assert_eq!(code(outcome), Code::PROTOCOL_VIOLATION);
}

#[test]
fn a_retired_id_does_not_come_back() {
    let mut cids = peer(1);
    assert!(cids.switch());
    assert_eq!(cids.active(), cid(1));
    cids.on_new_connection_id(&new_cid(2, 0)).unwrap();
    assert!(cids.switch());
    let frames = packet(100, &mut cids, PeerCids::write);
    frames.iter().for_each(|frame| cids.on_acked(frame));
    cids.on_new_connection_id(&new_cid(1, 0)).unwrap();
    assert!(!cids.switch(), "the copy of a frame must not bring back what we retired");
    assert_eq!(cids.active(), cid(2));
}

#[test]
fn probes_use_an_id_of_their_own_and_a_migration_takes_it_over() {
    let mut cids = peer(2);
    let at = Beside::Elsewhere;
    assert_eq!(cids.for_probe(at), Some(cid(1)));
    assert_eq!(cids.for_probe(at), Some(cid(1)));
    assert_eq!(cids.active(), cid(0));
    assert!(cids.switch());
    assert_eq!(cids.active(), cid(1));
    assert_eq!(cids.for_probe(at), Some(cid(2)));
    let mut cids = peer(2);
    cids.for_probe(at);
    cids.on_new_connection_id(&new_cid(3, 2)).unwrap();
    assert_eq!((cids.active(), cids.for_probe(at)), (cid(2), Some(cid(3))));
}

/// RFC 9000 §9.5. Deleted, one ID could be seen on two paths that the peer did not make by itself.
#[test]
fn without_a_spare_id_another_path_has_none_unless_the_peer_alone_has_moved() {
    let (here, there) = (Beside::Known, Beside::Elsewhere);
    let mut only_one = peer(0);
    assert!(only_one.has_for_probe(here) && !only_one.has_for_probe(there));
    assert_eq!((only_one.for_probe(here), only_one.for_probe(there)), (Some(cid(0)), None));
    let mut cids = peer(1);
    assert!(cids.switch());
    // The active path was given this ID to be told apart by.
    assert_eq!((cids.for_probe(here), cids.for_probe(there)), (None, None));
    assert!(!cids.has_for_probe(here));
    // A peer that has gone elsewhere and waits there would be lost.
    assert_eq!(cids.for_probe(Beside::New), Some(cid(1)));
    // The active path is another one, with the same ID for want of another.
    assert!(!cids.switch());
    assert_eq!((cids.for_probe(here), cids.for_probe(there)), (Some(cid(1)), None));
    let mut without = PeerCids::new(ConnectionId::EMPTY);
    assert_eq!(without.for_probe(there), Some(ConnectionId::EMPTY));
}

#[test]
fn retires_everything_without_a_replacement() {
    let mut cids = peer(0);
    cids.on_new_connection_id(&new_cid(2, 0)).unwrap();
    assert!(cids.switch());
    cids.on_new_connection_id(&new_cid(1, 0)).unwrap();
    assert!(cids.switch());
    // Sequence 2 was used and retired; now it is all that the peer leaves us.
    assert_eq!(code(cids.on_new_connection_id(&new_cid(2, 2))), Code::PROTOCOL_VIOLATION);
}

/// CVE-2026-44434: an absent token must match nothing, all zero neither. RFC 9000 §10.3.1: nor unused or retired ones.
#[test]
fn only_tokens_of_ids_in_use_reset() {
    let mut cids = peer(2);
    assert!(!cids.is_reset_token(&[0; 16]));
    assert!(!cids.is_reset_token(&[1; 16]), "not used yet");
    cids.on_initial_reset_token([50; 16]);
    assert!(cids.is_reset_token(&[50; 16]));
    cids.for_probe(Beside::New);
    assert!(cids.is_reset_token(&[1; 16]) && cids.is_reset_token(&[50; 16]));
    assert!(cids.switch());
    assert!(!cids.is_reset_token(&[50; 16]), "retired");
    assert!(cids.is_reset_token(&[1; 16]));
    assert!(!cids.is_reset_token(&[2; 16]));
}

#[test]
fn the_handshake_settles_the_first_id() {
    let mut cids = PeerCids::new(cid(70));
    cids.on_retry(cid(71));
    assert_eq!(cids.active(), cid(71));
    cids.on_first_packet(cid(72));
    assert_eq!(cids.active(), cid(72));
    assert!(!cids.switch());
    assert!(!cids.wants());
}

proptest! {
    /// Whatever frames come, both sets stay bounded, an ID in use is never one that the peer asked to retire, and an
    /// error is the only other outcome.
    #[test]
    fn peer_ids_stay_bounded(actions in prop::collection::vec((0..7_u8, 0..40_u64, 0..40_u64), 1..300)) {
        let mut cids = PeerCids::new(cid(0));
        let mut sent: Vec<SentFrame> = Vec::new();
        let mut bound = 0;
        for (action, one, other) in actions {
            match action {
                0..3 => {
                    let frame = new_cid(one.max(other), one.min(other));
                    if cids.on_new_connection_id(&frame).is_err() {
                        return Ok(());
                    }
                    bound = bound.max(frame.retire_prior_to);
                }
                3 => { cids.switch(); },
                4 => { cids.for_probe(Beside::New); },
                5 => sent.extend(packet(one as usize, &mut cids, PeerCids::write)),
                _ => if let Some(frame) = sent.pop() {
                    if one % 2 == 0 { cids.on_acked(&frame) } else { cids.on_lost(&frame) }
                },
            }
            let (held, retirements) = cids.held();
            prop_assert!(held <= MAX_ACTIVE && retirements <= MAX_RETIREMENTS);
            let sequence = cids.active().as_slice()[..7].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            prop_assert!(sequence >= bound);
        }
    }
}
