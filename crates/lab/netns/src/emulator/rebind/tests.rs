use super::*;
use crate::emulator::checksum::{add, fold};

/// An IPv4 UDP frame with a correct UDP checksum (over ports and payload; the addresses are zero, as are the lengths).
fn frame(source: u16, destination: u16) -> (Vec<u8>, Layout) {
    let mut bytes = vec![0; 10 + 14];
    bytes[22] = 8;
    bytes.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(source.to_be_bytes());
    bytes.extend(destination.to_be_bytes());
    bytes.extend([0, 12, 0, 0, 1, 2, 3, 4]);
    let checksum = !fold(add(0, &bytes[44..]));
    bytes[50..52].copy_from_slice(&checksum.to_be_bytes());
    let layout = Layout::of(&bytes);
    (bytes, layout)
}

fn is_sound(bytes: &[u8]) -> bool {
    fold(add(0, &bytes[44..])) == 0xffff
}

/// Would break: the server would not see a new port, or its replies would not find back.
#[test]
fn ports_change_on_the_way_out_and_back() {
    let mut rebinder = Rebinder::default();
    let (mut bytes, layout) = frame(40_000, 443);
    let untouched = bytes.clone();
    rebinder.leaves(&mut bytes, &layout);
    assert_eq!(bytes, untouched);
    rebinder.renew(OldPorts::Forgotten, Scope::Port);
    rebinder.leaves(&mut bytes, &layout);
    let outside = port(&bytes, 44);
    assert!(outside >= FIRST_PORT && is_sound(&bytes));
    let (mut again, _) = frame(40_000, 443);
    rebinder.leaves(&mut again, &layout);
    assert_eq!(port(&again, 44), outside, "a flow keeps its port");
    let (mut reply, layout) = frame(443, outside);
    assert!(rebinder.returns(&mut reply, &layout));
    assert!(port(&reply, 46) == 40_000 && is_sound(&reply));
    let (mut stale, layout) = frame(443, 40_000);
    assert!(!rebinder.returns(&mut stale, &layout), "the old port is forgotten");
    rebinder.renew(OldPorts::Forgotten, Scope::Port);
    let (mut stale, layout) = frame(443, outside);
    assert!(!rebinder.returns(&mut stale, &layout));
}

/// Would break: a checksum that is not complete yet would be spoilt, and every packet dropped.
#[test]
fn partial_and_missing_checksums_stay() {
    let mut rebinder = Rebinder::default();
    rebinder.renew(OldPorts::Forgotten, Scope::Port);
    let (mut bytes, _) = frame(40_000, 443);
    bytes[0] = 1;
    let before = port(&bytes, 50);
    let layout = Layout::of(&bytes);
    rebinder.leaves(&mut bytes, &layout);
    assert_eq!(port(&bytes, 50), before);
    let (mut bytes, layout) = frame(40_000, 443);
    bytes[50..52].fill(0);
    rebinder.leaves(&mut bytes, &layout);
    assert_eq!(port(&bytes, 50), 0);
}

/// Would break: two flows would share a port, or the table would grow without end.
#[test]
fn every_flow_has_its_own_port_and_the_table_is_bounded() {
    let mut rebinder = Rebinder::default();
    rebinder.renew(OldPorts::Forgotten, Scope::Port);
    let outside: std::collections::HashSet<u16> = (1_000..5_000).map(|inside| rebinder.map(inside)).collect();
    assert_eq!(outside.len(), 4_000);
    (5_000..60_000).for_each(|inside| assert_ne!(rebinder.map(inside), inside));
    assert!(rebinder.inside_of.len() <= usize::from(LAST_PORT - FIRST_PORT) + 1);
    assert_eq!(rebinder.inside_of.len(), rebinder.outside_of.len());
}

/// Would break: a client that only waits would wait for ever, where just its port was to change.
#[test]
fn old_ports_can_stay_reachable() {
    let mut rebinder = Rebinder::default();
    rebinder.renew(OldPorts::Kept, Scope::Port);
    let mut outside = Vec::new();
    for _ in 0..2 {
        let (mut bytes, layout) = frame(40_000, 443);
        rebinder.leaves(&mut bytes, &layout);
        outside.push(port(&bytes, 44));
        rebinder.renew(OldPorts::Kept, Scope::Port);
    }
    assert_ne!(outside[0], outside[1]);
    for old in [40_000, outside[0], outside[1]] {
        let (mut reply, layout) = frame(443, old);
        assert!(rebinder.returns(&mut reply, &layout), "{old}");
        assert!(port(&reply, 46) == 40_000 && is_sound(&reply));
    }
}

/// Would break: a move to another address would go unseen, or every packet would be dropped for its checksums.
#[test]
fn an_address_changes_with_the_ports_and_back() {
    for flags in [0_u8, 1] {
        let mut rebinder = Rebinder::default();
        let (mut bytes, _) = frame(40_000, 443);
        bytes[0] = flags;
        bytes[24 + 15] = 2;
        let header = !fold(add(0, &bytes[24..44]));
        bytes[34..36].copy_from_slice(&header.to_be_bytes());
        let pseudo = |bytes: &[u8]| fold(add(0, &bytes[36..44]));
        // The checksum with the addresses in it; a partial one is their sum alone.
        let whole = if flags == 0 {
            !fold(add(u32::from(pseudo(&bytes)), &[&bytes[44..50], &bytes[52..56]].concat()))
        } else {
            pseudo(&bytes)
        };
        bytes[50..52].copy_from_slice(&whole.to_be_bytes());
        let (before, layout) = (bytes.clone(), Layout::of(&bytes));
        let is_right = |bytes: &[u8]| match flags {
            0 => fold(add(u32::from(pseudo(bytes)), &bytes[44..])) == 0xffff,
            _ => port(bytes, 50) == pseudo(bytes),
        };
        assert!(is_right(&bytes), "the test's own frame");
        rebinder.renew(OldPorts::Forgotten, Scope::Address);
        rebinder.leaves(&mut bytes, &layout);
        assert_eq!(bytes[39], OUTSIDE.start);
        assert!(is_right(&bytes) && fold(add(0, &bytes[24..44])) == 0xffff);
        let outside = port(&bytes, 44);
        let (mut reply, layout) = frame(443, outside);
        reply[43] = OUTSIDE.start;
        assert!(rebinder.returns(&mut reply, &layout));
        assert_eq!((reply[43], port(&reply, 46)), (2, 40_000));
        rebinder.renew(OldPorts::Forgotten, Scope::Address);
        let mut next = before;
        let layout = Layout::of(&next);
        rebinder.leaves(&mut next, &layout);
        assert_eq!(next[39], OUTSIDE.start + 1, "each renewal gives another address");
    }
}
