//! Resets that leave the first bytes of a stream to be delivered. Source: draft-ietf-quic-reliable-stream-reset.

use super::*;
use wire::frame::{ResetStream, ResetStreamAt};

const CODE: u64 = 9;

/// A client's stream with `len` bytes written, of which `sent` packets of about a hundred have left.
fn stream(client: &mut End, len: usize, sent: usize) -> (StreamId, Vec<Sent>) {
    let id = client.streams.open(Dir::Bidi).unwrap();
    client.write(id, 0, len);
    (id, (0..sent).filter_map(|_| client.packet(110)).collect())
}

fn reset_event(id: StreamId) -> Event {
    Event::StreamReset { id, code: CODE }
}

/// The parts of the frames of this kind that a packet holds.
fn resets(sent: &Sent) -> Vec<ResetStreamAt> {
    let (mut reader, mut found) = (wire::Reader::new(&sent.bytes), Vec::new());
    while !reader.is_empty() {
        if let Ok(Frame::ResetStreamAt(frame)) = Frame::parse_next(&mut reader) {
            found.push(frame);
        }
    }
    found
}

fn frame(id: StreamId, final_size: u64, reliable_size: u64) -> Frame<'static> {
    Frame::ResetStreamAt(ResetStreamAt { id: id.as_u64(), code: CODE, final_size, reliable_size })
}

/// §5: what is reliable arrives though its packets are lost, what is not is not sent again, and the reset comes last.
#[test]
fn the_first_bytes_arrive_and_then_the_reset() {
    let [mut client, mut server] = pair(&StreamConfig::default());
    let (id, sent) = stream(&mut client, 1_000, 3);
    client.streams.reset_at(id, CODE, 150).unwrap();
    assert!(client.streams.write_slice(id, b"more").is_err(), "nothing can be added");
    assert_eq!(client.streams.unsent, 0, "what was not sent and is not reliable is forgotten");
    let said = client.packet(110).unwrap();
    let first_sent: u64 = sent
        .iter()
        .flat_map(|sent| &sent.frames)
        .map(|frame| match frame {
            SentFrame::Stream { len, .. } => u64::from(*len),
            _ => 0,
        })
        .sum();
    let expected = ResetStreamAt { id: id.as_u64(), code: CODE, final_size: first_sent, reliable_size: 150 };
    assert_eq!(resets(&said), [expected]);
    server.receive_packet(&said);
    assert!(server.take_events().is_empty(), "not before its bytes");
    // All data is lost; only what is reliable goes again.
    sent.iter().flat_map(|sent| &sent.frames).for_each(|frame| client.streams.on_frame_lost(frame));
    said.frames.iter().for_each(|frame| client.streams.on_frame_acked(frame));
    let mut again = 0;
    while let Some(sent) = client.packet(110) {
        for sent in &sent.frames {
            let SentFrame::Stream { offset, len, fin, .. } = *sent else { panic!("{sent:?}") };
            assert!(offset + u64::from(len) <= 150 && !fin);
            again += u64::from(len);
        }
        server.receive_packet(&sent);
        sent.frames.iter().for_each(|frame| client.streams.on_frame_acked(frame));
    }
    assert_eq!(again, 150);
    assert_eq!(server.reader.taken[&id], 150);
    assert_eq!(server.take_events(), [reset_event(id)]);
    assert!(!server.reader.ended.contains(&id), "a reset is no end in good order");
    assert!(client.take_events().is_empty(), "nor is it a stream that was finished");
    assert_eq!((client.streams.retained, client.streams.unacknowledged(Dir::Bidi)), (0, 0));
    assert_eq!(server.streams.received, first_sent, "both count the same");
}

/// §4: the frame waits for credit, because its final size counts.
#[test]
fn a_reset_waits_until_all_that_counts_was_sent() {
    let config =
        StreamConfig { initial_stream_window: 300, max_stream_window: 300, ..StreamConfig::default() };
    let [mut client, mut server] = pair(&config);
    server.reader.appetite = vec![0];
    let (id, _) = stream(&mut client, 1_000, 0);
    client.streams.reset_at(id, CODE, 500).unwrap();
    let packets: Vec<Sent> = core::iter::from_fn(|| client.packet(110)).collect();
    assert!(packets.iter().all(|sent| resets(sent).is_empty()), "200 bytes are still to be sent");
    packets.iter().for_each(|sent| server.receive_packet(sent));
    server.reader.appetite = Vec::new();
    server.deliver(id);
    let mut ends = [client, server];
    settle(&mut ends);
    let [client, mut server] = ends;
    assert_eq!((server.reader.taken[&id], server.take_events()), (500, vec![reset_event(id)]));
    assert_eq!((client.streams.unsent, server.streams.received), (0, 500));
}

/// §5.2: each frame may promise less, none more, and neither the code nor the final size changes.
#[test]
fn the_reliable_size_only_falls() {
    let [mut client, mut server] = pair(&StreamConfig::default());
    let (id, _) = stream(&mut client, 1_000, 3);
    assert_eq!(client.streams.reset_at(id, CODE, 1_001), Err(ResetAtError::NotWritten));
    client.streams.reset_at(id, CODE, 200).unwrap();
    let first = resets(&client.packet(110).unwrap())[0];
    let _ = client.streams.reset_at(id, CODE + 1, 300);
    assert!(client.packet(110).is_none(), "more is not promised");
    client.streams.reset_at(id, CODE + 1, 100).unwrap();
    let second_packet = client.packet(110).unwrap();
    let second = resets(&second_packet)[0];
    assert_eq!(second, ResetStreamAt { reliable_size: 100, ..first });
    client.streams.reset(id, CODE + 2);
    let last = client.packet(110).unwrap();
    let mut reader = wire::Reader::new(&last.bytes);
    let expected = ResetStream { id: id.as_u64(), code: CODE, final_size: first.final_size };
    assert_eq!(Frame::parse_next(&mut reader), Ok(Frame::ResetStream(expected)));
    // At the receiver the order of arrival does not matter.
    server.receive(&Frame::ResetStreamAt(second)).unwrap();
    server.receive(&Frame::ResetStreamAt(first)).unwrap();
    server.receive_data(id, 0..100, false).unwrap();
    assert_eq!(server.take_events(), [reset_event(id)], "the smaller size holds");
    assert_eq!(client.streams.reset_at(id, CODE, 10), Err(ResetAtError::NoSuchStream));
}

/// The acknowledgement of an older frame says nothing about the newest.
#[test]
fn the_smallest_size_is_repeated_until_it_is_acknowledged() {
    let [mut client, _] = pair(&StreamConfig::default());
    let (id, data) = stream(&mut client, 1_000, 3);
    client.streams.reset_at(id, CODE, 200).unwrap();
    let first = client.packet(110).unwrap();
    client.streams.reset_at(id, CODE, 100).unwrap();
    let second = client.packet(110).unwrap();
    first.frames.iter().for_each(|frame| client.streams.on_frame_acked(frame));
    data.iter().flat_map(|sent| &sent.frames).for_each(|frame| client.streams.on_frame_acked(frame));
    assert_eq!(client.streams.unacknowledged(Dir::Bidi), 1, "the second is not known to have arrived");
    second.frames.iter().for_each(|frame| client.streams.on_frame_lost(frame));
    let again = client.packet(110).unwrap();
    assert_eq!(resets(&again), resets(&second));
    again.frames.iter().for_each(|frame| client.streams.on_frame_acked(frame));
    assert_eq!((client.streams.unacknowledged(Dir::Bidi), client.streams.retained), (0, 0));
    assert!(client.packet(110).is_none());
}

/// §4, §5.2: deleted, a peer could use more than its limits, or bend a stream that is over.
#[test]
fn what_a_reset_may_not_say_closes() {
    let refused = |frames: &[Frame<'_>]| {
        let config = StreamConfig { initial_stream_window: 1_000, ..StreamConfig::default() };
        let [_, mut server] = pair(&config);
        let outcomes: Vec<_> = frames.iter().map(|frame| server.receive(frame)).collect();
        let (last, before) = outcomes.split_last().unwrap();
        assert!(before.iter().all(Result::is_ok), "{outcomes:?}");
        last.as_ref().err().map(|error| error.code)
    };
    let id = client_stream(Dir::Bidi, 0);
    let at = |final_size, reliable| frame(id, final_size, reliable);
    let reset = |code, final_size| Frame::ResetStream(ResetStream { id: id.as_u64(), code, final_size });
    let other = Frame::ResetStreamAt(ResetStreamAt {
        id: id.as_u64(),
        code: CODE + 1,
        final_size: 10,
        reliable_size: 5,
    });
    assert_eq!(refused(&[at(1_001, 0)]), Some(Code::FLOW_CONTROL_ERROR));
    assert_eq!(refused(&[at(10, 5), at(11, 5)]), Some(Code::FINAL_SIZE_ERROR));
    assert_eq!(refused(&[at(10, 5), reset(CODE, 11)]), Some(Code::FINAL_SIZE_ERROR));
    assert_eq!(refused(&[at(10, 5), other]), Some(Code::STREAM_STATE_ERROR));
    assert_eq!(refused(&[at(10, 5), reset(CODE + 1, 10)]), Some(Code::STREAM_STATE_ERROR));
    assert_eq!(refused(&[at(10, 5), reset(CODE, 10)]), None);
    assert_eq!(refused(&[at(10, 5), at(10, 7), at(10, 0), at(10, 5)]), None);
    let ours = StreamId::new(Side::Server, Dir::Uni, 0);
    assert_eq!(refused(&[frame(ours, 1, 0)]), Some(Code::STREAM_STATE_ERROR));
}

/// What the application has not taken counts until it takes it or the reset comes, and then comes back whole.
#[test]
fn a_paused_reader_takes_what_is_reliable_before_it_hears_of_the_reset() {
    let [mut client, mut server] = pair(&StreamConfig::default());
    let (id, _) = stream(&mut client, 1_000, 0);
    while let Some(sent) = client.packet(300) {
        server.reader.appetite = vec![0];
        server.receive_packet(&sent);
    }
    client.streams.reset_at(id, CODE, 600).unwrap();
    let said = client.packet(300).unwrap();
    server.receive_packet(&said);
    assert!(server.take_events().is_empty());
    server.reader.appetite = Vec::new();
    server.deliver(id);
    assert!(server.reader.taken[&id] >= 600);
    assert_eq!(server.take_events(), [reset_event(id)]);
    assert_eq!((server.streams.held.bytes, server.streams.held.pieces), (0, 0));
}

/// §5.3 and RFC 9000 §3.5: who wants nothing hears of no reset, and a sender that is stopped sends RESET_STREAM.
#[test]
fn a_stream_that_was_stopped_ends_without_its_bytes() {
    let [mut client, mut server] = pair(&StreamConfig::default());
    let (id, sent) = stream(&mut client, 1_000, 2);
    sent.iter().for_each(|sent| server.receive_packet(sent));
    client.streams.reset_at(id, CODE, 900).unwrap();
    server.streams.stop_sending(id, 3);
    assert!(exchange(&mut server, &mut client, 1_000) > 0, "the client hears of it first");
    let mut ends = [client, server];
    settle(&mut ends);
    let [mut client, mut server] = ends;
    assert!(server.take_events().is_empty());
    assert_eq!(client.take_events(), [Event::StopSending { id, code: 3 }]);
    assert_eq!((client.streams.retained, client.streams.unacknowledged(Dir::Bidi)), (0, 0));
    assert!(server.streams.held.bytes == 0);
}
