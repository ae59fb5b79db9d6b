//! The end of a connection: what the peer has not acknowledged, and frames that steer while bulk data uses up all credit.

use super::*;

/// Fails without it: a GOAWAY waits behind bulk data until the peer's application reads.
#[test]
fn a_control_stream_sends_first_and_although_bulk_data_has_used_up_the_limit() {
    let config = StreamConfig {
        initial_connection_window: 20_000,
        max_connection_window: 20_000,
        ..StreamConfig::default()
    };
    let [mut client, mut server] = pair(&config);
    // The server's application does not read at all.
    server.reader.appetite = vec![0];
    let control = client.streams.open(Dir::Uni).unwrap();
    client.streams.set_priority(control, Priority::CONTROL);
    let bulk = client.streams.open(Dir::Bidi).unwrap();
    client.streams.set_priority(bulk, Priority { urgency: 0, incremental: false });
    client.write(bulk, 0, 50_000);
    client.write(control, 0, 5);
    let first = client.packet(1_000).unwrap();
    assert!(matches!(first.frames[0], SentFrame::Stream { id, len: 5, .. } if id == control), "{first:?}");
    server.receive_packet(&first);
    while let Some(sent) = client.packet(1_000) {
        server.receive_packet(&sent);
    }
    assert_eq!(server.streams.received, 20_000 - 32, "the last bytes are kept");
    assert!(!client.streams.wants_data());
    client.write(control, 5, 10);
    assert!(client.streams.wants_data());
    let sent = client.packet(1_000).unwrap();
    assert!(matches!(sent.frames[..], [SentFrame::Stream { id, len: 10, .. }] if id == control), "{sent:?}");
    server.receive_packet(&sent);
    assert!(client.packet(1_000).is_none());
}

/// A peer that permits little at a time waits for each byte of it.
#[test]
fn nothing_is_kept_of_a_small_limit_and_the_peer_hears_who_is_blocked() {
    for (window, kept) in [(1_000, 0), (20_000, 32)] {
        let config = StreamConfig {
            initial_connection_window: window,
            max_connection_window: window,
            ..StreamConfig::default()
        };
        let [mut client, _] = pair(&config);
        let control = client.streams.open(Dir::Uni).unwrap();
        client.streams.set_priority(control, Priority::CONTROL);
        let bulk = client.streams.open(Dir::Bidi).unwrap();
        client.write(bulk, 0, 50_000);
        let packets: Vec<Sent> = core::iter::from_fn(|| client.packet(1_000)).collect();
        let frames = || packets.iter().flat_map(|sent| &sent.frames);
        let data = frames().map(|frame| match frame {
            SentFrame::Stream { len, .. } => u64::from(*len),
            _ => 0,
        });
        assert_eq!(data.sum::<u64>(), window - kept);
        assert!(frames().any(|frame| matches!(frame, SentFrame::DataBlocked { limit } if *limit == window)));
    }
}

/// Fails without it: a server takes its responses for complete while their last packets may still be lost.
#[test]
fn what_was_sent_is_owed_until_it_is_acknowledged() {
    let [mut client, mut server] = pair(&StreamConfig::default());
    let owed = |end: &End| (end.streams.unacknowledged(Dir::Bidi), end.streams.unacknowledged(Dir::Uni));
    let control = client.streams.open(Dir::Uni).unwrap();
    let [whole, reset] = [(); 2].map(|()| client.streams.open(Dir::Bidi).unwrap());
    assert_eq!(owed(&client), (0, 0));
    client.write(control, 0, 5);
    client.write(whole, 0, 1_500);
    client.streams.finish(whole).unwrap();
    client.write(reset, 0, 10);
    assert_eq!(owed(&client), (2, 1));
    let packets: Vec<Sent> = core::iter::from_fn(|| client.packet(1_000)).collect();
    assert_eq!(owed(&client), (2, 1), "sent, and perhaps lost");
    packets.iter().for_each(|sent| server.receive_packet(sent));
    // The last packet is lost, and with it the end of a stream.
    for frame in packets.iter().rev().skip(1).flat_map(|sent| &sent.frames) {
        client.streams.on_frame_acked(frame);
    }
    for frame in &packets.last().unwrap().frames {
        client.streams.on_frame_lost(frame);
    }
    assert!(client.streams.unacknowledged(Dir::Bidi) > 0);
    client.streams.reset(reset, 7);
    exchange(&mut client, &mut server, 1_000);
    assert_eq!(owed(&client), (0, 0));
}

/// HTTP/3 has six such streams for the life of a connection: what they hold while it is idle is most of what it holds.
#[test]
fn streams_at_rest_have_no_place_and_go_on_where_they_stopped() {
    let [mut client, mut server] = pair(&StreamConfig::default());
    let (uni, bidi) = (client.streams.open(Dir::Uni).unwrap(), client.streams.open(Dir::Bidi).unwrap());
    client.streams.set_priority(uni, Priority::CONTROL);
    let places = |end: &End| end.streams.slots.all().count();
    for start in [0, 500] {
        client.write(uni, start, 500);
        client.streams.release_memory();
        assert_eq!((places(&client), client.streams.count()), (2, 2), "bytes are under way");
        exchange(&mut client, &mut server, 1_200);
        for end in [&mut client, &mut server] {
            end.streams.release_memory();
        }
        assert_eq!((places(&server), server.streams.count()), (0, 1));
        assert_eq!(
            (client.streams.count(), client.streams.slots.resting().count()),
            (2, 1),
            "only one goes in one direction"
        );
        assert_eq!(client.streams.priority(uni), Priority::CONTROL);
    }
    assert_eq!(server.reader.taken[&uni], 1_000);
    client.streams.finish(uni).unwrap();
    client.streams.reset(bidi, 1);
    exchange(&mut client, &mut server, 1_200);
    assert!(server.reader.ended.contains(&uni));
    assert_eq!(client.streams.credit.whole.used(), server.streams.received);
}

/// Deleted, an end that travels by itself could pass for something that has come before, and its receiver would ask for what is not lost.
#[test]
fn only_what_has_come_before_is_repeated() {
    let [_, mut server] = pair(&StreamConfig::default());
    let id = client_stream(Dir::Bidi, 0);
    let mut repeated = 0;
    let frames = [
        (0..0, false, 0),
        (0..100, false, 0),
        (50..100, false, 1),
        (50..150, false, 0),
        (160..200, false, 0),
        (150..160, false, 0),
        (0..200, false, 1),
        (200..200, true, 0),
        (200..200, true, 1),
        (100..200, true, 1),
    ];
    for (part, fin, more) in frames {
        server.receive_data(id, part.clone(), fin).unwrap();
        repeated += more;
        assert_eq!(server.streams.repeated(), repeated, "{part:?} {fin}");
    }
}
