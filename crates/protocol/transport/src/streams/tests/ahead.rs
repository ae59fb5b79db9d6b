//! How much a writer is offered, and when it is called back. What would break without these tests: memory that a peer makes
//! us hold by keeping its windows shut, and writers that wait for ever.

use super::*;

/// The bytes that all of these writers write when each takes what it is offered.
fn fill(end: &mut End, ids: &[StreamId]) -> u64 {
    let mut written = 0;
    for &id in ids {
        while let len @ 1.. = end.streams.send_capacity(id) {
            let slot = end.streams.slots.find(id.as_u64()).unwrap();
            let send = &end.streams.slots[slot].send;
            end.write(id, send.credit.used() + send.unsent(), len);
            written += len as u64;
        }
    }
    written
}

fn opened(end: &mut End, count: usize) -> Vec<StreamId> {
    (0..count).map(|_| end.streams.open(Dir::Bidi).unwrap()).collect()
}

/// Or else a hundred requests with windows of one byte make a server read 25 MB.
#[test]
fn a_writer_is_offered_no_more_than_its_stream_permits() {
    let config = StreamConfig { initial_stream_window: 1, ..StreamConfig::default() };
    let [mut client, _] = pair(&config);
    let ids = opened(&mut client, 100);
    assert_eq!(fill(&mut client, &ids), 100);
    let sent: Vec<Sent> = core::iter::from_fn(|| client.packet(1_200)).collect();
    assert_eq!((client.take_events(), fill(&mut client, &ids)), (Vec::new(), 0));
    let blocked: Vec<SentFrame> = sent.into_iter().flat_map(|sent| sent.frames).collect();
    assert!(blocked.contains(&SentFrame::StreamDataBlocked { id: ids[0], limit: 1 }), "{blocked:?}");
    let maximum = 3;
    let grant = wire::frame::MaxStreamData { id: ids[7].as_u64(), maximum };
    client.streams.on_max_stream_data(&grant).unwrap();
    assert_eq!(client.take_events(), [Event::Writable { id: ids[7] }]);
    assert_eq!(fill(&mut client, &ids), 2);
}

#[test]
fn a_writer_is_offered_no_more_than_the_connection_permits() {
    let config = StreamConfig { initial_connection_window: 10, ..StreamConfig::default() };
    let [mut client, _] = pair(&config);
    let ids = opened(&mut client, 2);
    assert_eq!(fill(&mut client, &ids[..1]), 10);
    while client.packet(1_200).is_some() {}
    assert_eq!((client.take_events(), fill(&mut client, &ids)), (Vec::new(), 0));
    let blocked = client.packet(1_200).map(|sent| sent.frames);
    assert_eq!(blocked, None, "was told when the last byte left");
    client.streams.on_max_data(&wire::frame::MaxData { maximum: 15 }).unwrap();
    assert_eq!(client.take_events(), [Event::Writable { id: ids[0] }]);
    assert_eq!(client.take_events(), [Event::Writable { id: ids[1] }], "the first does not write");
    assert_eq!(fill(&mut client, &ids[1..]), 5);
    while client.packet(1_200).is_some() {}
    assert_eq!(fill(&mut client, &ids), 0, "the second was faster");
    client.streams.on_max_data(&wire::frame::MaxData { maximum: 20 }).unwrap();
    assert_eq!(client.take_events().len() + client.take_events().len(), 2);
}

/// A writer that finds both limits in its way is told when the second of them gives way, whichever that is.
#[test]
fn a_writer_between_two_limits_is_told_in_either_order() {
    for stream_first in [true, false] {
        let config = StreamConfig {
            initial_connection_window: 10,
            initial_stream_window: 10,
            ..StreamConfig::default()
        };
        let [mut client, _] = pair(&config);
        let ids = opened(&mut client, 1);
        assert_eq!(fill(&mut client, &ids), 10);
        client.packet(1_200).unwrap();
        let frames = [
            Frame::MaxStreamData(wire::frame::MaxStreamData { id: ids[0].as_u64(), maximum: 20 }),
            Frame::MaxData(wire::frame::MaxData { maximum: 20 }),
        ];
        let (first, second) = if stream_first { (0, 1) } else { (1, 0) };
        client.receive(&frames[first]).unwrap();
        assert_eq!(client.take_events(), []);
        client.receive(&frames[second]).unwrap();
        assert_eq!(client.take_events(), [Event::Writable { id: ids[0] }]);
    }
}

fn generous() -> StreamConfig {
    StreamConfig {
        initial_connection_window: 1 << 30,
        initial_stream_window: 1 << 30,
        max_stream_window: 1 << 30,
        max_connection_window: 1 << 30,
        max_bidi_streams: 1_000,
        ..StreamConfig::default()
    }
}

/// A peer that permits everything and acknowledges nothing: of many writers only the next one holds much.
#[test]
fn many_writers_hold_little_more_than_one() {
    for incremental in [true, false] {
        for (writers, most) in [(1, 256 << 10), (2, 272 << 10), (10, 416 << 10), (100, 1_840 << 10)] {
            let [mut client, _] = pair(&generous());
            let ids = opened(&mut client, writers);
            for &id in &ids {
                client.streams.set_priority(id, Priority { urgency: 3, incremental });
            }
            let written = fill(&mut client, &ids);
            assert!(written <= most, "{writers} writers wrote {written}");
            let first = client.streams.slots.find(ids[0].as_u64()).unwrap();
            let unsent = client.streams.slots[first].send.unsent();
            let share =
                if incremental { ((256 << 10) / writers as u64 / 2).max(16 << 10) } else { 256 << 10 };
            assert!(unsent >= share, "the first of {writers} wrote {unsent}");
        }
    }
    let [mut client, _] = pair(&generous());
    let ids = opened(&mut client, 100);
    ids[1..].iter().for_each(|&id| client.streams.finish(id).unwrap());
    assert_eq!(fill(&mut client, &ids[..1]), 256 << 10, "the share of those that have finished");
    while client.packet(1_200).is_some() {}
    assert_eq!(fill(&mut client, &ids[..1]), 256 << 10, "as much again as is in flight");
}

/// Or else each MAX_DATA frame calls thousands of writers, of which the first takes all that it permits.
#[test]
fn of_many_that_wait_only_those_with_room_are_told_in_the_order_of_sending() {
    let config = StreamConfig { initial_connection_window: 1 << 20, ..generous() };
    let [mut client, _] = pair(&config);
    let ids = opened(&mut client, 1_000);
    let urgent = ids[900];
    while fill(&mut client, &ids[..1]) > 0 {
        while client.packet(1_200).is_some() {}
    }
    client.take_events();
    assert_eq!((fill(&mut client, &ids), client.take_events()), (0, Vec::new()));
    client.streams.set_priority(urgent, Priority { urgency: 1, incremental: false });
    let mut told = Vec::new();
    for step in 1..=3_u64 {
        client.streams.on_max_data(&wire::frame::MaxData { maximum: (1 << 20) + step * 16_000 }).unwrap();
        while client.streams.has_events() {
            let events = client.take_events();
            // The first that is told has nothing to write this time.
            let writers: &[StreamId] = if told.is_empty() { &[] } else { &[ids[0]] };
            fill(&mut client, writers);
            told.push(events);
            while client.packet(1_200).is_some() {}
        }
    }
    let one = |id| vec![Event::Writable { id }];
    assert_eq!(told, [one(urgent), one(ids[0]), vec![], one(ids[0]), vec![], one(ids[0]), vec![]]);
}

/// RFC 9218 §10: what is urgent does not wait for what was written before it.
#[test]
fn an_urgent_writer_finds_room_behind_others() {
    let [mut client, _] = pair(&generous());
    let ids = opened(&mut client, 10);
    fill(&mut client, &ids[..9]);
    client.streams.set_priority(ids[9], Priority { urgency: 1, incremental: false });
    assert_eq!(fill(&mut client, &ids[9..]), 256 << 10);
    client.streams.set_priority(ids[9], Priority { urgency: 7, incremental: false });
    client.streams.reset(ids[0], 0);
    let sums = |client: &End| {
        let all = client.streams.slots.all();
        let sends = all.map(|slot| &client.streams.slots[slot].send).filter(|send| send.wants_send());
        sends.map(|send| send.unsent()).sum::<u64>()
    };
    let unsent = sums(&client);
    assert!(unsent > 256 << 10, "{unsent}");
    while client.packet(1_200).is_some() {}
    assert_eq!((sums(&client), client.streams.unsent()), (0, 0));
    assert_eq!(fill(&mut client, &ids[1..2]), 256 << 10, "nothing is in front of it any more");
}

/// A client may write before it knows the server's limits.
#[test]
fn a_writer_is_told_when_the_first_limits_are_known() {
    let config = StreamConfig::default();
    let mut server = End::new(Side::Server, &config);
    let mut client = End::new(Side::Client, &config);
    let mut parameters = TransportParameters::default();
    server.streams.fill_parameters(&mut parameters);
    client.streams.on_peer_parameters(&TransportParameters {
        initial_max_streams_bidi: 1,
        ..TransportParameters::default()
    });
    let ids = opened(&mut client, 1);
    assert_eq!(fill(&mut client, &ids), 0);
    client.streams.on_peer_parameters(&parameters);
    assert_eq!(client.take_events().last(), Some(&Event::Writable { id: ids[0] }));
    server.streams.on_peer_parameters(&parameters);
}

/// Or else a process that is short of memory goes on reading for everybody.
#[test]
fn a_connection_that_is_limited_holds_little_until_it_is_not() {
    let [mut client, mut server] = pair(&generous());
    let ids = opened(&mut client, 2);
    client.streams.limit_memory(Some(64 << 10));
    assert!(fill(&mut client, &ids) <= 64 << 10);
    assert_eq!(client.take_events(), []);
    exchange(&mut client, &mut server, 1_200);
    assert!(client.take_events().len() == 2 && fill(&mut client, &ids) <= 64 << 10);
    client.streams.limit_memory(None);
    // The stream behind it has its share already, which the limit did not lower.
    assert_eq!(client.take_events(), [Event::Writable { id: ids[0] }]);
    assert!(fill(&mut client, &ids) >= 128 << 10);
    // The peer fills its window at once, again and again, and the window stays as it is.
    let config = StreamConfig { max_bidi_streams: 1, ..StreamConfig::default() };
    let [mut client, mut server] = pair(&config);
    let id = opened(&mut client, 1)[0];
    server.streams.limit_memory(Some(64 << 10));
    for piece in 0..40 {
        client.write(id, piece * 100_000, 100_000);
        exchange(&mut client, &mut server, 1_200);
        exchange(&mut server, &mut client, 1_200);
    }
    let slot = server.streams.slots.find(id.as_u64()).unwrap();
    assert_eq!(server.streams.slots[slot].recv.window.size(), config.initial_stream_window);
    assert_eq!(server.streams.window.size(), config.initial_connection_window);
}
