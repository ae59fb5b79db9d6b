//! Every question and order against the running kernel, in a network namespace of the test's own thread: when the
//! thread ends, the namespace and all in it are gone.

use crate::ethtool::{self, Switch};
use crate::{
    Changes, Mac, VethOptions, Watch, add_address, add_neighbour, addresses, create_veth, delete_address,
    delete_link, link_by_index, link_by_name, links, move_to_namespace, neighbour, provoke_neighbour, qdiscs,
    route_to, set_mtu, set_qdisc, set_tcp_congestion_control, set_up, tcp_congestion_control_to,
};
use nix::sched::{CloneFlags, unshare};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));
const NEAR6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
const FAR6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
const MACS: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];

/// Runs a test in a new network namespace; says so and passes where that is not allowed.
fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            return requirements::missing(format_args!(
                "no network namespace can be made ({error}): run as root"
            ));
        }
        test();
    });
    thread.join().unwrap();
}

fn veth(mtu: u32, queues: u32) -> io::Result<()> {
    create_veth(&VethOptions { names: ["near", "far"], queues, mtu, macs: Some(MACS) })
}

/// A pair of which both ends are up and the near one has addresses.
fn veth_with_addresses() -> (u32, u32) {
    veth(1500, 1).unwrap();
    let (near, far) = (link_by_name("near").unwrap().index, link_by_name("far").unwrap().index);
    set_up(near).unwrap();
    set_up(far).unwrap();
    add_address(near, NEAR, 24).unwrap();
    add_address(near, NEAR6, 64).unwrap();
    (near, far)
}

#[test]
fn a_fresh_namespace_has_only_loopback() {
    in_namespace(|| {
        let all = links().unwrap();
        let lo = all.iter().find(|link| link.name == "lo").unwrap();
        assert!(lo.is_loopback && !lo.is_up);
        assert!(!all.iter().any(|link| link.kind.as_deref() == Some("veth")));
        assert_eq!(link_by_name("near").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(link_by_index(4000).unwrap_err().kind(), io::ErrorKind::NotFound);
        set_up(lo.index).unwrap();
        assert!(link_by_index(lo.index).unwrap().is_up);
    });
}

#[test]
fn a_veth_is_as_ordered() {
    in_namespace(|| {
        veth(9000, 4).unwrap();
        let near = link_by_name("near").unwrap();
        assert_eq!((near.mtu, near.rx_queues, near.tx_queues), (9000, 4, 4));
        assert_eq!((near.mac, near.kind.as_deref()), (Some(MACS[0]), Some("veth")));
        assert!(!near.is_up && near.xdp.is_none());
        let far = link_by_name("far").unwrap();
        assert_eq!((far.mtu, far.rx_queues, far.mac), (9000, 4, Some(MACS[1])));
        set_up(near.index).unwrap();
        assert!(!link_by_name("near").unwrap().is_running, "no carrier while the other end is off");
        assert!(!ethtool::has_carrier("near").unwrap());
        set_up(far.index).unwrap();
        assert!(ethtool::has_carrier("near").unwrap());
        assert!(link_by_name("near").unwrap().is_running);
        set_mtu(near.index, 65_535).unwrap();
        assert_eq!(link_by_name("near").unwrap().mtu, 65_535);
        assert!(set_mtu(near.index, 65_536).is_err());
        assert_eq!(veth(1500, 1).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        delete_link(near.index).unwrap();
        assert!(link_by_name("far").is_err(), "both ends go together");
    });
}

#[test]
fn addresses_are_told_as_given() {
    in_namespace(|| {
        let (near, far) = veth_with_addresses();
        let found: Vec<_> = addresses(near).unwrap().iter().map(|found| (found.ip, found.prefix)).collect();
        assert_eq!(found[0], (NEAR, 24));
        assert!(found.contains(&(NEAR6, 64)), "{found:?}");
        assert!(addresses(far).unwrap().iter().all(|found| found.ip.is_ipv6()), "only its link-local one");
        assert_eq!(add_address(near, NEAR, 24).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        // no duplicate address detection
        std::net::UdpSocket::bind((NEAR6, 0)).unwrap();
    });
}

#[test]
fn routes_are_the_kernels() {
    in_namespace(|| {
        assert!(route_to(FAR).is_err(), "a namespace without addresses has no way");
        let (near, _) = veth_with_addresses();
        for (destination, source) in [(FAR, NEAR), (FAR6, NEAR6)] {
            let route = route_to(destination).unwrap();
            assert_eq!((route.ifindex, route.gateway, route.source), (near, None, Some(source)));
            assert!(!route.is_local);
        }
        assert!(route_to(NEAR).unwrap().is_local);
        let unreachable = route_to(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1))).unwrap_err();
        assert_eq!(unreachable.kind(), io::ErrorKind::NetworkUnreachable);
    });
}

#[test]
fn neighbours_are_remembered_and_provoked() {
    in_namespace(|| {
        let (near, _) = veth_with_addresses();
        for ip in [FAR, FAR6] {
            assert_eq!(neighbour(near, ip).unwrap(), None);
            add_neighbour(near, ip, MACS[1]).unwrap();
            assert_eq!(neighbour(near, ip).unwrap(), Some(MACS[1]));
            add_neighbour(near, ip, MACS[0]).unwrap();
            assert_eq!(neighbour(near, ip).unwrap(), Some(MACS[0]), "replaced");
        }
        // no neighbour has this address: the kernel still asks, so it is unknown
        let silent = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 9));
        provoke_neighbour(near, silent).unwrap();
        assert_eq!(neighbour(near, silent).unwrap(), None);
    });
}

#[test]
fn a_link_moves_to_another_namespace() {
    in_namespace(|| {
        veth(1500, 1).unwrap();
        let far = link_by_name("far").unwrap();
        let other = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            File::open("/proc/thread-self/ns/net").unwrap()
        });
        move_to_namespace(far.index, other.join().unwrap()).unwrap();
        // the namespace has no thread and no descriptor any more: it ends, and the veth with it, soon
        assert!(link_by_name("far").is_err());
    });
}

#[test]
fn offloads_are_told_and_switched() {
    in_namespace(|| {
        veth(1500, 2).unwrap();
        let name = "tx-udp-segmentation";
        let before = ethtool::feature("near", name).unwrap();
        assert_eq!(before, ethtool::Feature { switch: Switch::On, is_changeable: true });
        ethtool::set_feature("near", name, Switch::Off).unwrap();
        assert_eq!(ethtool::feature("near", name).unwrap().switch, Switch::Off);
        assert_eq!(ethtool::feature("far", name).unwrap().switch, Switch::On, "only the one named");
        ethtool::set_feature("near", name, Switch::On).unwrap();
        assert_eq!(ethtool::feature("near", name).unwrap().switch, Switch::On);
        assert_eq!(ethtool::feature("near", "no-such").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(ethtool::feature("absent", name).is_err());
    });
}

#[test]
fn queues_and_disciplines_are_told() {
    in_namespace(|| {
        veth(1500, 2).unwrap();
        let queues = ethtool::channels("near").unwrap();
        assert_eq!((queues.receiving(), queues.sending()), (2, 2));
        let near = link_by_name("near").unwrap().index;
        set_up(near).unwrap();
        let kinds = qdiscs(near).unwrap();
        assert!(kinds.iter().all(|kind| kind == "noqueue"), "a veth has no queue: {kinds:?}");
        assert_eq!(qdiscs(4000).unwrap(), Vec::<String>::new());
        set_qdisc(near, "pfifo").unwrap();
        assert_eq!(qdiscs(near).unwrap(), ["pfifo"]);
        assert_eq!(set_qdisc(near, "no such").unwrap_err().kind(), io::ErrorKind::NotFound);
    });
}

/// Deleted, TCP in a lab could go on with the machine's congestion control while reports name another.
#[test]
fn routes_name_a_congestion_control_and_stay_what_they_were() {
    in_namespace(|| {
        let (near, _) = veth_with_addresses();
        let before = [FAR, FAR6].map(|ip| route_to(ip).unwrap());
        assert_eq!([FAR, FAR6].map(|ip| tcp_congestion_control_to(ip).unwrap()), [None, None]);
        for name in ["reno", "cubic"] {
            let Ok(changed) = set_tcp_congestion_control(near, name) else {
                requirements::missing(format_args!("the kernel has no {name}"));
                continue;
            };
            assert!(changed >= 2, "{changed}");
            for ip in [FAR, FAR6] {
                assert_eq!(tcp_congestion_control_to(ip).unwrap().as_deref(), Some(name), "{ip}");
            }
            assert_eq!([FAR, FAR6].map(|ip| route_to(ip).unwrap()), before);
        }
        assert_eq!(
            set_tcp_congestion_control(near, "no such").unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        assert!(tcp_congestion_control_to(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1))).is_err());
    });
}

/// Deleted, a client would not hear that its address is gone.
#[test]
fn changes_of_addresses_routes_and_links_are_told() {
    in_namespace(|| {
        let mut watch = Watch::new().unwrap();
        assert_eq!(watch.take().unwrap(), Changes::default());
        let (near, _) = veth_with_addresses();
        assert!(watch.take().unwrap().added);
        assert_eq!(watch.take().unwrap(), Changes::default(), "told once");
        delete_address(near, NEAR, 24).unwrap();
        assert!(watch.take().unwrap().removed);
        assert!(!addresses(near).unwrap().iter().any(|address| address.ip == NEAR));
        assert!(delete_address(near, NEAR, 24).is_err(), "it is gone");
        delete_link(near).unwrap();
        assert!(watch.take().unwrap().removed);
    });
}
