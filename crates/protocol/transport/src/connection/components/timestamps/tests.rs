use super::*;

const MS: Duration = Duration::from_millis(1);

fn negotiated(exponent: u64) -> Timestamps {
    let mut ours = Timestamps::default();
    let timestamps = Some(TimestampSupport::Both);
    ours.on_peer_parameters(&TransportParameters {
        timestamps,
        ack_delay_exponent: exponent,
        ..TransportParameters::default()
    });
    ours
}

fn acked() -> Acked {
    Acked { took: MS * 20, acked_at: Instant::from_nanos(20_000_000), ack_delay: Duration::ZERO }
}

/// draft §2.2: the frames stand in either order, the later of two clocks counts, and frames of other packets do not.
#[test]
fn a_sample_is_of_one_packet() {
    let clock = |ms: u64| frame::Timestamp { time: (ms * 1_000) >> 3 };
    let delays = |act: &dyn Fn(&mut Timestamps)| {
        let mut ours = negotiated(3);
        ours.begin(1);
        ours.on_frame(&clock(1_010));
        ours.on_acked(acked());
        act(&mut ours);
        ours.delays().map(|delays| delays.to_peer.as_millis())
    };
    let queued = Acked { acked_at: Instant::from_nanos(50_000_000), took: MS * 50, ..acked() };
    assert_eq!(delays(&|_| ()), Some(10));
    let ack_first = |ours: &mut Timestamps| {
        ours.begin(2);
        ours.on_acked(queued);
        ours.begin(2);
        ours.on_frame(&clock(1_040));
    };
    assert_eq!(delays(&ack_first), Some(40));
    let two_clocks = |ours: &mut Timestamps| {
        ours.begin(2);
        ours.on_frame(&clock(1_040));
        ours.on_frame(&clock(1_020));
        ours.on_acked(queued);
    };
    assert_eq!(delays(&two_clocks), Some(40));
    let two_packets = |ours: &mut Timestamps| {
        ours.begin(2);
        ours.on_acked(queued);
        ours.begin(3);
        ours.on_frame(&clock(1_040));
    };
    assert_eq!(delays(&two_packets), Some(10));
}

/// Deleted, the largest number that a peer can write would overflow.
#[test]
fn any_clock_of_the_peer_can_be_read() {
    let mut ours = negotiated(20);
    ours.begin(1);
    ours.on_frame(&frame::Timestamp { time: (1 << 62) - 1 });
    ours.on_acked(acked());
    assert_eq!(ours.delays().map(|delays| delays.to_peer + delays.from_peer), Some(MS * 20));
}

/// draft §2.2: only behind an ACK, only to a peer that wants it, and only where there is room.
#[test]
fn a_frame_follows_an_acknowledgement() {
    let written = |ours: &mut Timestamps, has_ack: bool, room: usize| {
        let (mut room, mut frames) = (vec![0; room], Vec::new());
        let mut packet = PacketBuilder::new(wire::writer::Writer::new(&mut room), &mut frames);
        if has_ack {
            packet.sent_ack(1);
        }
        ours.write(Instant::from_nanos(5_000_000_000), &mut packet);
        assert_eq!(packet.flags(), recovery::packet::PacketFlags::NONE);
        packet.writer.position()
    };
    let mut ours = negotiated(3);
    assert_eq!(written(&mut ours, true, 50), 3, "it counts from its first");
    assert_eq!(written(&mut ours, true, 2), 0);
    assert_eq!(written(&mut ours, false, 50), 0);
    for timestamps in [None, Some(TimestampSupport::Sends)] {
        let mut ours = Timestamps::default();
        ours.on_peer_parameters(&TransportParameters { timestamps, ..TransportParameters::default() });
        assert_eq!(written(&mut ours, true, 50), 0, "{timestamps:?}");
    }
}
