//! Control messages: what travels beside a datagram between us and the kernel.
//!
//! Outgoing: segment size, ECN, source address, time of departure. Incoming: the size GRO merged, ECN, the address the datagram came to,
//! and how many datagrams the socket has lost. Built and read as bytes; the layout is the kernel's `cmsghdr`: length
//! (word), level, type, data, padding to a word.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::net::Ecn;
use base::time::Instant;

use crate::name::{Family, mapped};

const WORD: usize = size_of::<usize>();
const HEADER: usize = size_of::<libc::cmsghdr>();
const _: () = assert!(HEADER == WORD + 8 && HEADER.is_multiple_of(WORD));

/// Room for every control message that a socket of ours is given at once: both packet infos, both kinds of TOS, GRO
/// size, overflow count.
const SIZE: usize = 6 * HEADER + 16 + 24 + 4 * 8;

/// A control buffer in place to be pointed at.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct Control {
    pub(crate) bytes: [u8; SIZE],
    /// Bytes that count.
    pub(crate) len: usize,
}

/// What an outgoing message carries beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Segment size for the kernel to cut by.
    pub(crate) segment_size: Option<u16>,
    /// The marking.
    pub(crate) ecn: Ecn,
    /// The address to send from, with the index of its interface where that is to be used: for a link-local or a pinned one.
    pub(crate) source: Option<(IpAddr, u32)>,
    /// When it may leave, on the monotonic clock. The kernel takes it only from sockets that have said they would tell.
    pub(crate) departs: Option<Instant>,
}

/// What came beside an incoming message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// Length of every merged datagram but the last.
    pub(crate) segment_size: Option<usize>,
    /// The marking.
    pub(crate) ecn: Ecn,
    /// Where it came to, with the interface's index.
    pub(crate) destination: Option<(IpAddr, u32)>,
    /// Datagrams lost by the socket since it was made, modulo 2^32.
    pub(crate) lost: Option<u32>,
}

impl Control {
    pub(crate) const EMPTY: Control = Control { bytes: [0; SIZE], len: 0 };

    fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let start = self.len;
        let end = start + HEADER + data.len();
        let Some(room) = self.bytes.get_mut(start..end) else {
            debug_assert!(false, "control buffer too small");
            return;
        };
        room[..WORD].copy_from_slice(&(HEADER + data.len()).to_ne_bytes());
        room[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        room[WORD + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
        room[HEADER..].copy_from_slice(data);
        self.len = end.next_multiple_of(WORD);
    }

    /// Replaces the content by `outgoing`, for a message to `peer` on a socket of `family`.
    pub(crate) fn set(&mut self, outgoing: &Outgoing, peer: IpAddr, family: Family) {
        self.len = 0;
        if let Some(size) = outgoing.segment_size {
            self.push(libc::SOL_UDP, libc::UDP_SEGMENT, &size.to_ne_bytes());
        }
        if outgoing.ecn != Ecn::NotEct {
            let (level, kind) = match peer {
                IpAddr::V4(_) => (libc::SOL_IP, libc::IP_TOS),
                IpAddr::V6(_) => (libc::SOL_IPV6, libc::IPV6_TCLASS),
            };
            self.push(level, kind, &(outgoing.ecn as i32).to_ne_bytes());
        }
        match (outgoing.source, peer, family) {
            (None, ..) => {}
            (Some((IpAddr::V4(source), interface)), IpAddr::V4(_), Family::V4) => {
                // in_pktinfo: interface (0 lets routing choose), source address, header address (ignored).
                let mut info = [0; 12];
                info[..4].copy_from_slice(&interface.to_ne_bytes());
                info[4..8].copy_from_slice(&source.octets());
                self.push(libc::SOL_IP, libc::IP_PKTINFO, &info);
            }
            (Some((source, scope)), ..) => {
                let mut info = [0; 20];
                info[..16].copy_from_slice(&mapped(source).octets());
                info[16..].copy_from_slice(&scope.to_ne_bytes());
                self.push(libc::SOL_IPV6, libc::IPV6_PKTINFO, &info);
            }
        }
        if let Some(departs) = outgoing.departs {
            self.push(libc::SOL_SOCKET, libc::SCM_TXTIME, &departs.as_nanos().to_ne_bytes());
        }
    }

    /// Reads what the kernel wrote; what is unknown or cut off is skipped.
    pub(crate) fn read(&self) -> Incoming {
        let mut incoming = Incoming::default();
        let mut rest = self.bytes.get(..self.len).unwrap_or(&[]);
        while let Some((length, level, kind)) = header(rest) {
            let Some(data) = rest.get(HEADER..length) else { break };
            incoming.on_message(level, kind, data);
            rest = rest.get(length.next_multiple_of(WORD)..).unwrap_or(&[]);
        }
        incoming
    }
}

fn header(bytes: &[u8]) -> Option<(usize, i32, i32)> {
    let (length, rest) = bytes.split_first_chunk::<WORD>()?;
    let (level, rest) = rest.split_first_chunk::<4>()?;
    let kind = rest.first_chunk::<4>()?;
    let length = usize::from_ne_bytes(*length);
    // A length below the header's would not move us on.
    (length >= HEADER).then_some((length, i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind)))
}

impl Incoming {
    fn on_message(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                self.segment_size = number(data).and_then(|size| usize::try_from(size).ok());
            }
            // The TOS comes as one byte, the traffic class as an int.
            (libc::SOL_IP, libc::IP_TOS) => {
                self.ecn = Ecn::from_bits(data.first().copied().unwrap_or(0));
            }
            (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                self.ecn = Ecn::from_bits(number(data).unwrap_or(0) as u8);
            }
            (libc::SOL_IP, libc::IP_PKTINFO) => {
                let address = data.get(8..).and_then(|data| data.first_chunk::<4>());
                self.destination = address.map(|address| (Ipv4Addr::from(*address).into(), 0));
            }
            (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
                let Some((address, rest)) = data.split_first_chunk::<16>() else { return };
                let address = IpAddr::V6(Ipv6Addr::from(*address)).to_canonical();
                let interface = number(rest).unwrap_or(0) as u32;
                self.destination = Some((address, interface));
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                self.lost = number(data).map(|lost| lost as u32);
            }
            _ => {}
        }
    }
}

fn number(data: &[u8]) -> Option<i32> {
    data.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_lengths_end_the_reading() {
        let mut control = Control::EMPTY;
        control.push(libc::SOL_UDP, libc::UDP_GRO, &1200i32.to_ne_bytes());
        for length in [0, HEADER - 1, SIZE + 1, usize::MAX] {
            control.bytes[..WORD].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(control.read(), Incoming::default());
        }
        control.len = usize::MAX;
        assert_eq!(control.read(), Incoming::default());
    }

    #[test]
    fn a_departure_time_is_64_bits_of_nanoseconds_and_its_absence_takes_no_room() {
        let mut outgoing = Outgoing {
            segment_size: Some(1200),
            ecn: Ecn::Ect0,
            source: Some((Ipv6Addr::LOCALHOST.into(), 3)),
            departs: None,
        };
        let mut control = Control::EMPTY;
        let peer = Ipv6Addr::LOCALHOST.into();
        control.set(&outgoing, peer, Family::V6);
        let without = control.len;
        assert_eq!(without, 3 * HEADER + 8 + 8 + 24);
        outgoing.departs = Some(Instant::from_nanos(0x0123_4567_89ab_cdef));
        control.set(&outgoing, peer, Family::V6);
        // All that a message can carry fits.
        assert_eq!(control.len, without + HEADER + 8);
        let last = &control.bytes[without..control.len];
        assert_eq!(header(last), Some((HEADER + 8, libc::SOL_SOCKET, libc::SCM_TXTIME)));
        assert_eq!(last[HEADER..], 0x0123_4567_89ab_cdef_u64.to_ne_bytes());
    }

    #[test]
    fn everything_at_once_fits_and_is_read() {
        let mut control = Control::EMPTY;
        control.push(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &7u32.to_ne_bytes());
        control.push(libc::SOL_IP, libc::IP_PKTINFO, &[0; 12]);
        control.push(libc::SOL_IP, libc::IP_TOS, &[1]);
        control.push(libc::SOL_IPV6, libc::IPV6_TCLASS, &3i32.to_ne_bytes());
        let mut info = [0; 20];
        info[15] = 1;
        info[16] = 9;
        control.push(libc::SOL_IPV6, libc::IPV6_PKTINFO, &info);
        control.push(libc::SOL_UDP, libc::UDP_GRO, &1200i32.to_ne_bytes());
        let expected = Incoming {
            segment_size: Some(1200),
            ecn: Ecn::Ce,
            destination: Some((Ipv6Addr::LOCALHOST.into(), u32::from_ne_bytes([9, 0, 0, 0]))),
            lost: Some(7),
        };
        assert_eq!(control.read(), expected);
        assert_eq!(control.len, SIZE);
    }
}
