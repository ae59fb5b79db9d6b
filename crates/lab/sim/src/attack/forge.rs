//! Initial packets that open, with whatever inside. Source: RFC 9001 §5.2.

use base::rng::Rng;
use crypto::{DirectionalKeys, SAMPLE_LEN, TAG_LEN, initial_keys};
use wire::cid::ConnectionId;
use wire::packet::{LongHeader, LongType, Packet, patch_length};
use wire::packet_number;
use wire::varint;
use wire::writer::Writer;
use wire::{Side, Version};

/// Datagrams that are forged are so long: the least that a server looks at, and a little more.
const DATAGRAM: usize = 1_200;

/// The connection IDs of our own packets.
const CID_LEN: usize = 8;

/// A client's Initial packet, opened.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    version: Version,
    dcid: ConnectionId,
    scid: ConnectionId,
    token: Vec<u8>,
    pn: u64,
    frames: Vec<u8>,
}

/// Opens the first packet of a datagram if it is a client's Initial that was not changed.
pub(super) fn open_initial(datagram: &mut [u8]) -> Option<Opened> {
    let packet = Packet::parse(datagram, CID_LEN).ok()?;
    let Packet::Long { ty: LongType::Initial, version, dcid, scid, token, pn_offset, end, .. } = packet
    else {
        return None;
    };
    let token = datagram.get(token)?.to_vec();
    let packet = datagram.get_mut(..end)?;
    let keys = initial_keys(version, dcid.as_slice(), Side::Server).peer;
    let mask = mask_of(packet, pn_offset, &keys)?;
    let first = packet.first_mut()?;
    *first ^= mask[0] & 0x0f;
    let pn_len = usize::from(*first & 3) + 1;
    mask_number(packet, pn_offset, pn_len, &mask);
    let pn = u64::from(packet_number::read(packet.get(pn_offset..)?, pn_len)?);
    let len = keys.packet.open(pn, packet, pn_offset + pn_len).ok()?;
    let frames = packet.get(pn_offset + pn_len..)?.get(..len)?.to_vec();
    Some(Opened { version, dcid, scid, token, pn, frames })
}

/// Applies or removes the header protection of packet number bytes; which of both makes no difference. Source: RFC 9001 §5.4.1.
fn mask_number(packet: &mut [u8], pn_offset: usize, pn_len: usize, mask: &[u8; 5]) {
    if let Some(number) = packet.get_mut(pn_offset..pn_offset + pn_len) {
        for (byte, mask) in number.iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
    }
}

fn mask_of(packet: &[u8], pn_offset: usize, keys: &DirectionalKeys) -> Option<[u8; 5]> {
    let sample = packet.get(pn_offset + 4..)?.first_chunk::<SAMPLE_LEN>()?;
    Some(keys.header.mask(sample))
}

/// Writes such a packet anew, for a connection of its own or the same one again, with other frames.
pub(super) fn reseal(rng: &mut Rng, mut opened: Opened) -> Vec<u8> {
    const PN_LEN: usize = 4;
    disturb(rng, &mut opened.frames);
    if rng.below(4) > 0 {
        opened.dcid = fresh_cid(rng);
        opened.scid = fresh_cid(rng);
    }
    if rng.below(4) > 0 {
        opened.token.clear();
    }
    if rng.below(8) == 0 {
        opened.version = if opened.version == Version::V1 { Version::V2 } else { Version::V1 };
    }
    let Opened { version, dcid, scid, token, pn, frames } = opened;
    let pn = if rng.below(4) == 0 { rng.below(1 << 31) } else { pn };
    let mut datagram = vec![0; DATAGRAM + rng.below(200) as usize];
    let len = datagram.len();
    let mut writer = Writer::new(&mut datagram);
    let mark = LongHeader { ty: LongType::Initial, version, dcid, scid, token: &token }.write(
        &mut writer,
        pn,
        PN_LEN,
    );
    let header_len = writer.position();
    let room = len.saturating_sub(header_len + TAG_LEN);
    writer.bytes(frames.get(..room.min(frames.len())).unwrap_or(&[]));
    patch_length(&mut datagram, mark, len);
    let keys = initial_keys(version, dcid.as_slice(), Side::Client).local;
    keys.packet.seal(pn, &mut datagram, header_len);
    if let Some(mask) = mask_of(&datagram, mark.pn_offset, &keys)
        && let Some(first) = datagram.first_mut()
    {
        *first ^= mask[0] & 0x0f;
        mask_number(&mut datagram, mark.pn_offset, PN_LEN, &mask);
    }
    datagram
}

/// Of any length, mostly one that is taken.
fn fresh_cid(rng: &mut Rng) -> ConnectionId {
    let bytes: [u8; 20] = rng.bytes();
    let len = if rng.below(4) == 0 { rng.below(21) as usize } else { CID_LEN };
    bytes.get(..len).and_then(ConnectionId::new).unwrap_or(ConnectionId::EMPTY)
}

/// Changes frames: bytes in them, or other frames before or instead of them.
fn disturb(rng: &mut Rng, frames: &mut Vec<u8>) {
    match rng.below(6) {
        // As they were: a handshake that does not go on.
        0 => {}
        1 | 2 => {
            for _ in 0..=rng.below(3) {
                let place = rng.below(frames.len().min(400) as u64) as usize;
                if let Some(byte) = frames.get_mut(place) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        }
        3 | 4 => {
            let mut others = Vec::new();
            for _ in 0..=rng.below(8) {
                random_frame(rng, &mut others);
            }
            if rng.below(2) == 0 {
                others.append(frames);
            }
            *frames = others;
        }
        _ => {
            // CRYPTO in the smallest pieces, far ahead.
            frames.clear();
            for _ in 0..200 {
                varint::append(frames, 6);
                varint::append(frames, rng.below(1 << 17));
                frames.extend([1, rng.below(256) as u8]);
            }
        }
    }
}

/// A frame type and numbers that may or may not be its fields.
fn random_frame(rng: &mut Rng, out: &mut Vec<u8>) {
    let ty = if rng.below(16) == 0 { rng.below(1 << 20) } else { rng.below(0x32) };
    varint::append(out, ty);
    for _ in 0..rng.below(6) {
        let bits = rng.below(62);
        varint::append(out, rng.below(1 << bits));
    }
    let len = rng.below(40) as usize;
    out.extend((0..len).map(|_| rng.below(256) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, forging could come to nothing without anyone noticing: every forgery would fail to open.
    #[test]
    fn what_is_resealed_opens_again() {
        let mut rng = Rng::from_u64(5);
        let cid = fresh_cid(&mut rng);
        let mut opened = 0;
        for version in [Version::V1, Version::V2].repeat(50) {
            let first =
                Opened { version, dcid: cid, scid: cid, token: vec![7; 20], pn: 9, frames: vec![1; 300] };
            let mut datagram = reseal(&mut rng, first);
            opened += usize::from(open_initial(&mut datagram).is_some());
        }
        assert_eq!(opened, 100);
    }
}
