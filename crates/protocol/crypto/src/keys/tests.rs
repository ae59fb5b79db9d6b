//! Whole packets of RFC 9001 §A.2, §A.3, §A.5 and RFC 9369 §A.2, §A.3, §A.5, made and read again.

use super::*;
use crate::packet::TAG_LEN;
use crate::suite::Suite;
use crate::vectors::{DCID, Vectors, both};

/// Seals and masks as a sender does.
fn protect(keys: &DirectionalKeys, pn: u64, header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut packet = [header, payload, &[0; TAG_LEN]].concat();
    keys.packet.seal(pn, &mut packet, header.len());
    apply_mask(keys, &mut packet, header.len() - pn_size(header[0]), pn_size(header[0]));
    packet
}

fn pn_size(first: u8) -> usize {
    usize::from(first & 3) + 1
}

fn apply_mask(keys: &DirectionalKeys, packet: &mut [u8], pn_offset: usize, pn_size: usize) {
    let sample = packet[pn_offset + 4..][..16].try_into().unwrap();
    let mask = keys.header.mask(&sample);
    packet[0] ^= mask[0] & if packet[0] & 0x80 == 0 { 0x1f } else { 0x0f };
    for at in 0..pn_size {
        packet[pn_offset + at] ^= mask[1 + at];
    }
}

/// One Initial packet of the appendix: sealing gives the printed bytes, the other side opens them.
fn check_initial(vectors: &Vectors, side: Side, pn: u64) {
    let name = if side.is_client() { "client" } else { "server" };
    let of = |what: &str| vectors.of(&format!("{name}_{what}"));
    let mut payload = of("payload").to_vec();
    if side.is_client() {
        payload.resize(1162, 0);
    }
    let header = of("header");
    let sender = initial_keys(vectors.version, &DCID, side);
    assert_eq!(protect(&sender.local, pn, header, &payload), of("packet"));

    let sample: [u8; 16] = vectors.array(&format!("{name}_sample"));
    assert_eq!(&sender.local.header.mask(&sample)[..], of("mask"));

    let receiver = initial_keys(vectors.version, &DCID, side.other());
    let mut packet = of("packet").to_vec();
    let pn_offset = header.len() - pn_size(header[0]);
    apply_mask(&receiver.peer, &mut packet, pn_offset, pn_size(header[0]));
    assert_eq!(&packet[..header.len()], header);
    let len = receiver.peer.packet.open(pn, &mut packet, header.len()).unwrap();
    assert_eq!(&packet[header.len()..][..len], payload);
}

#[test]
fn initial_packets_of_the_appendices() {
    for vectors in both() {
        check_initial(&vectors, Side::Client, 2);
        check_initial(&vectors, Side::Server, 1);
    }
}

#[test]
fn chacha20_short_header_packet_of_the_appendices() {
    for vectors in both() {
        for library in Library::ALL {
            let key = vectors.of("chacha_key");
            let suite = Suite::ChaCha20Poly1305;
            let keys = DirectionalKeys {
                header: HeaderKey::with_library(library, suite, vectors.of("chacha_hp")),
                packet: PacketKey::with_library(library, suite, key, &vectors.array("chacha_iv")),
            };
            let header = vectors.of("chacha_header");
            let packet = protect(&keys, 654_360_564, header, vectors.of("chacha_payload"));
            assert_eq!(packet, vectors.of("chacha_packet"));
            let mask = keys.header.mask(&vectors.array("chacha_sample"));
            assert_eq!(mask, vectors.array("chacha_mask"));
        }
    }
}

/// What one side derives for sending, the other must derive for receiving, through key updates and in both versions.
#[test]
fn key_updates_keep_both_sides_in_step() {
    for version in [Version::V1, Version::V2] {
        let (client, server) = Secret::initial(version, &DCID);
        let mut ours = OneRttSecrets::new(version, client.clone(), server.clone());
        let mut theirs = OneRttSecrets::new(version, server, client);
        let mut earlier: Vec<Vec<u8>> = Vec::new();
        for _ in 0..3 {
            let next = theirs.next_peer();
            ours.advance();
            theirs.advance();
            let ((local, _), (_, peer)) = (ours.packet_keys(), theirs.packet_keys());
            let mut packet = vec![5; 100];
            local.seal(9, &mut packet, 20);
            assert!(!earlier.contains(&packet), "each phase has keys of its own");
            earlier.push(packet.clone());
            assert_eq!(next.open(9, &mut packet.clone(), 20), Ok(64), "what was derived ahead");
            assert_eq!(peer.open(9, &mut packet, 20), Ok(64));
        }
    }
}

/// What an idle connection keeps makes the same keys again, whatever the phase and the path.
#[test]
fn keys_are_made_again_from_their_secrets() {
    let (client, server) = Secret::initial(Version::V1, &DCID);
    let mut secrets = OneRttSecrets::new(Version::V1, client, server);
    for path in [0, 7] {
        secrets.set_path(path);
        let [keys, again] = [secrets.keys(), secrets.keys()];
        assert_eq!(keys.local.header.mask(&[3; 16]), again.local.header.mask(&[3; 16]));
        let mut packet = [5; 100];
        keys.peer.packet.seal(9, &mut packet, 20);
        assert_eq!(again.peer.packet.open(9, &mut packet, 20), Ok(64));
        secrets.advance();
        keys.peer.packet.seal(9, &mut packet, 20);
        assert!(secrets.keys().peer.packet.open(9, &mut packet, 20).is_err(), "another phase");
    }
}
