//! What a port knows of its interface, found out when it is opened.

use core::net::{IpAddr, SocketAddr, SocketAddrV6};

use netlink::Link;

/// An interface with an Ethernet address.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) mac: [u8; 6],
    /// The largest IP packet in bytes.
    pub(crate) mtu: usize,
    pub(crate) is_loopback: bool,
    /// Whether the kernel completes checksums of what it copies for this interface, when metadata asks it to. For drivers that
    /// take packets in fragments alone (virtio_net, no other) it makes them in another way, which passed over metadata still in
    /// Linux 6.12: packets left with half a checksum, and every receiver dropped them.
    pub(crate) completes_checksums: bool,
    pub(crate) addresses: Vec<IpAddr>,
}

impl Interface {
    /// What `link` tells, with its addresses.
    pub(crate) fn new(link: &Link) -> std::io::Result<Interface> {
        let addresses = netlink::addresses(link.index)?;
        Ok(Interface {
            index: link.index,
            name: link.name.clone(),
            // The loopback interface sends with zeros.
            mac: link.mac.map_or([0; 6], |mac| mac.0),
            mtu: link.mtu as usize,
            is_loopback: link.is_loopback,
            completes_checksums: link.bus.as_deref() != Some("virtio"),
            addresses: addresses.into_iter().map(|address| address.ip).collect(),
        })
    }

    /// The address to send to `peer` from where nothing better is known: the first of its family, and a link-local one for
    /// link-local peers only.
    pub(crate) fn source_towards(&self, peer: IpAddr) -> Option<IpAddr> {
        let fits =
            |ip: &&IpAddr| ip.is_ipv4() == peer.is_ipv4() && is_link_local(**ip) == is_link_local(peer);
        let same_family = |ip: &&IpAddr| ip.is_ipv4() == peer.is_ipv4();
        self.addresses.iter().find(fits).or_else(|| self.addresses.iter().find(same_family)).copied()
    }

    /// Address and port; a link-local address says on which interface.
    #[inline]
    pub(crate) fn scoped(&self, ip: IpAddr, port: u16) -> SocketAddr {
        match ip {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, port, 0, self.index).into(),
            ip => SocketAddr::new(ip, port),
        }
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_of_the_peers_family_and_scope() {
        let addresses = ["fe80::1", "2001:db8::1", "192.0.2.1"].map(|ip| ip.parse().unwrap()).to_vec();
        let interface = Interface {
            index: 3,
            name: "x".into(),
            mac: [0; 6],
            mtu: 1500,
            is_loopback: false,
            completes_checksums: true,
            addresses,
        };
        let towards = |peer: &str| interface.source_towards(peer.parse().unwrap()).map(|ip| ip.to_string());
        assert_eq!(towards("2001:db8::9").as_deref(), Some("2001:db8::1"));
        assert_eq!(towards("fe80::9").as_deref(), Some("fe80::1"));
        assert_eq!(towards("198.51.100.1").as_deref(), Some("192.0.2.1"));
        assert_eq!(interface.scoped("fe80::9".parse().unwrap(), 5).to_string(), "[fe80::9%3]:5");
    }

    #[test]
    fn virtio_is_not_trusted_with_checksums() {
        let lo = netlink::link_by_name("lo").unwrap();
        let on = |bus: Option<&str>| Link { bus: bus.map(str::to_owned), ..lo.clone() };
        let completes = |bus| Interface::new(&on(bus)).unwrap().completes_checksums;
        assert!(completes(None) && completes(Some("pci")) && !completes(Some("virtio")));
    }
}
