//! Streams over loopback: what is written arrives, and how a stream may end.

mod common;

use bytes::Bytes;
use common::{Pair, pair, pair_with, run};
use quic::{
    ClosedStream, Priority, ReadError, ReadExactError, ReadToEndError, ResetAtError, TransportConfig, VarInt,
    WriteError, Written,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes in which no two places look alike.
fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|place| (place ^ (place >> 8).wrapping_mul(31) ^ (place >> 16).wrapping_mul(7)) as u8)
        .collect()
}

#[test]
fn a_bidirectional_stream_carries_both_ways_what_is_larger_than_every_window() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let sent = pattern(5_000_000);
        let echo = tokio::spawn(async move {
            let (mut send, mut recv) = server.accept_bi().await.unwrap();
            while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
                send.write_chunk(chunk).await.unwrap();
            }
            send.finish().unwrap();
            assert_eq!(send.stopped().await, Ok(None), "the peer has all of it");
            server
        });
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        let write = async {
            send.write_all(&sent).await.unwrap();
            send.finish().unwrap();
        };
        let (received, ()) = tokio::join!(recv.read_to_end(sent.len()), write);
        assert!(received.unwrap() == sent);
        echo.await.unwrap();
    });
}

#[test]
fn a_stream_is_written_and_finished_by_one_call() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        for len in [0, 1, 100_000, 3_000_000] {
            let sent = pattern(len);
            let mut send = client.open_uni().await.unwrap();
            let read = async { server.accept_uni().await.unwrap().read_to_end(len).await };
            let (written, received) = tokio::join!(send.finish_with(&sent), read);
            assert_eq!(written, Ok(()));
            assert!(received.unwrap() == sent, "{len} bytes");
            assert_eq!(send.finish_with(b"more").await, Err(WriteError::ClosedStream));
            assert_eq!(send.finish_with(b"").await, Err(WriteError::ClosedStream));
        }
    });
}

#[test]
fn a_unidirectional_stream_is_read_in_every_way() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let sent = pattern(10_000);
        let mut send = server.open_uni().await.unwrap();
        send.write_all(&sent[..100]).await.unwrap();
        let mut pieces = [Bytes::copy_from_slice(&sent[100..4_000]), Bytes::copy_from_slice(&sent[4_000..])];
        send.write_all_chunks(&mut pieces).await.unwrap();
        assert!(pieces.iter().all(Bytes::is_empty));
        send.shutdown().await.unwrap();
        let mut recv = client.accept_uni().await.unwrap();
        assert_eq!(recv.id(), send.id());
        let mut buffer = [0; 1_000];
        recv.read_exact(&mut buffer).await.unwrap();
        assert_eq!(buffer, sent[..1_000]);
        let read = recv.read(&mut buffer[..10]).await.unwrap().unwrap();
        let chunk = recv.read_chunk(20).await.unwrap().unwrap();
        assert!(read <= 10 && chunk.len() <= 20);
        let mut rest = Vec::new();
        AsyncReadExt::read_to_end(&mut recv, &mut rest).await.unwrap();
        assert_eq!([&buffer[..read], &chunk, &rest].concat(), sent[1_000..]);
        assert_eq!(recv.read(&mut buffer).await, Ok(None), "the end stays the end");
        assert_eq!(recv.read_exact(&mut buffer).await, Err(ReadExactError::FinishedEarly(0)));
    });
}

/// As quinn's `write_chunks` and `read_chunks`.
#[test]
fn many_chunks_are_written_and_read_in_one_call() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let sent = Bytes::from(pattern(3_000_000));
        let mut send = client.open_uni().await.unwrap();
        let all = sent.clone();
        let writer = tokio::spawn(async move {
            assert_eq!(send.write_chunks(&mut []).await.unwrap(), Written::default());
            let mut chunks: Vec<Bytes> =
                (0..30).map(|part| all.slice(part * 100_000..(part + 1) * 100_000)).collect();
            chunks.insert(3, Bytes::new());
            let (mut bytes, mut done) = (0, 0);
            while done < chunks.len() {
                let written = send.write_chunks(&mut chunks[done..]).await.unwrap();
                assert!(written.bytes > 0 && chunks[done..done + written.chunks].iter().all(Bytes::is_empty));
                (bytes, done) = (bytes + written.bytes, done + written.chunks);
            }
            assert_eq!(bytes, all.len());
            send.finish().unwrap();
        });
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(recv.read_chunks(&mut []).await.unwrap(), Some(0));
        let (mut received, mut chunks) = (Vec::new(), vec![Bytes::new(); 8]);
        while let Some(count) = recv.read_chunks(&mut chunks).await.unwrap() {
            assert!((1..=8).contains(&count) && chunks[..count].iter().all(|chunk| !chunk.is_empty()));
            chunks[..count].iter().for_each(|chunk| received.extend_from_slice(chunk));
        }
        writer.await.unwrap();
        assert!(received == sent);
    });
}

#[test]
fn what_is_longer_than_the_limit_is_an_error() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(&[7; 1_000]).await.unwrap();
        send.finish().unwrap();
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(999).await, Err(ReadToEndError::TooLong));
    });
}

/// RFC 9000 §3.1, §3.2.
#[test]
fn a_reset_and_a_stop_reach_the_other_end_with_their_codes() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        send.write_all(b"one").await.unwrap();
        let (mut their_send, mut their_recv) = server.accept_bi().await.unwrap();
        their_recv.read_chunk(3).await.unwrap();
        send.reset(VarInt::from_u32(41)).unwrap();
        assert_eq!(send.write(b"more").await, Err(WriteError::ClosedStream));
        assert_eq!(their_recv.read(&mut [0; 9]).await, Err(ReadError::Reset(VarInt::from_u32(41))));
        assert_eq!(their_recv.received_reset().await, Ok(Some(VarInt::from_u32(41))));
        recv.stop(VarInt::from_u32(42)).unwrap();
        assert_eq!(recv.stop(VarInt::from_u32(42)), Err(ClosedStream));
        assert_eq!(recv.read(&mut [0; 9]).await, Err(ReadError::ClosedStream));
        assert_eq!(their_send.stopped().await, Ok(Some(VarInt::from_u32(42))));
        assert_eq!(their_send.write(b"more").await, Err(WriteError::Stopped(VarInt::from_u32(42))));
        assert_eq!(send.finish(), Err(ClosedStream));
    });
}

/// Deleted, a reset could take the first bytes of a stream with it, which say what the stream was for.
#[test]
fn a_reset_at_an_offset_comes_after_the_bytes_before_it() {
    run(|| async {
        let Pair { client, server, endpoints: _endpoints } = pair().await;
        assert!(client.handshake_data().is_some_and(|data| data.can_reset_at));
        let head = pattern(100_000);
        let mut send = client.open_uni().await.unwrap();
        send.write_all(&head).await.unwrap();
        assert_eq!(send.reset_at(VarInt::from_u32(43), 100_001), Err(ResetAtError::NotWritten));
        send.reset_at(VarInt::from_u32(43), 90_000).unwrap();
        assert_eq!(send.reset_at(VarInt::from_u32(44), 0), Err(ResetAtError::ClosedStream));
        assert_eq!(send.write(b"more").await, Err(WriteError::ClosedStream));
        let mut recv = server.accept_uni().await.unwrap();
        let mut read = Vec::new();
        let end = loop {
            match recv.read_chunk(10_000).await {
                Ok(chunk) => read.extend_from_slice(&chunk.expect("the stream has no end")),
                Err(error) => break error,
            }
        };
        assert_eq!(end, ReadError::Reset(VarInt::from_u32(43)));
        assert!(read.len() >= 90_000 && head.starts_with(&read), "{} bytes", read.len());
        assert_eq!(recv.received_reset().await, Ok(Some(VarInt::from_u32(43))));
    });
}

/// RFC 9000 §4.6: the handle waits for the peer's permission and not the program for an error.
#[test]
fn opening_waits_until_the_peer_permits_another_stream() {
    run(|| async {
        let mut few = TransportConfig::default();
        few.max_concurrent_uni_streams(2_u8.into());
        let Pair { client, server, endpoints: _endpoints } = pair_with(TransportConfig::default(), few).await;
        let reader = tokio::spawn(async move {
            for expected in 0..50_u8 {
                let mut recv = server.accept_uni().await.unwrap();
                assert_eq!(recv.read_to_end(10).await.unwrap(), [expected]);
            }
            server
        });
        for number in 0..50 {
            let mut send = client.open_uni().await.unwrap();
            send.write_all(&[number]).await.unwrap();
        }
        reader.await.unwrap();
    });
}

/// Deleted, a peer could open more streams than the limit as long as the program accepts none.
#[test]
fn streams_that_are_not_accepted_count_against_the_limit() {
    run(|| async {
        let mut few = TransportConfig::default();
        few.max_concurrent_uni_streams(3_u8.into());
        let Pair { client, server, endpoints: _endpoints } = pair_with(TransportConfig::default(), few).await;
        for _ in 0..3 {
            let mut send = client.open_uni().await.unwrap();
            send.finish().unwrap();
            assert_eq!(send.stopped().await, Ok(None), "acknowledged, and over for the transport");
        }
        let more = tokio::time::timeout(std::time::Duration::from_millis(100), client.open_uni());
        assert!(more.await.is_err(), "a fourth stream while three wait to be accepted");
        drop(server.accept_uni().await.unwrap());
        client.open_uni().await.unwrap();
    });
}

/// The reader's memory is bounded: a writer without a reader stops.
#[test]
fn a_reader_that_does_not_read_stops_the_writer_and_loses_nothing() {
    run(|| async {
        let mut small = TransportConfig::default();
        small.stream_receive_window(VarInt::from_u32(1 << 20));
        let Pair { client, server, endpoints: _endpoints } =
            pair_with(TransportConfig::default(), small).await;
        let sent = pattern(8 << 20);
        let (mut send, length) = (client.open_uni().await.unwrap(), sent.len());
        let copy = sent.clone();
        let written = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = std::sync::Arc::clone(&written);
        let writer = tokio::spawn(async move {
            let mut rest = &copy[..];
            while !rest.is_empty() {
                let some = send.write(rest).await.unwrap();
                counter.fetch_add(some, std::sync::atomic::Ordering::Relaxed);
                rest = &rest[some..];
            }
        });
        let mut recv = server.accept_uni().await.unwrap();
        let mut before = usize::MAX;
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            let now = written.load(std::sync::atomic::Ordering::Relaxed);
            if now == before {
                break;
            }
            before = now;
        }
        assert!(before < 6 << 20, "{before} bytes were written, and none was read");
        assert!(recv.read_to_end(length).await.unwrap() == sent);
        writer.await.unwrap();
    });
}

/// RFC 9218 §4: an urgent stream overtakes one that has more than the network takes.
#[test]
fn priorities_are_kept_with_the_stream() {
    run(|| async {
        let Pair { client, endpoints: _endpoints, .. } = pair().await;
        let send = client.open_uni().await.unwrap();
        assert_eq!(send.priority(), Ok(Priority::default()));
        let urgent = Priority { urgency: 0, incremental: true };
        send.set_priority(urgent).unwrap();
        assert_eq!(send.priority(), Ok(urgent));
    });
}
