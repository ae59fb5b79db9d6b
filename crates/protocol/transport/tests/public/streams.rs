//! Streams and DATAGRAM frames: content, limits, resets, order.

use crate::ends::{Received, content, whole};
use crate::setup::Setup;
use crate::world::{Fate, World};
use base::time::Duration;
use bytes::Bytes;
use transport::{
    DatagramError, Dir, Event, OpenError, Priority, StreamConfig, StreamId, TransportConfig, WriteError,
};
use wire::Side;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// RFC 9000 §2.1, §2.2: four kinds of stream, all at once, each in order and on its own.
#[test]
fn content_crosses_on_every_kind_of_stream_both_ways() {
    const LEN: usize = 60_000;
    let mut world = Setup::default().connected();
    let mut opened = Vec::new();
    for side in SIDES {
        for dir in [Dir::Bidi, Dir::Uni, Dir::Bidi, Dir::Uni] {
            let id = world.connection(side).open(dir).expect("a stream");
            assert_eq!((id.initiator(), id.dir()), (side, dir));
            world.end(side).peer().send(id, LEN);
            opened.push(id);
        }
    }
    world.run_until("the content", |world| {
        opened.iter().all(|id| world.end(id.initiator().other()).peer().received(*id).has_ended)
    });
    let answered: Vec<StreamId> = opened.iter().copied().filter(|id| id.dir() == Dir::Bidi).collect();
    for &id in &answered {
        world.end(id.initiator().other()).peer().send(id, LEN / 2);
    }
    world.run_until("the end of all streams", |world| {
        SIDES.into_iter().all(|side| world.connection(side).open_streams() == 0)
    });
    for id in opened {
        assert!(world.end(id.initiator().other()).peer().received(id) == &whole(id, LEN), "{id:?}");
        assert!(world.end(id.initiator()).events.contains(&Event::Finished { id }), "{id:?}");
    }
    for id in answered {
        assert!(world.end(id.initiator()).peer().received(id) == &whole(id, LEN / 2), "{id:?} back");
    }
    for side in SIDES {
        let connection = world.connection(side);
        assert_eq!((connection.retained_bytes(), connection.unacknowledged_streams(Dir::Bidi)), (0, 0));
    }
}

/// The server's windows, which do not grow.
fn windows(stream: u64, connection: u64) -> Setup {
    let streams = StreamConfig {
        initial_stream_window: stream,
        max_stream_window: stream,
        initial_connection_window: connection,
        max_connection_window: connection,
        ..StreamConfig::default()
    };
    Setup { server: TransportConfig { streams, ..TransportConfig::default() }, ..Setup::default() }
}

/// The server's application takes up to this many bytes more of its streams.
fn take(world: &mut World, bytes: usize) {
    let now = world.now;
    let peer = world.server.peer();
    peer.inbox.room = bytes;
    for dir in Dir::ALL {
        let ids = (0..5).map(|index| StreamId::new(Side::Client, dir, index));
        ids.for_each(|id| peer.connection.deliver(now, id, &mut peer.inbox));
    }
}

/// RFC 9000 §4.1: no byte beyond the limit is sent, and the limit rises as content is taken.
#[test]
fn a_stream_stops_at_its_limit_and_goes_on_as_content_is_taken() {
    const WINDOW: usize = 10_000;
    const LEN: usize = 60_000;
    let mut world = windows(WINDOW as u64, 1 << 20).connected();
    world.server.peer().inbox.room = 0;
    let id = world.connection(Side::Client).open(Dir::Bidi).expect("a stream");
    world.client.peer().send(id, LEN);
    let mut taken = 0;
    while taken < LEN {
        world.run_for(Duration::from_secs(1));
        let acknowledged = world.connection(Side::Client).delivered_bytes() as usize;
        assert_eq!(acknowledged, LEN.min(taken + WINDOW), "after {taken} bytes");
        // Less than half of a window may not be worth a MAX_STREAM_DATA frame.
        take(&mut world, 6_000);
        let now = world.server.peer().received(id).bytes.len();
        assert_eq!(now - taken, 6_000.min(LEN - taken));
        taken = now;
    }
    assert!(world.server.peer().received(id) == &whole(id, LEN));
}

/// RFC 9000 §4.1: the limit of the connection holds for all of its streams together.
#[test]
fn all_streams_together_stop_at_the_limit_of_the_connection() {
    const WINDOW: usize = 30_000;
    const LEN: usize = 20_000;
    let mut world = windows(LEN as u64, WINDOW as u64).connected();
    world.server.peer().inbox.room = 0;
    let mut ids = Vec::new();
    for _ in 0..5 {
        let id = world.connection(Side::Client).open(Dir::Uni).expect("a stream");
        world.client.peer().send(id, LEN);
        ids.push(id);
    }
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.connection(Side::Server).retained_bytes(), WINDOW as u64);
    assert!(world.connection(Side::Client).unacknowledged_bytes() >= (5 * LEN - WINDOW) as u64);
    take(&mut world, usize::MAX);
    world.run_until("the content", |world| ids.iter().all(|id| world.server.peer().received(*id).has_ended));
    assert!(ids.iter().all(|&id| world.server.peer().received(id) == &whole(id, LEN)));
}

/// RFC 9000 §4.6: as many streams as the peer permits; those that have ended make room for others.
#[test]
fn a_stream_beyond_the_limit_waits_until_another_has_ended() {
    let streams = StreamConfig { max_bidi_streams: 3, max_uni_streams: 3, ..StreamConfig::default() };
    let mut world =
        Setup { server: TransportConfig { streams, ..TransportConfig::default() }, ..Setup::default() }
            .connected();
    for dir in [Dir::Bidi, Dir::Uni] {
        let ids: Vec<StreamId> =
            (0..3).map(|_| world.connection(Side::Client).open(dir).expect("a stream")).collect();
        assert_eq!(world.connection(Side::Client).open(dir), Err(OpenError::Limit));
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.connection(Side::Client).open(dir), Err(OpenError::Limit), "time changes nothing");
        let told = Event::StreamsAvailable { dir };
        assert!(!world.client.events.contains(&told));
        for id in ids {
            world.client.peer().send(id, 10);
            if dir == Dir::Bidi {
                world.run_until("the request", |world| world.server.peer().received(id).has_ended);
                world.server.peer().send(id, 10);
            }
        }
        world.run_until("room", |world| world.client.events.contains(&told));
        assert_eq!(world.connection(Side::Client).open(dir).map(StreamId::index), Ok(3));
    }
}

/// RFC 9000 §3.2, §4.5: no content after a reset; its final size counts, so that the connection's limit is not used up.
#[test]
fn a_reset_is_told_with_its_code_and_gives_its_window_back() {
    const WINDOW: usize = 30_000;
    let mut world = windows(WINDOW as u64, WINDOW as u64).connected();
    world.server.peer().inbox.room = 0;
    for index in 0..4 {
        let id = world.connection(Side::Client).open(Dir::Uni).expect("a stream");
        world.connection(Side::Client).write(id, content(id, WINDOW + 10_000)).expect("writes");
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.connection(Side::Server).retained_bytes(), WINDOW as u64);
        world.connection(Side::Client).reset(id, 70 + index);
        assert_eq!(world.connection(Side::Client).write_slice(id, b"more"), Err(WriteError::Reset));
        world.run_until("the reset", |world| {
            world.server.events.contains(&Event::StreamReset { id, code: 70 + index })
        });
        assert_eq!(world.connection(Side::Server).retained_bytes(), 0);
    }
    world.server.peer().inbox.room = usize::MAX;
    world.transfer(Side::Client, 100_000);
    assert_eq!(
        world.server.peer().inbox.streams.len(),
        1 + 4,
        "nothing of the others was lent but an empty start"
    );
}

/// RFC 9000 §3.5: STOP_SENDING tells its code, a reset answers it, and data that still arrives is discarded.
#[test]
fn a_request_to_stop_tells_its_code_and_ends_the_stream() {
    for side in SIDES {
        let mut world = Setup::default().connected();
        let id = world.connection(side).open(Dir::Bidi).expect("a stream");
        world.connection(side).write(id, content(id, 200_000)).expect("writes");
        world
            .run_until("some content", |world| !world.end(side.other()).peer().received(id).bytes.is_empty());
        world.connection(side.other()).stop_sending(id, 99);
        let got = world.end(side.other()).peer().received(id).clone();
        world.run_until("the request", |world| {
            world.end(side).events.contains(&Event::StopSending { id, code: 99 })
        });
        assert_eq!(world.connection(side).write_slice(id, b"more"), Err(WriteError::Reset));
        world.run_for(Duration::from_secs(1));
        assert!(world.end(side.other()).peer().received(id) == &got, "nothing is lent after that");
        assert_eq!(world.connection(side).unacknowledged_bytes(), 0);
        // The other direction goes on.
        world.end(side.other()).peer().send(id, 5_000);
        world.run_until("the other direction", |world| world.end(side).peer().received(id).has_ended);
        assert!(world.end(side).peer().received(id) == &whole(id, 5_000));
        world.run_until("the end of the stream", |world| {
            SIDES.into_iter().all(|side| world.connection(side).open_streams() == 0)
        });
    }
}

/// RFC 9000 §2.1, §3.1: which streams an end may write on, and until when.
#[test]
fn a_write_that_cannot_be_is_refused_with_its_reason() {
    let mut world = Setup::default().connected();
    let (own, theirs) = (StreamId::new(Side::Client, Dir::Uni, 0), StreamId::new(Side::Server, Dir::Uni, 0));
    let client = world.connection(Side::Client);
    assert_eq!(client.write_slice(own, b"early"), Err(WriteError::NoSuchStream));
    assert_eq!(client.open(Dir::Uni), Ok(own));
    assert_eq!(client.finish_stream(own), Ok(()));
    assert_eq!(client.write_slice(own, b"late"), Err(WriteError::Finished));
    world.transfer(Side::Server, 10);
    assert_eq!(world.connection(Side::Client).write_slice(theirs, b"back"), Err(WriteError::NoSuchStream));
    world.run_until("an empty stream", |world| world.server.peer().received(own).has_ended);
    assert_eq!(world.server.peer().received(own), &Received { bytes: Vec::new(), has_ended: true });
}

/// RFC 9000 §2.4: a writer that keeps to its capacity holds little, and is told when to go on.
#[test]
fn a_writer_is_told_when_there_is_room_again() {
    const LEN: usize = 400_000;
    const BUFFER: u64 = 30_000;
    let streams = StreamConfig { send_buffer: BUFFER, ..StreamConfig::default() };
    let mut world =
        Setup { client: TransportConfig { streams, ..TransportConfig::default() }, ..Setup::default() }
            .connected();
    let id = world.connection(Side::Client).open(Dir::Bidi).expect("a stream");
    let (mut written, mut waits) = (0, 0);
    while written < LEN {
        let room = world.connection(Side::Client).send_capacity(id).min(LEN - written);
        if room == 0 {
            waits += 1;
            world.client.events.clear();
            world.run_until("room", |world| world.client.events.contains(&Event::Writable { id }));
            continue;
        }
        let bytes = content(id, written + room).slice(written..);
        world.connection(Side::Client).write(id, bytes).expect("writes");
        written += room;
        let kept = world.connection(Side::Client).unacknowledged_bytes();
        assert!(kept <= BUFFER, "{kept} bytes are kept");
    }
    assert!(waits > 5, "{waits}");
    assert_eq!(world.connection(Side::Client).finish_stream(id), Ok(()));
    assert_eq!(world.connection(Side::Client).unacknowledged_streams(Dir::Bidi), 1);
    world.run_until("the content", |world| world.server.peer().received(id).has_ended);
    assert!(world.server.peer().received(id) == &whole(id, LEN));
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.connection(Side::Client).unacknowledged_streams(Dir::Bidi), 0);
}

/// RFC 9000 §2.3, RFC 9218 §10: the application says which stream goes first, whichever was opened first.
#[test]
fn an_urgent_stream_overtakes_one_that_was_written_before() {
    const LEN: usize = 300_000;
    let mut world = Setup::default().connected();
    let connection = world.connection(Side::Server);
    let slow = connection.open(Dir::Uni).expect("a stream");
    let fast = connection.open(Dir::Uni).expect("a stream");
    connection.set_priority(slow, Priority { urgency: 7, incremental: false });
    connection.set_priority(fast, Priority { urgency: 0, incremental: false });
    assert_eq!(connection.priority(fast).urgency, 0);
    for id in [slow, fast] {
        world.server.peer().send(id, LEN);
    }
    world.run_until("the urgent one", |world| world.client.peer().received(fast).has_ended);
    let behind = world.client.peer().received(slow).bytes.len();
    assert!(behind < LEN / 4, "{behind} bytes of the other one");
    world.run_until("the other one", |world| world.client.peer().received(slow) == &whole(slow, LEN));
}

fn datagrams(of_client: u16, of_server: u16) -> World {
    let taking =
        |max_datagram_frame_size| TransportConfig { max_datagram_frame_size, ..TransportConfig::default() };
    Setup { client: taking(of_client), server: taking(of_server), ..Setup::default() }.connected()
}

/// RFC 9221 §3: none goes to an end that takes none, and none that is larger than it takes.
#[test]
fn datagrams_keep_to_what_the_peer_takes() {
    let mut world = datagrams(0, 500);
    assert_eq!(world.connection(Side::Client).max_datagram_size(), Some(499));
    assert_eq!(world.connection(Side::Server).max_datagram_size(), None);
    let large = Bytes::from(vec![1; 500]);
    assert_eq!(world.connection(Side::Client).send_datagram(large.clone()), Err(DatagramError::TooLarge));
    assert_eq!(world.connection(Side::Server).send_datagram(large.clone()), Err(DatagramError::NotSupported));
    assert_eq!(world.connection(Side::Client).send_datagram(large.slice(1..)), Ok(()));
    world.run_until("the datagram", |world| !world.server.peer().inbox.datagrams.is_empty());
    assert_eq!(world.server.peer().inbox.datagrams, [vec![1; 499]]);
}

/// RFC 9221 §5, §5.2: each arrives whole or not at all, none comes again, and a lost one does not hold up others.
#[test]
fn datagrams_arrive_whole_once_and_lost_ones_are_not_repeated() {
    const COUNT: u32 = 200;
    let mut world = datagrams(0, 1_200);
    world.judge = Box::new(|datagram| match datagram.number % 5 {
        0 if datagram.from.is_client() => Fate::Lost,
        1 => Fate::Doubled,
        _ => Fate::Arrives,
    });
    let body = |number: u32| {
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.extend(vec![number as u8; 400 + 3 * number as usize]);
        bytes
    };
    for number in 0..COUNT {
        let bytes = Bytes::from(body(number));
        world.connection(Side::Client).send_datagram(bytes).expect("the peer takes them");
        world.run_for(Duration::from_millis(2));
    }
    world.run_for(Duration::from_secs(2));
    let mut heard = world.server.peer().inbox.datagrams.clone();
    heard.sort();
    let numbers: Vec<u32> =
        heard.iter().map(|bytes| u32::from_be_bytes(*bytes.first_chunk().expect("a number"))).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "none comes twice");
    assert!(heard.iter().zip(&numbers).all(|(bytes, &number)| *bytes == body(number)), "whole");
    assert!((120..190).contains(&numbers.len()), "{} of {COUNT}", numbers.len());
    assert!(world.connection(Side::Client).counters().lost_packets > 0);
}
