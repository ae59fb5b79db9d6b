//! The header that a connection from a proxy begins with, of version 1 or 2, as its bytes come.
//!
//! Bounded: [`KEPT`] bytes are kept, which has all of version 1 and the addresses of version 2. What follows these is passed over, up to
//! [`LONGEST`] bytes.

use super::{LOCAL, PROXY, SIGNATURE, Sender};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What version 1 begins with. §2.1.
const LINE: &[u8] = b"PROXY ";
/// A line of version 1 is not longer, in bytes, with its end. §2.1.
const KEPT: usize = 107;
/// So many bytes follow the first 16 of version 2 at most: the longest addresses, of 216 bytes, and extensions (TLVs). §2.2.
const LONGEST: usize = 4_096;

/// The bytes are no header, or one that must not be. §2: then the connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongHeader;

/// A header while it comes.
#[derive(Debug, Default)]
pub(crate) struct HeaderReader {
    /// The first bytes.
    kept: Vec<u8>,
    /// How many have come.
    seen: usize,
}

impl HeaderReader {
    /// Whether some of it has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.seen > 0
    }

    /// Takes `bytes` in, as far as they belong to the header. Returns how many do, and what it says once it is whole.
    ///
    /// # Errors
    /// They are no header.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<Sender>), WrongHeader> {
        for (taken, byte) in (1..).zip(bytes) {
            if let Some(sender) = self.push(*byte)? {
                return Ok((taken, Some(sender)));
            }
        }
        Ok((bytes.len(), None))
    }

    fn push(&mut self, byte: u8) -> Result<Option<Sender>, WrongHeader> {
        self.seen += 1;
        if self.kept.len() < KEPT {
            self.kept.push(byte);
        }
        let kept = self.kept.as_slice();
        if kept.starts_with(&SIGNATURE) {
            version2(kept, self.seen)
        } else if kept.starts_with(LINE) {
            version1(kept)
        } else if SIGNATURE.starts_with(kept) || LINE.starts_with(kept) {
            Ok(None)
        } else {
            Err(WrongHeader)
        }
    }
}

/// §2.1.
fn version1(kept: &[u8]) -> Result<Option<Sender>, WrongHeader> {
    let Some(line) = kept.strip_suffix(b"\r\n") else {
        return if kept.len() < KEPT { Ok(None) } else { Err(WrongHeader) };
    };
    let said = line.strip_prefix(LINE).unwrap_or_default();
    if said == b"UNKNOWN" || said.starts_with(b"UNKNOWN ") {
        return Ok(Some(Sender::Local));
    }
    let said = std::str::from_utf8(said).map_err(|_| WrongHeader)?;
    let mut words = said.split(' ');
    let mut next = || words.next().ok_or(WrongHeader);
    let (family, from, to) = (next()?, next()?, next()?);
    let (from_port, to_port) = (next()?, next()?);
    if words.next().is_some() {
        return Err(WrongHeader);
    }
    let of = |ip, number| Ok(SocketAddr::new(address(family, ip)?, port(number)?));
    Ok(Some(Sender::Client { from: of(from, from_port)?, to: of(to, to_port)? }))
}

fn address(family: &str, text: &str) -> Result<IpAddr, WrongHeader> {
    let address = match family {
        "TCP4" => text.parse().ok().map(IpAddr::V4),
        "TCP6" => text.parse().ok().map(IpAddr::V6),
        _ => None,
    };
    address.ok_or(WrongHeader)
}

/// Digits, without zeros before them.
fn port(text: &str) -> Result<u16, WrongHeader> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain).ok_or(WrongHeader)
}

/// §2.2.
fn version2(kept: &[u8], seen: usize) -> Result<Option<Sender>, WrongHeader> {
    let Some((fixed, body)) = kept.split_first_chunk::<16>() else { return Ok(None) };
    let [.., command, family, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    // The nibbles are the family (unspecified, IPv4, IPv6, unix) and the transport (unspecified, stream, datagrams).
    let needed = match (command, family) {
        (LOCAL, _) | (PROXY, 0x00..=0x02 | 0x10 | 0x20 | 0x30..=0x32) => 0,
        (PROXY, 0x11 | 0x12) => 12,
        (PROXY, 0x21 | 0x22) => 36,
        _ => return Err(WrongHeader),
    };
    if !(needed..=LONGEST).contains(&length) {
        return Err(WrongHeader);
    }
    if seen < fixed.len() + length {
        return Ok(None);
    }
    let sender = match needed {
        12 => body.first_chunk().map(ipv4),
        36 => body.first_chunk().map(ipv6),
        _ => Some(Sender::Local),
    };
    sender.map(Some).ok_or(WrongHeader)
}

fn ipv4(body: &[u8; 12]) -> Sender {
    let [a, b, c, d, e, f, g, h, ports @ ..] = *body;
    client(Ipv4Addr::new(a, b, c, d).into(), Ipv4Addr::new(e, f, g, h).into(), ports)
}

fn ipv6(body: &[u8; 36]) -> Sender {
    let address = |at: usize| {
        let bytes = body.get(at..).and_then(|bytes| bytes.first_chunk::<16>());
        Ipv6Addr::from(bytes.copied().unwrap_or_default()).into()
    };
    let [.., a, b, c, d] = *body;
    client(address(0), address(16), [a, b, c, d])
}

fn client(from: IpAddr, to: IpAddr, [a, b, c, d]: [u8; 4]) -> Sender {
    let of = |ip, port| SocketAddr::new(ip, u16::from_be_bytes(port));
    Sender::Client { from: of(from, [a, b]), to: of(to, [c, d]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy_protocol::header;

    /// What `bytes` say, and how many of them are the header, if they come in pieces of `piece` bytes.
    fn read_by(bytes: &[u8], piece: usize) -> Result<(usize, Option<Sender>), WrongHeader> {
        let (mut reader, mut all) = (HeaderReader::default(), 0);
        for piece in bytes.chunks(piece) {
            let (taken, sender) = reader.take(piece)?;
            all += taken;
            assert!(reader.kept.len() <= KEPT);
            if sender.is_some() {
                return Ok((all, sender));
            }
            assert_eq!(taken, piece.len());
        }
        Ok((all, None))
    }

    /// The same however the bytes are torn, and whatever follows the header.
    fn read(bytes: &[u8]) -> Result<Option<Sender>, WrongHeader> {
        let whole = read_by(bytes, usize::MAX);
        for piece in 1..=bytes.len() {
            assert_eq!(read_by(bytes, piece), whole, "{piece}");
        }
        if let Ok((taken, Some(_))) = whole {
            assert_eq!(taken, bytes.len());
            assert_eq!(read_by(&[bytes, b"\x16\x03\x01 PROXY"].concat(), usize::MAX), whole);
            (1..bytes.len()).for_each(|len| assert_eq!(read_by(&bytes[..len], 3), Ok((len, None))));
        }
        whole.map(|(_, sender)| sender)
    }

    fn client(from: &str, to: &str) -> Result<Option<Sender>, WrongHeader> {
        Ok(Some(Sender::Client { from: from.parse().unwrap(), to: to.parse().unwrap() }))
    }

    const NONE: Result<Option<Sender>, WrongHeader> = Ok(Some(Sender::Local));

    #[test]
    fn lines_of_version_1_are_read_by_the_letter() {
        let line = |text: &str| read(format!("{text}\r\n").as_bytes());
        assert_eq!(
            line("PROXY TCP4 192.0.2.1 10.0.0.2 65535 443"),
            client("192.0.2.1:65535", "10.0.0.2:443")
        );
        assert_eq!(line("PROXY TCP6 2001:db8::7 ::1 0 80"), client("[2001:db8::7]:0", "[::1]:80"));
        assert_eq!(line("PROXY UNKNOWN"), NONE);
        assert_eq!(line("PROXY UNKNOWN ffff:f...f:ffff anything"), NONE);
        // The longest one of the description.
        let ones = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        let longest = format!("PROXY UNKNOWN {ones} {ones} 65535 65535");
        assert_eq!((longest.len() + 2, line(&longest)), (KEPT, NONE));
        for wrong in [
            "PROXY ",
            "PROXY TCP4",
            "PROXY UNKNOWNS",
            "PROXY TCP5 192.0.2.1 10.0.0.2 1 2",
            "PROXY tcp4 192.0.2.1 10.0.0.2 1 2",
            "PROXY TCP4 2001:db8::7 ::1 1 2",
            "PROXY TCP6 192.0.2.1 10.0.0.2 1 2",
            "PROXY TCP4 192.0.2.1 10.0.0.2 1",
            "PROXY TCP4 192.0.2.1 10.0.0.2 1 2 3",
            "PROXY TCP4 192.0.2.1 10.0.0.2 1 2 ",
            "PROXY TCP4  192.0.2.1 10.0.0.2 1 2",
            "PROXY TCP4 192.0.2.1 10.0.0.2 1 65536",
            "PROXY TCP4 192.0.2.1 10.0.0.2 01 2",
            "PROXY TCP4 192.0.2.1 10.0.0.2 +1 2",
            "PROXY TCP4 192.0.2.1 10.0.0.2 1 ",
            "PROXY TCP4 192.0.2.256 10.0.0.2 1 2",
            "PROXY TCP4 192.0.2.01 10.0.0.2 1 2",
            "PROXY TCP4 192.0.2.1 10.0.0.2 1 2\n",
            "PROXY TCP4 192.0.2.é 10.0.0.2 1 2",
        ] {
            assert_eq!(line(wrong), Err(WrongHeader), "{wrong}");
        }
        // Without an end it is given up.
        assert_eq!(read(&[LINE, &[b'x'; KEPT]].concat()), Err(WrongHeader));
        assert_eq!(read(b"PROXY TCP4 192.0.2.1 10.0.0.2 1 2\n"), Ok(None), "that is no end");
    }

    fn of_version2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&SIGNATURE, &[command, family][..], &length, body].concat()
    }

    #[test]
    fn headers_of_version_2_are_read_with_what_follows_the_addresses() {
        let sender = client("192.0.2.1:65535", "10.0.0.2:443");
        assert_eq!(read(&header(sender.unwrap().unwrap())), sender);
        let sender = client("[2001:db8::7]:80", "[::1]:443");
        assert_eq!(read(&header(sender.unwrap().unwrap())), sender);
        assert_eq!(read(&header(Sender::Local)), NONE);
        let v4 = b"\xc0\0\x02\x01\x0a\0\0\x02\xff\xff\x01\xbb";
        let with = |tail: usize| of_version2(PROXY, 0x11, &[&v4[..], &vec![0x20; tail]].concat());
        let sender = client("192.0.2.1:65535", "10.0.0.2:443");
        for tail in [0, 1, 91, 300, LONGEST - 12] {
            assert_eq!(read_by(&with(tail), 7).unwrap(), (28 + tail, sender.unwrap()), "{tail}");
        }
        assert_eq!(read(&of_version2(PROXY, 0x12, v4)), sender, "it was UDP to the proxy");
        // Addresses that are none of TCP's, or of no use.
        for family in [0x00, 0x01, 0x02, 0x10, 0x20, 0x31, 0x32] {
            assert_eq!(read(&of_version2(PROXY, family, &[7; 216])), NONE, "{family}");
            assert_eq!(read(&of_version2(PROXY, family, &[])), NONE, "{family}");
        }
        assert_eq!(read(&of_version2(LOCAL, 0x11, v4)), NONE);
        assert_eq!(read(&of_version2(LOCAL, 0xff, &[7; 20])), NONE, "the family is ignored");
    }

    /// Deleted, a proxy that is not one, or is broken, could have a client taken for another, or fill memory.
    #[test]
    fn wrong_headers_are_refused_as_soon_as_they_can_be() {
        let wrong = |bytes: &[u8]| assert_eq!(read(bytes), Err(WrongHeader), "{bytes:?}");
        let v4 = [7; 12];
        for command in [0x00, 0x01, 0x10, 0x11, 0x22, 0x2f, 0x30, 0x31, 0xff] {
            wrong(&of_version2(command, 0x11, &v4));
        }
        for family in [0x03, 0x13, 0x14, 0x23, 0x33, 0x40, 0x41, 0xff] {
            wrong(&of_version2(PROXY, family, &[7; 216]));
        }
        wrong(&of_version2(PROXY, 0x11, &v4[..11]));
        wrong(&of_version2(PROXY, 0x21, &[7; 35]));
        // Its length alone is enough to know.
        wrong(&of_version2(PROXY, 0x11, &[7; LONGEST + 1])[..16]);
        wrong(&of_version2(LOCAL, 0x00, &[7; LONGEST + 1])[..16]);
        let right = header(Sender::Local);
        for at in 0..SIGNATURE.len() {
            for bit in 0..8 {
                let mut bytes = right.clone();
                bytes[at] ^= 1 << bit;
                wrong(&bytes);
            }
        }
        for bytes in [
            &b"\x16\x03\x01\x02\0"[..],
            b"GET / HTTP/1.1\r\n",
            b"PRI * HTTP/2.0\r\n",
            b"PROXYX",
            b"\r\n\r\n\r",
        ] {
            wrong(bytes);
        }
    }
}
