use super::*;

/// A UDP frame with `payload`, virtio header in front; a super-packet if `segment` is not 0. Its addresses are 1…, ports 0x1111, 0x2222.
fn frame(is_ipv6: bool, payload: &[u8], segment: u16) -> Vec<u8> {
    let mut bytes = vec![NEEDS_CHECKSUM, if segment > 0 { GSO_UDP_L4 } else { 0 }, 0xff, 0x7f];
    bytes.extend(segment.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend([2; 12]);
    let udp_bytes = (UDP + payload.len()) as u16;
    if is_ipv6 {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend(udp_bytes.to_be_bytes());
        bytes.extend([17, 64]);
        bytes.extend([1; 32]);
    } else {
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend((20 + udp_bytes).to_be_bytes());
        bytes.extend([0x12, 0xff, 0x40, 0, 64, 17, 0, 0]);
        bytes.extend([1; 8]);
    }
    bytes.extend([0x11, 0x11, 0x22, 0x22]);
    bytes.extend(udp_bytes.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

/// Would break: datagrams would be counted, eaten and lost by wrong sizes.
#[test]
fn a_super_packet_is_its_datagrams() {
    for (is_ipv6, payload_at) in [(false, 52), (true, 72)] {
        let layout = Layout::of(&frame(is_ipv6, &[7; 2_500], 1_000));
        assert_eq!((layout.carries, layout.payload, layout.datagrams()), (Carries::Udp, payload_at, 3));
        assert_eq!(layout.datagram(1), (payload_at + 1_000, payload_at + 2_000));
        assert_eq!(layout.datagram(2), (payload_at + 2_000, payload_at + 2_500));
        let layout = Layout::of(&frame(is_ipv6, &[7; 1_000], 0));
        assert_eq!((layout.datagrams(), layout.datagram(0)), (1, (0, payload_at + 1_000)));
    }
}

/// Would break: the far end would drop what remains of a super-packet after a loss, or read wrong lengths.
#[test]
fn the_head_of_a_run_is_consistent() {
    for is_ipv6 in [false, true] {
        let whole = frame(is_ipv6, &[7; 3_500], 1_000);
        let layout = Layout::of(&whole);
        let head = layout.head_of(&whole, 1, 2_000);
        let mut run = head.as_slice().to_vec();
        run.extend([7; 2_000]);
        let of_run = Layout::of(&run);
        assert_eq!((of_run.datagrams(), of_run.segment), (2, Some(1_000)));
        let mut expected = frame(is_ipv6, &[7; 2_000], 1_000);
        expected[2..4].copy_from_slice(&((layout.payload - VNET) as u16).to_ne_bytes());
        let addresses = if is_ipv6 { 32..64 } else { 36..44 };
        let partial = fold(add(17 + 2_008, &expected[addresses]));
        expected[layout.transport + 6..layout.payload].copy_from_slice(&partial.to_be_bytes());
        if !is_ipv6 {
            expected[28..30].copy_from_slice(&[0x13, 0]);
            let checksum = !fold(add(0, &expected[24..44]));
            expected[34..36].copy_from_slice(&checksum.to_be_bytes());
        }
        assert_eq!(run, expected);
    }
}

/// Would break: the kernel refuses a single datagram that claims to be a super-packet, or cuts it again.
#[test]
fn a_single_datagram_is_no_super_packet_any_more() {
    let whole = frame(false, &[7; 3_500], 1_000);
    let layout = Layout::of(&whole);
    for (index, length) in [(2, 1_000), (3, 500)] {
        let head = layout.head_of(&whole, index, length);
        assert_eq!((head.as_slice()[1], &head.as_slice()[4..6]), (0, &[0, 0][..]));
    }
}

/// Would break: odd frames would crash the link instead of passing.
#[test]
fn what_is_not_understood_passes_whole() {
    let udp = frame(false, &[7; 100], 0);
    for length in 0..udp.len() {
        let layout = Layout::of(&udp[..length]);
        assert_eq!(layout.carries, if length < 52 { Carries::Other } else { Carries::Udp }, "{length} bytes");
        assert_eq!(layout.datagrams(), 1);
    }
    let mut fragment = udp.clone();
    fragment[30] = 0x20;
    assert_eq!(Layout::of(&fragment).carries, Carries::Other);
    let mut tagged = udp.clone();
    tagged.splice(22..22, [0x81, 0, 0, 5]);
    assert_eq!((Layout::of(&tagged).carries, Layout::of(&tagged).payload), (Carries::Udp, 56));
}
