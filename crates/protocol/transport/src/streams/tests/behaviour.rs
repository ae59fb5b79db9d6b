//! The rules between two honest ends.

use super::*;

fn small() -> StreamConfig {
    StreamConfig {
        initial_stream_window: 1_000,
        max_stream_window: 1_000,
        initial_connection_window: 1_500,
        max_connection_window: 1_500,
        max_bidi_streams: 3,
        max_uni_streams: 3,
        ..StreamConfig::default()
    }
}

/// The fast path: one frame without a length up to the packet's end.
#[test]
fn bulk_data_fills_packets_to_the_last_byte() {
    let [mut client, mut server] = pair(&StreamConfig::default());
    let id = client.streams.open(Dir::Bidi).unwrap();
    client.write(id, 0, 10_000);
    let mut packets = 0;
    while client.streams.wants_data() {
        let sent = client.packet(1_200).unwrap();
        assert!(packets == 8 || (sent.bytes.len() == 1_200 && sent.frames.len() == 1), "{sent:?}");
        server.receive_packet(&sent);
        packets += 1;
    }
    assert_eq!((packets, server.reader.taken[&id]), (9, 10_000));
    assert!(!client.streams.has_unsent());
}

/// What fills a packet is not copied into it, for sealing reads it where the application has it. What comes from two of the
/// application's buffers, does not fill the packet or goes again is copied.
#[test]
fn data_that_fills_a_packet_stays_in_the_applications_buffer() {
    let [mut client, _] = pair(&StreamConfig::default());
    let id = client.streams.open(Dir::Bidi).unwrap();
    let buffer = bytes::Bytes::from(bytes_of(id, 0, 2_000));
    client.streams.write(id, buffer.clone()).unwrap();
    client.write(id, 2_000, 2_000);
    let packet = |client: &mut End| {
        let (mut bytes, mut frames) = ([0xff; 1_000], Vec::new());
        let mut builder = PacketBuilder::new(Writer::new(&mut bytes), &mut frames);
        builder.allow_rest();
        client.streams.write_data(&mut builder);
        let rest = builder.rest();
        rest.map(|rest| client.streams.rest(&rest).unwrap().as_ptr_range()).ok_or(frames)
    };
    let first = packet(&mut client).unwrap();
    assert_eq!((first.start, first.end), (buffer.as_ptr(), buffer[998..].as_ptr()));
    let second = packet(&mut client).unwrap();
    assert_eq!((second.start, second.end), (first.end, buffer[1_994..].as_ptr()));
    let sent = |offset, len| SentFrame::Stream { id, offset, len, fin: false };
    assert_eq!(packet(&mut client).unwrap_err(), [sent(1_994, 996)], "from two buffers");
    assert!(packet(&mut client).is_ok());
    assert_eq!(packet(&mut client).unwrap_err(), [sent(3_986, 14)], "not up to the packet's end");
    client.streams.on_frame_lost(&sent(0, 998));
    assert_eq!(packet(&mut client).unwrap_err(), [sent(0, 998)], "again");
}

#[test]
fn small_frames_share_a_packet_and_the_end_travels_with_the_data() {
    let [mut client, mut server] = pair(&StreamConfig::default());
    for index in 0..4 {
        let id = client.streams.open(Dir::Uni).unwrap();
        client.streams.write_slice(id, &bytes_of(id, 0, 5 * index)).unwrap();
        client.streams.finish(id).unwrap();
    }
    assert_eq!(exchange(&mut client, &mut server, 1_200), 1);
    assert_eq!(server.reader.ended.len(), 4, "the one without any data too");
    assert_eq!(client.take_events().len(), 4);
    assert_eq!((client.streams.count(), server.streams.count()), (0, 0));
}

#[test]
fn flow_control_holds_a_sender_back_until_the_reader_reads() {
    let [mut client, mut server] = pair(&small());
    server.reader.appetite = vec![0];
    let first = client.streams.open(Dir::Bidi).unwrap();
    let second = client.streams.open(Dir::Bidi).unwrap();
    client.write(first, 0, 5_000);
    client.write(second, 0, 5_000);
    exchange(&mut client, &mut server, 100);
    assert_eq!(server.streams.received, 1_500);
    assert!(!client.streams.wants_data() && client.streams.has_unsent());
    assert_eq!(client.packet(100).map(|sent| sent.frames), None, "each limit is complained about once");
    server.reader.appetite = Vec::new();
    for _ in 0..40 {
        server.now = server.now + RTT;
        server.deliver(first);
        server.deliver(second);
        exchange(&mut server, &mut client, 100);
        exchange(&mut client, &mut server, 100);
    }
    assert_eq!((server.reader.taken[&first], server.reader.taken[&second]), (5_000, 5_000));
}

#[test]
fn the_peer_hears_once_for_each_limit_that_blocks() {
    let [mut client, _] = pair(&small());
    let first = client.streams.open(Dir::Bidi).unwrap();
    let second = client.streams.open(Dir::Bidi).unwrap();
    client.write(first, 0, 2_000);
    let frames = client.packet(5_000).unwrap().frames;
    assert_eq!(frames.len(), 1, "{frames:?}");
    assert_eq!(
        client.packet(100).unwrap().frames,
        [SentFrame::StreamDataBlocked { id: first, limit: 1_000 }]
    );
    client.write(second, 0, 2_000);
    client.packet(5_000).unwrap();
    let blocked = client.packet(100).unwrap().frames;
    assert_eq!(blocked, [SentFrame::DataBlocked { limit: 1_500 }]);
    blocked.iter().for_each(|frame| client.streams.on_frame_lost(frame));
    assert_eq!(client.packet(100).unwrap().frames, blocked);
    client.streams.open(Dir::Bidi).unwrap();
    assert_eq!(client.streams.open(Dir::Bidi), Err(OpenError::Limit));
    assert_eq!(client.streams.open(Dir::Bidi), Err(OpenError::Limit));
    assert_eq!(client.packet(100).unwrap().frames, [SentFrame::StreamsBlocked { dir: Dir::Bidi, limit: 3 }]);
    blocked.iter().for_each(|frame| client.streams.on_frame_acked(frame));
    client.streams.on_max_data(&wire::frame::MaxData { maximum: 1_600 }).unwrap();
    blocked.iter().for_each(|frame| client.streams.on_frame_lost(frame));
    client.streams.write_control(&mut PacketBuilder::new(Writer::new(&mut [0; 100]), &mut Vec::new()));
    assert!(!client.streams.wants_control(), "an outdated complaint is not sent again");
}

#[test]
fn finished_streams_give_way_to_new_ones_and_the_opener_is_told() {
    let mut ends = pair(&small());
    for index in 0..50 {
        let id = loop {
            match ends[0].streams.open(Dir::Bidi) {
                Ok(id) => break id,
                Err(OpenError::Limit) => {
                    settle(&mut ends);
                    assert!(ends[0].take_events().contains(&Event::StreamsAvailable { dir: Dir::Bidi }));
                }
            }
        };
        assert_eq!(id.index(), index);
        ends[0].write(id, 0, 10);
        ends[0].streams.finish(id).unwrap();
        settle(&mut ends);
        ends[1].write(id, 0, 10);
        ends[1].streams.finish(id).unwrap();
        settle(&mut ends);
        ends[1].take_events();
    }
    ends[0].take_events();
    assert_eq!((ends[0].streams.count(), ends[1].streams.count()), (0, 0));
}

/// RFC 9000 §3.5.
#[test]
fn stop_sending_makes_the_peer_reset_with_the_same_code() {
    let mut ends = pair(&small());
    let id = ends[0].streams.open(Dir::Bidi).unwrap();
    ends[0].write(id, 0, 5_000);
    settle(&mut ends);
    ends[1].streams.stop_sending(id, 42);
    settle(&mut ends);
    assert_eq!(ends[0].take_events(), [Event::StopSending { id, code: 42 }]);
    assert_eq!(ends[0].streams.write(id, bytes_of(id, 0, 1).into()), Err(WriteError::NoSuchStream));
    assert_eq!(ends[0].streams.retained_bytes(), 0);
    assert!(!ends[0].streams.has_unsent());
    ends[1].streams.finish(id).unwrap();
    settle(&mut ends);
    assert_eq!(ends[1].take_events(), [Event::Finished { id }], "who stopped is not told of the reset");
    assert_eq!((ends[0].streams.count(), ends[1].streams.count()), (0, 0));
}

#[test]
fn a_lost_reset_and_a_lost_end_are_sent_again() {
    let [mut client, mut server] = pair(&small());
    let reset = client.streams.open(Dir::Uni).unwrap();
    let ended = client.streams.open(Dir::Uni).unwrap();
    client.write(reset, 0, 10);
    client.streams.reset(reset, 3);
    client.streams.finish(ended).unwrap();
    for _ in 0..3 {
        let sent = client.packet(100).unwrap();
        assert_eq!(sent.frames.len(), 2, "{:?}", sent.frames);
        assert_eq!(client.packet(100).map(|sent| sent.frames), None);
        sent.frames.iter().for_each(|frame| client.streams.on_frame_lost(frame));
    }
    exchange(&mut client, &mut server, 100);
    assert_eq!(server.take_events(), [Event::StreamReset { id: reset, code: 3 }]);
    assert!(server.reader.ended.contains(&ended));
    assert_eq!(client.take_events(), [Event::Finished { id: ended }]);
    assert_eq!((client.streams.count(), server.streams.count()), (0, 0));
}

/// Credit that gets lost on its way would stop the peer for good.
#[test]
fn lost_credit_is_sent_again_and_only_the_latest() {
    let [_, mut server] = pair(&StreamConfig { max_uni_streams: 1, ..small() });
    let id = client_stream(Dir::Bidi, 0);
    server.receive_data(id, 0..800, false).unwrap();
    server.receive_data(client_stream(Dir::Uni, 0), 0..10, true).unwrap();
    let first = server.packet(100).unwrap().frames;
    let expected = [
        SentFrame::MaxData { limit: 2_310 },
        SentFrame::MaxStreams { dir: Dir::Uni, limit: 2 },
        SentFrame::MaxStreamData { id, limit: 1_800 },
    ];
    assert_eq!(first, expected);
    first.iter().for_each(|frame| server.streams.on_frame_lost(frame));
    assert_eq!(server.packet(100).unwrap().frames, expected);
    server.receive_data(id, 800..1_600, false).unwrap();
    let second = server.packet(100).unwrap().frames;
    assert_eq!(second, [SentFrame::MaxData { limit: 3_110 }, SentFrame::MaxStreamData { id, limit: 2_600 }]);
    for frame in [&first[0], &first[2]] {
        server.streams.on_frame_lost(frame);
        server.streams.on_frame_acked(frame);
    }
    assert!(!server.streams.wants_control());
    server.streams.stop_sending(id, 5);
    let stop = server.packet(100).unwrap().frames;
    stop.iter().chain(&second).for_each(|frame| server.streams.on_frame_lost(frame));
    let again = server.packet(100).unwrap().frames;
    assert_eq!(again, [second[0], SentFrame::StopSending { id }], "a stopped stream needs no credit");
}

/// RFC 9218 §10: urgency first, then in the order of IDs, sharers in turn with those.
#[test]
fn priorities_decide_who_sends() {
    let [mut client, _] = pair(&StreamConfig::default());
    let ids: Vec<StreamId> = (0..4).map(|_| client.streams.open(Dir::Bidi).unwrap()).collect();
    let shared = Priority { urgency: 3, incremental: true };
    client.streams.set_priority(ids[1], shared);
    client.streams.set_priority(ids[2], shared);
    ids.iter().for_each(|&id| client.write(id, 0, 250));
    client.streams.set_priority(ids[3], Priority { urgency: 0, incremental: false });
    let mut order = Vec::new();
    while let Some(sent) = client.packet(100) {
        order.extend(sent.frames.iter().map(|frame| match frame {
            SentFrame::Stream { id, .. } => id.index(),
            other => panic!("{other:?}"),
        }));
    }
    order.dedup();
    assert_eq!(order[..7], [3, 0, 1, 0, 2, 0, 1]);
}

#[test]
fn a_full_send_buffer_asks_its_writer_to_wait_and_calls_it_back() {
    let config = StreamConfig { send_buffer: 3_000, connection_send_buffer: 4_000, ..small() };
    let [mut client, mut server] = pair(&StreamConfig::default());
    client.streams.send_allowance = SendAllowance::new(&config);
    client.streams.limits = StreamLimits::of(&config);
    let first = client.streams.open(Dir::Bidi).unwrap();
    let second = client.streams.open(Dir::Bidi).unwrap();
    assert_eq!(client.streams.send_capacity(first), 3_000);
    client.write(first, 0, 3_000);
    assert_eq!((client.streams.send_capacity(first), client.streams.send_capacity(second)), (0, 1_000));
    client.write(second, 0, 1_000);
    assert_eq!(client.streams.send_capacity(second), 0);
    assert_eq!(client.take_events(), []);
    exchange(&mut client, &mut server, 1_200);
    let mut writable = client.take_events();
    writable.sort_by_key(|event| matches!(event, Event::Writable { id } if *id == second));
    assert_eq!(writable, [Event::Writable { id: first }, Event::Writable { id: second }]);
    assert_eq!(client.streams.retained_bytes(), 0);
    client.streams.finish(first).unwrap();
    assert_eq!(client.streams.send_capacity(first), 0);
    assert_eq!(client.streams.finish(first), Err(WriteError::Finished));
}

/// A stream's window doubles while the reader keeps up, and takes the connection's along.
#[test]
fn windows_grow_for_a_fast_peer_and_not_for_a_slow_one() {
    for (pause, expected) in [(Duration::from_micros(10), 16 << 20), (RTT * 10, 1 << 20)] {
        let mut ends = pair(&StreamConfig::default());
        let id = ends[0].streams.open(Dir::Bidi).unwrap();
        for round in 0..200 {
            ends[0].write(id, round * 300_000, 300_000);
            ends[1].now = ends[1].now + pause;
            settle(&mut ends);
        }
        assert_eq!(ends[1].reader.taken[&id], 60_000_000);
        let slot = ends[1].streams.slots.find(id.as_u64()).unwrap();
        assert_eq!(ends[1].streams.slots[slot].recv.window.size(), expected);
        assert!(ends[1].streams.window.size() <= 24 << 20);
        assert!(ends[1].streams.window.size() >= expected * 3 / 2);
    }
}

/// What a former stream in the same place had to say is not said in the name of the next one.
#[test]
fn a_place_carries_nothing_over() {
    let [client, mut server] = pair(&small());
    let ours = server.streams.open(Dir::Uni).unwrap();
    server.write(ours, 0, 1_100);
    server.packet(1_100).unwrap();
    let blocked = server.packet(100).unwrap().frames;
    server.streams.reset(ours, 1);
    let reset = server.packet(100).unwrap().frames;
    assert_eq!(reset, [SentFrame::ResetStream { id: ours }]);
    blocked.iter().for_each(|frame| server.streams.on_frame_lost(frame));
    reset.iter().for_each(|frame| server.streams.on_frame_acked(frame));
    assert_eq!(server.streams.count(), 0);
    server.receive_data(client_stream(Dir::Uni, 0), 0..1, false).unwrap();
    assert_eq!(server.packet(1_000).map(|sent| sent.frames), None);
    settle(&mut [client, server]);
}

/// Short streams one after the other use the same memory.
#[test]
fn places_are_used_again() {
    let mut ends = pair(&StreamConfig::default());
    let held_open = ends[0].streams.open(Dir::Uni).unwrap();
    ends[0].write(held_open, 0, 1);
    for _ in 0..5_000 {
        let id = ends[0].streams.open(Dir::Uni).unwrap();
        ends[0].write(id, 0, 100);
        ends[0].streams.finish(id).unwrap();
        settle(&mut ends);
        ends[0].take_events();
    }
    assert_eq!((ends[0].streams.count(), ends[1].streams.count()), (1, 1));
    assert!(ends.iter().all(|end| end.streams.slots.all().count() <= 3));
    assert!(ends.iter().all(|end| end.streams.control.capacity() <= 8 && end.streams.events.capacity() <= 8));
}

/// RFC 9000 §4.5: else the peer would close the connection.
#[test]
fn nothing_is_written_behind_the_end_of_a_stream() {
    let [mut client, mut server] = pair(&StreamConfig::default());
    let id = client.streams.open(Dir::Bidi).unwrap();
    client.write(id, 0, 10);
    client.streams.finish(id).unwrap();
    assert_eq!(client.streams.write_slice(id, b"more"), Err(WriteError::Finished));
    exchange(&mut client, &mut server, 1_200);
    assert!(client.streams.write_slice(id, b"more").is_err());
    assert_eq!((server.reader.taken[&id], client.streams.has_unsent()), (10, false));
}
