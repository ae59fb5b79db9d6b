//! Socket addresses as the kernel reads and writes them.
//!
//! Encoded and decoded as bytes, without a cast between `sockaddr` types. The kernel's layout is fixed:
//! family (native), port (big-endian), then for IPv4 the address at 4, for IPv6 flow label at 4, address at 8, scope at 24.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The size of `sockaddr_in`.
const SIZE_V4: u32 = 16;
/// The size of `sockaddr_in6`.
const SIZE_V6: u32 = 28;

const _: () = assert!(size_of::<libc::sockaddr_in>() == SIZE_V4 as usize);
const _: () = assert!(size_of::<libc::sockaddr_in6>() == SIZE_V6 as usize);

/// Which addresses a socket takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`; IPv4 addresses are written mapped.
    V6,
}

/// An address in the kernel's form, in place to be pointed at.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct Name {
    pub(crate) bytes: [u8; SIZE_V6 as usize],
    /// Bytes that count.
    pub(crate) len: u32,
}

impl Name {
    pub(crate) const EMPTY: Name = Name { bytes: [0; SIZE_V6 as usize], len: 0 };

    /// `address` for a socket of `family`.
    pub(crate) fn of(address: SocketAddr, family: Family) -> Name {
        let mut name = Name::EMPTY;
        let bytes = &mut name.bytes;
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        match (family, address.ip()) {
            (Family::V4, IpAddr::V4(ip)) => {
                bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                bytes[4..8].copy_from_slice(&ip.octets());
                name.len = SIZE_V4;
            }
            (_, ip) => {
                // An IPv6 address on an IPv4 socket ends here too; the kernel answers EAFNOSUPPORT, which is counted.
                bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                bytes[8..24].copy_from_slice(&mapped(ip).octets());
                if let SocketAddr::V6(address) = address {
                    bytes[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
                }
                name.len = SIZE_V6;
            }
        }
        name
    }

    /// The address that the kernel wrote; mapped IPv4 addresses come out as IPv4. The flow label is left out, so that
    /// one peer has one address.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        let [f0, f1, p0, p1, rest @ ..] = self.bytes;
        let family = i32::from(u16::from_ne_bytes([f0, f1]));
        let port = u16::from_be_bytes([p0, p1]);
        if family == libc::AF_INET && self.len >= SIZE_V4 {
            let ip: [u8; 4] = *rest.first_chunk()?;
            return Some(SocketAddr::new(Ipv4Addr::from(ip).into(), port));
        }
        if family != libc::AF_INET6 || self.len < SIZE_V6 {
            return None;
        }
        let ip: [u8; 16] = *rest.get(4..)?.first_chunk()?;
        let ip = Ipv6Addr::from(ip);
        match ip.to_ipv4_mapped() {
            Some(ip) => Some(SocketAddr::new(ip.into(), port)),
            None => {
                let scope = u32::from_ne_bytes(*rest.last_chunk()?);
                Some(SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope)))
            }
        }
    }
}

/// The address in IPv6 form.
pub(crate) fn mapped(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernels_form() {
        for text in ["1.2.3.4:5", "[2001:db8::1]:443", "[fe80::1%7]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Name::of(address, Family::V6).address(), Some(address));
        }
        let v4: SocketAddr = "1.2.3.4:5".parse().unwrap();
        assert_eq!(Name::of(v4, Family::V4).address(), Some(v4));
        assert_eq!(Name::of(v4, Family::V4).len, 16);
    }

    #[test]
    fn an_address_that_is_short_or_of_another_family_is_none() {
        assert_eq!(Name::EMPTY.address(), None);
        let mut name = Name::of("[::1]:1".parse().unwrap(), Family::V6);
        name.len = 27;
        assert_eq!(name.address(), None);
        name.len = 28;
        name.bytes[..2].copy_from_slice(&(libc::AF_UNIX as u16).to_ne_bytes());
        assert_eq!(name.address(), None);
    }
}
