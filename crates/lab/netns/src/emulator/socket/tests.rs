use super::*;
use std::net::UdpSocket;

/// Would break: an experiment whose link was starved of the CPU would pass for one with a lossy stack.
#[test]
fn frames_that_nobody_reads_are_counted() {
    if !requirements::root("a packet socket") {
        return;
    }
    let missed = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        netlink::set_up(netlink::link_by_name("lo").unwrap().index).unwrap();
        let socket = PacketSocket::open("lo").unwrap();
        let descriptor = socket.descriptor().unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let blast = || {
            // The port is closed; that the kernel says so is no matter.
            let _ = sender.send_to(&[0; 60_000], "127.0.0.1:9");
        };
        blast();
        let before = missed(&descriptor);
        // More than the socket buffer holds, twice, because the kernel charges memory and not bytes.
        (0..SOCKET_BUFFER * 2 / 60_000).for_each(|_| blast());
        (before, missed(&descriptor), missed(&descriptor))
    });
    let (before, after, again) = missed.join().unwrap();
    assert!(before == 0 && after > 0 && again == 0, "{before}, {after}, {again}");
}
