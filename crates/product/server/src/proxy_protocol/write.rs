//! Version 2 of the header, to servers behind this one.

use super::{LOCAL, PROXY, SIGNATURE, Sender, TCP_OVER_IPV4, TCP_OVER_IPV6, UNSPECIFIED};
use std::net::{IpAddr, Ipv6Addr};

/// What a connection begins with. The family is that of TCP, whichever transport the client speaks: it is a stream that goes on.
pub fn header(sender: Sender) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    let Sender::Client { from, to } = sender else {
        header.extend([LOCAL, UNSPECIFIED, 0, 0]);
        return header;
    };
    match (from.ip().to_canonical(), to.ip().to_canonical()) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            header.extend([PROXY, TCP_OVER_IPV4, 0, 12]);
            header.extend(one.octets());
            header.extend(other.octets());
        }
        (one, other) => {
            header.extend([PROXY, TCP_OVER_IPV6, 0, 36]);
            header.extend(ipv6(one).octets());
            header.extend(ipv6(other).octets());
        }
    }
    header.extend(from.port().to_be_bytes());
    header.extend(to.port().to_be_bytes());
    header
}

/// RFC 4291 §2.5.5.2.
fn ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, an upstream could take another address for the client's. The bytes are written from the description.
    #[test]
    fn an_upstream_hears_of_the_client_in_bytes() {
        let of = |from: &str, to: &str| {
            header(Sender::Client { from: from.parse().unwrap(), to: to.parse().unwrap() })
        };
        let v4 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\x0a\0\0\x02\xff\xff\x01\xbb";
        assert_eq!(of("192.0.2.1:65535", "10.0.0.2:443"), v4);
        assert_eq!(of("[::ffff:192.0.2.1]:65535", "[::ffff:10.0.0.2]:443"), v4);
        let mut v6 = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24".to_vec();
        v6.extend(b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07");
        v6.extend(b"\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x02\0\x50\x01\xbb");
        assert_eq!(of("[2001:db8::7]:80", "10.0.0.2:443"), v6);
        assert_eq!(header(Sender::Local), b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0");
    }
}
