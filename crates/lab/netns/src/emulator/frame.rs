//! Frames as packet sockets give them with PACKET_VNET_HDR: ten bytes of `virtio_net_hdr`, then Ethernet.
//!
//! The ten bytes say what the network card would have to do: complete a checksum, cut a super-packet into segments. A
//! UDP super-packet is several datagrams of one flow with one header; `Layout` tells how many, and `Layout::head_of` makes the header for a
//! run of them, so that runs between lost datagrams travel on as smaller super-packets without a copy of their payload.
//!
//! Numbers in the virtio header are in the machine's byte order (legacy virtio). VLAN tags inside the frame are skipped; tags that the
//! kernel keeps beside the frame (accelerated VLAN) are not seen here and get lost.
//! TCP super-packets are one datagram to us: cutting them would mean sequence numbers, flags and options.

use super::checksum::{add, fold};

/// Bytes of the virtio header.
pub(crate) const VNET: usize = 10;
/// HostNamespace for the longest header we rewrite: virtio, Ethernet, two VLAN tags, IPv4 with options, UDP.
pub(crate) const HEAD: usize = 112;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;
const ETHERNET: usize = 14;
const UDP: usize = 8;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    Udp,
    Tcp,
    Other,
}

/// Where things are in a frame; positions count from the virtio header's first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) carries: Carries,
    /// Set when only the pseudo-header is in the checksum field yet; its receiver completes it.
    pub(crate) has_partial_checksum: bool,
    pub(crate) is_ipv6: bool,
    pub(crate) ip: usize,
    /// The UDP or TCP header.
    pub(crate) transport: usize,
    /// Where the payload of UDP begins.
    pub(crate) payload: usize,
    /// The frame's end.
    pub(crate) end: usize,
    /// Payload bytes of each datagram but the last in a UDP super-packet.
    pub(crate) segment: Option<usize>,
    /// Bytes of the largest IP packet in a TCP super-packet.
    pub(crate) tcp_packet: Option<usize>,
}

impl Layout {
    /// Looks at `frame`, which begins with the virtio header. What is not understood carries `Other`.
    pub(crate) fn of(frame: &[u8]) -> Layout {
        let mut layout = Layout {
            carries: Carries::Other,
            has_partial_checksum: frame.first().is_some_and(|flags| flags & NEEDS_CHECKSUM != 0),
            is_ipv6: false,
            ip: VNET + ETHERNET,
            transport: 0,
            payload: 0,
            end: frame.len(),
            segment: None,
            tcp_packet: None,
        };
        if let Some((carries, transport)) = layout.find_transport(frame)
            && frame.len() >= transport + UDP
        {
            layout.carries = carries;
            layout.transport = transport;
            layout.payload = transport + UDP;
            let segment = usize::from(u16::from_ne_bytes([frame[4], frame[5]]));
            let is_train = frame[1] == GSO_UDP_L4 && carries == Carries::Udp && layout.has_partial_checksum;
            layout.segment =
                (is_train && segment > 0 && frame.len() - layout.payload > segment).then_some(segment);
            let is_tcp_train =
                matches!(frame[1] & !GSO_ECN, GSO_TCPV4 | GSO_TCPV6) && carries == Carries::Tcp;
            if let Some(offset) = frame.get(transport + 12).filter(|_| is_tcp_train && segment > 0) {
                layout.tcp_packet = Some(transport - layout.ip + usize::from(offset >> 4) * 4 + segment);
            }
        }
        layout
    }

    /// Finds the IP header and what follows it; notes where and which.
    fn find_transport(&mut self, frame: &[u8]) -> Option<(Carries, usize)> {
        let mut kind = word(frame, self.ip - 2)?;
        for _ in 0..2 {
            if kind == 0x8100 || kind == 0x88a8 {
                self.ip += 4;
                kind = word(frame, self.ip - 2)?;
            }
        }
        let protocol;
        let header;
        match kind {
            0x0800 => {
                protocol = *frame.get(self.ip + 9)?;
                header = usize::from(frame[self.ip] & 0x0f) * 4;
                let is_fragment = word(frame, self.ip + 6)? & 0x3fff != 0;
                if is_fragment || header < 20 {
                    return None;
                }
            }
            0x86dd => {
                self.is_ipv6 = true;
                protocol = *frame.get(self.ip + 6)?;
                header = 40;
            }
            _ => return None,
        }
        match protocol {
            17 => Some((Carries::Udp, self.ip + header)),
            6 => Some((Carries::Tcp, self.ip + header)),
            _ => None,
        }
    }

    /// How many datagrams the frame holds.
    pub(crate) fn datagrams(&self) -> usize {
        self.segment.map_or(1, |segment| (self.end - self.payload).div_ceil(segment))
    }

    /// Where the n-th datagram's payload is; the whole frame if it is no super-packet.
    pub(crate) fn datagram(&self, n: usize) -> (usize, usize) {
        match self.segment {
            None => (0, self.end),
            Some(segment) => {
                let start = self.payload + n * segment;
                (start, (start + segment).min(self.end))
            }
        }
    }

    /// Tells the kernel how much of a super-packet to keep in one piece, which is its header: without that it looks for one
    /// piece of memory for all 64 KB.
    pub(crate) fn mend_hint(&self, frame: &mut [u8]) {
        if self.segment.is_some() {
            frame[2..4].copy_from_slice(&((self.payload - VNET) as u16).to_ne_bytes());
        }
    }

    /// The headers for the payload `start..end` of the super-packet `frame`, whose first datagram was the `index`-th there.
    pub(crate) fn head_of(&self, frame: &[u8], index: usize, payload_bytes: usize) -> Head {
        let mut bytes = [0; HEAD];
        let length = self.payload.min(HEAD);
        let head = &mut bytes[..length];
        head.copy_from_slice(&frame[..length]);
        if self.segment.is_none_or(|segment| payload_bytes <= segment) {
            head[1] = 0;
            head[4..6].fill(0);
        }
        head[2..4].copy_from_slice(&((self.payload - VNET) as u16).to_ne_bytes());
        let udp_bytes = (UDP + payload_bytes) as u16;
        head[self.transport + 4..self.transport + 6].copy_from_slice(&udp_bytes.to_be_bytes());
        let addresses = if self.is_ipv6 {
            head[self.ip + 4..self.ip + 6].copy_from_slice(&udp_bytes.to_be_bytes());
            self.ip + 8..self.ip + 40
        } else {
            self.mend_ipv4(head, index as u16, udp_bytes);
            self.ip + 12..self.ip + 20
        };
        // A partial checksum is the pseudo-header's sum, not complemented (RFC 768; the kernel's CHECKSUM_PARTIAL).
        let partial = fold(add(17 + u32::from(udp_bytes), &head[addresses]));
        head[self.transport + 6..self.transport + 8].copy_from_slice(&partial.to_be_bytes());
        Head { bytes, length }
    }

    fn mend_ipv4(&self, head: &mut [u8], index: u16, udp_bytes: u16) {
        let ip = &mut head[self.ip..self.transport];
        let total = (ip.len() as u16).wrapping_add(udp_bytes);
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index);
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        ip[10..12].fill(0);
        let checksum = !fold(add(0, ip));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Headers of a run of datagrams, to be sent in front of their payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    bytes: [u8; HEAD],
    length: usize,
}

impl Head {
    pub(crate) const NONE: Head = Head { bytes: [0; HEAD], length: 0 };

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

#[cfg(test)]
mod tests;
