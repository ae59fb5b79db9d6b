use proptest::prelude::*;

use crate::ethernet::Tag;

use super::*;

fn ethernet(tags: usize) -> Ethernet {
    let tag = Some(Tag::vlan(7));
    let tags = [tag.filter(|_| tags > 0), tag.filter(|_| tags > 1)];
    Ethernet { destination: [1; 6], source: [2; 6], tags, kind: 0 }
}

fn addresses(local: &str, peer: &str) -> Addresses {
    Addresses { local: local.parse().unwrap(), peer: peer.parse().unwrap() }
}

fn v4() -> Addresses {
    addresses("192.0.2.1:443", "198.51.100.7:50000")
}

fn v6() -> Addresses {
    addresses("[2001:db8::1]:443", "[2001:db8::2]:50000")
}

/// A frame as sent.
fn frame(headers: &Headers, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; headers.size()];
    headers.write_complete(&mut frame, payload);
    frame.extend_from_slice(payload);
    frame
}

/// What the receiver sums: zero if the checksum is right.
fn udp_verdict(headers: &Headers, addresses: &Addresses, frame: &[u8]) -> u16 {
    let segment = &frame[headers.udp_start()..];
    let sum = Sum::ZERO.word(17).word(segment.len() as u16).bytes(segment);
    let sum = match (addresses.local.ip(), addresses.peer.ip()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => sum.bytes(&a.octets()).bytes(&b.octets()),
        (IpAddr::V6(a), IpAddr::V6(b)) => sum.bytes(&a.octets()).bytes(&b.octets()),
        _ => panic!("mixed families"),
    };
    sum.checksum()
}

proptest! {
    #[test]
    fn what_is_written_is_read_and_both_checksums_hold(
        payload in proptest::collection::vec(any::<u8>(), 0..1600),
        tags in 0usize..3,
        is_ipv4: bool,
        ecn in 0u8..4,
    ) {
        let addresses = if is_ipv4 { v4() } else { v6() };
        let ecn = Ecn::from_bits(ecn);
        let headers = Headers::new(ethernet(tags), &addresses, ecn, 0xf_ffff).unwrap();
        let frame = frame(&headers, &payload);
        let read = Datagram::read(&frame).unwrap();
        prop_assert_eq!(read.source, addresses.local);
        prop_assert_eq!(read.destination, addresses.peer);
        prop_assert_eq!(read.ecn, ecn);
        prop_assert_eq!(&frame[read.payload.clone()], &payload[..]);
        prop_assert_eq!(read.ethernet.tags, ethernet(tags).tags);
        prop_assert_eq!(udp_verdict(&headers, &addresses, &frame), 0);
        if is_ipv4 {
            let ip = &frame[headers.ethernet_size()..headers.ethernet_size() + 20];
            prop_assert_eq!(Sum::ZERO.bytes(ip).checksum(), 0);
        }
    }

    #[test]
    fn a_device_that_sums_from_the_udp_header_completes_the_checksum(
        payload in proptest::collection::vec(any::<u8>(), 0..1600),
        is_ipv4: bool,
    ) {
        let addresses = if is_ipv4 { v4() } else { v6() };
        let headers = Headers::new(ethernet(0), &addresses, Ecn::Ect0, 0).unwrap();
        let mut half = vec![0; headers.size()];
        headers.write_partial(&mut half, payload.len());
        half.extend_from_slice(&payload);
        let sum = Sum::ZERO.bytes(&half[headers.udp_start()..]).checksum();
        let at = headers.udp_start() + CHECKSUM_OFFSET;
        half[at..at + 2].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
        prop_assert_eq!(half, frame(&headers, &payload));
    }

    #[test]
    fn any_frame_is_read_or_malformed(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0usize..4) {
        // Most random frames would end at the type.
        if let Some(place) = bytes.get_mut(12..14) {
            place.copy_from_slice(&[ethernet::IPV4, ethernet::IPV6, ethernet::VLAN, 1][kind].to_be_bytes());
        }
        if let Ok(read) = Datagram::read(&bytes) {
            prop_assert!(bytes.get(read.payload).is_some());
        }
    }
}

/// Changes one byte behind the Ethernet header and reads again.
fn changed(at: usize, value: u8) -> Result<Datagram, Malformed> {
    let headers = Headers::new(ethernet(0), &v4(), Ecn::NotEct, 0).unwrap();
    let mut frame = frame(&headers, &[9; 40]);
    frame[14 + at] = value;
    Datagram::read(&frame)
}

#[test]
fn only_whole_udp_datagrams_are_read() {
    assert!(changed(0, 0x45).is_ok());
    assert!(changed(0, 0x44).is_err(), "a header of 16 bytes");
    assert!(changed(0, 0x65).is_err(), "version 6 behind the type of IPv4");
    assert!(changed(6, 0x20).is_err(), "more fragments follow");
    assert!(changed(7, 1).is_err(), "a later fragment");
    assert!(changed(9, 6).is_err(), "TCP");
    assert!(changed(25, 7).is_err(), "a UDP length below its header");
    assert!(changed(25, 49).is_err(), "a UDP length beyond the packet");
    assert!(changed(25, 9).is_ok_and(|read| read.payload.len() == 1), "what lies behind UDP is padding");
}

#[test]
fn options_of_ipv4_are_skipped() {
    let headers = Headers::new(ethernet(0), &v4(), Ecn::Ce, 0).unwrap();
    let mut frame = frame(&headers, b"payload");
    frame[14] = 0x46;
    frame[17] += 4;
    frame.splice(34..34, [1; 4]);
    let read = Datagram::read(&frame).unwrap();
    assert_eq!(&frame[read.payload], b"payload");
    assert_eq!(read.source, v4().local);
}

#[test]
fn the_two_families_do_not_mix() {
    let mixed = Addresses { local: v4().local, peer: v6().peer };
    assert!(Headers::new(ethernet(0), &mixed, Ecn::NotEct, 0).is_none());
}
