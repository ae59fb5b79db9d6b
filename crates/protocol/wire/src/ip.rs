//! UDP in IPv4 or IPv6, as an AF_XDP socket sees it: the headers of what came in, read, and those of what goes out,
//! prepared once for all packets of a path. RFC 791, RFC 8200, RFC 768, RFC 3168.
//!
//! Read: whole datagrams directly above IP. Fragments, extension headers and other protocols are malformed here; the
//! program in front of the socket leaves them to the kernel. Options of IPv4 are skipped. Checksums are not verified:
//! packets of a neighbour on the same machine carry half-made ones (the device is to complete them, and there is no
//! device), which cannot be told from wrong ones, and QUIC authenticates all that it acts on.
//!
//! Written: no options, DF set and therefore no identification (RFC 6864 §4.1), hop limit 64.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::Range;

use base::net::{Addresses, Ecn};

use crate::checksum::Sum;
use crate::error::Malformed;
use crate::ethernet::{self, Ethernet};
use crate::reader::Reader;
use crate::writer::Writer;

const UDP: u8 = 17;
const HOP_LIMIT: u8 = 64;
const UDP_SIZE: usize = 8;

/// The largest headers in bytes that [`Headers`] writes: Ethernet with two tags, IPv6, UDP.
pub const MAX_HEADERS: usize = ethernet::MAX_SIZE + V6_SIZE;

/// IPv4 without options and UDP.
const V4_SIZE: usize = 28;
/// IPv6 and UDP.
const V6_SIZE: usize = 48;

/// A UDP datagram in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The header around it.
    pub ethernet: Ethernet,
    /// Who sent it.
    pub source: SocketAddr,
    /// Whom it is for.
    pub destination: SocketAddr,
    /// Its marking.
    pub ecn: Ecn,
    /// Where in the frame its payload lies; may be empty.
    pub payload: Range<usize>,
}

impl Datagram {
    /// Reads a frame.
    #[inline]
    pub fn read(frame: &[u8]) -> Result<Datagram, Malformed> {
        let reader = &mut Reader::new(frame);
        let ethernet = Ethernet::read(reader)?;
        let ip = match ethernet.kind {
            ethernet::IPV4 => Ip::read_v4(reader)?,
            ethernet::IPV6 => Ip::read_v6(reader)?,
            _ => return Err(Malformed("neither IPv4 nor IPv6")),
        };
        let (source, destination) = (reader.u16()?, reader.u16()?);
        let (length, _checksum) = (usize::from(reader.u16()?), reader.u16()?);
        let size = length.checked_sub(UDP_SIZE).ok_or(Malformed("a UDP length below 8"))?;
        if length > ip.length {
            return Err(Malformed("UDP longer than its packet"));
        }
        let start = reader.position();
        reader.bytes(size)?;
        Ok(Datagram {
            ethernet,
            source: SocketAddr::new(ip.source, source),
            destination: SocketAddr::new(ip.destination, destination),
            ecn: ip.ecn,
            payload: start..reader.position(),
        })
    }
}

/// What an IP header says; `length` is that of what follows.
struct Ip {
    source: IpAddr,
    destination: IpAddr,
    ecn: Ecn,
    length: usize,
}

impl Ip {
    #[inline]
    fn read_v4(reader: &mut Reader<'_>) -> Result<Ip, Malformed> {
        let [version_and_words, tos] = reader.array()?;
        let (total, _identification, fragment) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let [_, protocol, _, _] = reader.array()?;
        let (source, destination): ([u8; 4], [u8; 4]) = (reader.array()?, reader.array()?);
        let header = usize::from(version_and_words & 15).saturating_mul(4);
        let options = header.checked_sub(20).ok_or(Malformed("an IPv4 header below 20 bytes"))?;
        if version_and_words >> 4 != 4 || protocol != UDP || fragment & 0x3fff != 0 {
            return Err(Malformed("no whole UDP datagram"));
        }
        reader.bytes(options)?;
        Ok(Ip {
            source: Ipv4Addr::from(source).into(),
            destination: Ipv4Addr::from(destination).into(),
            ecn: Ecn::from_bits(tos),
            length: usize::from(total).saturating_sub(header),
        })
    }

    #[inline]
    fn read_v6(reader: &mut Reader<'_>) -> Result<Ip, Malformed> {
        let first = reader.u32()?;
        let length = usize::from(reader.u16()?);
        let [protocol, _hop_limit] = reader.array()?;
        let (source, destination): ([u8; 16], [u8; 16]) = (reader.array()?, reader.array()?);
        if first >> 28 != 6 || protocol != UDP {
            return Err(Malformed("no UDP datagram"));
        }
        Ok(Ip {
            source: Ipv6Addr::from(source).into(),
            destination: Ipv6Addr::from(destination).into(),
            ecn: Ecn::from_bits((first >> 20) as u8),
            length,
        })
    }
}

/// IP and UDP header with lengths and checksums left out.
#[derive(Clone, Copy, Debug)]
enum Blank {
    V4([u8; V4_SIZE]),
    V6([u8; V6_SIZE]),
}

/// The headers of all packets of a path: only lengths and checksums differ from packet to packet.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    ethernet: [u8; ethernet::MAX_SIZE],
    ethernet_size: usize,
    blank: Blank,
    /// Over the IPv4 header without its length.
    ip_sum: Sum,
    /// Over the pseudo header without the length.
    pseudo_sum: Sum,
}

impl Headers {
    /// Headers from `addresses.local` to `addresses.peer` behind `ethernet`, whose type is set here. `None` when the two
    /// addresses are of different families. IPv6 packets carry `flow_label` (20 bits).
    pub fn new(ethernet: Ethernet, addresses: &Addresses, ecn: Ecn, flow_label: u32) -> Option<Headers> {
        let ports = [addresses.local.port().to_be_bytes(), addresses.peer.port().to_be_bytes()];
        let pseudo_sum = Sum::ZERO.word(u16::from(UDP));
        let (kind, blank, ip_sum, pseudo_sum) = match (addresses.local.ip(), addresses.peer.ip()) {
            (IpAddr::V4(local), IpAddr::V4(peer)) => {
                let mut bytes = [0; V4_SIZE];
                bytes[..2].copy_from_slice(&[0x45, ecn as u8]);
                bytes[6..10].copy_from_slice(&[0x40, 0, HOP_LIMIT, UDP]);
                bytes[12..16].copy_from_slice(&local.octets());
                bytes[16..20].copy_from_slice(&peer.octets());
                bytes[20..24].copy_from_slice(ports.as_flattened());
                let (ip_sum, pseudo_sum) = (Sum::ZERO.bytes(&bytes[..20]), pseudo_sum.bytes(&bytes[12..20]));
                (ethernet::IPV4, Blank::V4(bytes), ip_sum, pseudo_sum)
            }
            (IpAddr::V6(local), IpAddr::V6(peer)) => {
                let mut bytes = [0; V6_SIZE];
                let first = 0x6000_0000 | (ecn as u32) << 20 | flow_label & 0x000f_ffff;
                bytes[..4].copy_from_slice(&first.to_be_bytes());
                bytes[6..8].copy_from_slice(&[UDP, HOP_LIMIT]);
                bytes[8..24].copy_from_slice(&local.octets());
                bytes[24..40].copy_from_slice(&peer.octets());
                bytes[40..44].copy_from_slice(ports.as_flattened());
                (ethernet::IPV6, Blank::V6(bytes), Sum::ZERO, pseudo_sum.bytes(&bytes[8..40]))
            }
            _ => return None,
        };
        let mut buffer = [0; ethernet::MAX_SIZE];
        Ethernet { kind, ..ethernet }.write(&mut Writer::new(&mut buffer));
        Some(Headers { ethernet: buffer, ethernet_size: ethernet.size(), blank, ip_sum, pseudo_sum })
    }

    /// Bytes of all headers.
    #[inline]
    pub fn size(&self) -> usize {
        let rest = match self.blank {
            Blank::V4(_) => V4_SIZE,
            Blank::V6(_) => V6_SIZE,
        };
        self.ethernet_size.saturating_add(rest)
    }

    /// Bytes of the Ethernet header alone.
    #[inline]
    pub fn ethernet_size(&self) -> usize {
        self.ethernet_size
    }

    /// Where the UDP header begins: what a device that completes the checksum begins to sum at. It writes to
    /// [`CHECKSUM_OFFSET`] behind that.
    #[inline]
    pub fn udp_start(&self) -> usize {
        self.size().saturating_sub(UDP_SIZE)
    }

    /// Writes the headers of a packet of `len` bytes of payload, the checksum left to a device: in its place is the sum
    /// of the pseudo header. `out` is [`Headers::size`] bytes; `len` is at most 65,507.
    #[inline]
    pub fn write_partial(&self, out: &mut [u8], len: usize) {
        let length = len.saturating_add(UDP_SIZE) as u16;
        self.write(out, length, self.pseudo_sum.word(length).folded());
    }

    /// Writes the headers of a packet with this payload, the checksum complete. Otherwise as
    /// [`Headers::write_partial`].
    #[inline]
    pub fn write_complete(&self, out: &mut [u8], payload: &[u8]) {
        let length = payload.len().saturating_add(UDP_SIZE) as u16;
        let ports = match &self.blank {
            Blank::V4(bytes) => &bytes[20..24],
            Blank::V6(bytes) => &bytes[40..44],
        };
        // The length is summed twice: in the pseudo header and in the UDP header.
        let sum = self.pseudo_sum.bytes(ports).word(length).word(length).bytes(payload);
        let checksum = match sum.checksum() {
            // RFC 768: zero means that there is none.
            0 => 0xffff,
            other => other,
        };
        self.write(out, length, checksum);
    }

    #[inline]
    fn write(&self, out: &mut [u8], udp_length: u16, checksum: u16) {
        debug_assert_eq!(out.len(), self.size());
        let Some((ethernet, rest)) = out.split_at_mut_checked(self.ethernet_size) else { return };
        ethernet.copy_from_slice(self.ethernet.get(..self.ethernet_size).unwrap_or(&[]));
        match self.blank {
            Blank::V4(mut bytes) => {
                let total = udp_length.saturating_add(20);
                bytes[2..4].copy_from_slice(&total.to_be_bytes());
                bytes[10..12].copy_from_slice(&self.ip_sum.word(total).checksum().to_be_bytes());
                bytes[24..26].copy_from_slice(&udp_length.to_be_bytes());
                bytes[26..28].copy_from_slice(&checksum.to_be_bytes());
                if let Some(out) = rest.first_chunk_mut() {
                    *out = bytes;
                }
            }
            Blank::V6(mut bytes) => {
                bytes[4..6].copy_from_slice(&udp_length.to_be_bytes());
                bytes[44..46].copy_from_slice(&udp_length.to_be_bytes());
                bytes[46..48].copy_from_slice(&checksum.to_be_bytes());
                if let Some(out) = rest.first_chunk_mut() {
                    *out = bytes;
                }
            }
        }
    }
}

/// Where in the UDP header the checksum lies.
pub const CHECKSUM_OFFSET: usize = 6;

#[cfg(test)]
mod tests;
