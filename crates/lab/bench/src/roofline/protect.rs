//! Packet protection of the roofline: AES-128-GCM under the keys of a made-up Initial, whose cipher that is.
//!
//! A packet has the short header of a connection with an 8-byte connection ID and a 4-byte packet number.

use std::io;

use base::net::Train;
use base::sink::PacketSink;
use crypto::{DirectionalKeys, SAMPLE_LEN, TAG_LEN};
use datapath::trains::MAX_TRAIN_SEGMENTS;
use wire::{Side, Version};

/// Larger than any cache, as a file being served is.
const SOURCE: usize = 64 << 20;
/// The memory that an application reads into, again and again.
const DESTINATION: usize = 1 << 20;

const CID: [u8; 8] = *b"roofline";
const PACKET_NUMBER: usize = 1 + CID.len();
const HEADER: usize = PACKET_NUMBER + 4;
/// The sample begins where the packet number would end if it had four bytes. Source: RFC 9001 §5.4.2.
const SAMPLE: usize = PACKET_NUMBER + 4;

/// What a datagram holds besides application bytes.
pub(super) const OVERHEAD: usize = HEADER + TAG_LEN;

/// Samples and masks of one train.
struct Masks {
    samples: [[u8; SAMPLE_LEN]; MAX_TRAIN_SEGMENTS],
    masks: [[u8; 5]; MAX_TRAIN_SEGMENTS],
}

impl Masks {
    const EMPTY: Masks =
        Masks { samples: [[0; SAMPLE_LEN]; MAX_TRAIN_SEGMENTS], masks: [[0; 5]; MAX_TRAIN_SEGMENTS] };

    fn compute(&mut self, keys: &DirectionalKeys, count: usize) {
        keys.header.masks(&self.samples[..count], &mut self.masks[..count]);
    }
}

fn sample(packet: &[u8]) -> [u8; SAMPLE_LEN] {
    packet.get(SAMPLE..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
}

/// RFC 9001 §5.4.1: the short header's five low bits and the packet number are masked.
fn apply(mask: [u8; 5], packet: &mut [u8]) {
    packet[0] ^= mask[0] & 0x1f;
    for (byte, mask) in packet[PACKET_NUMBER..HEADER].iter_mut().zip(&mask[1..]) {
        *byte ^= mask;
    }
}

fn check(datagram_size: usize) -> io::Result<()> {
    let fits = OVERHEAD < datagram_size && datagram_size <= datapath::trains::MAX_TRAIN_BYTES;
    if fits {
        Ok(())
    } else {
        Err(io::Error::other(format!("datagrams of {datagram_size} bytes are not possible")))
    }
}

/// The sender's part.
pub(super) struct Sealer {
    keys: DirectionalKeys,
    source: Vec<u8>,
    at: usize,
    masks: Masks,
}

impl Sealer {
    pub(super) fn new(datagram_size: usize) -> io::Result<Sealer> {
        check(datagram_size)?;
        let keys = crypto::initial_keys(Version::V1, &CID, Side::Client).local;
        // Written, not only reserved: untouched memory is one page of zeros, and would stay in the cache.
        let source = (0..SOURCE).map(|at| at as u8).collect();
        Ok(Sealer { keys, source, at: 0, masks: Masks::EMPTY })
    }

    /// Fills `packet` with a header and the next bytes of the source, and encrypts it.
    #[inline]
    pub(super) fn seal(&mut self, number: u64, packet: &mut [u8]) {
        let len = packet.len() - OVERHEAD;
        if self.at + len > SOURCE {
            self.at = 0;
        }
        packet[0] = 0x43;
        packet[1..PACKET_NUMBER].copy_from_slice(&CID);
        packet[PACKET_NUMBER..HEADER].copy_from_slice(&(number as u32).to_be_bytes());
        packet[HEADER..HEADER + len].copy_from_slice(&self.source[self.at..self.at + len]);
        self.at += len;
        self.keys.packet.seal(number, packet, HEADER);
    }

    /// Protects the headers of the first `packets` packets of the open train.
    pub(super) fn protect_headers(&mut self, sink: &mut impl PacketSink, packets: usize) {
        for index in 0..packets {
            self.masks.samples[index] = sample(sink.packet(index));
        }
        self.masks.compute(&self.keys, packets);
        for index in 0..packets {
            apply(self.masks.masks[index], sink.packet(index));
        }
    }
}

/// The receiver's part.
pub(super) struct Opener {
    keys: DirectionalKeys,
    destination: Vec<u8>,
    at: usize,
    masks: Masks,
}

impl Opener {
    pub(super) fn new(datagram_size: usize) -> io::Result<Opener> {
        check(datagram_size)?;
        let keys = crypto::initial_keys(Version::V1, &CID, Side::Server).peer;
        Ok(Opener { keys, destination: vec![1; DESTINATION], at: 0, masks: Masks::EMPTY })
    }

    /// Removes the protection of `train`, whose packets are numbered from `first`, and copies the payload out. Returns
    /// how many packets there were.
    pub(super) fn open(&mut self, first: u64, train: Train<'_>) -> io::Result<u64> {
        let mut count = 0;
        for (packet, place) in train.bytes.chunks(train.segment_size).zip(&mut self.masks.samples) {
            *place = sample(packet);
            count += 1;
        }
        self.masks.compute(&self.keys, count);
        let packets = train.bytes.chunks_mut(train.segment_size).zip(&self.masks.masks);
        for (number, (packet, &mask)) in (first..).zip(packets) {
            apply(mask, packet);
            if packet[PACKET_NUMBER..HEADER] != (number as u32).to_be_bytes() {
                return Err(io::Error::other(format!("packet {number} is missing")));
            }
            let len = self
                .keys
                .packet
                .open(number, packet, HEADER)
                .map_err(|_| io::Error::other(format!("packet {number} is damaged")))?;
            if self.at + len > DESTINATION {
                self.at = 0;
            }
            self.destination[self.at..self.at + len].copy_from_slice(&packet[HEADER..HEADER + len]);
            self.at += len;
        }
        Ok(count as u64)
    }
}
