//! The endpoint against unknown peers, and against clients that behave. Here: what the tests share.

use super::reply::MIN_RESET;
use super::*;
use crate::cid::CidChange;
use base::net::Ecn;
use base::rng::Rng;
use base::slab::Slab;
use base::time::Duration;
use crypto::token::NEW_TOKEN_LEN;
use crypto::{RetryIntegrity, initial_keys};
use proptest::prelude::*;
use std::collections::HashSet;
use wire::Side;
use wire::frame::{ConnectionClose, Frame};
use wire::packet::{LongHeader, ShortHeader, patch_length, versions};
use wire::reader::Reader;
use wire::version::Version;
use wire::writer::Writer;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(60_000 + ms)
}

fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

fn from(peer: &str) -> Addresses {
    Addresses { local: "192.0.2.1:443".parse().unwrap(), peer: peer.parse().unwrap() }
}

const CLIENT: &str = "198.51.100.1:1000";
const CLIENT_CID: [u8; 5] = *b"scid.";

mod anything;
mod predecessors;
mod replies;
mod routing;
mod shares;
mod tokens;

/// An endpoint, and the connections that an embedder would keep.
struct Server {
    endpoint: Endpoint,
    connections: Slab<LocalCids>,
}

impl Server {
    fn new(config: EndpointConfig) -> Server {
        Server { endpoint: Endpoint::new(config, [3; 32]), connections: Slab::new() }
    }

    fn default() -> Server {
        Server::new(EndpointConfig::default())
    }

    fn route(&mut self, ms: u64, peer: &str, datagram: &[u8]) -> Route {
        let mut bytes = datagram.to_vec();
        let segment_size = bytes.len().max(1);
        let train = Train { bytes: &mut bytes, segment_size, addresses: from(peer), ecn: Ecn::NotEct };
        let route = self.endpoint.route(at(ms), &train);
        if route == Route::Reply {
            assert!(self.endpoint.reply().len() < datagram.len(), "an answer is smaller than its cause");
            assert!(!self.endpoint.reply().is_empty());
        }
        route
    }

    fn accept(&mut self, incoming: Incoming) -> Handle {
        let handle = self.connections.next_handle();
        self.endpoint.admit(at(0), handle, &incoming);
        let mut cids = self.endpoint.local_cids();
        cids.take_changes(|change| self.endpoint.register(handle, change));
        self.connections.insert(cids)
    }

    fn close(&mut self, handle: Handle) {
        self.endpoint.forget(handle);
        self.connections.remove(handle);
    }

    /// What a client is told to do by a Retry: where to send, and with which token.
    fn retry(&mut self, ms: u64, peer: &str, dcid: &[u8]) -> (ConnectionId, Vec<u8>) {
        assert_eq!(self.route(ms, peer, &initial(dcid, &[])), Route::Reply);
        let reply = self.endpoint.reply().to_vec();
        let Ok(Packet::Retry { dcid: to, scid, token, version, .. }) = Packet::parse(&reply, 8) else {
            panic!("not a Retry")
        };
        assert_eq!(to, cid(&CLIENT_CID));
        assert!(RetryIntegrity::verify(version, dcid, &reply));
        (scid, reply[token].to_vec())
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.endpoint.counters().dropped(reason)
    }
}

fn long(ty: LongType, version: Version, dcid: &[u8], token: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; 1_200];
    let header = LongHeader { ty, version, dcid: cid(dcid), scid: cid(&CLIENT_CID), token };
    let mut writer = Writer::new(&mut datagram);
    let mark = header.write(&mut writer, 0, 1);
    patch_length(&mut datagram, mark, 1_200);
    datagram
}

fn initial(dcid: &[u8], token: &[u8]) -> Vec<u8> {
    long(LongType::Initial, Version::V1, dcid, token)
}

fn short(dcid: &[u8], len: usize) -> Vec<u8> {
    let mut datagram = vec![0x55; len.max(1 + dcid.len())];
    datagram[0] = 0x40;
    datagram[1..1 + dcid.len()].copy_from_slice(dcid);
    datagram.truncate(len);
    datagram
}

fn incoming(route: Route) -> Incoming {
    match route {
        Route::Incoming(incoming) => incoming,
        other => panic!("{other:?}"),
    }
}

const DCID: &[u8] = b"dcid-chosen";

/// Opens an Initial packet as the client would that sent its own to `dcid`.
fn open_initial(packet: &mut [u8], dcid: &[u8]) -> Vec<u8> {
    let Ok(Packet::Long { ty: LongType::Initial, version, pn_offset, end, .. }) = Packet::parse(packet, 8)
    else {
        panic!("not an Initial")
    };
    assert_eq!(end, packet.len());
    let keys = initial_keys(version, dcid, Side::Client).peer;
    let mask = keys.header.mask(wire::packet::sample(packet, pn_offset).unwrap());
    packet[0] ^= mask[0] & 0x0f;
    let pn_len = wire::packet::packet_number_size(packet[0]);
    (0..pn_len).for_each(|index| packet[pn_offset + index] ^= mask[1 + index]);
    let header_len = pn_offset + pn_len;
    let len = keys.packet.open(0, packet, header_len).expect("sealed with the Initial keys");
    packet[header_len..header_len + len].to_vec()
}
